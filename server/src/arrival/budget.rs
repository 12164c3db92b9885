//! Memory of the bodies of all requests.
//!
//! A body takes room as its bytes come and gives it back when the request ends, or when the last of those ends who hold its
//! [`Room`]: the work on a file may outlast its sender.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::{BodyKind, Pace};
use crate::error::LimitError;

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;

/// Limits of bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Bytes of all bodies that are held at once.
    pub held_bytes: u64,
    /// How long a body waits for room, on the whole, before it is refused.
    pub patience: Duration,
    /// Longest time without a byte.
    pub silence: Duration,
    /// Most time that bytes earn in advance.
    pub credit: Duration,
    /// Slowest pace of documents.
    pub documents: Pace,
    /// Slowest pace of whole files.
    pub imports: Pace,
}

impl Default for BodyLimits {
    /// A slow line has more than these paces; whoever holds connections with single bytes has not.
    fn default() -> Self {
        Self {
            held_bytes: 512 * MEBIBYTE,
            patience: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            credit: Duration::from_mins(1),
            documents: Pace { bytes_per_second: KIBIBYTE, grace: Duration::from_mins(1) },
            imports: Pace { bytes_per_second: 64 * KIBIBYTE, grace: Duration::from_secs(30) },
        }
    }
}

impl BodyLimits {
    /// The slowest pace of a kind of body.
    pub(super) fn pace(&self, kind: BodyKind) -> Pace {
        match kind {
            BodyKind::Trace | BodyKind::Import => self.imports,
            BodyKind::Log | BodyKind::Document => self.documents,
        }
    }
}

/// The memory of the bodies of all requests, in KiB.
#[derive(Debug)]
pub struct Bodies {
    all: Arc<Semaphore>,
    /// Three quarters of all, which files may take. They are held for long, and documents need room beside them.
    imports: Arc<Semaphore>,
    limits: BodyLimits,
}

impl Bodies {
    /// No body is held yet.
    pub fn new(limits: BodyLimits) -> Self {
        let all = usize::try_from(limits.held_bytes / KIBIBYTE).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(all)), imports: Arc::new(Semaphore::new(all - all / 4)), limits }
    }

    /// Bytes that bodies have taken.
    pub fn held_bytes(&self) -> u64 {
        let free = self.all.available_permits() as u64;
        (self.limits.held_bytes / KIBIBYTE).saturating_sub(free) * KIBIBYTE
    }

    /// Bytes that one body may take.
    fn capacity(&self, kind: BodyKind) -> u64 {
        let all = self.limits.held_bytes / KIBIBYTE;
        (if kind == BodyKind::Import { all - all / 4 } else { all }) * KIBIBYTE
    }
}

/// Room of one body. Clones share it; the last one gives it back.
#[derive(Debug, Clone)]
pub struct Room(Arc<Body>);

#[derive(Debug)]
struct Body {
    bodies: Arc<Bodies>,
    kind: BodyKind,
    /// Whether bytes that come are held, and not handed on.
    is_held: AtomicBool,
    held: Mutex<Held>,
}

/// What a body has taken.
#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    kibibytes: u64,
    /// Time spent waiting for room. Many bodies that each get a piece now and then, and wait anew, would hold all room for long.
    waited: Duration,
    permits: Vec<OwnedSemaphorePermit>,
}

impl Room {
    /// Nothing is taken yet.
    pub(super) fn new(bodies: Arc<Bodies>, kind: BodyKind) -> Self {
        let is_held = AtomicBool::new(matches!(kind, BodyKind::Import | BodyKind::Document));
        Self(Arc::new(Body { bodies, kind, is_held, held: Mutex::default() }))
    }

