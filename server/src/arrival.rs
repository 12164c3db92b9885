//! Bodies that come too slowly are not waited for.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures::stream::{self, Stream, StreamExt};
use tokio::time::{Instant, timeout};

/// Bytes that a body brings every second at least, on the whole and behind the first minute: a slow line has more, whoever holds
/// connections with single bytes has not.
const SLOWEST: u64 = 1024;
/// How long a body may take beside what its bytes earn: a proxy may hold the first of them back for a while.
const GRACE: Duration = Duration::from_mins(1);

/// Ends bodies that come too slowly, except those of logs, which come as slowly as jobs go and have their own limit.
pub(crate) async fn in_time(request: Request, next: Next) -> Response {
    if is_log(request.uri().path()) {
        return next.run(request).await;
    }
    let request = request.map(|body| Body::from_stream(hurried(body.into_data_stream(), GRACE)));
    next.run(request).await
}

fn is_log(path: &str) -> bool {
    path.strip_prefix(api::path::RUNS).is_some_and(|rest| rest.ends_with("/log"))
}

/// The same bytes, and an error in their place where they lag behind. Only the time in which they are waited for counts: while they wait,
/// for room or for the disk, nobody can send faster.
fn hurried<E>(
    body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
    grace: Duration,
) -> impl Stream<Item = Result<Bytes, axum::BoxError>> + Send
where
    E: Into<axum::BoxError> + Send,
{
    stream::unfold(Some((body, 0_u64, Duration::ZERO)), move |state| async move {
        let (mut body, came, waited) = state?;
        let earned = grace + Duration::from_secs(came / SLOWEST);
        let began = Instant::now();
        match timeout(earned.saturating_sub(waited), body.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(bytes))) => {
                let came = came + bytes.len() as u64;
                Some((Ok(bytes), Some((body, came, waited + began.elapsed()))))
            }
            Ok(Some(Err(error))) => Some((Err(error.into()), None)),
            Err(_) => {
                let slow = io::Error::new(io::ErrorKind::TimedOut, "it came too slowly");
                Some((Err(slow.into()), None))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drips(bytes: usize, pause: Duration) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + Unpin {
        Box::pin(stream::iter(0..bytes).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Bytes::from_static(b"x"))
        }))
    }

    #[tokio::test]
    async fn what_drips_is_ended_and_what_comes_is_not() {
        let whole: Vec<_> = hurried(drips(3, Duration::ZERO), Duration::from_mins(1)).collect().await;
        assert!(whole.len() == 3 && whole.iter().all(Result::is_ok), "{whole:?}");
        // A byte every 50 ms is 20 a second: without grace it is late from the first on.
        let cut: Vec<_> = hurried(drips(100, Duration::from_millis(50)), Duration::from_millis(1)).collect().await;
        assert!(cut.len() == 1 && cut[0].is_err(), "{cut:?}");
        // A large piece earns the time that small ones take: 64 KiB are 64 seconds.
        let large = stream::once(async { Ok(Bytes::from(vec![0; 64 << 10])) });
        let earned = Box::pin(large.chain(drips(2, Duration::from_millis(50))));
        let earned: Vec<_> = hurried(earned, Duration::from_millis(40)).collect().await;
        assert!(earned.len() == 3 && earned.iter().all(Result::is_ok), "{earned:?}");
    }

    #[tokio::test]
    async fn time_in_which_nobody_reads_does_not_count() {
        // Three are waited for 5 ms each; the last one is asked for when 300 ms have gone by.
        let body = hurried(drips(3, Duration::from_millis(5)), Duration::from_millis(200));
        let read: Vec<_> = body
            .then(|bytes| async move {
                tokio::time::sleep(Duration::from_millis(150)).await;
                bytes
            })
            .collect()
            .await;
        assert!(read.len() == 3 && read.iter().all(Result::is_ok), "{read:?}");
    }

    #[test]
    fn logs_have_their_own_limit() {
        assert!(is_log(&api::path::run_log("a")));
        for path in [api::path::SCENARIOS, api::path::RUNS, api::path::RUN_IMPORT, "/log"] {
            assert!(!is_log(path), "{path}");
        }
    }
}
