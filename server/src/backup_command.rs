//! `planscope backup`, `planscope restore` and `planscope verify`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::clock::{Clock, SystemClock};
use crate::config::{BackupArguments, RestoreArguments, VerifyArguments};
use crate::store::{self, Replace};

/// Copies a server's database into a new file. The server may be running.
pub fn backup(arguments: &BackupArguments) -> anyhow::Result<ExitCode> {
    say_removed(&arguments.file);
    let bytes = block_on(store::backup(&arguments.database, &arguments.file))?
        .with_context(|| format!("{} was not backed up", arguments.database.display()))?;
    println!("{}: {bytes} bytes, looked through", arguments.file.display());
    Ok(ExitCode::SUCCESS)
}

/// Restores a backup to a database path that no server uses.
pub fn restore(arguments: &RestoreArguments) -> anyhow::Result<ExitCode> {
    let replace = if arguments.replace { Replace::KeepingOld } else { Replace::Never };
    let now = SystemClock::start().now();
    say_removed(&arguments.database);
    let restored = block_on(store::restore(&arguments.file, &arguments.database, replace, now))?
        .with_context(|| format!("{} was not restored", arguments.file.display()))?;
    println!("{}: {} bytes, looked through", arguments.database.display(), restored.bytes);
    if let Some(previous) = restored.previous {
        println!("the database before is kept as {}", previous.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks a database, which a server may be using. Fails on any defect.
pub fn verify(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.database;
    let report = block_on(store::verify(path))?.with_context(|| format!("{} cannot be read", path.display()))?;
    for fault in &report.faults {
        println!("{fault}");
    }
    let checked: Vec<String> = report.checked.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if report.is_older {
        println!(
            "an earlier version made the tables: only their structure was looked at; serve it once to bring them up to date"
        );
    } else {
        println!("looked at {}", checked.join(", "));
    }
    if report.unhashed > 0 {
        println!(
            "{} rows of an earlier version have no hash yet, so that changed bytes of them may not be found; a server adds the hashes while it runs",
            report.unhashed
        );
    }
    if report.faults.is_empty() {
        println!("{} is sound", path.display());
        Ok(ExitCode::SUCCESS)
    } else {
        println!("{} is not sound: {} faults", path.display(), report.faults.len());
        Ok(ExitCode::FAILURE)
    }
}

/// Removes temporary files that killed processes left at the destination, and reports this.
fn say_removed(database: &Path) {
    for path in store::remove_leftovers(database) {
        println!("{} was left by a program that ended while it made a copy, and is removed", path.display());
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}