    /// The room of the body of a request; `None` where the body is empty.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().cloned()
    }

    pub(super) fn limits(&self) -> &BodyLimits {
        &self.0.bodies.limits
    }

    /// Further bytes are handed on as they come, and take no room.
    pub(crate) fn hand_on(&self) {
        self.0.is_held.store(false, Ordering::Relaxed);
    }

    /// Takes room for bytes that came. It is waited for a while.
    pub(super) async fn take(&self, bytes: usize) -> Result<(), LimitError> {
        let Body { bodies, kind, is_held, held } = &*self.0;
        if !is_held.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (missing, patience) = {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            held.bytes += bytes as u64;
            let capacity = bodies.capacity(*kind);
            if held.bytes > capacity {
                return Err(LimitError::BodyOverBudget(capacity / MEBIBYTE));
            }
            let missing = held.bytes.div_ceil(KIBIBYTE).saturating_sub(held.kibibytes);
            held.kibibytes += missing;
            let patience = bodies.limits.patience.saturating_sub(held.waited);
            (u32::try_from(missing).unwrap_or(u32::MAX), patience)
        };
        if missing == 0 {
            return Ok(());
        }
        let taking = async {
            // Of the smaller part first: who waits for it takes nothing from the others.
            let part = match kind {
                BodyKind::Import => Some(Arc::clone(&bodies.imports).acquire_many_owned(missing).await.ok()?),
                _ => None,
            };
            let all = Arc::clone(&bodies.all).acquire_many_owned(missing).await.ok()?;
            Some((part, all))
        };
        let began = Instant::now();
        // Nobody closes the semaphores.
        let taken = timeout(patience, taking).await.ok().flatten().ok_or(LimitError::BodiesFull)?;
        self.keep(taken, began.elapsed());
        Ok(())
    }

    /// Keeps permits. Those of one semaphore become one, so that a body of many pieces keeps two.
    fn keep(&self, (part, all): (Option<OwnedSemaphorePermit>, OwnedSemaphorePermit), waited: Duration) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.waited += waited;
        for permit in part.into_iter().chain([all]) {
            let same = held.permits.iter_mut().find(|kept| Arc::ptr_eq(kept.semaphore(), permit.semaphore()));
            match same {
                Some(kept) => kept.merge(permit),
                None => held.permits.push(permit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(kibibytes: u64) -> Arc<Bodies> {
        let limits = BodyLimits { held_bytes: kibibytes << 10, patience: Duration::ZERO, ..BodyLimits::default() };
        Arc::new(Bodies::new(limits))
    }

    fn held_kib(bodies: &Bodies) -> u64 {
        bodies.held_bytes() >> 10
    }

    #[tokio::test]
    async fn room_is_taken_as_bytes_come_and_given_back_with_the_last_holder() {
        let bodies = bodies(16);
        let room = Room::new(Arc::clone(&bodies), BodyKind::Document);
        // A byte takes a KiB, which 1,023 further ones share.
        for (bytes, held) in [(1, 1), (1023, 1), (1, 2), (2048, 4)] {
            room.take(bytes).await.unwrap();
            assert_eq!(held_kib(&bodies), held, "{bytes}");
        }
        let work = room.clone();
        drop(room);
        assert_eq!(held_kib(&bodies), 4);
        drop(work);
        assert_eq!(held_kib(&bodies), 0);
    }

    #[tokio::test]
    async fn files_leave_a_quarter_to_documents() {
        let bodies = bodies(16);
        let file = Room::new(Arc::clone(&bodies), BodyKind::Import);
        file.take(12 << 10).await.unwrap();
        let other = Room::new(Arc::clone(&bodies), BodyKind::Import);
        assert_eq!(other.take(1).await, Err(LimitError::BodiesFull));
        let document = Room::new(Arc::clone(&bodies), BodyKind::Document);
        document.take(4 << 10).await.unwrap();
        assert_eq!(held_kib(&bodies), 16);
        let further = Room::new(Arc::clone(&bodies), BodyKind::Document);
        assert_eq!(further.take(1).await, Err(LimitError::BodiesFull));
        drop((file, document));
        assert_eq!((held_kib(&bodies), bodies.imports.available_permits()), (0, 12));
    }

    #[tokio::test]
    async fn a_body_waits_once_for_all_its_pieces() {
        let limits = BodyLimits { held_bytes: 16 << 10, patience: Duration::from_mins(1), ..BodyLimits::default() };
        let bodies = Arc::new(Bodies::new(limits));
        let [room, other] = [(); 2].map(|()| Room::new(Arc::clone(&bodies), BodyKind::Document));
        other.take(16 << 10).await.unwrap();
        let pause = Duration::from_millis(20);
        let freeing = async {
            tokio::time::sleep(pause).await;
            drop(other);
        };
        let (taken, ()) = tokio::join!(room.take(1), freeing);
        let waited = room.0.held.lock().unwrap().waited;
        assert!(taken.is_ok() && waited >= pause, "{taken:?} {waited:?}");
        // It has waited for as long as it may: it takes what is free, and waits no more.
        room.0.held.lock().unwrap().waited = Duration::from_mins(1);
        room.take(14 << 10).await.unwrap();
        let last = Room::new(Arc::clone(&bodies), BodyKind::Document);
        last.take(1).await.unwrap();
        assert_eq!(room.take(1 << 10).await, Err(LimitError::BodiesFull));
    }

    #[tokio::test]
    async fn a_body_larger_than_all_room_is_refused_at_once() {
        let bodies = bodies(4 << 10);
        let file = Room::new(Arc::clone(&bodies), BodyKind::Import);
        assert_eq!(file.take((3 << 20) + 1).await, Err(LimitError::BodyOverBudget(3)));
        let document = Room::new(Arc::clone(&bodies), BodyKind::Document);
        assert_eq!(document.take((4 << 20) + 1).await, Err(LimitError::BodyOverBudget(4)));
        assert_eq!(held_kib(&bodies), 0);
    }

    #[tokio::test]
    async fn what_is_handed_on_takes_no_room() {
        let bodies = bodies(16);
        let trace = Room::new(Arc::clone(&bodies), BodyKind::Trace);
        trace.take(1 << 30).await.unwrap();
        let file = Room::new(Arc::clone(&bodies), BodyKind::Import);
        file.take(2 << 10).await.unwrap();
        file.hand_on();
        file.take(1 << 30).await.unwrap();
        assert_eq!(held_kib(&bodies), 2);
    }
}
