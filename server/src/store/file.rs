//! The file of a database: its one real path, and whether it may be opened.

mod fault;
mod open;
#[cfg(test)]
mod tests;

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::tenancy::beside;

pub use fault::FileFault;
pub(super) use open::OpenFile;

/// Files that SQLite keeps beside a database; with another database they would be taken for its own.
pub(super) const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of a database without symbolic links, whether or not there is a file: SQLite's journal and the lock stand beside that one.
pub(super) fn real_path(given: &Path) -> Result<PathBuf, FileFault> {
    let unreachable = |path: &Path, reason| FileFault::Unreachable { path: path.to_owned(), reason };
    match canonical(given) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(target) = fs::read_link(given) {
                return Err(FileFault::Dangling { link: given.to_owned(), target: folder(given).join(target) });
            }
            let name = given.file_name().ok_or_else(|| unreachable(given, error))?;
            let folder = folder(given);
            Ok(canonical(folder).map_err(|reason| unreachable(folder, reason))?.join(name))
        }
        Err(error) => Err(unreachable(given, error)),
    }
}

#[cfg(unix)]
fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Canonical paths of Windows have a form that SQLite does not know.
#[cfg(not(unix))]
fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::metadata(path)?;
    std::path::absolute(path)
}

/// Refuses a real path at which no database can be opened without loss. Says whether there is one.
pub(super) fn inspect(database: &Path) -> Result<bool, FileFault> {
    let journal = beside(database, "-wal");
    let Some(metadata) = looked_up(database)? else {
        for companion in COMPANIONS.iter().map(|ending| beside(database, ending)) {
            if let Some(left) = looked_up(&companion)? {
                return Err(FileFault::Orphan { database: database.to_owned(), companion, bytes: left.len() });
            }
        }
        return Ok(false);
    };
    if !metadata.is_file() {
        return Err(FileFault::NotAFile(database.to_owned()));
    }
    let links = links(&metadata);
    if links > 1 {
        return Err(FileFault::Linked { database: database.to_owned(), links });
    }
    if metadata.len() == 0 && journal.metadata().is_ok_and(|journal| journal.len() > 0) {
        return Err(FileFault::Emptied { database: database.to_owned(), journal });
    }
    Ok(true)
}

/// The real path of a database that must be there.
pub(super) fn existing(given: &Path) -> Result<PathBuf, FileFault> {
    let database = match real_path(given) {
        // A folder that is not there has no database either.
        Err(FileFault::Unreachable { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
            return Err(FileFault::Missing(given.to_owned()));
        }
        path => path?,
    };
    if inspect(&database)? { Ok(database) } else { Err(FileFault::Missing(given.to_owned())) }
}

/// Makes an empty file that only its owner may read, unless there is one. SQLite gives its journal the permissions of the database.
pub(super) fn create(database: &Path) -> Result<(), FileFault> {
    match private(OpenOptions::new().write(true).create_new(true)).open(database) {
        Err(reason) if reason.kind() != io::ErrorKind::AlreadyExists => {
            Err(FileFault::Unwritable { path: database.to_owned(), reason })
        }
        _ => Ok(()),
    }
}

/// Files that are made are for their owner alone.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Permissions of a file, where others than its owner have any.
#[cfg(unix)]
pub(super) fn open_to_others(path: &Path) -> Option<u32> {
    let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().ok()?) & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Permissions of a file, where others than its owner have any.
#[cfg(not(unix))]
pub(super) fn open_to_others(_: &Path) -> Option<u32> {
    None
}

fn looked_up(path: &Path) -> Result<Option<Metadata>, FileFault> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(FileFault::Unreachable { path: path.to_owned(), reason }),
    }
}

#[cfg(unix)]
fn links(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn links(_: &Metadata) -> u64 {
    1
}
