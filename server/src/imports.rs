//! Whole files on their way into the database: they are read in turn.
//!
//! A file of a log, a dataset or a profile is in memory while it comes ([`crate::arrival`] bounds that), and what is read of it, unpacked,
//! is many times as large. Traces come into files of their own, of which there are few at once ([`crate::traces`]).

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

use crate::shares::{Busy, Place, Places, Sharer};

/// How much is imported at once.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Files that are read at once.
    pub turns: usize,
    /// How long a turn is waited for.
    pub patience: Duration,
}

impl Default for ImportLimits {
    /// One file is read at a time, as it is with traces.
    fn default() -> Self {
        Self { turns: 1, patience: Duration::from_secs(30) }
    }
}

/// Files of any size that are read at once as they come. A sender has all but one.
const STREAMS: usize = 3;
/// Bytes of a file that come before it takes one of few places: whoever sends a byte now and then holds none.
pub(crate) const BEFORE_PLACE: usize = 1 << 20;

/// Turns for files, and what is held of them before it is stored.
#[derive(Debug)]
pub struct Imports {
    turns: Arc<Semaphore>,
    streams: Places,
    pub(crate) previews: Arc<Previews>,
    limits: ImportLimits,
}

/// A turn to read, until it is dropped.
#[derive(Debug)]
pub enum Turn {
    /// For a file that is there.
    Whole(OwnedSemaphorePermit),
    /// For a file that is read as it comes.
    Stream(Place),
}

impl Imports {
    /// Nothing is imported yet.
    pub fn new(limits: ImportLimits) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(limits.turns.max(1))),
            streams: Places::new(STREAMS, limits.patience),
            previews: Arc::default(),
            limits,
        }
    }

    /// A turn to read a file of any size as it comes. It is waited for a while.
    pub async fn stream(&self, sharer: &Sharer) -> Result<Turn, Busy> {
        Ok(Turn::Stream(self.streams.place(sharer).await?))
    }

    /// A turn to read. It is waited for a while.
    pub async fn turn(&self) -> Result<Turn, Busy> {
        let place = timeout(self.limits.patience, Arc::clone(&self.turns).acquire_owned()).await;
        Ok(Turn::Whole(place.map_err(|_| Busy)?.map_err(|_| Busy)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_read_in_turn() {
        let imports = Imports::new(ImportLimits { turns: 1, patience: Duration::from_millis(1) });
        let turn = imports.turn().await.unwrap();
        assert_eq!(imports.turn().await.unwrap_err(), Busy);
        let [one, other] = [1, 2].map(|last| Sharer::new([10, 0, 0, last].into(), None));
        let streams = (imports.stream(&one).await.unwrap(), imports.stream(&one).await.unwrap());
        assert_eq!(imports.stream(&one).await.unwrap_err(), Busy);
        imports.stream(&other).await.unwrap();
        drop((turn, streams));
        imports.turn().await.unwrap();
        imports.stream(&one).await.unwrap();
    }
}
