//! Profiles for a calibration. Each file is read separately, so an invalid file does not hide the
//! results of the rest.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ingest::profile::{self, Hints, MAX_BYTES, Profile};
use planner::calibration::Sample;

/// All input files, in input order.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) files: Vec<Measurements>,
}

#[derive(Debug)]
pub(crate) struct Measurements {
    /// File name without folder.
    pub(crate) name: String,
    /// The profile, or the error.
    pub(crate) read: anyhow::Result<Profile>,
}

impl Measured {
    /// Reads files. `ranks` is the group size for files that do not specify it.
    pub(crate) fn read(paths: &[PathBuf], ranks: Option<u32>) -> Self {
        let file = |path: &PathBuf| {
            let name =
                path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
            let hints = Hints { name: name.clone(), ranks, ranks_per_node: None };
            let read = bytes(path).and_then(|bytes| Ok(profile::read(&bytes, &hints)?));
            Measurements { name, read }
        };
        Self { files: paths.iter().map(file).collect() }
    }

    /// Number of files with errors.
    pub(crate) fn unusable(&self) -> usize {
        self.files.iter().filter(|file| file.read.is_err()).count()
    }

    /// Returns file name and device for all files that name their device.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|file| Some((file.name.as_str(), file.read.as_ref().ok()?.device.as_deref()?)))
    }

    /// The timings of all files.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.files
            .iter()
            .filter_map(|file| file.read.as_ref().ok())
            .flat_map(|profile| &profile.samples)
            .copied()
            .collect()
    }

    /// Returns the file names as the source of the fit.
    pub(crate) fn source(&self) -> String {
        self.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let context = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(context)?;
    // Read one byte beyond the limit to detect a profile that is too large.
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).with_context(context)?;
    Ok(bytes)
}
