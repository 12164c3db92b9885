//! Whole files on their way into the database: so many bytes of them are held at once, and they are read in turn.
//!
//! A file of a log, a dataset or a profile is in memory while it comes, and what is read of it, unpacked, is many times as large. Traces come
//! into files of their own, of which there are few at once ([`crate::traces`]).

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
pub(crate) use choice::Choice;
pub(crate) use prepared::{Prepared, candidate_column};
pub(crate) use previews::{PREVIEW_LIFETIME, Previews};

/// How much is imported at once.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Bytes that may be held, in MiB.
    pub held_mib: u32,
    /// Files that are read at once.
    pub turns: usize,
    /// How long room or a turn is waited for.
    pub patience: Duration,
}

impl Default for ImportLimits {
    /// Four of the largest logs, or sixteen of the largest datasets; one of them is read, as it is with traces.
    fn default() -> Self {
        Self { held_mib: 1024, turns: 1, patience: Duration::from_secs(30) }
    }
}

/// Files of any size that are read at once as they come.
const STREAMS: usize = 2;

/// Room and turns for files, and what is held of them before it is stored.
#[derive(Debug)]
pub struct Imports {
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    pub(crate) previews: Arc<Previews>,
    limits: ImportLimits,
}

/// Room for a file, until it is dropped.
#[derive(Debug)]
pub struct Room {
    _mebibytes: OwnedSemaphorePermit,
}

/// A turn to read, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _place: OwnedSemaphorePermit,
}

/// So much is being imported that there was no room, or no turn, for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other files are being read; try again in a few seconds")]
pub struct Busy;

impl Imports {
    /// Nothing is imported yet.
    pub fn new(limits: ImportLimits) -> Self {
        Self {
            room: Arc::new(Semaphore::new(limits.held_mib as usize)),
            turns: Arc::new(Semaphore::new(limits.turns.max(1))),
            streams: Arc::new(Semaphore::new(STREAMS)),
            previews: Arc::default(),
            limits,
        }
    }

    /// Room for a file that says its size in bytes, or may have so many MiB where it does not. It is waited for a while, and the file
    /// waits with its sender.
    pub async fn room(&self, said: Option<u64>, most_mib: usize) -> Result<Room, Busy> {
        let most = u32::try_from(most_mib).unwrap_or(u32::MAX);
        let said = said.map(|bytes| u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX));
        // What says more is refused as soon as it is read.
        let mebibytes = said.map_or(most, |said| said.clamp(1, most)).min(self.limits.held_mib);
        let room = timeout(self.limits.patience, Arc::clone(&self.room).acquire_many_owned(mebibytes)).await;
        Ok(Room { _mebibytes: room.map_err(|_| Busy)?.map_err(|_| Busy)? })
    }

    /// A turn to read a file of any size as it comes. It is waited for a while.
    pub async fn stream(&self) -> Result<Turn, Busy> {
        let place = timeout(self.limits.patience, Arc::clone(&self.streams).acquire_owned()).await;
        Ok(Turn { _place: place.map_err(|_| Busy)?.map_err(|_| Busy)? })
    }

    /// A turn to read. It is waited for a while.
    pub async fn turn(&self) -> Result<Turn, Busy> {
        let place = timeout(self.limits.patience, Arc::clone(&self.turns).acquire_owned()).await;
        Ok(Turn { _place: place.map_err(|_| Busy)?.map_err(|_| Busy)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_has_the_room_that_it_says_or_that_it_may_take() {
        let limits = ImportLimits { held_mib: 64, turns: 1, patience: Duration::from_millis(1) };
        let imports = Imports::new(limits);
        // One byte is a MiB, one more than a MiB are two; more than a file may have, and nothing said, are what it may have.
        for (said, left) in [(Some(1), 63), (Some((1 << 20) + 1), 62), (Some(1 << 40), 48), (None, 48)] {
            let room = imports.room(said, 16).await.unwrap();
            assert_eq!(imports.room.available_permits(), left, "{said:?}");
            drop(room);
        }
        let all = imports.room(None, 256).await.unwrap();
        assert_eq!(imports.room(Some(1), 16).await.unwrap_err(), Busy);
        drop(all);
        imports.room(Some(1), 16).await.unwrap();
    }
}
