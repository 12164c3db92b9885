//! The profiles of a calibration, each read by itself, so that one bad file hides nothing of the others.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ingest::profile::{self, Hints, MAX_BYTES, Profile};
use planner::calibration::Sample;

/// Every file that was given, in that order.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) files: Vec<Measurements>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Measurements {
    /// The file's name, without its folder.
    pub(crate) name: String,
    /// What it holds, or why that cannot be used.
    pub(crate) read: anyhow::Result<Profile>,
}

impl Measured {
    /// Reads files; `ranks` are the devices of a group where a file leaves that out.
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

    /// Files that cannot be used at all.
    pub(crate) fn unusable(&self) -> usize {
        self.files.iter().filter(|file| file.read.is_err()).count()
    }

    /// The files that say which device they were measured on, with the device.
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

    /// Where a fit comes from: the files' names.
    pub(crate) fn source(&self) -> String {
        self.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let context = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(context)?;
    // One byte more than is accepted, to tell a profile that is too large from one that just fits.
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).with_context(context)?;
    Ok(bytes)
}
