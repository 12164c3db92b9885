//! What was deleted is forgotten for good when its time has come.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::store::{Store, StoreError};

/// How often it is looked for what is to be forgotten.
const HOUR: Duration = Duration::from_hours(1);
/// How often it is looked whether the database is full.
const MINUTE: Duration = Duration::from_mins(1);
/// How long what was deleted can be brought back where the database is full, or something found no room: long enough for a slip of the hand.
const SLIP: SignedDuration = SignedDuration::from_mins(10);

/// What was deleted before these moments is forgotten.
#[derive(Debug, Clone, Copy)]
struct Moments {
    /// Everything but traces.
    things: Timestamp,
    traces: Timestamp,
    /// Anything, where the database is full.
    slip: Timestamp,
}

/// Forgets what was deleted when its time has come, now and every hour; within minutes where the database is full, or something was
/// refused for want of room and has none still.
pub(crate) async fn forget_deleted(app: Arc<App>) {
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
            // Said once, and tried again every minute.
            Err(error) if !is_blind => {
                tracing::error!("whether the database is full cannot be read, so that nothing is forgotten: {error}");
                is_blind = true;
            }
            Err(_) => {}
        }
    }
}

/// Forgets what was deleted longer ago than it is kept, if it is time for that, or if the database is full: then everything that
/// was deleted more than ten minutes ago.
///
/// # Errors
/// Whether the database is full cannot be read. Then nothing is forgotten.
pub async fn round(app: &App, is_time: bool) -> Result<(), StoreError> {
    let now = app.clock.now();
    let moments = Moments {
        things: app.live.limits().deleted_before(now),
        traces: app.traces.limits.deleted_before(now),
        slip: now.checked_sub(SLIP).unwrap_or(Timestamp::MIN),
    };
    forget(&app.store, moments, is_time).await
}

async fn forget(store: &Store, moments: Moments, is_time: bool) -> Result<(), StoreError> {
    let is_full = store.reader().is_full().await?;
    if !(is_time || is_full) {
        return Ok(());
    }
    let before = |kept: Timestamp| if is_full { kept.max(moments.slip) } else { kept };
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
    for (what, forgotten) in forgotten {
        match forgotten {
            Ok(0) => {}
            Ok(count) => tracing::info!(what, count, "deleted ones are forgotten for good"),
            Err(error) => tracing::error!(what, "deleted ones could not be forgotten: {error}"),
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

    /// A database in which a run was deleted at the first moment, with such a quota.
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

    /// Half an hour later, of thirty days that it is kept.
    fn moments() -> Moments {
        Moments { things: moment(-43_170), traces: moment(-43_170), slip: moment(20) }
    }

    #[tokio::test]
    async fn a_full_database_forgets_within_minutes_and_another_one_not() {
        for (quota, is_there) in [(Some(1), false), (Some(1 << 30), true), (None, true)] {
            let folder = tempfile::tempdir().unwrap();
            let store = with_a_deleted_run(folder.path(), quota).await;
            forget(&store, moments(), true).await.unwrap();
            assert_eq!(store.writer().restore_run("a-run-of-16-char").await.is_ok(), is_there, "{quota:?}");
            store.close().await;
        }
    }

    /// A pool without a free connection, a lock that somebody holds, a disk that fails: none of them says that it is full.
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
