//! Rehearsals begun from the browser: the server walks through a plan, and the page of its run shows how it goes.

use api::path;
use api::planner::scenario::PlannerKind;
use api::rehearsal::{NewRehearsal, StartedRehearsal};

use crate::client::{self, Body, Failure};

/// Begins a rehearsal of a planner's plan of a scenario.
pub(crate) async fn begin(scenario: &str, planner: PlannerKind) -> Result<StartedRehearsal, Failure> {
    let question = NewRehearsal { planner: Some(planner), speed: None, iterations: None };
    let body = serde_json::to_string(&question).map_err(|error| Failure::Unreadable(error.to_string()))?;
    client::send("POST", &path::rehearsals(scenario), Body::Json(body)).await
}
