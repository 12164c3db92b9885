//! `planscope schedule`: schedules by themselves, with no model, side by side.

mod asked;
mod check;
mod drawing;
mod table;

pub use asked::question;

use std::io::Write;
use std::process::ExitCode;

use anyhow::ensure;
use planner::scenario::FieldError;
use planner::schedule::ScheduleKind;
use planner::schedule_comparison::{EntryOutcome, Limits, ScheduleAnswer, ScheduleReport, ValidQuestion, answer};

use crate::config::{ScheduleArguments, ScheduleCommand};

/// Exit code of a question that is not valid.
const INVALID: u8 = 2;

/// Prints schedules as a table, a drawing, CSV or JSON; what cannot be made is told on standard error.
pub fn run(arguments: &ScheduleArguments) -> anyhow::Result<ExitCode> {
    if let Some(ScheduleCommand::Check { tables }) = &arguments.other {
        return check::run(tables);
    }
    let valid = match question(arguments)?.and_then(|question| ValidQuestion::new(question, Limits::COMMAND_LINE)) {
        Ok(valid) => valid,
        Err(errors) => return told(&errors, arguments),
    };
    let answer = answer(&valid);
    let mut out = std::io::stdout().lock();
    if arguments.output.json {
        serde_json::to_writer_pretty(&mut out, &answer)?;
        writeln!(out)?;
    } else if arguments.output.csv {
        ensure!(answer.entries.len() == 1, "--csv prints one schedule, not {}", answer.entries.len());
        made(&answer).try_for_each(|(_, report)| out.write_all(report.csv.as_bytes()))?;
    } else {
        out.write_all(table::table(&answer).as_bytes())?;
        if arguments.output.draw {
            made(&answer).try_for_each(|(name, report)| write!(out, "\n{name}\n{}", drawing::drawing(report)))?;
        }
    }
    refusals(&answer)
}

/// Every schedule that runs, with its name.
fn made(answer: &ScheduleAnswer) -> impl Iterator<Item = (&str, &ScheduleReport)> {
    answer.entries.iter().filter_map(|entry| match &entry.outcome {
        EntryOutcome::Run(report) => Some((entry.name.as_str(), report.as_ref())),
        EntryOutcome::Refused(_) => None,
    })
}

/// Tells what could not be made; the program then fails.
fn refusals(answer: &ScheduleAnswer) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut out = std::io::stderr().lock();
    for entry in &answer.entries {
        let EntryOutcome::Refused(refusal) = &entry.outcome else { continue };
        code = ExitCode::FAILURE;
        writeln!(out, "planscope: {}", refusal_line(&entry.name, entry.kind, &refusal.detail))?;
    }
    Ok(code)
}

/// Reasons of kinds name them already.
fn refusal_line(name: &str, kind: Option<ScheduleKind>, detail: &str) -> String {
    if kind.is_some() && detail.starts_with(name) { detail.to_owned() } else { format!("{name}: {detail}") }
}

/// Every wrong field by the flag or the file that gave it.
fn told(errors: &[FieldError], arguments: &ScheduleArguments) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stderr().lock();
    for error in errors {
        writeln!(out, "planscope: {}: {}", asked::place(&error.pointer, arguments), error.detail)?;
    }
    Ok(ExitCode::from(INVALID))
}

#[cfg(test)]
mod tests;
