//! `planscope schedule`: one schedule by itself, with no model.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use planner::cost::{PipelineCosts, UniformTimes};
use planner::export::torch_csv_of;
use planner::random::Random;
use planner::schedule::wait_free_cyclic::{self, Effort};
use planner::schedule::{Action, ActionKind, Grouping, Schedule, gpipe, interleaved, one_f_one_b};
use planner::simulate::{Execution, execute, peak_memory};
use planner::units::{Bytes, Nanos};
use serde::Serialize;

use crate::config::{ScheduleArguments, ScheduleKind};

/// Integer steps that one unit of the user's time is counted in, so that 0.1 + 0.2 is 0.3.
const STEPS: f64 = 1e6;
/// Longest time of an action, in the user's unit.
const LONGEST: f64 = 1e9;
/// Most actions of a schedule; beyond it the answer is no longer one to read.
const MOST_ACTIONS: usize = 20_000_000;
/// Swaps that the dynamic schedule may try.
const SWAPS: u32 = 200;

/// The schedule and what it does with the given times, in the user's unit.
#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    ranks: usize,
    chunks: usize,
    microbatches: usize,
    /// End of the last action.
    makespan: f64,
    /// No schedule of these actions is shorter.
    lower_bound: f64,
    /// Idle share of (ranks x makespan).
    bubble: f64,
    /// Of each stage: end of its last action minus start of its first.
    stage_span: Vec<f64>,
    /// Of each rank: the same over all its stages.
    rank_span: Vec<f64>,
    /// Of each rank: most activations held at once.
    peak_in_flight: Vec<u64>,
    /// Of each rank: its actions in order, in the torch action grammar.
    orders: Vec<Vec<String>>,
}

