//! Standalone problems for the inner solvers in this crate: JSON input, JSON output, no model or
//! cluster.
//!
//! Each kind is a module that defines a `Question`, an `Outcome` and a function that maps `Question`
//! to `Outcome`. [`Problem`] lists the kinds. All problems share two fields: `kind`, and `budget_s`,
//! the wall time limit, which the caller enforces.

use serde::Serialize;
use serde_json::{Map, Value};

use planscope_core::host::{Cancellation, Workers};
use planscope_core::units::Seconds;
use planscope_plan::scenario::{FieldError, parse_value};

/// Maximum budget: one day.
const MAX_BUDGET_S: f64 = 86_400.0;

/// Generates the enums and the dispatch for all kinds. A line contains variant, module and JSON
/// name.
///
/// A module defines `Request: DeserializeOwned`, `Response: Serialize`, and `fn respond(&Request,
/// &dyn Workers, &dyn Cancellation) -> Result<Response, Vec<FieldError>>`, which returns all invalid fields.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $module:ident, $name:literal;)+) => {
        $(pub mod $module;)+

        /// A problem, by kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Problem {
            $($(#[$doc])* $kind($module::Request),)+
        }

        /// A result, by kind.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "kind")]
        pub enum Response {
            $($(#[$doc])* #[serde(rename = $name)] $kind($module::Response),)+
        }

        impl Problem {
            /// JSON names for all kinds.
            pub const KINDS: &[&'static str] = &[$($name),+];

            fn from_kind(kind: &str, fields: &Value) -> Option<Result<Self, Vec<FieldError>>> {
                match kind {
                    $($name => Some(parse_value(fields).map(Self::$kind)),)+
                    _ => None,
                }
            }
        }

        /// Solves a problem.
        ///
        /// # Errors
        /// Returns the JSON pointers to all invalid fields.
        pub fn respond(
            problem: &Problem,
            workers: &dyn Workers,
            cancellation: &dyn Cancellation,
        ) -> Result<Response, Vec<FieldError>> {
            match problem {
                $(Problem::$kind(request) => $module::respond(request, workers, cancellation).map(Response::$kind),)+
            }
        }
    };
}

mod lengths;
mod slices;
mod times;

kinds! {
    /// Schedules an uneven pipeline, exactly or heuristically.
    UnevenPipeline = uneven_pipeline, "uneven-pipeline";
    /// Selects a candidate per stage pair within the memory limit.
    LayerTuning = layer_tuning, "layer-tuning";
    /// Forms context-parallel groups for a batch (DHP).
    CpGroups = cp_groups, "cp-groups";
    /// Packs the microbatches for a pipeline (Hydraulis Eq. 1).
    Pack = pack, "pack";
    /// Dispatches sequences to pipelines (Hydraulis Eq. 2, Hydraulis Eq. 3).
    Dispatch = dispatch, "dispatch";
    /// Proposes strategies for a dataset's length distribution (Hydraulis Eq. 4).
    Propose = propose, "propose";
    /// Ranks module layouts.
    Layouts = layouts, "layouts";
    /// Partitions items into balanced microbatches (DFLOP Eq. 6).
    Partition = partition, "partition";
    /// Computes encoder and backbone input shapes for images, video and sound (DFLOP Sec. 3.2.2).
    InputShapes = input_shapes, "input-shapes";
}

/// A problem and its time budget.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveRequest {
    /// The problem.
    pub problem: Problem,
    /// Wall time budget. `None` if the request does not set it.
    pub budget: Option<Seconds>,
}

/// Parses a problem.
///
/// # Errors
/// Returns the JSON pointer to the first malformed field. [`respond`] then reports all well-formed
/// fields that have invalid values.
pub fn parse(json: &str) -> Result<SolveRequest, Vec<FieldError>> {
    let value = serde_json::from_str(json).map_err(|error| vec![FieldError::new("", format!("not JSON: {error}"))])?;
    let Value::Object(mut fields) = value else {
        return Err(vec![FieldError::new("", "a problem is a JSON object".to_owned())]);
    };
    let known = || format!("one of {}", Problem::KINDS.join(", "));
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => {
            return Err(vec![FieldError::new("/kind", format!("{other} is no kind; there are {}", known()))]);
        }
        None => return Err(vec![FieldError::new("/kind", format!("is missing: {}", known()))]),
    };
    let budget = budget(&mut fields)?;
    let unknown = || vec![FieldError::new("/kind", format!("{kind:?} is no kind: {}", known()))];
    let problem = Problem::from_kind(&kind, &Value::Object(fields)).ok_or_else(unknown)??;
    Ok(SolveRequest { problem, budget })
}

fn budget(fields: &mut Map<String, Value>) -> Result<Option<Seconds>, Vec<FieldError>> {
    let Some(value) = fields.remove("budget_s").filter(|value| !value.is_null()) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=MAX_BUDGET_S).contains(seconds));
    let detail = || format!("{value} is not a number of seconds from 0 to {MAX_BUDGET_S}");
    let seconds = seconds.ok_or_else(|| vec![FieldError::new("/budget_s", detail())])?;
    Ok(Some(Seconds::from_secs(seconds)))
}

#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod tests;
