//! Memory budget for all request bodies.
//!
//! A body reserves memory as bytes are received. The memory is released after the request, or after
//! the last clone of the [`Reservation`] is dropped: processing can outlast the connection. A sender can
//! use half of the budget. A sixteenth of the budget is reserved for small bodies, so large bodies
//! do not delay them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::{BodyKind, Pace};
use crate::error::LimitError;
use crate::shares::{Sharer, Shares};

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;
const TEN_SECONDS: Duration = Duration::from_secs(10);

/// Limits on request bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Total bytes buffered for all bodies.
    pub max_bytes: u64,
    /// Total time a body may wait for memory before it is refused.
    pub patience: Duration,
    /// Maximum size of a small body in bytes. Small bodies use the reserved pool.
    pub small_bytes: u64,
    /// Maximum time without a byte.
    pub silence: Duration,
    /// Maximum time credit.
    pub credit: Duration,
    /// Minimum rate for documents.
    pub documents: Pace,
    /// Minimum rate for files.
    pub imports: Pace,
}

impl Default for BodyLimits {
    /// These rates are below those of a slow line, but above those of clients that keep connections
    /// open with single bytes. Small bodies must be complete within ten seconds. Large bodies must
    /// maintain the rate.
    fn default() -> Self {
        Self {
            max_bytes: 512 * MEBIBYTE,
            patience: Duration::from_secs(10),
            small_bytes: 64 * KIBIBYTE,
            silence: TEN_SECONDS,
            credit: TEN_SECONDS,
            documents: Pace { bytes_per_second: 16 * KIBIBYTE, grace: TEN_SECONDS },
            imports: Pace { bytes_per_second: 64 * KIBIBYTE, grace: TEN_SECONDS },
        }
    }
}

impl BodyLimits {
    /// Minimum rate for a kind of body.
    pub(super) fn pace(&self, kind: BodyKind) -> Pace {
        match kind {
            BodyKind::Trace | BodyKind::Import => self.imports,
            BodyKind::Log | BodyKind::Document => self.documents,
        }
    }
}

/// Memory budget for all request bodies, in KiB.
#[derive(Debug)]
pub struct Bodies {
    all: Pool,
    /// Reserved for small bodies, in addition to `all`.
    small: Pool,
    /// Three quarters of the budget, available to files. Files are buffered for longer, so a
    /// quarter remains for documents.
    imports: Arc<Semaphore>,
    /// Half of the budget per sender.
    shares: Shares,
    limits: BodyLimits,
}

/// Memory pool in KiB.
#[derive(Debug)]
struct Pool {
    size: usize,
    free: Arc<Semaphore>,
}

impl Pool {
    fn new(kibibytes: usize) -> Self {
        Self { size: kibibytes, free: Arc::new(Semaphore::new(kibibytes)) }
    }

    fn taken(&self) -> usize {
        self.size.saturating_sub(self.free.available_permits())
    }
}

impl Bodies {
    /// Creates an unused budget.
    pub fn new(limits: BodyLimits) -> Self {
        let all = usize::try_from(limits.max_bytes / KIBIBYTE).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let small = if limits.small_bytes == 0 { 0 } else { all / 16 };
        Self {
            all: Pool::new(all - small),
            small: Pool::new(small),
            imports: Arc::new(Semaphore::new(all - all / 4)),
            shares: Shares::new(all / 2),
            limits,
        }
    }

    /// Bytes reserved by bodies.
    pub fn reserved_bytes(&self) -> u64 {
        (self.all.taken() + self.small.taken()) as u64 * KIBIBYTE
    }

    /// Maximum bytes for a single body, equal to the sender's share.
    fn capacity(&self) -> u64 {
        self.limits.max_bytes / KIBIBYTE / 2 * KIBIBYTE
    }
}

/// Memory reserved by a body. Dropping the last clone releases it.
#[derive(Debug, Clone)]
pub struct Reservation(Arc<Body>);

