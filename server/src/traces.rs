//! Traces between the file that is uploaded and the columns that are stored.
//!
//! [`import`] reads a file and packs it by level of detail, lanes and time; [`view`] puts the parts that a view needs together
//! again; [`observed`] makes iterations of a pipeline of annotated actions.

pub(crate) mod arrows;
pub(crate) mod counters;
pub(crate) mod import;
pub(crate) mod observed;
pub(crate) mod overview;
pub(crate) mod packed;
pub(crate) mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use crate::shares::Busy;
use crate::shares::{Place, Places, Sharer};

/// Slices of a stored part: a few tens of kilobytes packed, a few milliseconds to read.
pub(crate) const CHUNK_SPANS: usize = 4096;
/// Names of a stored block.
pub(crate) const BLOCK_NAMES: u32 = 512;

/// Limits of what is taken and kept.
#[derive(Debug, Clone)]
pub struct TraceLimits {
    /// Folder for files on their way; it needs room for as many of the largest size as may be on their way.
    pub folder: PathBuf,
    /// Files that may be on their way at once.
    pub on_their_way: usize,
    /// How long a place for a file is waited for.
    pub patience: Duration,
    /// Largest upload, in MiB.
    pub upload_mib: u64,
    /// Limits of reading.
    pub reading: ingest::trace::Limits,
    /// How long a deleted trace can come back.
    pub retention: Duration,
}

impl TraceLimits {
    /// As a server has them by default, with files on their way in a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            // One is read while the next one comes, and one is left to other senders.
            on_their_way: 3,
            patience: Duration::from_secs(30),
            upload_mib: 1024,
            reading: ingest::trace::Limits::default(),
            retention: Duration::from_hours(30 * 24),
        }
    }

    /// What was deleted before this moment cannot be brought back any more.
    pub fn deleted_before(&self, now: Timestamp) -> Timestamp {
        let kept = SignedDuration::try_from(self.retention).unwrap_or(SignedDuration::MAX);
        now.checked_sub(kept).unwrap_or(Timestamp::MIN)
    }
}

/// Where traces are received and read, one at a time: the largest needs hundreds of megabytes.
#[derive(Debug)]
pub struct Traces {
    /// Limits of what is taken and kept.
    pub limits: TraceLimits,
    places: Places,
    turn: Arc<Semaphore>,
}

impl Traces {
    /// Reads within limits.
    pub fn new(limits: TraceLimits) -> Self {
        let places = Places::new(limits.on_their_way, limits.patience);
        Self { places, turn: Arc::new(Semaphore::new(1)), limits }
    }

    /// A place for a file on its way. It is waited for a while, and the file waits with its sender.
    pub async fn place(&self, sharer: &Sharer) -> Result<Place, Busy> {
        self.places.place(sharer).await
    }

    /// A turn to read.
    pub(crate) fn turn(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turn)
    }
}
