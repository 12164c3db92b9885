//! Shared state for all handlers.

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

/// Shared state for all handlers.
#[derive(Debug)]
pub struct App {
    /// The database.
    pub store: Store,
    /// Planning jobs.
    pub jobs: Jobs,
    /// Logs of running jobs.
    pub live: Live,
    /// Memory budget for request bodies.
    pub bodies: Arc<Bodies>,
    /// File imports in progress.
    pub imports: Imports,
    /// Replays of the example log.
    pub replays: Replays,
    /// Cached overviews of large timelines.
    pub overviews: Overviews,
    /// Studies of plans.
    pub studies: Studies,
    /// Running sweeps.
    pub sweeps: Sweeps,
    /// Trace reader.
    pub traces: Traces,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Authentication and roles.
    pub access: Arc<Access>,
    /// The built pages.
    pub web: Web,
    /// Operator metrics.
    pub metrics: Metrics,
}

/// Axum state extractor for [`App`].
pub type Shared = axum::extract::State<Arc<App>>;
