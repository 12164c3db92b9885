//! Measured kernels.

use crate::cost::kernel::Kernel;
use planscope_core::units::Seconds;

/// A measured kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The kernel with its shape.
    pub kernel: Kernel,
    /// Measured time; the median if a profile contains several.
    pub time: Seconds,
}
