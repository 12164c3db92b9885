//! Cost model of Planscope: operators, collectives, layers, memory, and their calibration.
//!
//! docs/models.md holds the formulas.

pub mod calibration;
pub mod cost;
