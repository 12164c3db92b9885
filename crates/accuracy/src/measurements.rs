//! Compares own measurements of devices with the simulator.
//!
//! [`convert`] turns an output of `planscope measure` into the tables in crates/accuracy/measurements. [`page`] predicts their rows
//! with the constants of a preset and with those of a calibration, and returns docs/measurements.md. Operators are fitted;
//! layers and steps never are.

mod convert;
mod device;
mod fitted;
mod kernels;
mod kinds;
mod layers;
mod page;
mod rates;
mod runtime;
mod summary;

pub use convert::convert;
pub use page::page;
