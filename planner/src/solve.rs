//! Raw problems, each for one of this crate's inner solvers: JSON in, JSON out, no model and no cluster.
//!
//! Every kind is a file with a `Question`, an `Answer`, and a function that leads from one to the other; the table at
//! [`Problem`] names the kinds. What is common to all stands around the question: the `kind`, and `budget_s`, the wall
//! time that may be spent, which is the caller's to keep.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::host::{Watch, Workers};
use crate::scenario::FieldError;
use crate::scenario::pointer;
use crate::units::Seconds;

/// Longest budget, a day.
const LONGEST_BUDGET_S: f64 = 86_400.0;

/// Makes the enums of all kinds and the ways through them. A line is the kind's variant, its module, its name in JSON.
///
/// A kind's module has `Question: DeserializeOwned`, `Answer: Serialize`, and
/// `fn answer(&Question, &dyn Workers, &dyn Watch) -> Result<Answer, Vec<FieldError>>`, which names every wrong field.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $module:ident, $name:literal;)+) => {
        $(pub mod $module;)+

        /// A problem of some kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Problem {
            $($(#[$doc])* $kind($module::Question),)+
        }

        /// The answer to a problem, of the same kind.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "kind")]
        pub enum Answer {
            $($(#[$doc])* #[serde(rename = $name)] $kind($module::Answer),)+
        }

        impl Problem {
            /// Names of all kinds.
            pub const KINDS: &[&'static str] = &[$($name),+];

            fn of(kind: &str, fields: Value) -> Option<Result<Self, Vec<FieldError>>> {
                match kind {
                    $($name => Some(question(fields).map(Self::$kind)),)+
                    _ => None,
                }
            }
        }

        /// Answers a problem.
        ///
        /// # Errors
        /// Names every wrong field by JSON pointer.
        pub fn answer(problem: &Problem, workers: &dyn Workers, watch: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
            match problem {
                $(Problem::$kind(question) => $module::answer(question, workers, watch).map(Answer::$kind),)+
            }
        }
    };
}

mod lengths;

kinds! {
    /// The order of an uneven pipeline, best or nearly so.
    UnevenPipeline = uneven_pipeline, "uneven-pipeline";
    /// One candidate for each stage pair within memory.
    LayerTuning = layer_tuning, "layer-tuning";
    /// Context-parallel groups of a batch (DHP).
    CpGroups = cp_groups, "cp-groups";
    /// Microbatches of one pipeline (Hydraulis, Eq. 1).
    Pack = pack, "pack";
    /// Sequences over pipelines (Hydraulis, Eq. 2 and 3).
    Dispatch = dispatch, "dispatch";
    /// Strategies for the lengths of a data set (Hydraulis, Eq. 4).
    Propose = propose, "propose";
    /// Layouts of modules.
    Layouts = layouts, "layouts";
    /// Items over microbatches that are as equal as can be (DFLOP, Eq. 6).
    Partition = partition, "partition";
    /// Images, video and sound as encoder and backbone see them (DFLOP, section 3.2.2).
    InputShapes = input_shapes, "input-shapes";
}

/// A problem, and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The problem.
    pub problem: Problem,
    /// Wall time that may be spent; `None` where the question leaves that open.
    pub budget: Option<Seconds>,
}

/// Reads a problem.
///
/// # Errors
/// Names the first field that cannot be read, by JSON pointer; [`answer`] then names all that can be read but are wrong.
pub fn parse(json: &str) -> Result<Asked, Vec<FieldError>> {
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
    let problem = Problem::of(&kind, Value::Object(fields)).ok_or_else(unknown)??;
    Ok(Asked { problem, budget })
}

fn budget(fields: &mut Map<String, Value>) -> Result<Option<Seconds>, Vec<FieldError>> {
    let Some(value) = fields.remove("budget_s").filter(|value| !value.is_null()) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=LONGEST_BUDGET_S).contains(seconds));
    let detail = || format!("{value} is not a number of seconds from 0 to {LONGEST_BUDGET_S}");
    let seconds = seconds.ok_or_else(|| vec![FieldError::new("/budget_s", detail())])?;
    Ok(Some(Seconds::from_secs(seconds)))
}

fn question<T: DeserializeOwned>(fields: Value) -> Result<T, Vec<FieldError>> {
    serde_path_to_error::deserialize(fields)
        .map_err(|error| vec![FieldError::new(&pointer(error.path()), error.inner().to_string())])
}

#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod tests;
