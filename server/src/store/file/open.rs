//! Whether the file that is open is still the one that the path leads to.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use super::{FileFault, looked_up};
use crate::store::tenancy::beside;

/// Device and inode of a file.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0)
}

/// The file that a store has open.
#[derive(Debug, Clone)]
pub(in crate::store) struct OpenFile {
    database: Arc<Path>,
    identity: Identity,
    /// Where SQLite could make one; on file systems without shared memory it cannot.
    journal: Option<(Arc<Path>, Identity)>,
}

impl OpenFile {
    /// The file at a real path, right after it was opened and written.
    pub(in crate::store) fn at(database: &Path) -> Result<Self, FileFault> {
        let metadata = looked_up(database)?.ok_or_else(|| FileFault::Deleted(database.to_owned()))?;
        let path = beside(database, "-wal");
        let journal = looked_up(&path)?.map(|metadata| (Arc::from(path), identity(&metadata)));
        Ok(Self { database: Arc::from(database), identity: identity(&metadata), journal })
    }

    /// Refuses where the path leads to another file than the open one, or to none: what is written then is lost with the program.
    ///
    /// A look at an entry of a folder, so cheap that every transaction does it.
    pub(in crate::store) fn in_place(&self) -> Result<(), FileFault> {
        let path = || self.database.to_path_buf();
        match looked_up(&self.database)? {
            None => Err(FileFault::Deleted(path())),
            Some(metadata) if identity(&metadata) != self.identity => Err(FileFault::Replaced(path())),
            Some(metadata) if metadata.len() == 0 => Err(FileFault::Truncated(path())),
            Some(_) => Ok(()),
        }
    }

    /// The same for the journal too, which stays the same file as long as a connection is open.
    pub(in crate::store) fn in_place_with_journal(&self) -> Result<(), FileFault> {
        self.in_place()?;
        let Some((journal, known)) = &self.journal else { return Ok(()) };
        match looked_up(journal)? {
            Some(metadata) if identity(&metadata) == *known => Ok(()),
            _ => Err(FileFault::NoJournal(journal.to_path_buf())),
        }
    }
}
