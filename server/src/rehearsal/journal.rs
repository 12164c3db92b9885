//! What a rank tells the conductor, without being held up by it.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::control::{self, FromRank, Record};

/// Where a rank is, and what has happened since it was last told.
#[derive(Debug)]
pub(super) struct Journal {
    conductor: Mutex<TcpStream>,
    records: Mutex<Vec<Record>>,
    at: AtomicU32,
}

impl Journal {
    pub(super) fn new(conductor: TcpStream) -> Self {
        Self { conductor: Mutex::new(conductor), records: Mutex::default(), at: AtomicU32::new(0) }
    }

    /// Notes what happened, to be told with what follows.
    pub(super) fn note(&self, index: u32, begin_ns: u64, end_ns: u64) {
        let record = Record { index, begin_ns, end_ns };
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// Notes the action that the rank is at.
    pub(super) fn arrive(&self, index: usize) {
        self.at.store(index as u32, Ordering::Relaxed);
    }

    /// The action that the rank is at.
    pub(super) fn at(&self) -> u32 {
        self.at.load(Ordering::Relaxed)
    }

    /// Tells what has been noted.
    pub(super) fn flush(&self) -> io::Result<()> {
        let records = std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner));
        if records.is_empty() { Ok(()) } else { self.tell(&FromRank::Happened(records)) }
    }

    /// Tells something else.
    pub(super) fn tell(&self, message: &FromRank) -> io::Result<()> {
        control::tell(&mut *self.conductor.lock().unwrap_or_else(PoisonError::into_inner), message)
    }
}
