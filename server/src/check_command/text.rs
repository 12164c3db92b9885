//! Report of `planscope check` as text.

mod trace;

use api::check::{Certainty, Check, Edit, EditAction, RISK, Verdict};
use api::job_config::ConfigFormat;
use api::run::{Agreement, Comparison, PhaseResidual};
use planner::certainty::memory_certainty;
use planner::fit::{Change, ChangeKind, Combination, Fit};
use planner::outcome::{Layout, Planned, RunCost, RunForecast};
use planner::scenario::Scenario;
use planner::slowness::{Cause, LatePhase, Relation, Slowness};
use planner::utilisation::Utilisation;

use super::{Report, value_text};
use crate::field_names;
use crate::fit_command::{describe_devices, memory_table};
use crate::observation::difference;

/// Returns the report: verdict, time, what was assumed and not understood, memory, changes.
pub(crate) fn describe(report: &Report) -> String {
    let check = &report.check;
    let Check { scenario, fit, .. } = check;
    let mut lines = vec![format!(
        "{}: {}, {} ({:.2} billion parameters) on {} {} ({})",
        if report.files.iter().all(String::is_empty) { "configuration".to_owned() } else { report.files.join(", ") },
        check.format.map_or("scenario", ConfigFormat::title),
        scenario.model.name,
        scenario.model.parameters() as f64 / 1e9,
        scenario.cluster.devices(),
        scenario.cluster.name,
        check.schedule
    )];
    lines.extend(outcome(check));
    for (title, sentences) in
        [("assumed", &check.assumed), ("not modelled", &check.not_modelled), ("not understood", &check.unknown)]
    {
        if !sentences.is_empty() {
            lines.push(String::new());
            lines.push(format!("{title}:"));
            lines.extend(sentences.iter().map(|sentence| format!("  {sentence}")));
        }
    }
    lines.extend(explanation(report));
    lines.extend(memory_table(fit));
    lines.extend(changes(report));
    lines.extend(best(report));
    if !check.read.is_empty() {
        lines.push(String::new());
        lines.push(format!("{} settings read; --json lists them", check.read.len()));
    }
    lines.join("\n") + "\n"
}

/// Describes whether the job fits, its time, and the intervals.
pub(crate) fn outcome(check: &Check) -> Vec<String> {
    let fit = &check.fit;
    let peak = fit.base.peak_gib.unwrap_or(0.0);
    let memory = format!(
        "{peak:.1} of {:.1} GiB (device memory minus the reserve for framework and fragmentation)",
        fit.limit_gib
    );
    let mut lines = vec![match check.verdict {
        Verdict::Fits => format!("fits: {memory}"),
        Verdict::AtRisk => format!("at risk: {memory}; real runs may reserve more"),
        Verdict::DoesNotFit => format!("does not fit: {}", fit.base.binding.as_deref().unwrap_or("no plan")),
        Verdict::DoesNotStart if check.plan.is_none() => "does not start".to_owned(),
        Verdict::DoesNotStart => format!("does not start, although it needs only {memory}"),
    }];
    lines.extend(check.refusals.iter().map(|refusal| format!("the framework refuses the job: {refusal}")));
    if let Some(plan) = &check.plan {
        let context = match check.scenario.training.context_parallel {
            0 | 1 => String::new(),
            degree => format!(", CP {degree}"),
        };
        lines.push(format!("{}; {}{context}", figures(plan), degrees(plan.layout)));
        lines.push("MFU by counted operations:".to_owned());
        lines.extend(utilisation(&check.utilisation));
    }
    if let Some(Certainty { step_s, memory, reason }) = &check.certainty {
        lines.push(format!(
            "80 % intervals: {:.3} to {:.3} s per step, {:.1} to {:.1} GiB reserved on the device; probability of running out of memory {}",
            step_s.low,
            step_s.high,
            memory.interval_gib.low,
            memory.interval_gib.high,
            percent(memory.probability_out_of_memory)
        ));
        lines.extend(reason.as_ref().map(|reason| format!("  widest interval: {reason}")));
    }
    lines.extend(check.run.iter().map(run_cost));
    lines
}

