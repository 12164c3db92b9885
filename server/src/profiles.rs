//! Profiles: files of measurements become fitted figures, and figures become part of a scenario.
//!
//! Kernels and collectives fit the curves of a cluster, as `planscope calibrate` does; timed layers, also those by sequence length and
//! scheme, become times in place of the model's. Nothing is applied until somebody asks for a scenario that uses a profile, and that scenario names it.

mod apply;
mod fit;
mod layers;
mod schemes;

pub(crate) use apply::apply;
pub(crate) use fit::{Base, fit};

/// Why a profile cannot be made, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A file that is no profile.
    #[error("{name}: {reason}")]
    File {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Kernels and layers together.
    #[error(
        "kernels fit a cluster and layers give times in place of the model's: {kernels} is of the one kind, {layers} of the \
         other; make two profiles of them"
    )]
    Mixed {
        /// A file of kernels.
        kernels: String,
        /// A file of layers.
        layers: String,
    },
    /// Layers by scheme and layers at one degree together.
    #[error(
        "{schemes} times layers by scheme and {layers} at one degree: the one would hide the other; make two profiles of them"
    )]
    TwoWays {
        /// A file of schemes.
        schemes: String,
        /// A file of layers.
        layers: String,
    },
    /// Too few measurements of everything.
    #[error("nothing can be made of it: {0}")]
    Nothing(String),
    /// The fitted cluster is none that a scenario may have.
    #[error("the fitted cluster is out of range: {0}")]
    OutOfRange(String),
    /// Neither the request nor the files say which device is to be fitted.
    #[error(
        "the files do not say which device they were measured on: choose one of {0}, or a scenario with that device"
    )]
    NoBase(String),
    /// The device of the files has no preset, or several.
    #[error("{file} was measured on {device}: choose its device (presets: {known}), or a scenario with that device")]
    NoPresetOf {
        /// The file.
        file: String,
        /// Its device.
        device: String,
        /// Identifiers of the presets.
        known: String,
    },
    /// A file is of another device than the one to be fitted, and nobody confirmed it.
    #[error(
        "{file} was measured on {device}, but it is to be fitted to {chosen}. Choose the device of the file (presets: {known}), or \
         confirm that its measurements hold for {chosen}"
    )]
    OtherDevice {
        /// The file.
        file: String,
        /// Its device.
        device: String,
        /// The device to be fitted.
        chosen: String,
        /// Identifiers of the presets.
        known: String,
    },
    /// The measurements are far from those of the device, and nobody confirmed them.
    #[error(
        "{0}. Another device, other kernels than those of training, or times in another unit: correct the file, or confirm that its \
         measurements hold for the chosen device"
    )]
    Implausible(String),
    /// No such preset.
    #[error("no device preset {0:?}; there are {1}")]
    NoPreset(String, String),
    /// More than is kept together.
    #[error("more than {0} files, or more than {1} MiB of them")]
    TooMuch(usize, usize),
    /// A profile from a run has no files.
    #[error("this profile comes from a run: there are no measurements that could be fitted again with others")]
    FromRun,
    /// It is used already.
    #[error("the scenario uses this profile already")]
    UsedAlready,
    /// Nothing of it is for the scenario's model.
    #[error("nothing of it is for this scenario: {0}")]
    ForOthers(String),
}
