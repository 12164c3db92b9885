//! Compares `best` to all other planners of scenario files, and reports its planning time.
//!
//! `cargo run -p planscope-planner --example best_plan -- FILE... [--alone] [--phases] [--iterations N]` prints a
//! line per scenario. `--alone` plans with `best` only. `--phases` prints the time of each phase of `best` that
//! takes more than 50 ms.

#![expect(clippy::disallowed_methods, reason = "the example measures planning times")]

use std::time::Instant;

use planner::engine::{Observer, plan};
use planner::outcome::PlanOutcome;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let mut take = |flag: &str| {
        let position = files.iter().position(|argument| argument == flag);
        position.map(|position| files.remove(position)).is_some()
    };
    let (alone, phases) = (take("--alone"), take("--phases"));
    let iterations = files.iter().position(|argument| argument == "--iterations").map(|position| {
        let count = files.remove(position + 1).parse().expect("--iterations has a number");
        files.remove(position);
        count
    });
    let (mut compared, mut faster, mut slower) = (0, 0, 0);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file is readable");
        let Ok(mut scenario) = parse(&text) else {
            println!("{file}: not a scenario");
            continue;
        };
        if alone {
            scenario.planners.clear();
        }
        scenario.planners.retain(|&planner| planner != PlannerKind::Best);
        scenario.planners.insert(0, PlannerKind::Best);
        scenario.iterations = iterations.unwrap_or(scenario.iterations);
        let Ok(valid) = ValidScenario::new(scenario, &NoDatasets) else {
            println!("{file}: not a valid scenario");
            continue;
        };
        let mut times = Times { phases, planner: None, started: Instant::now(), best: 0.0, step: None };
        let outcome = plan(&valid, &mut times).expect("the scenario is planned").outcome;
        let seconds = |is_best: bool| {
            let of_kind = outcome.results.iter().filter(|result| (result.planner == PlannerKind::Best) == is_best);
            of_kind
                .filter_map(|result| match &result.answer {
                    PlanOutcome::Planned(planned) => Some((planned.metrics.iteration_s, result.planner)),
                    PlanOutcome::Infeasible { .. } => None,
                })
                .min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let bound = outcome.results.iter().find_map(|result| match &result.answer {
            PlanOutcome::Planned(planned) => planned.all_layouts_bound_s,
            PlanOutcome::Infeasible { .. } => None,
        });
        let source = outcome.results.iter().find_map(|result| match &result.answer {
            PlanOutcome::Planned(planned) => planned.source,
            PlanOutcome::Infeasible { .. } => None,
        });
        let source = source.map_or("no plan", |source| source.short_title());
        let (best, other) = (seconds(true), seconds(false));
        let show =
            |plan: Option<(f64, PlannerKind)>| plan.map_or("-".to_owned(), |(seconds, _)| format!("{seconds:.3} s"));
        let other_title = other.map_or("", |(_, planner)| planner.short_title());
        print!("{file}: best {} ({source}), other {} ({other_title})", show(best), show(other));
        if let (Some((best, _)), Some((other, _))) = (best, other) {
            compared += 1;
            faster += u32::from(best <= 0.97 * other);
            slower += u32::from(best > other);
            print!(", {:+.1} %", 100.0 * (best / other - 1.0));
        }
        if let (Some((best, _)), Some(bound)) = (best, bound) {
            print!(", {:.1} % above the bound of all layouts", 100.0 * (best / bound - 1.0));
        }
        println!(", planned in {:.1} s", times.best);
    }
    println!("{compared} compared: best is 3 % faster or more in {faster}, slower in {slower}");
}

/// Measures the planning time of `best`.
struct Times {
    phases: bool,
    planner: Option<PlannerKind>,
    started: Instant,
    best: f64,
    step: Option<(&'static str, u32, Instant)>,
}

impl Times {
    fn end_step(&mut self) {
        if let Some((phase, number, since)) = self.step.take()
            && self.phases
            && since.elapsed().as_secs_f64() > 0.05
        {
            println!("  {phase} {number}: {:.2} s", since.elapsed().as_secs_f64());
        }
    }
}

impl Observer for Times {
    fn started(&mut self, planner: PlannerKind) {
        self.planner = Some(planner);
        self.started = Instant::now();
    }

    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, _: u32) {
        if planner == PlannerKind::Best {
            self.end_step();
            self.step = Some((phase, done, Instant::now()));
        }
    }

    fn finished(&mut self, planner: PlannerKind) {
        self.end_step();
        if planner == PlannerKind::Best {
            self.best = self.started.elapsed().as_secs_f64();
        }
    }

    fn cancelled(&self) -> bool {
        false
    }
}