#[derive(Debug)]
struct Body {
    bodies: Arc<Bodies>,
    kind: BodyKind,
    /// Remaining share of the sender.
    share: Arc<Semaphore>,
    /// True if received bytes are buffered instead of streamed.
    is_buffered: AtomicBool,
    reserved: Mutex<ReservedMemory>,
}

/// Memory reserved by a body.
#[derive(Debug, Default)]
struct ReservedMemory {
    bytes: u64,
    /// KiB from `all`, acquired or requested.
    kibibytes: u64,
    /// Permit from the reserved pool, until the body exceeds the small size.
    small: Option<OwnedSemaphorePermit>,
    /// Total time spent waiting for memory. The limit applies to the total. Otherwise, bodies that
    /// receive small parts at intervals could occupy the budget together.
    waited: Duration,
    permits: Vec<OwnedSemaphorePermit>,
}

impl ReservedMemory {
    fn small_kibibytes(&self) -> u64 {
        self.small.as_ref().map_or(0, |small| small.num_permits() as u64)
    }

    /// Tries to acquire `missing` KiB from the reserved pool. Returns false if they are not
    /// available.
    fn take_small(&mut self, missing: u32, pool: &Pool) -> bool {
        let Ok(permit) = Arc::clone(&pool.free).try_acquire_many_owned(missing) else { return false };
        match &mut self.small {
            Some(small) => small.merge(permit),
            None => self.small = Some(permit),
        }
        true
    }
}

/// KiB to wait for, and the remaining patience.
struct Wanted {
    kibibytes: u32,
    patience: Duration,
}

impl Reservation {
    /// Creates a reservation of zero bytes.
    pub(super) fn new(bodies: Arc<Bodies>, kind: BodyKind, sharer: &Sharer) -> Self {
        let is_buffered = AtomicBool::new(matches!(kind, BodyKind::Import | BodyKind::Document));
        let share = bodies.shares.share(sharer);
        Self(Arc::new(Body { bodies, kind, share, is_buffered, reserved: Mutex::default() }))
    }

