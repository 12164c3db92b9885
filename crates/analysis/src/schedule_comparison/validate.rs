//! Validates requests. Errors name all invalid fields and the allowed values.

use std::collections::BTreeSet;

use super::clock::{Clock, UNIT_NS};
use super::question::{Per, PerStage, SCHEMA, ScheduleRequest};
use planscope_core::stage_graph::Placement;
use planscope_core::units::Nanos;
use planscope_pipeline::schedule::ScheduleKind;
use planscope_pipeline::schedule::csv::MAX_BYTES;
use planscope_plan::scenario::FieldError;

/// Maximum number of ranks.
const RANKS: u32 = 1024;
/// Maximum number of microbatches; also the maximum group size.
const MICROBATCHES: u32 = 1_000_000;
/// Maximum chunks per rank.
const CHUNKS: u32 = 64;
/// Maximum time and activation, in request units.
const MAX: f64 = 1e9;
/// Maximum total time in nanoseconds. JavaScript represents integers exactly up to 2^53.
pub const MAX_NS: f64 = 9e15;
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
    request: ScheduleRequest,
    limits: Limits,
}

impl ValidRequest {
    /// Validates all fields.
    ///
    /// # Errors
    /// Returns all invalid fields.
    pub fn new(request: ScheduleRequest, limits: Limits) -> Result<Self, Vec<FieldError>> {
        let mut check = Check { request: &request, errors: Vec::new() };
        check.sizes();
        check.times();
        check.activations();
        check.schedules();
        if check.errors.is_empty() {
            check.amount(limits);
        }
        let errors = check.errors;
        if errors.is_empty() { Ok(Self { request, limits }) } else { Err(errors) }
    }

    /// Returns the request.
    pub const fn request(&self) -> &ScheduleRequest {
        &self.request
    }

    /// Returns the limits that apply to the request.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

struct Check<'a> {
    request: &'a ScheduleRequest,
    errors: Vec<FieldError>,
}

