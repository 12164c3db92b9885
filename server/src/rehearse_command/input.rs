//! What is to be rehearsed: execution plans, of a file or of a server, or a scenario, which is planned first.

use std::io::{BufRead, Read};
use std::path::Path;

use anyhow::{Context, bail};
use api::job::StoredOutcome;
use api::path;
use planner::outcome::{Answer, Planning};
use planner::scenario::{PlannerKind, ValidScenario};

use crate::config::RehearseArguments;
use crate::plan_command::{self, Files};
use crate::rehearsal::{Movement, Remote, Score, movement};

/// Most iterations of one rehearsal.
const MOST_ITERATIONS: usize = 10_000;

/// What is to be rehearsed.
pub(super) struct Input {
    pub(super) score: Score,
    /// What it is called.
    pub(super) name: String,
    /// The scenario and the planner, where they are known.
    pub(super) scenario: Option<String>,
    pub(super) planner: Option<PlannerKind>,
}

/// Lines that say what is wrong with a file.
type Wrong = Vec<String>;

impl Input {
    pub(super) fn read(arguments: &RehearseArguments) -> anyhow::Result<Result<Self, Wrong>> {
        let found = match (&arguments.plan, &arguments.server, &arguments.scenario) {
            (Some(path), ..) => Self::of_file(path, arguments)?,
            (None, Some(server), Some(scenario)) => {
                Self::fetched(&Remote::new(server, arguments.token()), scenario, arguments)?
            }
            _ => return Ok(Err(vec!["there is neither a plan nor a server to take one from".to_owned()])),
        };
        Ok(found.map(|input| match arguments.iterations {
            Some(iterations) => {
                Self { score: input.score.repeated((iterations as usize).min(MOST_ITERATIONS)), ..input }
            }
            None => input,
        }))
    }

    /// What a file holds.
    fn of_file(path: &Path, arguments: &RehearseArguments) -> anyhow::Result<Result<Self, Wrong>> {
        let text = read(path, arguments.until_input_ends)?;
        Ok(match serde_json::from_str::<serde_json::Value>(&text) {
            Err(error) => Err(vec![format!("{}: {error}", path.display())]),
            Ok(value) if value.get("model").is_some() || value.get("schema").is_some() => {
                Self::planned(&text, arguments)?
            }
            Ok(_) => Score::read(&text).map_err(|error| vec![error.to_string()]).map(|score| Self {
                score,
                name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                scenario: None,
                planner: None,
            }),
        })
    }

    /// The execution plans that a server has of a scenario: of one iteration, or of all.
    fn fetched(remote: &Remote, scenario: &str, arguments: &RehearseArguments) -> anyhow::Result<Result<Self, Wrong>> {
        let StoredOutcome { outcome, .. } = remote
            .document(&path::outcome(scenario))
            .with_context(|| format!("{} has no plan of scenario {scenario}", remote.server))?;
        let mut results =
            outcome.results.iter().filter(|one| arguments.planner.is_none_or(|asked| asked == one.planner));
        let Some(result) = results.next() else {
            let known: Vec<&str> = outcome.results.iter().map(|result| result.planner.id()).collect();
            return Ok(Err(vec![format!("the scenario was planned by {} only", known.join(", "))]));
        };
        let plan = match &result.answer {
            Answer::Planned(plan) => plan,
            Answer::Infeasible { binding, .. } => {
                return Ok(Err(vec![format!("{} has no plan: {binding}", result.title)]));
            }
        };
        let planned = plan.iterations.len() as u32;
        let iterations = match arguments.iteration {
            Some(one) if one >= planned => {
                return Ok(Err(vec![format!("there is no iteration {one}: {planned} were planned, from 0")]));
            }
            Some(one) => one..one + 1,
            None => 0..planned,
        };
        let mut movements = Vec::with_capacity(iterations.len());
        for iteration in iterations {
            let file = path::execution_plan_file(&outcome.scenario, result.planner.id(), iteration, "json", None);
            let plan =
                remote.document(&file).with_context(|| format!("there is no execution plan of {}", result.title))?;
            let samples = outcome.batches.get(iteration as usize).map(|batch| batch.samples);
            movements.push(Movement { plan, samples });
        }
        Ok(Score::new(movements).map_err(|error| vec![error.to_string()]).map(|score| Self {
            score,
            name: title(&result.title, &outcome.scenario),
            scenario: Some(outcome.scenario.clone()),
            planner: Some(result.planner),
        }))
    }

    /// Plans a scenario by one planner and takes its timelines.
    fn planned(text: &str, arguments: &RehearseArguments) -> anyhow::Result<Result<Self, Wrong>> {
        let files = Files::read(&arguments.datasets, arguments.preprocessing)?;
        let lines = |errors: Vec<planner::scenario::FieldError>| errors.iter().map(ToString::to_string).collect();
        let mut scenario = match planner::scenario::parse(text) {
            Ok(scenario) => scenario,
            Err(errors) => return Ok(Err(lines(errors))),
        };
        // The plan of the scenario as it stands is what a server knows it by.
        let whole = ValidScenario::new(scenario.clone(), &files).map(|valid| valid.id().to_string());
        let id = match whole {
            Ok(id) => id,
            Err(errors) => return Ok(Err(lines(errors))),
        };
        if let Some(planner) = arguments.planner {
            if !scenario.planners.contains(&planner) {
                let known: Vec<&str> = scenario.planners.iter().map(|planner| planner.id()).collect();
                return Ok(Err(vec![format!("the scenario has no planner {}: {}", planner.id(), known.join(", "))]));
            }
            scenario.planners = vec![planner];
        }
        let valid = match ValidScenario::new(scenario, &files) {
            Ok(valid) => valid,
            Err(errors) => return Ok(Err(lines(errors))),
        };
        eprintln!("planning ...");
        let planning = plan_command::plan(&valid, arguments.search_threads())?;
        Ok(Self::fastest(&planning, id))
    }

    /// The fastest plan of those made.
    fn fastest(planning: &Planning, scenario: String) -> Result<Self, Wrong> {
        let Some(result) = planning.outcome.results.first() else { return Err(vec!["nothing was planned".to_owned()]) };
        if let Answer::Infeasible { binding, .. } = &result.answer {
            return Err(vec![format!("{} has no plan: {binding}", result.title)]);
        }
        let own = planning.timelines.iter().filter(|planned| planned.planner == result.planner);
        let movements: Result<Vec<Movement>, _> = own
            .map(|planned| {
                let batch = planning.outcome.batches.get(planned.iteration as usize);
                movement(&planned.timeline, batch.map(|batch| batch.samples))
            })
            .collect();
        let score = movements.and_then(Score::new).map_err(|error| vec![error.to_string()])?;
        let name = title(&result.title, &scenario);
        Ok(Self { score, name, scenario: Some(scenario), planner: Some(result.planner) })
    }
}

/// What a plan of a scenario is called.
fn title(planner: &str, scenario: &str) -> String {
    format!("{planner} of {}", scenario.chars().take(10).collect::<String>())
}

fn read(path: &Path, until_input_ends: bool) -> anyhow::Result<String> {
    if !until_input_ends {
        return plan_command::read(path);
    }
    if path != Path::new("-") {
        bail!("--until-input-ends is for a plan on standard input");
    }
    // The rest of standard input says how long somebody is interested.
    let mut line = String::new();
    std::io::stdin().lock().take(1 << 30).read_line(&mut line).context("cannot read standard input")?;
    Ok(line)
}
