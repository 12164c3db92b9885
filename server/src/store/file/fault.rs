//! Why the file of a database is not opened, or not written any more, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why the file of a database is not opened, or not written any more.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// There is none.
    #[error("there is no database {0}")]
    Missing(PathBuf),
    /// Its path cannot be followed.
    #[error("{path} cannot be looked at: {reason}")]
    Unreachable {
        /// File or folder.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// It cannot be made.
    #[error("the database {path} cannot be made: {reason}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Something else has the name.
    #[error("{0} is not a file")]
    NotAFile(PathBuf),
    /// A symbolic link leads nowhere.
    #[error(
        "{link} is a symbolic link to {target}, which is not there; put the database there, or give the path of the file itself"
    )]
    Dangling {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// What SQLite keeps beside a database is there without it.
    #[error(
        "{companion} ({bytes} bytes) is there, but its database {database} is not: it was deleted or moved, and what was stored last may be in \
         {companion} only. Move the database back beside it; or restore a backup with planscope restore FILE --database {database} --replace, \
         which keeps what is left; or move {database}-wal and {database}-shm to another folder to begin with an empty database"
    )]
    Orphan {
        /// The database.
        database: PathBuf,
        /// What is left.
        companion: PathBuf,
        /// Its bytes.
        bytes: u64,
    },
    /// The database has no bytes, and its journal has.
    #[error(
        "the database {database} is empty, but {journal} is not: it may be the only copy of what was stored last, and SQLite would delete it. \
         Put the database back; or restore a backup with planscope restore FILE --database {database} --replace, which keeps both; or move \
         both to another folder to begin with an empty database"
    )]
    Emptied {
        /// The database.
        database: PathBuf,
        /// Its journal.
        journal: PathBuf,
    },
    /// It has several names, and a program that opens it by another one has another journal.
    #[error(
        "the database {database} has {links} names (hard links). Two programs that open it by different names destroy it. Delete the other \
         names (find FOLDER -samefile {database} lists them), or copy the file with cp and use the copy"
    )]
    Linked {
        /// The database.
        database: PathBuf,
        /// Names.
        links: u64,
    },
    /// It went while it was open.
    #[error(
        "the database {0} was deleted or moved while the server has it open, so that nothing is stored. Move it back. If it was deleted, do \
         not stop the server, which still has the content: docs/operators.md says how to copy it"
    )]
    Deleted(PathBuf),
    /// Another file has its name.
    #[error(
        "another file was put in the place of the database {0} while the server has it open, so that nothing is stored. Move the one from before \
         back, or stop the server to go on with the other"
    )]
    Replaced(PathBuf),
    /// Its bytes went while it was open.
    #[error(
        "the database {0} was emptied while the server has it open, so that nothing is stored. Stop the server and restore a backup"
    )]
    Truncated(PathBuf),
    /// Its journal went while it was open, or is another one.
    #[error(
        "the journal {0} was deleted, moved or replaced while the server has it open, so that nothing is stored. Move it back; or stop the server with \
         SIGTERM, which writes what the journal holds into the database"
    )]
    NoJournal(PathBuf),
}
