//! Check of an execution plan file: a simulation from the file alone.
//!
//! The [table](table) of costs states the requirements. The action lists are checked against them and
//! simulated by the machine of [`super::execution_plan`], which shares no code with the simulator.
//! Start times, memory peaks and the iteration time must equal those in the file.

mod degrees;
mod memory;
mod table;
mod violation;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::execution_plan::{At, lists, machine};
use planscope_core::timeline::SpanKind;
use planscope_pipeline::execution_plan::PlanAction;
use planscope_plan::execution_file::{Degrees, ExecutionFile, RankRun, Replica, Run};

pub use violation::{FileViolation, TableProblem};

/// A complete sample, in millionths.
const FULL_PPM: u64 = 1_000_000;

/// Simulation result of a valid file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReplay {
    /// Duration of the iteration in ns.
    pub iteration_ns: u64,
    /// Idle device time / (devices x duration).
    pub idle_share: f64,
    /// Peak memory per device in bytes, by rank.
    pub peak_bytes: Vec<u64>,
}

/// Simulates the file and compares all times and memory peaks.
///
/// # Errors
/// Returns the first violation with its position.
pub fn check_execution_file(file: &ExecutionFile) -> Result<FileReplay, FileViolation> {
    check_replicas(file)?;
    let ranks = file.peak_bytes.len();
    let mut groups: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, run) in file.runs.iter().enumerate() {
        if run.ranks.len() != ranks {
            return Err(FileViolation::Ranks { run: number, found: run.ranks.len(), expected: ranks });
        }
        check_run_lists(run, number)?;
        for rank in &run.ranks {
            let start = groups.entry(rank.sync_group).or_default();
            *start = (*start).max(rank_end(rank));
        }
    }
    let mut iteration_ns: u64 = 1;
    for (number, run) in file.runs.iter().enumerate() {
        for (rank, costs) in run.ranks.iter().enumerate() {
            let start = groups[&costs.sync_group];
            check_endings(number, rank, costs, start)?;
            // Together with the limit of a run this cannot overflow.
            iteration_ns = iteration_ns.max(start.saturating_add(costs.sync_ns).saturating_add(costs.optimizer_ns));
        }
    }
    if iteration_ns != file.iteration_ns {
        return Err(FileViolation::Iteration { found: file.iteration_ns, simulated: iteration_ns });
    }
    for (rank, &found) in file.peak_bytes.iter().enumerate() {
        let computed = file.runs.iter().map(|run| run.ranks[rank].peak_bytes).max().unwrap_or(0);
        if found != computed {
            return Err(FileViolation::Peak { rank, found, computed });
        }
    }
    check_devices(file)?;
    degrees::check(file)?;
    check_digests(file)?;
    Ok(FileReplay { iteration_ns, idle_share: idle_share(file), peak_bytes: file.peak_bytes.clone() })
}

/// Checks and simulates the action lists of run `number`, excluding the actions after the last
/// computation, which depend on the other replicas.
///
/// # Errors
/// Returns the first violation with its position.
pub fn check_run_lists(run: &Run, number: usize) -> Result<(), FileViolation> {
    let demand = table::read(run, number)?;
    let actions: Vec<&[PlanAction]> = run.ranks.iter().map(|rank| rank.actions.as_slice()).collect();
    let fail = |violation| FileViolation::Actions { run: number, violation };
    lists::check_lists(&actions, &demand).map_err(fail)?;
    let starts = machine::walk(&actions, &demand).map_err(fail)?.starts;
    let phases: BTreeSet<u32> = run.ranks.iter().map(|rank| rank.phase).collect();
    let mut begin: u64 = 0;
    for phase in phases {
        let (mut end, mut switch) = (begin, 0);
        for (rank, costs) in run.ranks.iter().enumerate().filter(|(_, costs)| costs.phase == phase) {
            check_starts(number, rank, costs, &starts[rank], begin)?;
            end = end.max(rank_end(costs));
            switch = switch.max(costs.sync_ns);
        }
        begin = end.saturating_add(switch);
    }
    for (rank, costs) in run.ranks.iter().enumerate() {
        let computed = memory::peak(run, costs);
        if computed != costs.peak_bytes {
            return Err(FileViolation::Memory { run: number, rank, found: costs.peak_bytes, computed });
        }
    }
    Ok(())
}

/// Compares the start times of a rank. `starts` are relative to the start of the phase.
fn check_starts(run: usize, rank: usize, costs: &RankRun, starts: &[u64], begin: u64) -> Result<(), FileViolation> {
    let (mut starts, mut now) = (starts.iter(), 0);
    for (index, action) in costs.actions.iter().enumerate() {
        let simulated = match action.action.computes().then(|| starts.next()).flatten() {
            Some(start) => start.saturating_add(begin),
            // Launches and waits are listed at the end of the computation before them.
            None => now,
        };
        if action.start_ns != simulated {
            return Err(FileViolation::Start { run, at: At { rank, index }, found: action.start_ns, simulated });
        }
        if action.action.computes() {
            now = simulated.saturating_add(action.duration_ns.unwrap_or(0));
        }
    }
    Ok(())
}

/// End of the last computation of a rank, in ns.
fn rank_end(rank: &RankRun) -> u64 {
    let last = rank.actions.iter().rfind(|action| action.action.computes());
    last.map_or(0, |action| action.start_ns.saturating_add(action.duration_ns.unwrap_or(0)))
}

