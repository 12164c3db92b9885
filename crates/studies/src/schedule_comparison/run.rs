//! Generates, validates and simulates the requested schedules.

use super::costs::{ACTIVATION_BYTES, BenchCosts, activation_bytes, activations, costs};
use super::measure::Run;
use super::{
    Clock, ImportedTable, MAX_NS, RESPONSE_SCHEMA, Refusal, ScheduleEntry, ScheduleReport, ScheduleRequest,
    ScheduleResponse, UNIT_NS, ValidRequest,
};
use planscope_check::check::check_run;
use planscope_core::action::Schedule;
use planscope_core::host::Cancellation;
use planscope_core::units::Bytes;
use planscope_pipeline::schedule::csv::{CellAddress, CellWait, describe_deadlock, read};
use planscope_pipeline::schedule::{ScheduleError, ScheduleKind, Shape, automatic};
use planscope_pipeline::simulate::{execute, wait_cycle};

/// Maximum rows per table.
const ROWS: usize = 1024;

/// Returns an outcome per requested schedule: metrics, or the rejection.
pub fn respond(valid: &ValidRequest) -> ScheduleResponse {
    let bench = Bench { request: valid.request(), clock: Clock::from_request(valid.request()) };
    response(bench.entries(valid.limits().actions).collect())
}

/// Cancellable version. Returns `None` if the cancellation check fires before the final schedule.
pub fn respond_while(valid: &ValidRequest, cancellation: &dyn Cancellation) -> Option<ScheduleResponse> {
    let bench = Bench { request: valid.request(), clock: Clock::from_request(valid.request()) };
    let mut entries = Vec::new();
    for entry in bench.entries(valid.limits().actions) {
        entries.push(entry);
        if cancellation.is_over() {
            return None;
        }
    }
    Some(response(entries))
}

fn response(entries: Vec<ScheduleEntry>) -> ScheduleResponse {
    ScheduleResponse {
        schema: RESPONSE_SCHEMA.to_owned(),
        unit_ns: UNIT_NS,
        activation_bytes: ACTIVATION_BYTES,
        entries,
    }
}

struct Bench<'a> {
    request: &'a ScheduleRequest,
    clock: Clock,
}

impl Bench<'_> {
    /// Yields outcomes for all kinds, then for all tables, limited to `most` actions.
    fn entries(&self, max_actions: u64) -> impl Iterator<Item = ScheduleEntry> {
        let kinds = self.request.kinds.iter().map(|&kind| ScheduleEntry {
            name: kind.title().to_owned(),
            kind: Some(kind),
            source: Some(kind.source().to_owned()),
            outcome: self.kind(kind).into(),
        });
        let tables = self.request.imported.iter().map(move |table| ScheduleEntry {
            name: table.name.clone(),
            kind: None,
            source: None,
            outcome: self.table(table, max_actions).into(),
        });
        kinds.chain(tables)
    }

    fn kind(&self, kind: ScheduleKind) -> Result<ScheduleReport, Refusal> {
        let request = self.request;
        let shape = Shape {
            ranks: request.ranks as usize,
            chunks: kind.chunks(request.chunks.map(|chunks| chunks as usize)),
            microbatches: request.microbatches as usize,
            group: request.group.map(|group| group as usize).filter(|_| kind.has_groups()),
        };
        kind.check(shape).map_err(|error| Refusal::because(error.to_string()))?;
        let flows = kind.flows(shape.ranks, shape.chunks, shape.microbatches);
        let mut bench = costs(request, self.clock, flows).map_err(Refusal::because)?;
        let cap = request.memory_cap.map(activation_bytes);
        let generated = match kind {
            ScheduleKind::ZbH1 | ScheduleKind::ZbH2 => automatic(kind, &bench.costs, cap, &bench.released),
            _ => kind.generate(shape, &bench.costs, cap),
        };
        let schedule = generated.map_err(|error| Refusal::because(in_activations(error)))?;
        self.run(&schedule, &mut bench, Some((kind, shape)), Vec::new())
    }

    fn table(&self, table: &ImportedTable, max_actions: u64) -> Result<ScheduleReport, Refusal> {
        let imported = read(&table.csv)?;
        let (schedule, mut notes) = (imported.schedule, imported.notes);
        if schedule.ranks() > ROWS || schedule.len() as u64 > max_actions {
            let detail = format!(
                "{} rows and {} actions: at most {ROWS} and {max_actions} are run",
                schedule.ranks(),
                schedule.len()
            );
            return Err(Refusal::because(detail));
        }
        let mut bench = costs(self.request, self.clock, imported.flows).map_err(Refusal::because)?;
        // Validation limits the duration of generated schedules only; tables can contain more
        // cells.
        if self.total_ns(&bench) > MAX_NS {
            let limit = MAX_NS / UNIT_NS as f64;
            return Err(Refusal::because(format!(
                "all its actions together may last longer than {limit}; take a larger unit"
            )));
        }
        let (ranks, microbatches) = (self.request.ranks, self.request.microbatches);
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
    fn total_ns(&self, bench: &BenchCosts) -> f64 {
        let costs = &bench.costs;
        let columns =
            [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
        columns.into_iter().flatten().map(|time| time.get() as f64).sum::<f64>() * self.clock.step_ns as f64
    }

    fn run(
        &self,
        schedule: &Schedule,
        bench: &mut BenchCosts,
        published: Option<(ScheduleKind, Shape)>,
        notes: Vec<String>,
    ) -> Result<ScheduleReport, Refusal> {
        bench.clear_unused_gain(schedule);
        let execution = execute(schedule, &bench.costs).map_err(|deadlock| {
            let address = |placed| CellAddress::from_schedule(schedule, placed);
            let waits: Vec<CellWait> = wait_cycle(schedule, &bench.costs.flows, &deadlock)
                .iter()
                .map(|wait| CellWait::new(wait, address))
                .collect();
            Refusal { detail: describe_deadlock(&waits), deadlock: waits, ..Refusal::default() }
        })?;
        check_run(schedule, &execution, &bench.costs, Bytes::new(u64::MAX))
            .map_err(|violation| Refusal::because(format!("the judge refuses it: {violation}")))?;
        let run = Run { request: self.request, clock: self.clock, bench, schedule, execution: &execution };
        Ok(run.report(published, notes))
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
