//! Slots for concurrent log uploads and event streams: per server, per run and per client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::client::Client;

/// Slots for uploads.
#[derive(Debug)]
pub(super) struct Uploads {
    table: Arc<Mutex<UploadTable>>,
    limit: usize,
    per_run: usize,
}

#[derive(Debug, Default)]
struct UploadTable {
    open: usize,
    next: u64,
    /// Upload numbers per run, oldest first, with a channel that signals replacement.
    runs: HashMap<String, VecDeque<(u64, oneshot::Sender<()>)>>,
}

impl Uploads {
    pub(super) fn new(limit: usize, per_run: usize) -> Self {
        Self { table: Arc::default(), limit, per_run: per_run.max(1) }
    }

    /// Reserves an upload slot. If the run has reached its limit, the oldest upload is replaced: a
    /// broken connection may be detected late, and a trainer that reconnects must not wait for it.
    /// Returns `None` if all server slots are in use.
    pub(super) fn seat(&self, run: &str) -> Option<UploadSeat> {
        let mut table = lock(&self.table);
        let run_seats = table.runs.get_mut(run).filter(|seats| seats.len() >= self.per_run);
        // Dropping the sender signals replacement.
        let is_replacing = run_seats.is_some_and(|occupied| occupied.pop_front().is_some());
        if !is_replacing {
            if table.open >= self.limit {
                return None;
            }
            table.open += 1;
        }
        let number = table.next;
        table.next += 1;
        let (tell, replaced) = oneshot::channel();
        table.runs.entry(run.to_owned()).or_default().push_back((number, tell));
        Some(UploadSeat { table: Arc::clone(&self.table), run: run.to_owned(), number, replaced })
    }

    /// Number of open uploads.
    pub(super) fn open(&self) -> usize {
        lock(&self.table).open
    }
}

/// Upload slot, released when it is dropped or replaced.
#[derive(Debug)]
pub struct UploadSeat {
    table: Arc<Mutex<UploadTable>>,
    run: String,
    number: u64,
    replaced: oneshot::Receiver<()>,
}

impl UploadSeat {
    /// Resolves when a newer upload has replaced this one. Must not be called again.
    pub async fn replaced(&mut self) {
        // The sender sends no value; it is only dropped.
        let _ = (&mut self.replaced).await;
    }
}

impl Drop for UploadSeat {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        let Some(run_seats) = table.runs.get_mut(&self.run) else { return };
        let before = run_seats.len();
        run_seats.retain(|(number, _)| *number != self.number);
        let (is_last, left) = (run_seats.is_empty(), before - run_seats.len());
        if is_last {
            table.runs.remove(&self.run);
        }
        // A replaced upload has passed the slot to the newer upload.
        table.open -= left;
    }
}

/// Slots for event streams.
#[derive(Debug)]
pub(super) struct Streams {
    table: Arc<Mutex<StreamTable>>,
    limit: usize,
    per_client: usize,
}

#[derive(Debug, Default)]
struct StreamTable {
    open: usize,
    clients: HashMap<Client, usize>,
}

/// Reason why an event stream was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStream {
    /// The server has reached its stream limit.
    Server(usize),
    /// The client limit is reached.
    Client(usize),
}

impl Streams {
    pub(super) fn new(limit: usize, per_client: usize) -> Self {
        Self { table: Arc::default(), limit, per_client: per_client.max(1) }
    }

    /// Reserves a stream slot.
    pub(super) fn seat(&self, client: &Client) -> Result<StreamSeat, NoStream> {
        let mut table = lock(&self.table);
        if table.clients.get(client).is_some_and(|open| *open >= self.per_client) {
            return Err(NoStream::Client(self.per_client));
        }
        if table.open >= self.limit {
            return Err(NoStream::Server(self.limit));
        }
        table.open += 1;
        *table.clients.entry(client.clone()).or_default() += 1;
        Ok(StreamSeat { table: Arc::clone(&self.table), client: client.clone() })
    }

    /// Number of open streams.
    pub(super) fn open(&self) -> usize {
        lock(&self.table).open
    }
}

/// Stream slot, released on drop.
#[derive(Debug)]
pub struct StreamSeat {
    table: Arc<Mutex<StreamTable>>,
    client: Client,
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        table.open -= 1;
        let left = table.clients.get_mut(&self.client).map_or(0, |open| {
            *open -= 1;
            *open
        });
        if left == 0 {
            table.clients.remove(&self.client);
        }
    }
}

/// A panic cannot leave the tables inconsistent, because no code here panics between two related
/// updates.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn third_upload_replaces_the_first() {
        let uploads = Uploads::new(3, 2);
        let (mut first, mut second) = (uploads.seat("a").unwrap(), uploads.seat("a").unwrap());
        let other = uploads.seat("b").unwrap();
        assert_eq!(uploads.open(), 3);
        assert!(uploads.seat("c").is_none(), "all places are taken");
        // A run at its limit can replace its own upload even if the server is full.
        let mut third = uploads.seat("a").unwrap();
        assert!(first.replaced().now_or_never().is_some());
        assert!(second.replaced().now_or_never().is_none() && third.replaced().now_or_never().is_none());
        assert_eq!(uploads.open(), 3);
        drop(first);
        assert_eq!(uploads.open(), 3, "its place was the third one's");
        drop((second, third));
        assert_eq!(uploads.open(), 1);
        drop(other);
        assert_eq!((uploads.open(), lock(&uploads.table).runs.len()), (0, 0));
    }

    #[test]
    fn single_client_leaves_streams_to_others() {
        let streams = Streams::new(3, 2);
        let [client, other, third] = ["a", "b", "c"].map(Client::from_cookie);
        let first = streams.seat(&client).unwrap();
        let second = streams.seat(&client).unwrap();
        assert_eq!(streams.seat(&client).unwrap_err(), NoStream::Client(2));
        let further = streams.seat(&other).unwrap();
        assert_eq!(streams.seat(&third).unwrap_err(), NoStream::Server(3));
        drop(first);
        let again = streams.seat(&client).unwrap();
        assert_eq!(streams.open(), 3);
        drop((again, second, further));
        assert_eq!((streams.open(), lock(&streams.table).clients.len()), (0, 0));
    }
}