impl Check<'_> {
    fn refuse(&mut self, pointer: &str, detail: String) {
        self.errors.push(FieldError::new(pointer, detail));
    }

    fn integer(&mut self, pointer: &str, value: Option<u32>, max: u32) {
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
        let request = self.request;
        if request.schema != SCHEMA {
            self.refuse("/schema", format!("must be {SCHEMA:?}"));
        }
        self.integer("/ranks", Some(request.ranks), RANKS);
        self.integer("/microbatches", Some(request.microbatches), MICROBATCHES);
        self.integer("/chunks", request.chunks, CHUNKS);
        self.integer("/group", request.group, MICROBATCHES);
        if let Some(cap) = request.memory_cap {
            self.number("/memory_cap", cap, 0.0, MAX * 1000.0);
        }
    }

    fn times(&mut self) {
        let times = &self.request.times;
        self.values("/times/forward", &times.forward);
        self.values("/times/input_grad", &times.input_grad);
        self.values("/times/weight_grad", &times.weight_grad);
        self.number("/times/communication", times.communication, 0.0, MAX);
        if self.errors.is_empty() {
            self.resolution();
        }
        let Some(overlapped) = times.overlapped else { return };
        let (forward, backward) = (times.forward.mean(), times.input_grad.mean() + times.weight_grad.mean());
        let (min_time, max_time) = (forward.max(backward), forward + backward);
        if max_time <= 0.0 {
            self.refuse("/times/overlapped", "there is nothing to overlap: all times are 0".to_owned());
        } else if !(overlapped >= min_time && overlapped <= max_time) {
            let detail = format!(
                "{overlapped} is out of range: from the longer of forward and backward, {min_time}, to both, {max_time}"
            );
            self.refuse("/times/overlapped", detail);
        }
    }

    /// Refuses positive times that round to zero steps. The step depends on the longest times, so
    /// these must be valid.
    fn resolution(&mut self) {
        let times = &self.request.times;
        let clock = Clock::from_request(self.request);
        let step = clock.step_ns as f64 / UNIT_NS as f64;
        let columns =
            [("forward", &times.forward), ("input_grad", &times.input_grad), ("weight_grad", &times.weight_grad)];
        let mut all = vec![("communication".to_owned(), times.communication)];
        for (name, values) in columns {
            all.extend(values.values().map(|(below, value)| (format!("{name}{below}"), value)));
        }
        for (name, value) in all.into_iter().filter(|&(_, value)| value > 0.0 && clock.steps(value) == Nanos::ZERO) {
            let detail = format!("{value:e} is below half a step of {step:e} and rounds to 0: take a smaller unit");
            self.refuse(&format!("/times/{name}"), detail);
        }
    }

    fn activations(&mut self) {
        let activations = &self.request.activations;
        self.values("/activations/forward", &activations.forward);
        let Some(part) = &activations.weight_grad else { return };
        self.values("/activations/weight_grad", part);
        if let (PerStage::Equal(total), PerStage::Equal(part)) = (&activations.forward, part)
            && part > total
        {
            let detail = format!("{part} is more than the {total} that a forward keeps, of which it is a part");
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
                let microbatches = self.request.microbatches as usize;
                if lists.len() != microbatches && self.request.imported.is_empty() {
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
        let request = self.request;
        let ranks = request.ranks as usize;
        let mut fitting = BTreeSet::from([1]);
        match request.times.per {
            Per::Rank => drop(fitting.insert(ranks)),
            Per::Stage => {
                for kind in &request.kinds {
                    fitting.insert(kind.chunks(request.chunks.map(|chunks| chunks as usize)) * ranks);
                    if kind.placement() == Placement::Bidirectional {
                        fitting.insert(ranks);
                    }
                }
            }
        }
        if !fitting.contains(&length) && (length == 0 || request.imported.is_empty()) {
            let fitting: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            self.refuse(pointer, format!("{length} values; {} would fit", fitting.join(" or ")));
        }
    }

    fn schedules(&mut self) {
        let request = self.request;
        if request.kinds.is_empty() && request.imported.is_empty() {
            self.refuse("/kinds", "there is no schedule to make and no table to run".to_owned());
        }
        for (index, kind) in request.kinds.iter().enumerate() {
            if request.kinds[..index].contains(kind) {
                self.refuse(&format!("/kinds/{index}"), format!("{} is asked for twice", kind.id()));
            }
        }
        if request.imported.len() > TABLES {
            self.refuse("/imported", format!("{} tables; at most {TABLES} are run at once", request.imported.len()));
        }
        for (index, table) in request.imported.iter().enumerate() {
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
        let request = self.request;
        let cells = |kind: &ScheduleKind| {
            let chunks = match kind.placement() {
                // A microbatch visits a single copy.
                Placement::Bidirectional => 1,
                _ => kind.chunks(request.chunks.map(|chunks| chunks as usize)) as u64,
            };
            u64::from(request.ranks) * chunks * u64::from(request.microbatches)
        };
        let actions: u64 =
            request.kinds.iter().map(|kind| cells(kind) * if kind.splits_backward() { 3 } else { 2 }).sum();
        if actions > limits.actions {
            let detail = format!(
                "the schedules have {actions} actions together, at most {} are run at once: ask for fewer microbatches, \
                 ranks, chunks or kinds",
                limits.actions
            );
            self.refuse("/microbatches", detail);
        }
        let times = &request.times;
        let max_pair = times.forward.max_value() + times.input_grad.max_value() + times.weight_grad.max_value();
        let cells = request.kinds.iter().map(cells).max().unwrap_or(0).max(1) as f64;
        if (max_pair + 2.0 * times.communication) * cells * UNIT_NS as f64 > MAX_NS {
            let max_units = MAX_NS / UNIT_NS as f64;
            self.refuse("/times", format!("all actions together may last longer than {max_units}; take a larger unit"));
        }
    }
}
