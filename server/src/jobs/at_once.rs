//! Planning while somebody waits: no job, nothing stored, and an end when the asker goes.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::job::PlanningTime;
use planner::engine::{Observer, PlanError};
use planner::host::{BatchClock, Watch, Workers};
use planner::outcome::Planning;
use planner::scenario::{PlannerKind, ValidScenario};

use super::stopwatch::Stopwatch;
use super::time_limit::Patience;
use super::{Asker, Jobs};
use crate::clock::Clock;
use crate::workers::Threads;

/// Askers that may wait for a turn at once.
const MOST_WAITING: usize = 32;

/// Why nothing was planned.
#[derive(Debug, thiserror::Error)]
pub enum NotPlanned {
    /// Too many wait already.
    #[error("{0} questions wait already")]
    Full(usize),
    /// The server is stopping.
    #[error("the server is stopping")]
    Closing,
    /// The server plans nothing.
    #[error("the server was started without work")]
    WithoutWork,
    /// It takes longer than this.
    #[error("{}", super::too_long(*.0))]
    TooLong(Duration),
    /// The plans have more spans than an answer may have.
    #[error("{0}")]
    TooLarge(String),
    /// The checker refused a plan, or a planner stopped: a fault of ours, in words.
    #[error("{0}")]
    Fault(String),
}

impl Jobs {
    /// Plans a scenario in turn with the jobs. Dropping the future ends it within moments.
    pub async fn plan_at_once(&self, scenario: ValidScenario) -> Result<(Planning, Vec<PlanningTime>), NotPlanned> {
        if !self.limits.takes_work {
            return Err(NotPlanned::WithoutWork);
        }
        let waiting = self.asking.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.asking));
        if waiting >= MOST_WAITING {
            return Err(NotPlanned::Full(MOST_WAITING));
        }
        let turn = self.turns().acquire_owned().await.map_err(|_| NotPlanned::Closing)?;
        let asker = Asker::default();
        let patience = Arc::new(asker.patience(self.time_limit()));
        let mut asked = Asked::new(Arc::clone(&patience), Arc::clone(&self.clock), self.limits.search_threads);
        let engine = Arc::clone(&self.engine);
        let planned = tokio::task::spawn_blocking(move || {
            // The turn ends with the planning, which may outlast the asker by a moment.
            let _turn = turn;
            let planned = std::panic::catch_unwind(AssertUnwindSafe(|| engine(&scenario, &mut asked)));
            (planned, asked.times())
        })
        .await;
        drop(place);
        match planned {
            Ok((Ok(Ok(planning)), times)) => {
                let times = Stopwatch::beside_steps(times, &planning.outcome);
                Ok((planning, times))
            }
            Ok((Ok(Err(PlanError::Cancelled(_))), _)) => Err(NotPlanned::TooLong(self.limits.plan_time)),
            Ok((Ok(Err(error @ PlanError::TooLarge(_))), _)) => Err(NotPlanned::TooLarge(error.to_string())),
            Ok((Ok(Err(error @ PlanError::Refused { .. })), _)) => Err(NotPlanned::Fault(error.to_string())),
            // The panic hook has written the place and the message.
            Ok((Err(_), _)) | Err(_) => Err(NotPlanned::Fault("a planner stopped unexpectedly".to_owned())),
        }
    }
}

/// A place among those who wait.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Watches the planners of one question, or one of them.
struct Asked {
    patience: Arc<Patience>,
    clock: Arc<dyn Clock>,
    stopwatch: Stopwatch,
    /// Times of all planners of the question that are done.
    times: Arc<Mutex<Vec<PlanningTime>>>,
    threads: Threads,
}

impl Asked {
    fn new(patience: Arc<Patience>, clock: Arc<dyn Clock>, threads: Threads) -> Self {
        let stopwatch = Stopwatch::new(Arc::clone(&clock));
        Self { patience, clock, stopwatch, times: Arc::default(), threads }
    }

    fn times(&self) -> Vec<PlanningTime> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Asked {
    fn started(&mut self, planner: PlannerKind) {
        self.stopwatch.started(planner);
    }

    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}

    fn finished(&mut self, planner: PlannerKind) {
        self.stopwatch.finished(planner);
        self.times.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.stopwatch.take_times());
    }

    fn cancelled(&self) -> bool {
        self.patience.is_over()
    }

    fn workers(&self) -> &dyn Workers {
        &self.threads
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        &self.stopwatch
    }

    /// Somebody waits and nobody watches: all planners at once.
    fn apart(&self, planners: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
        let own = |_: &PlannerKind| -> Box<dyn Observer + Send> {
            let (patience, clock) = (Arc::clone(&self.patience), Arc::clone(&self.clock));
            Box::new(Self { times: Arc::clone(&self.times), ..Self::new(patience, clock, self.threads) })
        };
        (self.threads.count() > 1).then(|| planners.iter().map(own).collect())
    }
}
