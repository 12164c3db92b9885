//! Published planners and their baselines, each in one folder, and the [`engine`] that runs them.

pub mod engine;
pub mod planners;
