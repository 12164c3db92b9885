//! Import and display of traces.
//!
//! [`import`] parses a file and packs it by level of detail, lanes and time. [`view`] assembles
//! chunks to a view. [`stored`] converts them back to a trace, for comparisons, whose results
//! [`tables`] writes as CSV and text. [`observed`] reconstructs pipeline iterations from annotated actions.

pub(crate) mod arrows;
pub(crate) mod counters;
pub(crate) mod import;
pub(crate) mod observed;
pub(crate) mod overview;
pub(crate) mod packed;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use crate::shares::NoFreeSlot;
use crate::shares::{Places, Sharer, Slot};

/// Slices per stored chunk: some tens of kilobytes packed, and milliseconds to load.
pub(crate) const CHUNK_SPANS: usize = 4096;
/// Names per stored block.
pub(crate) const BLOCK_NAMES: u32 = 512;

/// Limits for receiving and storing traces.
#[derive(Debug, Clone)]
pub struct TraceLimits {
    /// Folder for incoming files. It needs space for the maximum number of incoming files at
    /// maximum size.
    pub folder: PathBuf,
    /// Maximum number of incoming files.
    pub on_their_way: usize,
    /// Timeout for acquiring an upload slot.
    pub patience: Duration,
    /// Maximum upload size in MiB.
    pub upload_mib: u64,
    /// Limits for parsing.
    pub reading: ingest::trace::Limits,
    /// Time in which a deleted trace can be restored.
    pub retention: Duration,
}

impl TraceLimits {
    /// Returns the default limits with the given folder for incoming files.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            // A file is parsed while a second file is received. The third slot remains available to
            // other senders.
            on_their_way: 3,
            patience: Duration::from_secs(30),
            upload_mib: 1024,
            reading: ingest::trace::Limits::default(),
            retention: Duration::from_hours(30 * 24),
        }
    }

    /// Returns the time before which deleted traces can no longer be restored.
    pub fn deleted_before(&self, now: Timestamp) -> Timestamp {
        let lifetime = SignedDuration::try_from(self.retention).unwrap_or(SignedDuration::MAX);
        now.checked_sub(lifetime).unwrap_or(Timestamp::MIN)
    }
}

/// Receives and parses traces. Parsing is sequential, because large traces need hundreds of
/// megabytes.
#[derive(Debug)]
pub struct Traces {
    /// Limits for receiving and storing traces.
    pub limits: TraceLimits,
    places: Places,
    turn: Arc<Semaphore>,
}

impl Traces {
    /// Creates the state with the given limits.
    pub fn new(limits: TraceLimits) -> Self {
        let places = Places::new(limits.on_their_way, limits.patience);
        Self { places, turn: Arc::new(Semaphore::new(1)), limits }
    }

    /// Acquires an upload slot. The client's data is not received meanwhile. Returns [`NoFreeSlot`] on
    /// timeout.
    pub async fn acquire_slot(&self, sharer: &Sharer) -> Result<Slot, NoFreeSlot> {
        self.places.acquire(sharer).await
    }

    /// Returns the semaphore for parsing.
    pub(crate) fn turn(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turn)
    }
}
