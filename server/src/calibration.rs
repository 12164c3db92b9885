//! Calibration from profile files: the starting cluster, the measurements and the report.

pub(crate) mod profiles;
pub(crate) mod start;
pub(crate) mod told;
