//! Uploads of logs and streams of events that are open at once: in all, and of one run or of one client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::client::Client;

/// Uploads that are open.
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
    /// Numbers of the uploads of each run, the oldest first, and what tells them that they are replaced.
    runs: HashMap<String, VecDeque<(u64, oneshot::Sender<()>)>>,
}

impl Uploads {
    pub(super) fn new(limit: usize, per_run: usize) -> Self {
        Self { table: Arc::default(), limit, per_run: per_run.max(1) }
    }

    /// A place for an upload of a run. It replaces the oldest of a run that has as many as it may: a connection that broke may be
    /// noticed late, and the trainer that comes back must not wait for it. `None` where all places of the server are taken.
    pub(super) fn seat(&self, run: &str) -> Option<UploadSeat> {
        let mut table = lock(&self.table);
        let own = table.runs.get_mut(run).filter(|own| own.len() >= self.per_run);
        // Its sender is dropped, which tells it.
        let is_replacing = own.is_some_and(|own| own.pop_front().is_some());
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

    /// How many are open.
    pub(super) fn open(&self) -> usize {
        lock(&self.table).open
    }
}

/// A place for an upload, until it is dropped or replaced.
#[derive(Debug)]
pub struct UploadSeat {
    table: Arc<Mutex<UploadTable>>,
    run: String,
    number: u64,
    replaced: oneshot::Receiver<()>,
}

impl UploadSeat {
    /// Resolves when a newer upload of the run has the place. It must not be called again then.
    pub async fn replaced(&mut self) {
        // Nothing is ever sent: the sender is dropped.
        let _ = (&mut self.replaced).await;
    }
}

impl Drop for UploadSeat {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        let Some(own) = table.runs.get_mut(&self.run) else { return };
        let before = own.len();
        own.retain(|(number, _)| *number != self.number);
        let (is_last, left) = (own.is_empty(), before - own.len());
        if is_last {
            table.runs.remove(&self.run);
        }
        // A replaced one has left its place to another.
        table.open -= left;
    }
}

/// Streams of events that are open.
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

/// Why a further stream is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStream {
    /// As many are open as the server has.
    Server(usize),
    /// As many are open as one client has.
    Client(usize),
}

impl Streams {
    pub(super) fn new(limit: usize, per_client: usize) -> Self {
        Self { table: Arc::default(), limit, per_client: per_client.max(1) }
    }

    /// A place for a stream of a client.
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

    /// How many are open.
    pub(super) fn open(&self) -> usize {
        lock(&self.table).open
    }
}

/// A place for a stream, until it is dropped.
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

/// The tables are whole after a panic elsewhere: nothing in here panics between two changes.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_third_upload_of_a_run_replaces_its_first() {
        let uploads = Uploads::new(3, 2);
        let (mut first, mut second) = (uploads.seat("a").unwrap(), uploads.seat("a").unwrap());
        let other = uploads.seat("b").unwrap();
        assert_eq!(uploads.open(), 3);
        assert!(uploads.seat("c").is_none(), "all places are taken");
        // A run that has all that it may gets on with its own, although the server is full.
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
    fn one_client_leaves_streams_to_others() {
        let streams = Streams::new(3, 2);
        let [one, other, third] = ["a", "b", "c"].map(Client::of_cookie);
        let first = streams.seat(&one).unwrap();
        let second = streams.seat(&one).unwrap();
        assert_eq!(streams.seat(&one).unwrap_err(), NoStream::Client(2));
        let further = streams.seat(&other).unwrap();
        assert_eq!(streams.seat(&third).unwrap_err(), NoStream::Server(3));
        drop(first);
        let again = streams.seat(&one).unwrap();
        assert_eq!(streams.open(), 3);
        drop((again, second, further));
        assert_eq!((streams.open(), lock(&streams.table).clients.len()), (0, 0));
    }
}
