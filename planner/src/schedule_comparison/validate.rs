//! Validates requests. Errors name all invalid fields and the allowed values.

use std::collections::BTreeSet;

use super::costs::UNIT_NS;
use super::question::{Per, PerStage, SCHEMA, ScheduleRequest};
use crate::scenario::FieldError;
use crate::schedule::ScheduleKind;
use crate::schedule::csv::MAX_BYTES;
use crate::stage_graph::Placement;

/// Maximum number of ranks.
const RANKS: u32 = 1024;
/// Maximum number of microbatches; also the maximum group size.
const MICROBATCHES: u32 = 1_000_000;
/// Maximum chunks per rank.
const CHUNKS: u32 = 64;
/// Maximum time and activation, in request units.
const MAX: f64 = 1e9;
/// Maximum total time in nanoseconds. JavaScript represents integers exactly up to 2^53.
pub(crate) const MAX_NS: f64 = 9e15;
/// Maximum number of tables; `NAME` limits the characters in a table name.
const TABLES: usize = 16;
const NAME: usize = 200;

/// Request size limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of actions in all schedules.
    pub actions: u64,
}

impl Limits {
    /// Server limits: response within seconds, about 10 MB.
    pub const SERVED: Self = Self { actions: 250_000 };
    /// Command-line limits.
    pub const COMMAND_LINE: Self = Self { actions: 20_000_000 };
}

/// A validated request.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidRequest {
    question: ScheduleRequest,
    limits: Limits,
}

impl ValidRequest {
    /// Validates all fields.
    ///
    /// # Errors
    /// Returns all invalid fields.
    pub fn new(question: ScheduleRequest, limits: Limits) -> Result<Self, Vec<FieldError>> {
        let mut check = Check { question: &question, errors: Vec::new() };
        check.sizes();
        check.times();
        check.activations();
        check.schedules();
        if check.errors.is_empty() {
            check.amount(limits);
        }
        let errors = check.errors;
        if errors.is_empty() { Ok(Self { question, limits }) } else { Err(errors) }
    }

    /// Returns the request.
    pub const fn question(&self) -> &ScheduleRequest {
        &self.question
    }

    /// Returns the limits that apply to the request.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

struct Check<'a> {
    question: &'a ScheduleRequest,
    errors: Vec<FieldError>,
}