    /// Returns the reservation for a request's body, or `None` if the body is empty.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().cloned()
    }

    pub(super) fn limits(&self) -> &BodyLimits {
        &self.0.bodies.limits
    }

    /// Switches to streaming: later bytes do not need memory.
    pub(crate) fn switch_to_streaming(&self) {
        self.0.is_buffered.store(false, Ordering::Relaxed);
    }

    /// Reserves memory for received bytes, within the remaining patience.
    pub(super) async fn take(&self, bytes: usize) -> Result<(), LimitError> {
        let Body { bodies, kind, share, is_buffered, .. } = &*self.0;
        if !is_buffered.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(wanted) = self.note(bytes)? else { return Ok(()) };
        let missing = wanted.kibibytes;
        let taking = async {
            // Acquire the smaller pools first, so a waiting body does not block others.
            let mut taken = vec![Arc::clone(share).acquire_many_owned(missing).await.ok()?];
            if *kind == BodyKind::Import {
                taken.push(Arc::clone(&bodies.imports).acquire_many_owned(missing).await.ok()?);
            }
            taken.push(Arc::clone(&bodies.all.free).acquire_many_owned(missing).await.ok()?);
            Some(taken)
        };
        let began = Instant::now();
        // The semaphores are never closed.
        let taken = timeout(wanted.patience, taking).await.ok().flatten().ok_or(LimitError::BodiesFull)?;
        self.keep(taken, began.elapsed());
        Ok(())
    }

    /// Records received bytes. Small bodies try the reserved pool first. Returns the amount to wait
    /// for, if any.
    fn note(&self, bytes: usize) -> Result<Option<Wanted>, LimitError> {
        let Body { bodies, reserved, .. } = &*self.0;
        let mut memory = reserved.lock().unwrap_or_else(PoisonError::into_inner);
        memory.bytes += bytes as u64;
        let capacity = bodies.capacity();
        if memory.bytes > capacity {
            return Err(LimitError::BodyOverBudget(capacity / MEBIBYTE));
        }
        let is_small = memory.bytes <= bodies.limits.small_bytes;
        // A large body acquires memory from `all` only, then releases the reserved part.
        let had = memory.kibibytes + if is_small { memory.small_kibibytes() } else { 0 };
        let missing = memory.bytes.div_ceil(KIBIBYTE).saturating_sub(had);
        let kibibytes = u32::try_from(missing).unwrap_or(u32::MAX);
        if kibibytes == 0 || (is_small && memory.take_small(kibibytes, &bodies.small)) {
            return Ok(None);
        }
        memory.kibibytes += missing;
        Ok(Some(Wanted { kibibytes, patience: bodies.limits.patience.saturating_sub(memory.waited) }))
    }

    /// Stores permits. Permits from the same semaphore are merged, so a body received in small
    /// pieces stores only a few.
    fn keep(&self, taken: Vec<OwnedSemaphorePermit>, waited: Duration) {
        let mut memory = self.0.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        memory.waited += waited;
        if memory.bytes > self.0.bodies.limits.small_bytes {
            memory.small = None;
        }
        for permit in taken {
            let same = memory.permits.iter_mut().find(|stored| Arc::ptr_eq(stored.semaphore(), permit.semaphore()));
            match same {
                Some(existing) => existing.merge(permit),
                None => memory.permits.push(permit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Budget without a reserved pool.
    fn bodies(kibibytes: u64) -> Arc<Bodies> {
        let max_bytes = kibibytes << 10;
        let limits = BodyLimits { max_bytes, patience: Duration::ZERO, small_bytes: 0, ..BodyLimits::default() };
        Arc::new(Bodies::new(limits))
    }

    fn reserve(bodies: &Arc<Bodies>, kind: BodyKind, sender: u8) -> Reservation {
        Reservation::new(Arc::clone(bodies), kind, &Sharer::new([10, 0, 0, sender].into(), None))
    }

    fn reserved_kib(bodies: &Bodies) -> u64 {
        bodies.reserved_bytes() >> 10
    }

    #[tokio::test]
    async fn memory_is_reserved_per_byte_and_released_with_the_last_clone() {
        let bodies = bodies(16);
        let reservation = reserve(&bodies, BodyKind::Document, 1);
        // The first byte reserves 1 KiB, which also covers the next 1,023 bytes.
        for (bytes, expected) in [(1, 1), (1023, 1), (1, 2), (2048, 4)] {
            reservation.take(bytes).await.unwrap();
            assert_eq!(reserved_kib(&bodies), expected, "{bytes}");
        }
        let work = reservation.clone();
        drop(reservation);
        assert_eq!(reserved_kib(&bodies), 4);
        drop(work);
        assert_eq!(reserved_kib(&bodies), 0);
    }

    #[tokio::test]
    async fn files_leave_a_quarter_to_documents() {
        let bodies = bodies(16);
        let files = [(1, 8), (2, 4)].map(|(sender, kibibytes)| (reserve(&bodies, BodyKind::Import, sender), kibibytes));
        for (file, kibibytes) in &files {
            file.take(kibibytes << 10).await.unwrap();
        }
        assert_eq!(reserve(&bodies, BodyKind::Import, 3).take(1).await, Err(LimitError::BodiesFull));
        let document = reserve(&bodies, BodyKind::Document, 3);
        document.take(4 << 10).await.unwrap();
        assert_eq!(reserved_kib(&bodies), 16);
        assert_eq!(reserve(&bodies, BodyKind::Document, 4).take(1).await, Err(LimitError::BodiesFull));
        drop((files, document));
        assert_eq!((reserved_kib(&bodies), bodies.imports.available_permits()), (0, 12));
    }

    #[tokio::test]
    async fn sender_leaves_half_the_memory_to_others() {
        let bodies = bodies(16);
        let reservations = [(); 8].map(|()| reserve(&bodies, BodyKind::Document, 1));
        for body in &reservations {
            body.take(1 << 10).await.unwrap();
        }
        assert_eq!(reserve(&bodies, BodyKind::Document, 1).take(1).await, Err(LimitError::BodiesFull));
        let other = reserve(&bodies, BodyKind::Document, 2);
        other.take(8 << 10).await.unwrap();
        assert_eq!(reserved_kib(&bodies), 16);
        drop(reservations);
        reserve(&bodies, BodyKind::Document, 1).take(8 << 10).await.unwrap();
    }

    /// Regression test for attack finding N5: sixty large, slow bodies delay small bodies by
    /// seconds.
    #[tokio::test]
    async fn small_body_does_not_wait_for_large_bodies() {
        // 1,024 KiB: 64 reserved for small bodies, 512 per sender.
        let (max_bytes, small_bytes) = (1 << 20, 4 << 10);
        let limits = BodyLimits { max_bytes, patience: Duration::ZERO, small_bytes, ..BodyLimits::default() };
        let bodies = Arc::new(Bodies::new(limits));
        let large: Vec<Reservation> = (0..60).map(|number| reserve(&bodies, BodyKind::Document, number % 2)).collect();
        for body in &large {
            body.take(16 << 10).await.unwrap();
        }
        assert_eq!(reserved_kib(&bodies), 960);
        assert_eq!(reserve(&bodies, BodyKind::Document, 3).take(5 << 10).await, Err(LimitError::BodiesFull));
        let small = [(); 16].map(|()| reserve(&bodies, BodyKind::Document, 1));
        for body in &small {
            body.take(1 << 10).await.unwrap();
            body.take(3 << 10).await.unwrap();
        }
        assert_eq!(reserved_kib(&bodies), 1024);
        // A body that grows beyond the small size releases the reserved memory.
        drop(large);
        small[0].take(1 << 10).await.unwrap();
        assert_eq!((bodies.small.taken(), bodies.all.taken()), (60, 5));
        drop(small);
        assert_eq!(reserved_kib(&bodies), 0);
    }

    #[tokio::test]
    async fn a_body_waits_once_for_all_its_pieces() {
        let patience = Duration::from_mins(1);
        let limits = BodyLimits { max_bytes: 32 << 10, patience, small_bytes: 0, ..BodyLimits::default() };
        let bodies = Arc::new(Bodies::new(limits));
        let [body, other] = [(); 2].map(|()| reserve(&bodies, BodyKind::Document, 1));
        other.take(16 << 10).await.unwrap();
        let pause = Duration::from_millis(20);
        let freeing = async {
            tokio::time::sleep(pause).await;
            drop(other);
        };
        let (taken, ()) = tokio::join!(body.take(1), freeing);
        let waited = body.0.reserved.lock().unwrap().waited;
        assert!(taken.is_ok() && waited >= pause, "{taken:?} {waited:?}");
        // With no patience left, the body acquires available memory but does not block.
        body.0.reserved.lock().unwrap().waited = patience;
        body.take(14 << 10).await.unwrap();
        let last = reserve(&bodies, BodyKind::Document, 1);
        last.take(1).await.unwrap();
        assert_eq!(body.take(1 << 10).await, Err(LimitError::BodiesFull));
    }

    #[tokio::test]
    async fn body_over_the_sender_share_is_rejected_immediately() {
        let bodies = bodies(4 << 10);
        for kind in [BodyKind::Import, BodyKind::Document] {
            assert_eq!(reserve(&bodies, kind, 1).take((2 << 20) + 1).await, Err(LimitError::BodyOverBudget(2)));
        }
        assert_eq!(reserved_kib(&bodies), 0);
    }

    #[tokio::test]
    async fn streamed_bytes_need_no_memory() {
        let bodies = bodies(16);
        let trace = reserve(&bodies, BodyKind::Trace, 1);
        trace.take(1 << 30).await.unwrap();
        let file = reserve(&bodies, BodyKind::Import, 1);
        file.take(2 << 10).await.unwrap();
        file.switch_to_streaming();
        file.take(1 << 30).await.unwrap();
        assert_eq!(reserved_kib(&bodies), 2);
    }
}
