//! Each known or potential failure has a test that reproduces it.

mod bad_inputs;
mod findings;
mod known;
mod parsers;
