//! Runs the server until shutdown.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api::access::Role;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::Access;
use crate::app::App;
use crate::arrival::Bodies;
use crate::clock::{Clock, SystemClock};
use crate::config::ServeArguments;
use crate::connections::{ConnectionLimits, Connections};
use crate::forgetting;
use crate::guarding;
use crate::imports::{ImportLimits, Imports};
use crate::jobs::Jobs;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::open_files;
use crate::overviews::Overviews;
use crate::replay::Replays;
use crate::resumption;
use crate::router::router;
use crate::store::{self, DatabaseLock, Store};
use crate::studies::{AnalysisLimits, Studies};
use crate::sweeps::Sweeps;
use crate::traces::Traces;
use crate::web::Web;

/// Limit on studies, running and waiting. Each has an interactive user, so a small limit is
/// sufficient.
const STUDIES: usize = 16;
/// How long open requests may take to end.
/// Time between two steps of a replayed example log.
const REPLAY_INTERVAL: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until interrupted.
pub async fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    arguments.check()?;
    let tenancy = DatabaseLock::take(&arguments.database)?;
    for path in store::remove_leftovers(tenancy.database()) {
        tracing::info!(path = %path.display(), "a program that ended while it made a copy left this, which is removed");
    }
    if let Some(mode) = tenancy.open_to_others() {
        tracing::warn!(
            "the database {path} has mode {mode:o}, so that other users of this machine may read it; chmod 600 {path}",
            path = tenancy.database().display()
        );
    }
    let store = Store::open_within(tenancy.database(), arguments.quota)
        .await
        .with_context(|| format!("cannot open the database {}", arguments.database.display()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let search_threads = arguments.search_threads();
    let limits = arguments.plan_limits();
    let analysis_limits =
        AnalysisLimits { queue: STUDIES, time: Duration::from_secs(arguments.study_seconds), threads: search_threads };
    let jobs = Jobs::new(store.clone(), Arc::clone(&clock), limits);
    let sweeps = Sweeps::new(store.clone(), Arc::clone(&clock), jobs.turns(), limits);
    let access = Access::new(&arguments.hosts, arguments.token(), store.clone(), Arc::clone(&clock));
    let access = Arc::new(access);
    let app = Arc::new(App {
        sweeps,
        studies: Studies::new(Arc::clone(&clock), jobs.turns(), analysis_limits),
        live: Live::new(store.clone(), Arc::clone(&clock), arguments.live_limits()),
        bodies: Arc::new(Bodies::new(arguments.body_limits())),
        imports: Imports::new(ImportLimits::default()),
        replays: Replays::new(REPLAY_INTERVAL),
        jobs,
        store,
        traces: Traces::new(arguments.traces()),
        clock,
        access,
        web: Web::find(arguments.web.as_deref()),
        metrics: Metrics::new(),
        overviews: Overviews::default(),
    });
    let listener = TcpListener::bind(arguments.address)
        .await
        .with_context(|| format!("cannot listen at {}", arguments.address))?;
    resumption::end_interrupted(&app).await.context("what the server before left cannot be ended")?;
    if limits.takes_work {
        resumption::take_up_jobs(&app).await.context("jobs that were left cannot be taken up")?;
    } else {
        resumption::leave_work(&app).await.context("work that was left cannot be read")?;
    }
    tracing::info!(
        database = %arguments.database.display(),
        workers = limits.workers,
        search_threads = search_threads.count(),
        "Planscope is at http://{}",
        listener.local_addr()?
    );
    name_admins(&app).await.context("the tokens cannot be read")?;
    let (stop, stopped) = watch::channel(());
    let stopping = {
        let app = Arc::clone(&app);
        async move {
            interrupted().await;
            tracing::info!("stopping");
            // Also closes the event streams. Otherwise they would prevent the shutdown.
            app.jobs.stop();
            app.studies.cancel_all();
            app.sweeps.stop_all();
            app.live.stop();
            drop(stop);
        }
    };
    tokio::spawn(forgetting::remove_expired(Arc::clone(&app)));
    if limits.takes_work {
        tokio::spawn(go_on_with_sweeps(Arc::clone(&app)));
    }
    tokio::spawn(guarding::monitor(Arc::clone(&app)));
    tokio::spawn(guarding::fill_hashes(Arc::clone(&app)));
    let limits = connection_limits(&arguments)?;
    let connections = Connections::new(listener, limits);
    let mut late = stopped;
    tokio::select! {
        () = connections.serve(router(Arc::clone(&app)), stopping) => {}
        () = async { while late.changed().await.is_ok() {} tokio::time::sleep(PATIENCE).await } => {
            tracing::warn!("requests were still open after {} s and were cut", PATIENCE.as_secs());
        }
    }
    app.store.close().await;
    Ok(())
}

/// Builds the connection limits from the arguments and the limit on open files.
fn connection_limits(arguments: &ServeArguments) -> anyhow::Result<ConnectionLimits> {
    let usual = ConnectionLimits::default();
    let places = open_files::connections(usual.places);
    if places < usual.places {
        tracing::warn!(
            places,
            "the limit of open files leaves room for fewer connections than {}; see docs/operators.md",
            usual.places
        );
    }
    let proxies = arguments.trusted_proxies()?;
    let per_address = arguments.connections_per_address;
    Ok(ConnectionLimits { places, per_address, unlimited: proxies.clone().with_loopback(), proxies, ..usual })
}

/// Logs the names of admin tokens. On a server without a token, any client can create a permanent
/// admin token.
async fn name_admins(app: &App) -> anyhow::Result<()> {
    let tokens = app.store.reader().tokens().await?;
    let admins = tokens.into_iter().filter(|token| token.role == Role::Admin && token.revoked_at.is_none());
    let names: Vec<String> = admins.map(|token| token.name).collect();
    if !names.is_empty() {
        tracing::warn!("named tokens of admins: {}", names.join(", "));
    }
    Ok(())
}

/// Resumes unfinished sweeps from the previous server process.
async fn go_on_with_sweeps(app: Arc<App>) {
    let wanted = match app.store.reader().wanted_sweeps().await {
        Ok(wanted) => wanted,
        Err(error) => return tracing::error!("sweeps that were at work cannot be found: {error}"),
    };
    for id in wanted {
        match crate::endpoint::sweeps::begin(&app, &id).await {
            Ok(progress) => tracing::info!(sweep = id, done = progress.done, points = progress.points, "goes on"),
            Err(error) => tracing::error!(sweep = id, "cannot go on: {error}"),
        }
    }
}

/// Waits for ctrl-c or SIGTERM.
pub(crate) async fn interrupted() {
    let interrupt = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!("ctrl-c will not be heard: {error}");
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(error) => {
                tracing::error!("SIGTERM will not be heard: {error}");
                std::future::pending::<()>().await;
            }
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