/// Describes duration and cost of a run, with 80 % intervals in parentheses.
fn run_cost(run: &RunForecast) -> String {
    let RunForecast { budget, expected, low, high, .. } = run;
    let range = |unit: &str, read: fn(&RunCost) -> f64| {
        format!("{}{unit} ({} to {})", large(read(expected)), large(read(low)), large(read(high)))
    };
    let goodput =
        if budget.goodput < 1.0 { format!(" at {:.0} % goodput", 100.0 * budget.goodput) } else { String::new() };
    let mut parts = vec![
        format!("{:.0} steps", run.steps),
        format!("{:.1} days ({:.1} to {:.1})", expected.days, low.days, high.days),
        range(" device hours", |cost| cost.device_hours),
    ];
    if budget.price_per_hour > 0.0 {
        parts.push(format!("cost {}", range("", |cost| cost.money)));
    }
    format!("{} tokens{goodput}: {}", large(budget.tokens), parts.join(", "))
}

/// Returns a number with three digits and the name of its magnitude.
fn large(number: f64) -> String {
    let magnitudes = [(1e12, " trillion"), (1e9, " billion"), (1e6, " million")];
    let named = magnitudes.into_iter().find(|(magnitude, _)| number >= *magnitude);
    named.map_or_else(|| format!("{number:.0}"), |(magnitude, name)| format!("{:.2}{name}", number / magnitude))
}

/// Describes the comparison with a measurement, or why there is none.
pub(crate) fn explanation(report: &Report) -> Vec<String> {
    if report.is_not_compared {
        let reason =
            "The job needs much more memory than the device has, so the run has another configuration or more memory.";
        return vec![String::new(), format!("The measurement is not compared. {reason}")];
    }
    let note = report.memory_note.iter().flat_map(|note| [String::new(), note.clone()]);
    let log = note.chain(report.log.iter().flat_map(log));
    let replicas = replicas(&report.check);
    let log = log.chain(report.slowness.iter().flat_map(|it| slowness(it, replicas)));
    log.chain(report.trace.iter().flat_map(trace::describe)).collect()
}

/// Describes whether the log is of the same job, and the time by phase.
fn log(comparison: &Comparison) -> Vec<String> {
    let Comparison { run, job, phases, notes, .. } = comparison;
    let mut lines = vec![String::new()];
    if job.is_comparable() {
        lines.push(format!("log {run}: {}", job.summary()));
    } else {
        lines.push(format!("log {run}: not compared, because it differs from the configuration:"));
        let failed =
            job.checks.iter().filter(|check| matches!(check.agreement, Agreement::Different | Agreement::OtherLayout));
        lines.extend(failed.map(|check| format!("  {}", difference(check))));
        lines.extend(notes.iter().map(|note| format!("  {note}")));
        return lines;
    }
    if !phases.is_empty() {
        lines.push(format!("  {:<36} {:>10} {:>10} {:>10}", "phase of a step", "measured", "predicted", "difference"));
        lines.extend(phases.iter().map(phase));
    }
    lines.extend(notes.iter().map(|note| format!("  {note}")));
    lines
}

/// Returns the row of a phase in s.
fn phase(phase: &PhaseResidual) -> String {
    let PhaseResidual { phase, measured_s, predicted_s, .. } = phase;
    let predicted = predicted_s.map_or_else(|| "-".to_owned(), |predicted| format!("{predicted:.3} s"));
    let difference =
        predicted_s.map_or_else(|| "-".to_owned(), |predicted| format!("{:+.3} s", measured_s - predicted));
    format!("  {phase:<36} {:>10} {predicted:>10} {difference:>10}", format!("{measured_s:.3} s"))
}

