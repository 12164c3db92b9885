//! Background tasks of a server: monitors the database file, and adds hashes to rows from earlier
//! versions.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::store::FileFault;

/// Interval for checking the database file.
const LOOK: Duration = Duration::from_secs(10);
/// Number of checks between repeated log messages, equal to one minute.
const SAID_AGAIN: u32 = 6;
/// Pause between two batches of rows, which limits hashing to 16 MiB per second.
const PAUSE: Duration = Duration::from_millis(250);
/// Delay before retrying after an error.
const LATER: Duration = Duration::from_mins(10);

/// Logs an error while the database file is missing or replaced. The store itself refuses writes
/// during this time.
pub(crate) async fn monitor(app: Arc<App>) {
    let mut looks = tokio::time::interval(LOOK);
    let mut stopped = std::pin::pin!(app.live.stopped());
    let mut guard = Guard::default();
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = &mut stopped => return,
        }
        match guard.look(app.store.check_file()) {
            FileEvent::Nothing => {}
            FileEvent::Fault(fault) => tracing::error!("{fault}"),
            FileEvent::Back => tracing::info!("the database is in its place again"),
        }
    }
}

/// Log message after a check.
#[derive(Debug)]
enum FileEvent {
    Nothing,
    Fault(FileFault),
    Back,
}

/// Number of failed checks since the database file was last in place.
#[derive(Debug, Default)]
struct Guard {
    missed: u32,
}

impl Guard {
    fn look(&mut self, seen: Result<(), FileFault>) -> FileEvent {
        match seen {
            Ok(()) if std::mem::take(&mut self.missed) > 0 => FileEvent::Back,
            Ok(()) => FileEvent::Nothing,
            Err(fault) => {
                let is_said = self.missed.is_multiple_of(SAID_AGAIN);
                self.missed = self.missed.saturating_add(1);
                if is_said { FileEvent::Fault(fault) } else { FileEvent::Nothing }
            }
        }
    }
}

/// Adds hashes to rows from earlier versions, at a limited rate, until all rows have a hash.
pub(crate) async fn fill_hashes(app: Arc<App>) {
    let mut stopped = std::pin::pin!(app.live.stopped());
    let mut rows = 0;
    loop {
        let pause = match app.store.fill_hashes().await {
            Ok(0) => break,
            Ok(filled) => {
                rows += filled;
                PAUSE
            }
            Err(error) => {
                tracing::error!("rows of an earlier version get no hashes now: {error}");
                LATER
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = &mut stopped => return,
        }
    }
    if rows > 0 {
        tracing::info!(rows, "all rows of earlier versions have their hashes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_faults_are_reported_immediately_then_every_minute() {
        let mut guard = Guard::default();
        let gone = || Err(FileFault::Deleted("planscope.db".into()));
        assert!(matches!(guard.look(Ok(())), FileEvent::Nothing));
        let reported: Vec<bool> = (0..13).map(|_| matches!(guard.look(gone()), FileEvent::Fault(_))).collect();
        let at: Vec<usize> = (0..13).filter(|look| reported[*look]).collect();
        assert_eq!(at, [0, 6, 12]);
        assert!(matches!(guard.look(Ok(())), FileEvent::Back));
        assert!(matches!(guard.look(Ok(())), FileEvent::Nothing));
        assert!(matches!(guard.look(gone()), FileEvent::Fault(FileFault::Deleted(_))));
    }
}
