//! Permanent removal of deleted items after the retention period.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::store::{Store, StoreError};

/// Interval for removing expired items.
const HOUR: Duration = Duration::from_hours(1);
/// Interval for checking the quota.
const MINUTE: Duration = Duration::from_mins(1);
/// Retention period for deleted items if the database is full or content was refused. Long enough
/// to undo an accidental deletion.
const MIN_RETENTION: SignedDuration = SignedDuration::from_mins(10);

/// Items deleted before these times are removed permanently.
#[derive(Debug, Clone, Copy)]
struct Moments {
    /// All items except traces.
    things: Timestamp,
    traces: Timestamp,
    /// All items, if the database is full.
    slip: Timestamp,
}

/// Removes expired items at startup and hourly. If the database is full, or content was refused and
/// still does not fit, removes items within minutes.
pub(crate) async fn remove_expired(app: Arc<App>) {
    let mut hourly = tokio::time::interval(HOUR);
    let mut often = tokio::time::interval(MINUTE);
    let mut stopped = std::pin::pin!(app.live.stopped());
    let (mut is_time, mut is_blind) = (false, false);
    loop {
        tokio::select! {
            _ = hourly.tick() => is_time = true,
            _ = often.tick() => {}
            () = &mut stopped => return,
        }
        match round(&app, is_time).await {
            Ok(()) => (is_time, is_blind) = (false, false),
            // Log the first error only, and retry every minute.
            Err(error) if !is_blind => {
                tracing::error!("whether the database is full cannot be read, so that nothing is forgotten: {error}");
                is_blind = true;
            }
            Err(_) => {}
        }
    }
}

/// Removes items beyond their retention period if `is_time`, or if the database is full. On a full
/// database, the retention period is at most ten minutes.
///
/// # Errors
/// Fails if the database size cannot be read. In this case nothing is removed.
pub async fn round(app: &App, is_time: bool) -> Result<(), StoreError> {
    let now = app.clock.now();
    let moments = Moments {
        things: app.live.limits().deleted_before(now),
        traces: app.traces.limits.deleted_before(now),
        slip: now.checked_sub(MIN_RETENTION).unwrap_or(Timestamp::MIN),
    };
    forget(&app.store, moments, is_time).await
}

async fn forget(store: &Store, moments: Moments, is_time: bool) -> Result<(), StoreError> {
    let is_full = store.reader().is_full().await?;
    if !(is_time || is_full) {
        return Ok(());
    }
    let before = |cutoff: Timestamp| if is_full { cutoff.max(moments.slip) } else { cutoff };
    let (things, traces) = (before(moments.things), before(moments.traces));
    let writer = store.writer();
    let forgotten = [
        ("runs", writer.forget_runs(things).await),
        ("traces", writer.forget_traces(traces).await),
        ("profiles", writer.forget_profiles(things).await),
        ("scenarios", writer.forget_scenarios(things).await),
        ("datasets", writer.forget_datasets(things).await),
        ("sweeps", writer.forget_sweeps(things).await),
    ];
    for (kind, forgotten) in forgotten {
        match forgotten {
            Ok(0) => {}
            Ok(count) => tracing::info!(kind, count, "deleted ones are forgotten for good"),
            Err(error) => tracing::error!(kind, "deleted ones could not be forgotten: {error}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use api::run::RunOrigin;

    use super::*;
    use crate::store::RunRow;

    fn moment(minute: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + 60 * minute).unwrap()
    }

    /// Creates a database with the given quota and a run that was deleted at minute 0.
    async fn with_a_deleted_run(folder: &std::path::Path, quota: Option<u64>) -> Store {
        let path = folder.join("planscope.db");
        let store = Store::open(&path).await.unwrap();
        let run = RunRow {
            id: "a-run-of-16-char".to_owned(),
            name: "a run".to_owned(),
            origin: RunOrigin::Live,
            scenario: None,
            planner: None,
            token: [0; 32],
            key: None,
            log_table: None,
        };
        store.writer().open_run(&run, None, moment(0)).await.unwrap();
        store.writer().delete_run(&run.id, moment(0)).await.unwrap();
        store.close().await;
        Store::open_within(&path, quota).await.unwrap()
    }

    /// Times for half an hour later, with a retention period of thirty days.
    fn moments() -> Moments {
        Moments { things: moment(-43_170), traces: moment(-43_170), slip: moment(20) }
    }

    #[tokio::test]
    async fn full_database_deletes_within_minutes() {
        for (quota, is_there) in [(Some(1), false), (Some(1 << 30), true), (None, true)] {
            let folder = tempfile::tempdir().unwrap();
            let store = with_a_deleted_run(folder.path(), quota).await;
            forget(&store, moments(), true).await.unwrap();
            assert_eq!(store.writer().restore_run("a-run-of-16-char").await.is_ok(), is_there, "{quota:?}");
            store.close().await;
        }
    }

    /// A pool without a free connection, a locked database or a disk error do not indicate a full
    /// database.
    #[tokio::test]
    async fn nothing_is_forgotten_where_it_cannot_be_read_whether_the_database_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_a_deleted_run(folder.path(), Some(1 << 30)).await;
        store.reader().close().await;
        forget(&store, moments(), false).await.unwrap_err();
        store.writer().restore_run("a-run-of-16-char").await.unwrap();
        store.close().await;
    }
}