/// Formats a probability. The exact value near 0 and 1 is not known.
pub(crate) fn percent(probability: f64) -> String {
    match 100.0 * probability {
        small if small < 0.1 => "below 0.1 %".to_owned(),
        large if large > 99.9 => "above 99.9 %".to_owned(),
        near if !(1.0..=99.0).contains(&near) => format!("{near:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// Names the highest risk that the best plan may have.
fn max_risk(scenario: &Scenario) -> String {
    let text = |risk| format!(", at most {:.0} % risk of running out of memory", 100.0 * risk);
    scenario.max_memory_risk.map(text).unwrap_or_default()
}

/// Describes the best plan, if it was requested.
pub(crate) fn best(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.is_best_requested && report.best.is_none() {
        lines.push(String::new());
        let settings = report.check.best_scenario.free.iter().map(|setting| setting.title());
        let settings = settings.collect::<Vec<_>>().join(", ");
        let risk = max_risk(&report.check.best_scenario);
        lines.push(format!("best plan{risk}: none fits. Searched: all layouts, with free {settings}"));
        if !risk.is_empty() {
            lines.push("  --max-risk changes the limit; 0 removes it".to_owned());
        }
    }
    if let Some((best, certainty)) = report.best_plan() {
        lines.push(String::new());
        let risk = max_risk(&report.check.best_scenario);
        lines.push(format!("best plan, with free layout and settings{risk}: {}", figures(best)));
        let settings = best.settings.map(|settings| format!("; {settings}")).unwrap_or_default();
        let source = best
            .source
            .map(|planner| format!("; planner {}", planner.title_with(best.layout.pipeline)))
            .unwrap_or_default();
        lines.push(format!("  {}{settings}{source}", degrees(best.layout)));
        let framework = report.check.scenario.training.framework;
        if best.source.is_some_and(|planner| !planner.runs_in(framework, best.layout.pipeline)) {
            lines.push(format!("  {} does not have this schedule", framework.title()));
        }
        let Certainty { step_s, memory, .. } = certainty;
        lines.push(format!(
            "  {}{:.1} of {:.1} GiB per device; 80 % intervals: {:.3} to {:.3} s per step, {:.1} to {:.1} GiB; probability of \
             running out of memory {}",
            if memory.probability_out_of_memory > RISK { "at risk: " } else { "" },
            best.metrics.peak_memory_gib,
            best.metrics.memory_limit_gib,
            step_s.low,
            step_s.high,
            memory.interval_gib.low,
            memory.interval_gib.high,
            percent(memory.probability_out_of_memory)
        ));
    }
    lines
}

/// Describes a measured step time next to the prediction, and the causes of the difference.
fn slowness(slowness: &Slowness, replicas: u32) -> Vec<String> {
    let Slowness { measured_s, predicted_s, measured_mfu, interval_s, .. } = slowness;
    let differs = |word: &str| {
        let share = 100.0 * (measured_s / predicted_s - 1.0).abs();
        let interval = format!("the 80 % interval ({:.3} to {:.3} s)", interval_s.low, interval_s.high);
        if slowness.is_inside_interval() {
            format!(
                "{share:.0} % {word} than predicted, but inside {interval}: the difference can be an error of the prediction"
            )
        } else {
            format!("{share:.0} % {word} than predicted, outside {interval}")
        }
    };
    let relation = match slowness.relation {
        Relation::Impossible => {
            "impossible: more FLOPs, with recomputation, than the peak of the devices. The run is another job."
                .to_owned()
        }
        Relation::Faster => differs("faster"),
        Relation::AsPredicted => "as predicted, within 3 %".to_owned(),
        Relation::Slower => differs("slower"),
    };
    let mut lines = vec![
        String::new(),
        format!(
            "measured {measured_s:.3} s per step, {:.1} % MFU; predicted {predicted_s:.3} s: {relation}",
            100.0 * measured_mfu
        ),
    ];
    let gap = measured_s - predicted_s;
    if slowness.relation == Relation::Slower {
        let late: Vec<String> = slowness.late_phases.iter().map(LatePhase::text).collect();
        if !late.is_empty() {
            lines.push(format!("late phases: {}", late.join(", ")));
            let advice = slowness.late_phases.iter().filter_map(|late| Some((&late.phase, late.confirm.as_ref()?)));
            lines.extend(advice.map(|(phase, text)| format!("  {phase}: {text}")));
        }
        lines.push(if slowness.causes.is_empty() {
            format!("no simulated cause explains {gap:.3} s")
        } else {
            format!("causes that can explain {gap:.3} s, each alone, {}:", slowness.order.title())
        });
        for cause in &slowness.causes {
            lines.push(format!("{:>9.3} s  {}{}", cause.explains_s, cause.marked_title(), phase_text(cause, replicas)));
            lines.push(format!("             {}", cause.confirm));
        }
        let excluded = [
            ("effect too small", &slowness.too_small),
            ("effect larger than the difference", &slowness.too_large),
            ("contradicted by the timers", &slowness.contradicted),
            ("contradicted by the memory of the log", &slowness.contradicted_by_memory),
        ];
        for (title, causes) in excluded.into_iter().filter(|(_, causes)| !causes.is_empty()) {
            lines.push(format!("{title}: {}", causes.join("; ")));
        }
        lines.push("not simulated: checkpoints, evaluation".to_owned());
    }
    lines
}

/// Number of devices over which gradients are reduced.
fn replicas(check: &Check) -> u32 {
    let data = check.plan.as_ref().map_or(1, |plan| plan.layout.data);
    data.saturating_mul(check.scenario.training.context_parallel)
}

/// Names the phases that a cause changes: "; backward compute +0.412 s".
fn phase_text(cause: &Cause, replicas: u32) -> String {
    let shifts =
        cause.phases.iter().map(|shift| format!("{} {:+.3} s", cause.phase_title(shift, replicas), shift.seconds));
    let shifts = shifts.collect::<Vec<_>>().join(", ");
    if shifts.is_empty() { shifts } else { format!("; {shifts}") }
}

/// Lists the utilisation by counted operations. Without recomputation, operations with and without it are equal and
/// are listed once.
fn utilisation(by_formula: &[Utilisation]) -> Vec<String> {
    let line = |it: &Utilisation| {
        format!(
            "  {:.1} % of the dense 16-bit peak, {:.1} % of the sparse one, {:.0} TFLOP/s: {}",
            100.0 * it.of_dense_peak,
            100.0 * it.of_sparse_peak,
            it.tflops_per_device,
            it.counted.title()
        )
    };
    let is_first = |(index, it): &(usize, &Utilisation)| {
        !by_formula[..*index].iter().any(|other| other.tflops_per_device.to_bits() == it.tflops_per_device.to_bits())
    };
    by_formula.iter().enumerate().filter(is_first).map(|(_, it)| line(it)).collect()
}

/// Time, rate and utilisation of a plan.
fn figures(plan: &Planned) -> String {
    let metrics = &plan.metrics;
    let rate = metrics.tokens_per_s_per_device.map(|rate| format!(", {rate:.0} tokens/s per device"));
    format!(
        "{:.3} s per step{}, {:.0} TFLOP/s per device, {:.1} % MFU",
        metrics.iteration_s,
        rate.unwrap_or_default(),
        metrics.tflops_per_device,
        100.0 * metrics.mfu
    )
}

fn degrees(layout: Layout) -> String {
    let Layout { tensor, pipeline, data, chunks, microbatch, .. } = layout;
    format!("TP {tensor}, PP {pipeline}, DP {data}, VPP {chunks}, microbatch {microbatch}")
}

/// Lists the changes with their edits, or the fewest devices if no change helps.
pub(crate) fn changes(report: &Report) -> Vec<String> {
    let fit = &report.check.fit;
    let purpose = match report.check.verdict {
        Verdict::DoesNotFit => "make it fit",
        Verdict::AtRisk => "remove the risk of running out of memory or save most time",
        Verdict::DoesNotStart if report.check.plan.is_none() => "make it start",
        Verdict::Fits | Verdict::DoesNotStart => "save most time",
    };
    if fit.changes.is_empty() {
        let mut lines = vec![String::new(), format!("none of {} changes would {purpose}", fit.simulated)];
        lines.extend(report.fewest_devices.as_ref().map(|table| describe_devices(table).trim_end().to_owned()));
        return lines;
    }
    let now = fit.base.iteration_s.map(|seconds| format!(" (now {seconds:.3} s)")).unwrap_or_default();
    let simulated = fit.simulated;
    let title = if fit.changes.iter().all(is_hardware) {
        let aim = match report.check.verdict {
            Verdict::DoesNotFit => "makes it fit",
            Verdict::DoesNotStart if report.check.plan.is_none() => "makes it start",
            Verdict::Fits | Verdict::AtRisk | Verdict::DoesNotStart => "saves time",
        };
        format!("{simulated} changes simulated; no change of the job {aim}{now}")
    } else {
        format!("changes that {purpose}, of {simulated} simulated on one global batch{now}:")
    };
    let mut lines = vec![String::new(), title];
    let mut has_title = false;
    for (number, (change, edits)) in (1..).zip(fit.changes.iter().zip(&report.edits)) {
        if is_hardware(change) && !has_title {
            has_title = true;
            lines.push(hardware_title(fit));
        }
        lines.push(change_line(number, change, report.check.scenario.cluster.device.memory_gib));
        if edits.is_empty() {
            let fields = change.fields.iter().map(|field| match change.result.layout {
                Some(layout) if field.pointer == "/layout" => degrees(layout),
                _ => format!("{} = {}", field_names::plain(&field.pointer), value_text(field)),
            });
            lines.push(format!("                 scenario: {}", fields.collect::<Vec<_>>().join(", ")));
        } else {
            lines.extend(edits.iter().map(|edit| edit_line(edit, &report.files)));
        }
    }
    let device_gib = report.check.scenario.cluster.device.memory_gib;
    lines.extend(fit.combination.as_ref().map(|combination| combination_line(fit, combination, device_gib)));
    lines
}

/// True for a change of the devices or links. It is a comparison and no change of the job.
fn is_hardware(change: &Change) -> bool {
    change.kind == ChangeKind::Cluster
}

/// Heading of the changes of the hardware, with the rate of the job itself.
fn hardware_title(fit: &Fit) -> String {
    let rate = fit.base.tokens_per_s_per_device;
    let now = rate.map(|rate| format!(" (now {rate:.0} tokens/s per device)")).unwrap_or_default();
    format!("other hardware, for comparison{now}:")
}

/// Describes changes together, on devices with `device_gib` of memory.
fn combination_line(fit: &Fit, combination: &Combination, device_gib: f64) -> String {
    let numbers: Vec<String> = combination.changes.iter().map(|index| (index + 1).to_string()).collect();
    let difference = fit.base.iteration_s.and(combination.difference_s);
    format!(
        "changes {} together: {:.3} s{}, {:.1} GiB{}",
        numbers.join(", "),
        combination.result.iteration_s.unwrap_or(0.0),
        difference.map(|difference| format!(" ({difference:+.3} s)")).unwrap_or_default(),
        combination.result.peak_gib.unwrap_or(0.0),
        risk_text(combination.result.peak_gib, device_gib)
    )
}

/// Names the probability of running out of memory, if it is a risk.
fn risk_text(peak_gib: Option<f64>, device_gib: f64) -> String {
    let risk = peak_gib.map(|peak| memory_certainty(peak, device_gib).probability_out_of_memory);
    let risk = risk.filter(|risk| *risk > RISK);
    risk.map(|risk| format!(", {} probability of running out of memory", percent(risk))).unwrap_or_default()
}

/// Describes an edit. Of several files, it names the file.
fn edit_line(edit: &Edit, files: &[String]) -> String {
    let action = match edit.action {
        EditAction::Replace => "line",
        EditAction::Add => "add after line",
        EditAction::Remove => "remove from line",
    };
    let file = files.get(edit.file as usize).filter(|_| files.len() > 1);
    let file = file.map(|name| format!("{name}, ")).unwrap_or_default();
    let replaced = edit.replaced.as_ref().map(|old| format!(" (instead of {old})")).unwrap_or_default();
    format!("                 {file}{action} {}: {}{replaced}", edit.line, edit.setting)
}

/// Describes a change on devices with `device_gib` of memory.
fn change_line(number: u32, change: &Change, device_gib: f64) -> String {
    let confidence = change.probability_faster.map(|probability| format!(", {} likely faster", percent(probability)));
    let confidence = confidence.unwrap_or_default();
    let difference = change.difference_s.map(|difference| format!(" ({difference:+.3} s)")).unwrap_or_default();
    let number = if is_hardware(change) { String::new() } else { number.to_string() };
    let rate = change.result.tokens_per_s_per_device.filter(|_| is_hardware(change));
    let rate = rate.map(|rate| format!(", {rate:.0} tokens/s per device")).unwrap_or_default();
    let risk = risk_text(change.result.peak_gib, device_gib);
    format!(
        "{number:>3} {:>9.3} s{difference}  {:>6.1} GiB  {}{rate}{confidence}{risk}",
        change.result.iteration_s.unwrap_or(0.0),
        change.result.peak_gib.unwrap_or(0.0),
        change.title
    )
}
