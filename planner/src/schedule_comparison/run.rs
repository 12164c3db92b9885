//! Generates, validates and simulates the requested schedules.

use super::costs::{ACTIVATION_BYTES, BenchCosts, Clock, UNIT_NS, activation_bytes, activations, costs};
use super::measure::Run;
use super::question::{ImportedTable, ScheduleRequest};
use super::report::{ANSWER_SCHEMA, EntryOutcome, Refusal, ScheduleEntry, ScheduleReport, ScheduleResponse};
use super::validate::{MAX_NS, ValidRequest};
use crate::action::Schedule;
use crate::check::check_run;
use crate::host::Watch;
use crate::schedule::csv::{CellAddress, CellWait, Refused, describe_deadlock, read};
use crate::schedule::{ScheduleError, ScheduleKind, Shape, automatic};
use crate::simulate::{execute, wait_cycle};
use crate::units::Bytes;

/// Maximum rows per table.
const ROWS: usize = 1024;

/// Returns an outcome per requested schedule: metrics, or the rejection.
pub fn answer(question: &ValidRequest) -> ScheduleResponse {
    let bench = Bench { question: question.question(), clock: Clock::of(question.question()) };
    whole(bench.entries(question.limits().actions).collect())
}

/// Cancellable version. Returns `None` if the cancellation check fires before the final schedule.
pub fn answer_while(question: &ValidRequest, watch: &dyn Watch) -> Option<ScheduleResponse> {
    let bench = Bench { question: question.question(), clock: Clock::of(question.question()) };
    let mut entries = Vec::new();
    for entry in bench.entries(question.limits().actions) {
        entries.push(entry);
        if watch.is_over() {
            return None;
        }
    }
    Some(whole(entries))
}

fn whole(entries: Vec<ScheduleEntry>) -> ScheduleResponse {
    ScheduleResponse { schema: ANSWER_SCHEMA.to_owned(), unit_ns: UNIT_NS, activation_bytes: ACTIVATION_BYTES, entries }
}

impl From<Result<ScheduleReport, Refusal>> for EntryOutcome {
    fn from(result: Result<ScheduleReport, Refusal>) -> Self {
        match result {
            Ok(report) => Self::Run(Box::new(report)),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

impl Refusal {
    fn because(detail: String) -> Self {
        Self { detail, ..Self::default() }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self {
            detail: refused.to_string(),
            problems: refused.problems,
            further_problems: refused.further as u64,
            deadlock: refused.deadlock,
        }
    }
}

struct Bench<'a> {
    question: &'a ScheduleRequest,
    clock: Clock,
}

impl Bench<'_> {
    /// Yields outcomes for all kinds, then for all tables, limited to `most` actions.
    fn entries(&self, most: u64) -> impl Iterator<Item = ScheduleEntry> {
        let kinds = self.question.kinds.iter().map(|&kind| ScheduleEntry {
            name: kind.title().to_owned(),
            kind: Some(kind),
            source: Some(kind.source().to_owned()),
            outcome: self.kind(kind).into(),
        });
        let tables = self.question.imported.iter().map(move |table| ScheduleEntry {
            name: table.name.clone(),
            kind: None,
            source: None,
            outcome: self.table(table, most).into(),
        });
        kinds.chain(tables)
    }

    fn kind(&self, kind: ScheduleKind) -> Result<ScheduleReport, Refusal> {
        let question = self.question;
        let shape = Shape {
            ranks: question.ranks as usize,
            chunks: kind.chunks(question.chunks.map(|chunks| chunks as usize)),
            microbatches: question.microbatches as usize,
            group: question.group.map(|group| group as usize).filter(|_| kind.has_groups()),
        };
        kind.check(shape).map_err(|error| Refusal::because(error.to_string()))?;
        let flows = kind.flows(shape.ranks, shape.chunks, shape.microbatches);
        let mut bench = costs(question, self.clock, flows).map_err(Refusal::because)?;
        let cap = question.memory_cap.map(activation_bytes);
        let made = match kind {
            ScheduleKind::ZbH1 | ScheduleKind::ZbH2 => automatic(kind, &bench.costs, cap, &bench.released),
            _ => kind.generate(shape, &bench.costs, cap),
        };
        let schedule = made.map_err(|error| Refusal::because(in_activations(error)))?;
        self.run(&schedule, &mut bench, Some((kind, shape)), Vec::new())
    }

    fn table(&self, table: &ImportedTable, most: u64) -> Result<ScheduleReport, Refusal> {
        let imported = read(&table.csv)?;
        let (schedule, mut notes) = (imported.schedule, imported.notes);
        if schedule.ranks() > ROWS || schedule.len() as u64 > most {
            let detail =
                format!("{} rows and {} actions: at most {ROWS} and {most} are run", schedule.ranks(), schedule.len());
            return Err(Refusal::because(detail));
        }
        let mut bench = costs(self.question, self.clock, imported.flows).map_err(Refusal::because)?;
        // Validation limits the duration of generated schedules only; tables can contain more
        // cells.
        if self.longest_ns(&bench) > MAX_NS {
            let most = MAX_NS / UNIT_NS as f64;
            return Err(Refusal::because(format!(
                "all its actions together may last longer than {most}; take a larger unit"
            )));
        }
        let (ranks, microbatches) = (self.question.ranks, self.question.microbatches);
        if (schedule.ranks(), schedule.microbatches) != (ranks as usize, microbatches as usize) {
            notes.push(format!(
                "the table has {} ranks and {} microbatches, the question {ranks} and {microbatches}",
                schedule.ranks(),
                schedule.microbatches
            ));
        }
        self.run(&schedule, &mut bench, None, notes)
    }

    /// Total time for actions and sends in nanoseconds.
    fn longest_ns(&self, bench: &BenchCosts) -> f64 {
        let costs = &bench.costs;
        let columns =
            [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
        columns.into_iter().flatten().map(|time| time.get() as f64).sum::<f64>() * self.clock.step_ns as f64
    }

    fn run(
        &self,
        schedule: &Schedule,
        bench: &mut BenchCosts,
        of: Option<(ScheduleKind, Shape)>,
        notes: Vec<String>,
    ) -> Result<ScheduleReport, Refusal> {
        bench.clear_unused_gain(schedule);
        let execution = execute(schedule, &bench.costs).map_err(|deadlock| {
            let address = |placed| CellAddress::of(schedule, placed);
            let waits: Vec<CellWait> = wait_cycle(schedule, &bench.costs.flows, &deadlock)
                .iter()
                .map(|wait| CellWait::new(wait, address))
                .collect();
            Refusal { detail: describe_deadlock(&waits), deadlock: waits, ..Refusal::default() }
        })?;
        check_run(schedule, &execution, &bench.costs, Bytes::new(u64::MAX))
            .map_err(|violation| Refusal::because(format!("the judge refuses it: {violation}")))?;
        let run = Run { question: self.question, clock: self.clock, bench, schedule, execution: &execution };
        Ok(run.report(of, notes))
    }
}

/// Formats an error with memory in activations.
fn in_activations(error: ScheduleError) -> String {
    match error {
        ScheduleError::Memory { kind, rank, needs, limit } => format!(
            "{}: rank {rank} holds {} activations for its largest microbatch alone, {} are allowed",
            kind.title(),
            activations(needs),
            activations(limit)
        ),
        ScheduleError::NoOrder { kind, limit } => {
            format!("{}: no order was found within {} activations", kind.title(), activations(limit))
        }
        other => other.to_string(),
    }
}
