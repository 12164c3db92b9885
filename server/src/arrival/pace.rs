//! Minimum rate for request bodies.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, Stream, StreamExt};
use tokio::time::{Instant, timeout};

use super::{BodyKind, Reservation};
use crate::error::LimitError;

/// Minimum rate for a body.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Rate in bytes per second.
    pub bytes_per_second: u64,
    /// Initial credit. A proxy can delay the first bytes.
    pub grace: Duration,
}

impl Pace {
    /// Time credit for a number of bytes.
    fn earned(self, bytes: usize) -> Duration {
        let micros = (bytes as u64).saturating_mul(1_000_000) / self.bytes_per_second.max(1);
        Duration::from_micros(micros)
    }
}

/// A body being received. The credit covers time spent waiting for the sender, but not for memory
/// or the disk, because the sender cannot influence these.
#[derive(Debug)]
pub(super) struct Arriving<B> {
    body: B,
    pace: Pace,
    /// Remaining time that may be spent waiting. Received bytes add credit up to a limit, so a fast
    /// start does not permit a long pause.
    credit: Duration,
    reservation: Reservation,
    refusal: Arc<OnceLock<LimitError>>,
}

impl<B, E> Arriving<B>
where
    B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    E: Into<axum::BoxError> + Send,
{
    pub(super) fn new(body: B, kind: BodyKind, reservation: Reservation, refusal: Arc<OnceLock<LimitError>>) -> Self {
        let pace = reservation.limits().pace(kind);
        Self { body, pace, credit: pace.grace, reservation, refusal }
    }

    /// Streams the bytes. Yields an error if the body is too slow or exceeds the memory budget.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, axum::BoxError>> + Send {
        stream::unfold(Some(self), |arriving| async move {
            let mut arriving = arriving?;
            match arriving.next().await {
                Ok(bytes) => bytes.map(|bytes| (Ok(bytes), Some(arriving))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, axum::BoxError> {
        let limits = *self.reservation.limits();
        let began = Instant::now();
        let bytes = match timeout(self.credit.min(limits.silence), self.body.next()).await {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => bytes.map_err(Into::into)?,
            Err(_) if self.credit < limits.silence => {
                return Err(self.refuse(LimitError::BodySlow(self.pace.bytes_per_second)));
            }
            Err(_) => return Err(self.refuse(LimitError::BodySilent(limits.silence))),
        };
        let left = self.credit.saturating_sub(began.elapsed()) + self.pace.earned(bytes.len());
        self.credit = left.min(limits.credit);
        match self.reservation.take(bytes.len()).await {
            Ok(()) => Ok(Some(bytes)),
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    fn refuse(&self, refusal: LimitError) -> axum::BoxError {
        // The stream stops at the first refusal, so the cell is still empty.
        let _ = self.refusal.set(refusal);
        refusal.into()
    }
}