impl Check<'_> {
    fn refuse(&mut self, pointer: &str, detail: String) {
        self.errors.push(FieldError::new(pointer, detail));
    }

    fn whole(&mut self, pointer: &str, value: Option<u32>, max: u32) {
        if let Some(value) = value.filter(|value| !(1..=max).contains(value)) {
            self.refuse(pointer, format!("{value} is out of range: 1 to {max}"));
        }
    }

    fn number(&mut self, pointer: &str, value: f64, min: f64, max: f64) {
        if !(value >= min && value <= max) {
            self.refuse(pointer, format!("{value} is out of range: {min} to {max}"));
        }
    }

    fn sizes(&mut self) {
        let question = self.question;
        if question.schema != SCHEMA {
            self.refuse("/schema", format!("must be {SCHEMA:?}"));
        }
        self.whole("/ranks", Some(question.ranks), RANKS);
        self.whole("/microbatches", Some(question.microbatches), MICROBATCHES);
        self.whole("/chunks", question.chunks, CHUNKS);
        self.whole("/group", question.group, MICROBATCHES);
        if let Some(cap) = question.memory_cap {
            self.number("/memory_cap", cap, 0.0, MAX * 1000.0);
        }
    }

    fn times(&mut self) {
        let times = &self.question.times;
        self.values("/times/forward", &times.forward);
        self.values("/times/input_grad", &times.input_grad);
        self.values("/times/weight_grad", &times.weight_grad);
        self.number("/times/communication", times.communication, 0.0, MAX);
        let Some(overlapped) = times.overlapped else { return };
        let (forward, backward) = (times.forward.mean(), times.input_grad.mean() + times.weight_grad.mean());
        let (least, most) = (forward.max(backward), forward + backward);
        if most <= 0.0 {
            self.refuse("/times/overlapped", "there is nothing to overlap: all times are 0".to_owned());
        } else if !(overlapped >= least && overlapped <= most) {
            let detail = format!(
                "{overlapped} is out of range: from the longer of forward and backward, {least}, to both, {most}"
            );
            self.refuse("/times/overlapped", detail);
        }
    }

    fn activations(&mut self) {
        let activations = &self.question.activations;
        self.values("/activations/forward", &activations.forward);
        let Some(part) = &activations.weight_grad else { return };
        self.values("/activations/weight_grad", part);
        if let (PerStage::Equal(whole), PerStage::Equal(part)) = (&activations.forward, part)
            && part > whole
        {
            let detail = format!("{part} is more than the {whole} that a forward keeps, of which it is a part");
            self.refuse("/activations/weight_grad", detail);
        }
    }

    /// Checks all values and the list length.
    fn values(&mut self, pointer: &str, values: &PerStage) {
        for (below, value) in values.values() {
            self.number(&format!("{pointer}{below}"), value, 0.0, MAX);
        }
        match values {
            PerStage::Equal(_) => {}
            PerStage::Stages(list) => self.length(pointer, list.len()),
            PerStage::Microbatches(lists) => {
                let microbatches = self.question.microbatches as usize;
                if lists.len() != microbatches && self.question.imported.is_empty() {
                    let detail =
                        format!("{} lists; one for each of the {microbatches} microbatches is needed", lists.len());
                    self.refuse(pointer, detail);
                }
                for (index, list) in lists.iter().enumerate() {
                    self.length(&format!("{pointer}/{index}"), list.len());
                }
            }
        }
    }

    /// Checks a list length: 1, or the number of stages in some schedule. If the request contains
    /// tables, any nonzero length is valid.
    fn length(&mut self, pointer: &str, length: usize) {
        let question = self.question;
        let ranks = question.ranks as usize;
        let mut fitting = BTreeSet::from([1]);
        match question.times.per {
            Per::Rank => drop(fitting.insert(ranks)),
            Per::Stage => {
                for kind in &question.kinds {
                    fitting.insert(kind.chunks(question.chunks.map(|chunks| chunks as usize)) * ranks);
                    if kind.placement() == Placement::Bidirectional {
                        fitting.insert(ranks);
                    }
                }
            }
        }
        if !fitting.contains(&length) && (length == 0 || question.imported.is_empty()) {
            let fitting: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            self.refuse(pointer, format!("{length} values; {} would fit", fitting.join(" or ")));
        }
    }

    fn schedules(&mut self) {
        let question = self.question;
        if question.kinds.is_empty() && question.imported.is_empty() {
            self.refuse("/kinds", "there is no schedule to make and no table to run".to_owned());
        }
        for (index, kind) in question.kinds.iter().enumerate() {
            if question.kinds[..index].contains(kind) {
                self.refuse(&format!("/kinds/{index}"), format!("{} is asked for twice", kind.id()));
            }
        }
        if question.imported.len() > TABLES {
            self.refuse("/imported", format!("{} tables; at most {TABLES} are run at once", question.imported.len()));
        }
        for (index, table) in question.imported.iter().enumerate() {
            let length = table.name.chars().count();
            if table.name.trim().is_empty() || length > NAME {
                let detail = format!("a name has 1 to {NAME} characters, this one {length}");
                self.refuse(&format!("/imported/{index}/name"), detail);
            }
            if table.csv.len() > MAX_BYTES {
                self.refuse(&format!("/imported/{index}/csv"), format!("a table has at most {} MiB", MAX_BYTES >> 20));
            }
        }
    }

    /// Checks the total number of actions and the total duration.
    fn amount(&mut self, limits: Limits) {
        let question = self.question;
        let cells = |kind: &ScheduleKind| {
            let chunks = match kind.placement() {
                // A microbatch visits a single copy.
                Placement::Bidirectional => 1,
                _ => kind.chunks(question.chunks.map(|chunks| chunks as usize)) as u64,
            };
            u64::from(question.ranks) * chunks * u64::from(question.microbatches)
        };
        let actions: u64 =
            question.kinds.iter().map(|kind| cells(kind) * if kind.splits_backward() { 3 } else { 2 }).sum();
        if actions > limits.actions {
            let detail = format!(
                "the schedules have {actions} actions together, at most {} are run at once: ask for fewer microbatches, \
                 ranks, chunks or kinds",
                limits.actions
            );
            self.refuse("/microbatches", detail);
        }
        let times = &question.times;
        let longest = times.forward.largest() + times.input_grad.largest() + times.weight_grad.largest();
        let cells = question.kinds.iter().map(cells).max().unwrap_or(0).max(1) as f64;
        if (longest + 2.0 * times.communication) * cells * UNIT_NS as f64 > MAX_NS {
            let most = MAX_NS / UNIT_NS as f64;
            self.refuse("/times", format!("all actions together may last longer than {most}; take a larger unit"));
        }
    }
}
