//! `planscope cancel-work`: cancels the work that a server would resume at startup.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::changes::{COMMAND_LINE, Change};
use crate::clock::{Clock, SystemClock};
use crate::config::CancelWorkArguments;
use crate::store::{DatabaseLock, Store, StoreError};

/// Cancels all waiting planning jobs and sweeps in a database that no server uses.
///
/// # Errors
/// Fails if the database does not exist, is in use by a server, or cannot be written.
pub fn run(arguments: &CancelWorkArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (jobs, sweeps) = runtime.block_on(cancel(&arguments.database))?;
    println!("{}: {jobs} planning jobs and {sweeps} sweeps were cancelled", arguments.database.display());
    Ok(ExitCode::SUCCESS)
}

async fn cancel(database: &Path) -> anyhow::Result<(u64, u64)> {
    anyhow::ensure!(database.is_file(), "there is no database {}", database.display());
    let tenancy = DatabaseLock::take(database)?;
    let opened = Store::open(tenancy.database()).await;
    let store = opened.with_context(|| format!("cannot open the database {}", database.display()))?;
    let cancelled = cancel_in(&store).await;
    store.close().await;
    Ok(cancelled?)
}

async fn cancel_in(store: &Store) -> Result<(u64, u64), StoreError> {
    let (jobs, sweeps) = store.writer().cancel_work().await?;
    let change = Change::for_command("cancel", "work", format!("{jobs} jobs, {sweeps} sweeps"));
    store.writer().record_change(COMMAND_LINE, &change, SystemClock::start().now()).await?;
    Ok((jobs, sweeps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_or_open_database_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(cancel(&path).await.unwrap_err().to_string().starts_with("there is no database"));
        Store::open(&path).await.unwrap().close().await;
        let tenancy = DatabaseLock::take(&path).unwrap();
        assert!(cancel(&path).await.unwrap_err().to_string().contains("in use"));
        drop(tenancy);
        assert_eq!(cancel(&path).await.unwrap(), (0, 0));
        let store = Store::open(&path).await.unwrap();
        let audit = store.reader().changes(None, 10).await.unwrap().changes;
        let records: Vec<_> =
            audit.iter().map(|line| [&*line.actor, &*line.action, &*line.kind, &*line.object]).collect();
        assert_eq!(records, [["(command line)", "cancel", "work", "0 jobs, 0 sweeps"]]);
    }
}
