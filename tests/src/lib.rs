//! A complete server in tests: the real router with a database file, without a socket.

pub mod engines;
pub mod listener;
pub mod reply;
pub mod test_server;

pub use listener::{Heard, Listener};
pub use reply::Reply;
pub use test_server::{Settings, TestServer};
