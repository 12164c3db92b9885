//! Measured kernels.

use crate::cost::kernel::Kernel;
use crate::units::Seconds;

/// One measured kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// What ran.
    pub kernel: Kernel,
    /// How long it took; the median where a profile gives several.
    pub time: Seconds,
}