/// Compares the actions after the last computation.
fn check_endings(run: usize, rank: usize, costs: &RankRun, start: u64) -> Result<(), FileViolation> {
    let sync = (SpanKind::GradientSync, start, costs.sync_ns);
    let optimizer = (SpanKind::Optimizer, start.saturating_add(costs.sync_ns), costs.optimizer_ns);
    let expected: Vec<(SpanKind, u64, u64)> = [sync, optimizer].into_iter().filter(|ending| ending.2 > 0).collect();
    let found =
        costs.endings.iter().map(|ending| (ending.rank as usize, ending.kind, ending.start_ns, ending.duration_ns));
    let differs = found.map(Some).chain(std::iter::once(None));
    let expected = expected.into_iter().map(|(kind, start, duration)| Some((rank, kind, start, duration)));
    let expected = expected.chain(std::iter::repeat(None));
    match differs.zip(expected).position(|(found, expected)| found != expected) {
        Some(index) => Err(FileViolation::Ending { run, at: At { rank, index: costs.actions.len() + index }, start }),
        None => Ok(()),
    }
}

/// Checks that every run is used, and that the parts of every sample add up to one.
fn check_replicas(file: &ExecutionFile) -> Result<(), FileViolation> {
    let mut used = vec![false; file.runs.len()];
    let mut assigned: BTreeMap<(Option<u32>, u32), u64> = BTreeMap::new();
    for (replica, Replica { run, microbatches }) in file.replicas.iter().enumerate() {
        let fail = |problem| FileViolation::Replica { replica, problem };
        let costs = file.runs.get(*run as usize).ok_or_else(|| fail("its run does not exist"))?;
        used[*run as usize] = true;
        if microbatches.len() != costs.microbatches.len() {
            return Err(fail("its number of microbatches differs from that of its run"));
        }
        for microbatch in microbatches {
            if microbatch.module.is_some_and(|module| module as usize >= file.modules.len()) {
                return Err(fail("a sub-microbatch is of a module that does not exist"));
            }
            for part in &microbatch.samples {
                let share = u64::from(part.to_ppm).checked_sub(u64::from(part.from_ppm));
                let share = share.ok_or_else(|| fail("a part of a sample ends before it starts"))?;
                *assigned.entry((microbatch.module, part.sample)).or_default() += share;
            }
        }
    }
    if let Some(run) = used.iter().position(|used| !used) {
        return Err(FileViolation::Table { run, problem: TableProblem::Unused });
    }
    if file.runs.is_empty() {
        return Err(FileViolation::Empty);
    }
    match assigned.into_iter().find(|&(_, share)| share != FULL_PPM) {
        Some(((module, sample), share)) => Err(FileViolation::Sample { sample, module, share }),
        None => Ok(()),
    }
}

/// Checks that the ranks and the degrees have the devices of the file. Modules with devices of their own can leave
/// devices unused.
fn check_devices(file: &ExecutionFile) -> Result<(), FileViolation> {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for replica in &file.replicas {
        for rank in &file.runs[replica.run as usize].ranks {
            let devices = phases.entry(rank.phase).or_default();
            *devices = devices.saturating_add(u64::from(rank.devices));
        }
    }
    let ranks = phases.into_values().max().unwrap_or(0);
    let devices = u64::from(file.devices);
    let fail = |part, found| Err(FileViolation::Devices { part, found, expected: file.devices });
    let is_common = file.module_layouts.is_empty() && file.runs.iter().all(|run| run.pipelines.is_empty());
    if ranks > devices || (is_common && ranks != devices) {
        return fail("its ranks", ranks);
    }
    let Degrees { tensor, context, pipeline, data, .. } = file.layout;
    let product = [tensor, context, pipeline, data].into_iter().map(u64::from).fold(1, u64::saturating_mul);
    if is_common && product != devices { fail("TP x CP x PP x DP", product) } else { Ok(()) }
}

/// Compares the fields with the digests that the program wrote with them. A field that the simulation does not use can
/// only be compared in this way. Files without digests are written by older programs or by hand.
fn check_digests(file: &ExecutionFile) -> Result<(), FileViolation> {
    if file.digests.is_empty() {
        return Ok(());
    }
    let computed = file.field_digests();
    // Files of earlier versions do not have the digests of the costs.
    let is_later = |name: &str| ["runs.activations", "runs.costs"].contains(&name) && !file.digests.contains_key(name);
    let names = computed.keys().chain(file.digests.keys()).filter(|name| !is_later(name));
    match names.into_iter().find(|&name| computed.get(name) != file.digests.get(name)) {
        Some(field) => Err(FileViolation::Field {
            field: field.clone(),
            problem: "differs from its digest, so it was changed after the plan was made".to_owned(),
        }),
        None => Ok(()),
    }
}

/// Idle device time divided by (devices x duration).
fn idle_share(file: &ExecutionFile) -> f64 {
    let rank_busy = |rank: &RankRun| {
        let computations = rank.actions.iter().filter(|action| action.action.computes());
        let times = computations.filter_map(|action| action.duration_ns).chain([rank.sync_ns, rank.optimizer_ns]);
        times.map(u128::from).sum::<u128>() * u128::from(rank.devices)
    };
    let busy: Vec<u128> = file.runs.iter().map(|run| run.ranks.iter().map(rank_busy).sum()).collect();
    let total: u128 = file.replicas.iter().map(|replica| busy[replica.run as usize]).sum();
    let capacity = u128::from(file.devices.max(1)) * u128::from(file.iteration_ns);
    1.0 - total as f64 / capacity as f64
}

#[cfg(test)]
mod tests;
