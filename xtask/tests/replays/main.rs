//! What went wrong once, or would, has a test that replays it.

mod bad_inputs;
mod findings;
mod known;
mod parsers;
