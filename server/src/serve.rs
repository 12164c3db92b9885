//! Runs the server until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::Access;
use crate::app::App;
use crate::clock::{Clock, SystemClock};
use crate::config::ServeArguments;
use crate::jobs::{Jobs, Limits};
use crate::live::Live;
use crate::rehearsals::Rehearsals;
use crate::router::router;
use crate::store::Store;
use crate::studies::{Studies, StudyLimits};
use crate::sweeps::Sweeps;
use crate::traces::Traces;
use crate::web::Web;

/// Studies that may be under way, those waiting among them: each is a person waiting, so few are enough.
const STUDIES: usize = 16;
/// How long open requests may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked for what is to be forgotten.
const HOUR: Duration = Duration::from_hours(1);

/// Serves until interrupted.
pub async fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    arguments.check()?;
    let store = Store::open(&arguments.database)
        .await
        .with_context(|| format!("cannot open the database {}", arguments.database.display()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let traces = Traces::new(arguments.traces());
    traces.purge(&store, clock.now()).await.context("cannot drop traces that were deleted long ago")?;
    let search_threads = arguments.search_threads();
    let limits = Limits { workers: arguments.workers(), queue: arguments.queue, search_threads };
    let study_limits =
        StudyLimits { queue: STUDIES, time: Duration::from_secs(arguments.study_seconds), threads: search_threads };
    let jobs = Jobs::new(store.clone(), Arc::clone(&clock), limits);
    let sweeps = Sweeps::new(store.clone(), Arc::clone(&clock), jobs.turns(), limits.workers);
    let app = Arc::new(App {
        sweeps,
        studies: Studies::new(Arc::clone(&clock), jobs.turns(), study_limits),
        live: Live::new(store.clone(), Arc::clone(&clock), arguments.live_limits()),
        rehearsals: Rehearsals::new(arguments.token()),
        jobs,
        store,
        traces,
        clock,
        access: Access::new(&arguments.hosts, arguments.token()),
        web: Web::new(&arguments.web),
    });
    let listener = TcpListener::bind(arguments.address)
        .await
        .with_context(|| format!("cannot listen at {}", arguments.address))?;
    app.rehearsals.listen(listener.local_addr()?);
    tracing::info!(
        database = %arguments.database.display(),
        workers = limits.workers,
        search_threads = search_threads.count(),
        "Planscope is at http://{}",
        listener.local_addr()?
    );
    let (stop, stopped) = watch::channel(());
    let stopping = {
        let app = Arc::clone(&app);
        async move {
            interrupted().await;
            tracing::info!("stopping");
            // Ends the event streams too, which would otherwise keep the server up.
            app.jobs.cancel_all();
            app.studies.cancel_all();
            app.sweeps.stop_all();
            app.live.stop();
            drop(stop);
        }
    };
    tokio::spawn(forget_deleted(Arc::clone(&app)));
    tokio::spawn(go_on_with_sweeps(Arc::clone(&app)));
    let mut late = stopped;
    tokio::select! {
        served = axum::serve(listener, router(Arc::clone(&app))).with_graceful_shutdown(stopping) => served?,
        () = async { while late.changed().await.is_ok() {} tokio::time::sleep(PATIENCE).await } => {
            tracing::warn!("requests were still open after {} s and were cut", PATIENCE.as_secs());
        }
    }
    app.store.close().await;
    Ok(())
}

/// Forgets what was deleted when its time has come, now and every hour.
async fn forget_deleted(app: Arc<App>) {
    let mut hourly = tokio::time::interval(HOUR);
    let mut stopped = std::pin::pin!(app.live.stopped());
    loop {
        tokio::select! {
            _ = hourly.tick() => {}
            () = &mut stopped => return,
        }
        let now = app.clock.now();
        let before = app.live.limits().deleted_before(now);
        let runs = app.live.forget_deleted().await.map(|runs| runs as u64);
        let traces = app.traces.purge(&app.store, now).await;
        let profiles = app.store.writer().forget_profiles(before).await;
        let scenarios = app.store.writer().forget_scenarios(before).await;
        let datasets = app.store.writer().forget_datasets(before).await;
        let sweeps = app.store.writer().forget_sweeps(before).await;
        let forgotten = [
            ("runs", runs),
            ("traces", traces),
            ("profiles", profiles),
            ("scenarios", scenarios),
            ("datasets", datasets),
            ("sweeps", sweeps),
        ];
        for (what, forgotten) in forgotten {
            match forgotten {
                Ok(0) => {}
                Ok(count) => tracing::info!(what, count, "deleted ones are forgotten for good"),
                Err(error) => tracing::error!(what, "deleted ones could not be forgotten: {error}"),
            }
        }
    }
}

/// Plans on what the last server was asked for and did not finish.
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

/// Waits for ctrl-c or the signal that service managers send.
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
