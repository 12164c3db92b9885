//! How slowly a body may come.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, Stream, StreamExt};
use tokio::time::{Instant, timeout};

use super::{BodyKind, Room};
use crate::error::LimitError;

/// The slowest pace of a body.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Bytes that earn a second.
    pub bytes_per_second: u64,
    /// Time that a body has before its bytes earn any. A proxy may hold the first bytes back for a while.
    pub grace: Duration,
}

impl Pace {
    /// Time that bytes earn.
    fn earned(self, bytes: usize) -> Duration {
        let micros = (bytes as u64).saturating_mul(1_000_000) / self.bytes_per_second.max(1);
        Duration::from_micros(micros)
    }
}

/// A body on its way. Only the time in which its sender is waited for counts: while bytes wait for room or for the disk, nobody can
/// send faster.
#[derive(Debug)]
pub(super) struct Arriving<B> {
    body: B,
    pace: Pace,
    /// Time that may still be spent waiting. Bytes earn it, up to a limit, so that what came quickly allows no long silence.
    credit: Duration,
    room: Room,
    refusal: Arc<OnceLock<LimitError>>,
}

impl<B, E> Arriving<B>
where
    B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    E: Into<axum::BoxError> + Send,
{
    pub(super) fn new(body: B, kind: BodyKind, room: Room, refusal: Arc<OnceLock<LimitError>>) -> Self {
        let pace = room.limits().pace(kind);
        Self { body, pace, credit: pace.grace, room, refusal }
    }

    /// The same bytes, and an error in their place where they come too slowly or find no room.
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
        let limits = *self.room.limits();
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
        match self.room.take(bytes.len()).await {
            Ok(()) => Ok(Some(bytes)),
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    fn refuse(&self, refusal: LimitError) -> axum::BoxError {
        // The stream ends with its first refusal, so that there is no other.
        let _ = self.refusal.set(refusal);
        refusal.into()
    }
}
