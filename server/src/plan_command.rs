//! `planscope plan`: the same engine without a server.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use planner::engine::{self, Unobserved};
use planner::outcome::Planning;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FieldError, ValidScenario};

use crate::config::PlanArguments;

/// Exit code of a scenario that is not valid.
const INVALID: u8 = 2;

/// Plans a scenario file; the outcome goes to standard output.
pub fn run(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let text = read(&arguments.scenario)?;
    let valid = planner::scenario::parse(&text).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets));
    let scenario = match valid {
        Ok(scenario) => scenario,
        Err(errors) => return report(&errors),
    };
    let planning = engine::plan(&scenario, &mut Unobserved)?;
    if let Some(folder) = &arguments.timelines {
        write_timelines(folder, &planning)?;
    }
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &planning.outcome)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn report(errors: &[FieldError]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stderr().lock();
    for error in errors {
        writeln!(out, "{error}")?;
    }
    Ok(ExitCode::from(INVALID))
}

fn write_timelines(folder: &Path, planning: &Planning) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for planned in &planning.timelines {
        let path = folder.join(format!("{}-{}.json", planned.planner.id(), planned.iteration));
        std::fs::write(&path, serde_json::to_vec(&planned.timeline)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
