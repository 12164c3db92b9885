//! Errors that prevent opening or writing a database file, with instructions for the operator.

use std::io;
use std::path::PathBuf;

/// Error that prevents opening a database file, or writing to an open database.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// The file does not exist.
    #[error("there is no database {0}")]
    Missing(PathBuf),
    /// The path cannot be accessed.
    #[error("{path} cannot be looked at: {reason}")]
    Unreachable {
        /// File or folder.
        path: PathBuf,
        /// I/O error.
        reason: io::Error,
    },
    /// The file cannot be created.
    #[error("the database {path} cannot be made: {reason}")]
    Unwritable {
        /// Affected file.
        path: PathBuf,
        /// I/O error.
        reason: io::Error,
    },
    /// The path is not a regular file.
    #[error("{0} is not a file")]
    NotAFile(PathBuf),
    /// The target of a symbolic link is missing.
    #[error(
        "{link} is a symbolic link to {target}, which is not there; put the database there, or give the path of the file itself"
    )]
    Dangling {
        /// The link.
        link: PathBuf,
        /// Target of the link.
        target: PathBuf,
    },
    /// A companion file of SQLite exists, but the database is missing.
    #[error(
        "{companion} ({bytes} bytes) is there, but its database {database} is not: it was deleted or moved, and what was stored last may be in \
         {companion} only. Move the database back beside it; or restore a backup with planscope restore FILE --database {database} --replace, \
         which keeps what is left; or move {database}-wal and {database}-shm to another folder to begin with an empty database"
    )]
    Orphan {
        /// The database.
        database: PathBuf,
        /// The companion file.
        companion: PathBuf,
        /// File size in bytes.
        bytes: u64,
    },
    /// The database is empty, but the journal is not.
    #[error(
        "the database {database} is empty, but {journal} is not: it may be the only copy of what was stored last, and SQLite would delete it. \
         Put the database back; or restore a backup with planscope restore FILE --database {database} --replace, which keeps both; or move \
         both to another folder to begin with an empty database"
    )]
    Emptied {
        /// The database.
        database: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// The file has several hard links. Opening it by different names creates different journals.
    #[error(
        "the database {database} has {links} names (hard links). Two programs that open it by different names destroy it. Delete the other \
         names (find FOLDER -samefile {database} lists them), or copy the file with cp and use the copy"
    )]
    Linked {
        /// The database.
        database: PathBuf,
        /// Number of hard links.
        links: u64,
    },
    /// The open database was deleted or moved.
    #[error(
        "the database {0} was deleted or moved while the server has it open, so that nothing is stored. Move it back. If it was deleted, do \
         not stop the server, which still has the content: docs/operators.md says how to copy it"
    )]
    Deleted(PathBuf),
    /// The open database was replaced by a different file.
    #[error(
        "another file was put in the place of the database {0} while the server has it open, so that nothing is stored. Move the one from before \
         back, or stop the server to go on with the other"
    )]
    Replaced(PathBuf),
    /// The open database was truncated.
    #[error(
        "the database {0} was emptied while the server has it open, so that nothing is stored. Stop the server and restore a backup"
    )]
    Truncated(PathBuf),
    /// The journal of the open database was deleted, moved or replaced.
    #[error(
        "the journal {0} was deleted, moved or replaced while the server has it open, so that nothing is stored. Move it back; or stop the server with \
         SIGTERM, which writes what the journal holds into the database"
    )]
    NoJournal(PathBuf),
}
