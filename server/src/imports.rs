//! Import of complete files into the database, with limited concurrency.
//!
//! Log, dataset and profile files are in memory during upload (bounded by [`crate::arrival`]), and
//! the parsed data is several times larger. Traces are received into temporary files with separate
//! limits ([`crate::traces`]).

mod body;
mod choice;
mod prepared;
mod previews;
pub(crate) mod ranges;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub(crate) use body::{BodyReader, BodySender};
pub(crate) use choice::ImportOptions;
pub(crate) use prepared::{Prepared, candidate_column};
pub(crate) use previews::{PREVIEW_LIFETIME, Previews};

use crate::shares::{NoFreeSlot, Places, Sharer, Slot};

/// Limits for concurrent imports.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Maximum number of files parsed concurrently.
    pub turns: usize,
    /// Timeout for acquiring a turn.
    pub patience: Duration,
}

impl Default for ImportLimits {
    /// One file at a time, as for traces.
    fn default() -> Self {
        Self { turns: 1, patience: Duration::from_secs(30) }
    }
}

/// Number of uploads of unlimited size that are parsed concurrently. A single sender gets at most
/// all but one.
const STREAMS: usize = 3;
/// Bytes that must arrive before an upload takes a slot. Very slow senders therefore take no slot.
pub(crate) const BYTES_BEFORE_SLOT: usize = 1 << 20;

/// Concurrency limits for imports, and imported data that is not stored yet.
#[derive(Debug)]
pub struct Imports {
    turns: Arc<Semaphore>,
    streams: Places,
    pub(crate) previews: Arc<Previews>,
    limits: ImportLimits,
}

/// Permission to parse a file. It is released on drop.
#[derive(Debug)]
pub enum Turn {
    /// For a file that is complete in memory.
    Buffered(OwnedSemaphorePermit),
    /// For a file that is parsed during upload.
    Stream(Slot),
}

impl Imports {
    /// Creates the import state with the given limits.
    pub fn new(limits: ImportLimits) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(limits.turns.max(1))),
            streams: Places::new(STREAMS, limits.patience),
            previews: Arc::default(),
            limits,
        }
    }

    /// Acquires a turn to parse a file of any size during upload. Returns [`NoFreeSlot`] on timeout.
    pub async fn stream(&self, sharer: &Sharer) -> Result<Turn, NoFreeSlot> {
        Ok(Turn::Stream(self.streams.acquire(sharer).await?))
    }

    /// Acquires a turn to parse a file in memory. Returns [`NoFreeSlot`] on timeout.
    pub async fn turn(&self) -> Result<Turn, NoFreeSlot> {
        let permit = timeout(self.limits.patience, Arc::clone(&self.turns).acquire_owned()).await;
        Ok(Turn::Buffered(permit.map_err(|_| NoFreeSlot)?.map_err(|_| NoFreeSlot)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_read_in_turn() {
        let imports = Imports::new(ImportLimits { turns: 1, patience: Duration::from_millis(1) });
        let turn = imports.turn().await.unwrap();
        assert_eq!(imports.turn().await.unwrap_err(), NoFreeSlot);
        let [first, other] = [1, 2].map(|last| Sharer::new([10, 0, 0, last].into(), None));
        let streams = (imports.stream(&first).await.unwrap(), imports.stream(&first).await.unwrap());
        assert_eq!(imports.stream(&first).await.unwrap_err(), NoFreeSlot);
        imports.stream(&other).await.unwrap();
        drop((turn, streams));
        imports.turn().await.unwrap();
        imports.stream(&first).await.unwrap();
    }
}
