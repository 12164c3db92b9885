//! What every handler can reach.

use std::sync::Arc;

use crate::access::Access;
use crate::arrival::Bodies;
use crate::clock::Clock;
use crate::imports::Imports;
use crate::jobs::Jobs;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::overviews::Overviews;
use crate::replay::Replays;
use crate::store::Store;
use crate::studies::Studies;
use crate::sweeps::Sweeps;
use crate::traces::Traces;
use crate::web::Web;

/// What every handler can reach.
#[derive(Debug)]
pub struct App {
    /// The database.
    pub store: Store,
    /// Planning jobs.
    pub jobs: Jobs,
    /// Logs of running jobs.
    pub live: Live,
    /// Memory of the bodies of requests.
    pub bodies: Arc<Bodies>,
    /// Whole files on their way.
    pub imports: Imports,
    /// Replays of the example log.
    pub replays: Replays,
    /// First looks at large timelines.
    pub overviews: Overviews,
    /// Studies of plans.
    pub studies: Studies,
    /// Sweeps at work.
    pub sweeps: Sweeps,
    /// Where traces are read.
    pub traces: Traces,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who may ask.
    pub access: Arc<Access>,
    /// The built pages.
    pub web: Web,
    /// What is counted for operators.
    pub metrics: Metrics,
}

/// The state of the router.
pub type Shared = axum::extract::State<Arc<App>>;
