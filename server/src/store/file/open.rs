//! Checks that the path still refers to the open database file.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use super::{FileFault, looked_up};
use crate::store::tenancy::with_suffix;

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

/// Identity of the open database file and its journal.
#[derive(Debug, Clone)]
pub(in crate::store) struct OpenFile {
    database: Arc<Path>,
    identity: Identity,
    /// `None` on file systems with no support for shared memory, where SQLite creates no journal.
    journal: Option<(Arc<Path>, Identity)>,
}

impl OpenFile {
    /// Returns the identity of a file that was just opened and written.
    pub(in crate::store) fn at(database: &Path) -> Result<Self, FileFault> {
        let metadata = looked_up(database)?.ok_or_else(|| FileFault::Deleted(database.to_owned()))?;
        let path = with_suffix(database, "-wal");
        let journal = looked_up(&path)?.map(|metadata| (Arc::from(path), identity(&metadata)));
        Ok(Self { database: Arc::from(database), identity: identity(&metadata), journal })
    }

    /// Returns an error if the path refers to a different file or to none. Writes in this state are
    /// lost when the process stops.
    ///
    /// The check is a single metadata lookup, so it runs in each transaction.
    pub(in crate::store) fn check_file(&self) -> Result<(), FileFault> {
        let path = || self.database.to_path_buf();
        match looked_up(&self.database)? {
            None => Err(FileFault::Deleted(path())),
            Some(metadata) if identity(&metadata) != self.identity => Err(FileFault::Replaced(path())),
            Some(metadata) if metadata.len() == 0 => Err(FileFault::Truncated(path())),
            Some(_) => Ok(()),
        }
    }

    /// Also checks the journal, which remains the same file as long as a connection is open.
    pub(in crate::store) fn check_file_and_journal(&self) -> Result<(), FileFault> {
        self.check_file()?;
        let Some((journal, known)) = &self.journal else { return Ok(()) };
        match looked_up(journal)? {
            Some(metadata) if identity(&metadata) == *known => Ok(()),
            _ => Err(FileFault::NoJournal(journal.to_path_buf())),
        }
    }
}
