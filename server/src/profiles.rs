//! Profiles: fits measurements from files and applies the results to scenarios.
//!
//! Kernel and collective measurements fit the curves of a cluster, as in `planscope calibrate`.
//! Layer timings, also by sequence length and scheme, replace times from the cost model. A profile
//! is applied only on request, and the resulting scenario names it.

mod apply;
mod fit;
mod layers;
mod schemes;

pub(crate) use apply::apply;
pub(crate) use fit::{Base, fit};

/// Error when a profile cannot be created or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A file is not a profile.
    #[error("{name}: {reason}")]
    File {
        /// File name.
        name: String,
        /// Error message.
        reason: String,
    },
    /// Kernel and layer measurements are mixed.
    #[error(
        "kernels fit a cluster and layers give times in place of the model's: {kernels} is of the one kind, {layers} of the \
         other; make two profiles of them"
    )]
    Mixed {
        /// File with kernels.
        kernels: String,
        /// File with layers.
        layers: String,
    },
    /// Layer timings by scheme and layer timings at one degree are mixed.
    #[error(
        "{schemes} times layers by scheme and {layers} at one degree: the one would hide the other; make two profiles of them"
    )]
    MixedTimings {
        /// File with schemes.
        schemes: String,
        /// File with layers.
        layers: String,
    },
    /// Not enough measurements for any part.
    #[error("nothing can be fitted: {0}")]
    Nothing(String),
    /// The fitted cluster is outside the valid range of a scenario.
    #[error("the fitted cluster is out of range: {0}")]
    InvalidCluster(String),
    /// The device is missing in both the request and the files.
    #[error(
        "the files do not say which device they were measured on: choose one of {0}, or a scenario with that device"
    )]
    NoBase(String),
    /// No preset, or several presets, match the device in the files.
    #[error("{file} was measured on {device}: choose its device (presets: {known}), or a scenario with that device")]
    NoDevicePreset {
        /// File name.
        file: String,
        /// Device in the file.
        device: String,
        /// Identifiers of all presets.
        known: String,
    },
    /// A file names a different device, and the user has not confirmed this.
    #[error(
        "{file} was measured on {device}, but it is to be fitted to {selected}. Choose the device of the file (presets: {known}), or \
         confirm that its measurements hold for {selected}"
    )]
    OtherDevice {
        /// File name.
        file: String,
        /// Device in the file.
        device: String,
        /// Device to fit.
        selected: String,
        /// Identifiers of all presets.
        known: String,
    },
    /// The measurements are far from those of the device, and nobody confirmed them.
    #[error(
        "{0}. Another device, other kernels than those of training, or times in another unit: correct the file, or confirm that its \
         measurements hold for the chosen device"
    )]
    Implausible(String),
    /// Unknown preset.
    #[error("no device preset {0:?}; there are {1}")]
    NoPreset(String, String),
    /// Too many files or bytes for one profile.
    #[error("more than {0} files, or more than {1} MiB of them")]
    TooMuch(usize, usize),
    /// The profile was made from a run and contains no files.
    #[error("this profile comes from a run: there are no measurements that could be fitted again with others")]
    FromRun,
    /// The scenario already uses the profile.
    #[error("the scenario uses this profile already")]
    UsedAlready,
    /// The profile contains nothing for the scenario's model.
    #[error("nothing of it is for this scenario: {0}")]
    ForOthers(String),
}
