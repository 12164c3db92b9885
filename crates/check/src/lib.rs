//! Independent check of plans. It shares no code with the planners.

pub mod check;
