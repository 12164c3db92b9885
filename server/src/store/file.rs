//! Database file: canonical path and checks before opening.

mod fault;
mod open;
#[cfg(test)]
mod tests;

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::tenancy::with_suffix;

pub use fault::FileFault;
pub(super) use open::OpenFile;

/// Suffixes of SQLite's companion files. SQLite uses leftover files for a new database with the
/// same name.
pub(super) const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Returns the parent folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path of a database with symbolic links resolved, even if the file does not exist.
/// Journal and lock are stored next to the resolved path.
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

/// SQLite does not support the canonical path format of Windows.
#[cfg(not(unix))]
fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::metadata(path)?;
    std::path::absolute(path)
}

/// Rejects a path where opening a database loses data. Returns true if a database exists.
pub(super) fn inspect(database: &Path) -> Result<bool, FileFault> {
    let journal = with_suffix(database, "-wal");
    let Some(metadata) = looked_up(database)? else {
        for companion in COMPANIONS.iter().map(|ending| with_suffix(database, ending)) {
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

/// Returns the resolved path of an existing database.
pub(super) fn existing(given: &Path) -> Result<PathBuf, FileFault> {
    let database = match real_path(given) {
        // If the folder is missing, the database is missing too.
        Err(FileFault::Unreachable { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
            return Err(FileFault::Missing(given.to_owned()));
        }
        path => path?,
    };
    if inspect(&database)? { Ok(database) } else { Err(FileFault::Missing(given.to_owned())) }
}

/// Creates an empty file with owner-only permissions if the file is missing. SQLite copies these
/// permissions to the journal.
pub(super) fn create(database: &Path) -> Result<(), FileFault> {
    match private(OpenOptions::new().write(true).create_new(true)).open(database) {
        Err(reason) if reason.kind() != io::ErrorKind::AlreadyExists => {
            Err(FileFault::Unwritable { path: database.to_owned(), reason })
        }
        _ => Ok(()),
    }
}

/// Sets owner-only permissions for new files.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Returns the permissions if users other than the owner have access.
#[cfg(unix)]
pub(super) fn open_to_others(path: &Path) -> Option<u32> {
    let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().ok()?) & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

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
