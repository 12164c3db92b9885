//! `planscope schedule`: generates and compares schedules without a model.

mod asked;
mod check;
mod drawing;
mod table;

pub use asked::{RequestError, request};

use std::io::Write;
use std::process::ExitCode;

use anyhow::ensure;
use planner::scenario::FieldError;
use planner::schedule::ScheduleKind;
use planner::schedule_comparison::{EntryOutcome, Limits, ScheduleReport, ScheduleResponse, ValidRequest, respond};

use crate::config::{ScheduleArguments, ScheduleCommand};

/// Exit code for an invalid request.
const INVALID: u8 = 2;

/// Prints schedules as a table, a drawing, CSV or JSON. Errors are written to standard error.
pub fn run(arguments: &ScheduleArguments) -> anyhow::Result<ExitCode> {
    if let Some(ScheduleCommand::Check { tables }) = &arguments.other {
        return check::run(tables);
    }
    let valid = match valid_request(arguments) {
        Ok(valid) => valid,
        Err(RequestError::Fields(errors)) => return print_errors(&errors, arguments),
        Err(RequestError::Other(error)) => return Err(error),
    };
    let response = respond(&valid);
    let mut out = std::io::stdout().lock();
    if arguments.output.json {
        serde_json::to_writer_pretty(&mut out, &response)?;
        writeln!(out)?;
    } else if arguments.output.csv {
        ensure!(response.entries.len() == 1, "--csv prints one schedule, not {}", response.entries.len());
        generated(&response).try_for_each(|(_, report)| out.write_all(report.csv.as_bytes()))?;
    } else {
        out.write_all(table::table(&response).as_bytes())?;
        if arguments.output.draw {
            generated(&response)
                .try_for_each(|(name, report)| write!(out, "\n{name}\n{}", drawing::drawing(report)))?;
        }
    }
    refusals(&response)
}

fn valid_request(arguments: &ScheduleArguments) -> Result<ValidRequest, RequestError> {
    Ok(ValidRequest::new(request(arguments)?, Limits::COMMAND_LINE)?)
}

/// Returns names and reports of all generated schedules.
fn generated(response: &ScheduleResponse) -> impl Iterator<Item = (&str, &ScheduleReport)> {
    response.entries.iter().filter_map(|entry| match &entry.outcome {
        EntryOutcome::Run(report) => Some((entry.name.as_str(), report.as_ref())),
        EntryOutcome::Refused(_) => None,
    })
}

/// Prints the schedules that could not be generated and returns a failure code.
fn refusals(response: &ScheduleResponse) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut out = std::io::stderr().lock();
    for entry in &response.entries {
        let EntryOutcome::Refused(refusal) = &entry.outcome else { continue };
        code = ExitCode::FAILURE;
        writeln!(out, "planscope: {}", refusal_line(&entry.name, entry.kind, &refusal.detail))?;
    }
    Ok(code)
}

/// Formats an error. For schedule kinds, the detail already contains the name.
fn refusal_line(name: &str, kind: Option<ScheduleKind>, detail: &str) -> String {
    if kind.is_some() && detail.starts_with(name) { detail.to_owned() } else { format!("{name}: {detail}") }
}

/// Prints invalid fields with the flag or file that set them.
fn print_errors(errors: &[FieldError], arguments: &ScheduleArguments) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stderr().lock();
    for error in errors {
        writeln!(out, "planscope: {}: {}", asked::field_location(&error.pointer, arguments), error.detail)?;
    }
    Ok(ExitCode::from(INVALID))
}

#[cfg(test)]
mod tests;