/// Prints a schedule as CSV in the torch action grammar, or as JSON with its times.
pub fn run(arguments: &ScheduleArguments) -> anyhow::Result<ExitCode> {
    let chunks = match arguments.kind {
        ScheduleKind::Gpipe | ScheduleKind::OneFOneB => {
            ensure!(arguments.chunks.is_none_or(|chunks| chunks == 1), "--chunks is for schedules with model chunks");
            1
        }
        ScheduleKind::Interleaved => arguments.chunks.unwrap_or(2),
        ScheduleKind::WaitFreeCyclic => arguments.chunks.unwrap_or(1),
    };
    ensure!(
        arguments.group.is_none() || arguments.kind == ScheduleKind::Interleaved,
        "--group is for the interleaved schedule"
    );
    ensure!(
        arguments.memory.is_none() || arguments.kind == ScheduleKind::WaitFreeCyclic,
        "--memory is for the dynamic schedule; the others have a fixed order"
    );
    let actions = arguments.ranks.saturating_mul(chunks).saturating_mul(arguments.microbatches).saturating_mul(2);
    ensure!(actions <= MOST_ACTIONS, "{actions} actions are more than {MOST_ACTIONS}");
    let costs = PipelineCosts::uniform(arguments.ranks, chunks, arguments.microbatches, times(arguments)?);
    let schedule = build(arguments, chunks, &costs)?;
    let execution = execute(&schedule, &costs)?;
    let mut out = std::io::stdout().lock();
    if arguments.csv {
        out.write_all(torch_csv_of(&schedule).as_bytes())?;
    } else {
        serde_json::to_writer_pretty(&mut out, &report(arguments.kind, &schedule, &execution, &costs))?;
        writeln!(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn times(arguments: &ScheduleArguments) -> anyhow::Result<UniformTimes> {
    let (input, weight) = match (arguments.backward, arguments.input_grad, arguments.weight_grad) {
        (Some(backward), None, None) => (backward / 2.0, backward / 2.0),
        (None, Some(input), Some(weight)) => (input, weight),
        (Some(backward), Some(input), Some(weight)) => {
            ensure!(
                (input + weight - backward).abs() < 1.0 / STEPS,
                "--backward is not --input-grad plus --weight-grad"
            );
            (input, weight)
        }
        _ => bail!("give --backward, or --input-grad and --weight-grad"),
    };
    Ok(UniformTimes {
        forward: steps("--forward", arguments.forward)?,
        input_grad: steps("--backward", input)?,
        weight_grad: steps("--backward", weight)?,
        communication: steps("--communication", arguments.communication)?,
    })
}

fn steps(flag: &str, time: f64) -> anyhow::Result<Nanos> {
    ensure!((0.0..=LONGEST).contains(&time), "{flag} is {time}: times lie between 0 and {LONGEST}");
    Ok(Nanos::new((time * STEPS).round() as u64))
}

fn build(arguments: &ScheduleArguments, chunks: usize, costs: &PipelineCosts) -> anyhow::Result<Schedule> {
    let (ranks, microbatches) = (arguments.ranks, arguments.microbatches);
    Ok(match arguments.kind {
        ScheduleKind::Gpipe => gpipe(ranks, microbatches),
        ScheduleKind::OneFOneB => one_f_one_b(ranks, microbatches),
        ScheduleKind::Interleaved => {
            interleaved(ranks, chunks, microbatches, Grouping::Fixed(arguments.group.unwrap_or(ranks)))
        }
        ScheduleKind::WaitFreeCyclic => {
            let limit = arguments.memory.map_or(Bytes::new(u64::MAX), Bytes::new);
            let effort = Effort::Thorough { swaps: SWAPS };
            let choice = wait_free_cyclic::search(costs, limit, effort, &mut Random::new(0, 0));
            choice.ok().context("no order found that stays within --memory activations")?.schedule
        }
    })
}

fn report(kind: ScheduleKind, schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Report {
    let unit = |time: Nanos| time.get() as f64 / STEPS;
    let actions = || {
        schedule
            .orders
            .iter()
            .enumerate()
            .flat_map(|(rank, order)| order.iter().enumerate().map(move |(place, action)| (rank, place, action)))
    };
    let span = |mine: &dyn Fn(usize, &Action) -> bool| {
        let own = || actions().filter(|(rank, _, action)| mine(*rank, action));
        let start = own().map(|(rank, place, _)| execution.start[rank][place]).min().unwrap_or(Nanos::ZERO);
        let end = own().map(|(rank, place, _)| execution.end[rank][place]).max().unwrap_or(Nanos::ZERO);
        unit(end - start)
    };
    let busy: Nanos = actions()
        .map(|(_, _, action)| {
            let cell = costs.cell(action.stage as usize, action.microbatch as usize);
            match action.kind {
                ActionKind::Forward => costs.forward[cell],
                ActionKind::Backward => costs.backward(cell),
                ActionKind::InputGrad => costs.input_grad[cell],
                ActionKind::WeightGrad => costs.weight_grad[cell],
            }
        })
        .sum();
    let makespan = execution.makespan();
    let capacity = makespan.get() as f64 * schedule.ranks() as f64;
    Report {
        kind: kind.id(),
        ranks: schedule.ranks(),
        chunks: schedule.stages / schedule.ranks(),
        microbatches: schedule.microbatches,
        makespan: unit(makespan),
        lower_bound: unit(planner::compare::lower_bound(costs)),
        bubble: if capacity > 0.0 { 1.0 - busy.get() as f64 / capacity } else { 0.0 },
        stage_span: (0..schedule.stages).map(|stage| span(&|_, action| action.stage as usize == stage)).collect(),
        rank_span: (0..schedule.ranks()).map(|own| span(&|rank, _| rank == own)).collect(),
        peak_in_flight: (0..schedule.ranks()).map(|rank| peak_memory(rank, schedule, execution, costs).get()).collect(),
        orders: schedule.orders.iter().map(|order| order.iter().map(ToString::to_string).collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::{Cli, Command};

    fn reported(line: &str) -> anyhow::Result<Report> {
        let words = ["planscope", "schedule"].into_iter().chain(line.split(' '));
        let Command::Schedule(arguments) = Cli::try_parse_from(words)?.command else { bail!("not a schedule") };
        let chunks = arguments.chunks.unwrap_or(if arguments.kind == ScheduleKind::Interleaved { 2 } else { 1 });
        let costs = PipelineCosts::uniform(arguments.ranks, chunks, arguments.microbatches, times(&arguments)?);
        let schedule = build(&arguments, chunks, &costs)?;
        let execution = execute(&schedule, &costs)?;
        Ok(report(arguments.kind, &schedule, &execution, &costs))
    }

    /// (m + p - 1)(F + B) = 15 x 3.3, bubble (p - 1) / (m + p - 1); rank 0 spans all of it, the last rank its work.
    #[test]
    fn a_uniform_1f1b_reports_its_closed_forms() {
        let report = reported("1f1b --ranks 4 --microbatches 12 --forward 1.1 --backward 2.2").unwrap();
        assert!((report.makespan - 49.5).abs() < 1e-9, "{}", report.makespan);
        assert!((report.bubble - 0.2).abs() < 1e-9);
        assert_eq!(report.peak_in_flight, [4, 3, 2, 1]);
        assert!((report.stage_span[3] - 39.6).abs() < 1e-9);
        assert_eq!(report.orders[3][..3], ["3F0", "3B0", "3F1"]);
    }

    #[test]
    fn a_dynamic_schedule_is_no_longer_than_1f1b_under_the_same_memory() {
        let report =
            reported("wait-free-cyclic --ranks 4 --microbatches 12 --forward 1 --backward 2 --memory 4").unwrap();
        assert!(report.makespan <= 45.0 && report.peak_in_flight.iter().all(|&held| held <= 4), "{report:?}");
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        for (line, says) in [
            ("1f1b --ranks 4 --microbatches 12 --forward 1", "give --backward"),
            ("1f1b --ranks 4 --microbatches 12 --forward 1 --backward -2", "between 0 and"),
            ("1f1b --ranks 0 --microbatches 12 --forward 1 --backward 2", "0 is not in 1..="),
            ("interleaved --ranks 4 --microbatches 8 --forward 1 --backward 2 --group 1", "deadlock"),
            ("wait-free-cyclic --ranks 4 --microbatches 8 --forward 1 --backward 2 --memory 0", "within --memory"),
        ] {
            let error = reported(line).expect_err(line);
            assert!(format!("{error:#}").contains(says), "{line}: {error:#}");
        }
    }
}
