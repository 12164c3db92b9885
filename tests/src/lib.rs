//! A whole server in a test: the real router over a database file of its own, without a socket.

pub mod engines;
pub mod house;
pub mod listener;
pub mod reply;

pub use house::{House, Settings};
pub use listener::{Heard, Listener};
pub use reply::Reply;
