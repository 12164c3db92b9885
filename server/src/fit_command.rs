//! `planscope fit`: memory need of a scenario, and the single changes that make it fit or faster.

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use api::check::RISK;
use planner::certainty::memory_certainty;
use planner::fit::{Change, Combination, DeviceTable, FewestDevices, Fit, FitResult, fewest_devices, fit_reported};
use planner::host::NeverCancelled;
use serde::Serialize;

use crate::config::FitArguments;
use crate::field_names;
use crate::plan_command::{Files, NOTHING_FITS, ProgressLine, read, refuse_configuration, validated};
use crate::workers::Threads;

/// Both tables, as JSON.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    fit: Fit,
    #[serde(skip_serializing_if = "Option::is_none")]
    fewest_devices: Option<DeviceTable>,
}

/// Analyses a scenario file and writes the result to standard output.
pub fn run(arguments: &FitArguments) -> anyhow::Result<ExitCode> {
    let text = read(&arguments.scenario)?;
    refuse_configuration(&arguments.scenario, &text)?;
    let files = Files::read(&arguments.datasets, None)?;
    let scenario = match validated(&text, &files)? {
        Ok(scenario) => scenario,
        Err(code) => return Ok(code),
    };
    let threads = arguments.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let line = Mutex::new(ProgressLine::new());
    let locked = || line.lock().unwrap_or_else(PoisonError::into_inner);
    let report = |phase: &'static str, done: u32, total: u32| locked().show(phase, done, total);
    let fit = fit_reported(&scenario, arguments.planner, (&threads, &NeverCancelled), &report)?;
    let devices = arguments.devices.then(|| fewest_devices(&scenario, &threads, &NeverCancelled)).transpose()?;
    locked().write("");
    let is_hopeless = fit.base.iteration_s.is_none() && fit.changes.is_empty();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &Report { fit, fewest_devices: devices })?;
        writeln!(out)?;
    } else {
        write!(out, "{}", describe(&fit, scenario.scenario().cluster.device.memory_gib))?;
        if let Some(devices) = devices {
            write!(out, "{}", describe_devices(&devices))?;
        }
    }
    Ok(if is_hopeless { ExitCode::from(NOTHING_FITS) } else { ExitCode::SUCCESS })
}

fn describe(fit: &Fit, device_gib: f64) -> String {
    let is_at_risk = |result: &FitResult| {
        result.peak_gib.is_some_and(|peak| memory_certainty(peak, device_gib).probability_out_of_memory > RISK)
    };
    let planner = fit.planner.title_with(fit.base.layout.map_or(0, |layout| layout.pipeline));
    let mut lines = vec![match (&fit.base.iteration_s, &fit.base.binding) {
        (Some(seconds), _) => format!(
            "{}: {:.1} of {:.1} GiB, {seconds:.3} s per iteration ({planner})",
            if is_at_risk(&fit.base) { "at risk" } else { "fits" },
            fit.base.peak_gib.unwrap_or(0.0),
            fit.limit_gib
        ),
        (None, binding) => {
            format!("does not fit ({planner}): {}", binding.as_deref().unwrap_or("no plan"))
        }
    }];
    lines.extend(memory_table(fit));
    lines.push(String::new());
    let purpose = if fit.base.iteration_s.is_some() { "save time" } else { "make it fit" };
    if fit.changes.is_empty() {
        lines.push(format!("none of {} changes would {purpose}", fit.simulated));
    } else {
        lines.push(format!("changes that {purpose}, of {} simulated:", fit.simulated));
        lines.extend(fit.changes.iter().map(|change| describe_change(change, is_at_risk(&change.result))));
    }
    if let Some(Combination { changes, result, difference_s }) = &fit.combination {
        let titles = changes.iter().filter_map(|&index| fit.changes.get(index as usize));
        let titles: Vec<&str> = titles.map(|change| change.title.as_str()).collect();
        lines.push("together:".to_owned());
        lines.push(figures(result, *difference_s, is_at_risk(result)) + &titles.join(" and "));
    }
    lines.join("\n") + "\n"
}

/// Returns the memory need by rank and term as lines, after an empty line.
pub(crate) fn memory_table(fit: &Fit) -> Vec<String> {
    if fit.ranks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.push("rank  weights  gradients  optimizer  activations  temporary    total GiB  layers".to_owned());
    for rank in &fit.ranks {
        let memory = &rank.memory;
        lines.push(format!(
            "{:>4}  {:>7.1}  {:>9.1}  {:>9.1}  {:>11.1}  {:>9.1}  {:>11.1}  {}",
            rank.rank,
            memory.weights_gib,
            memory.gradients_gib,
            memory.optimizer_gib,
            memory.activations_gib,
            memory.temporary_gib,
            memory.resident_gib(),
            rank.layers
        ));
    }
    lines
}

fn describe_change(change: &Change, is_at_risk: bool) -> String {
    let fields =
        change.fields.iter().map(|field| format!("{} = {}", field_names::in_scenario(&field.pointer), field.value));
    let fields = fields.collect::<Vec<_>>().join(", ");
    format!("{}{}  [{fields}]", figures(&change.result, change.difference_s, is_at_risk), change.title)
}

/// Returns time, memory and risk of a change, before its title.
fn figures(result: &FitResult, difference_s: Option<f64>, is_at_risk: bool) -> String {
    let seconds = result.iteration_s.unwrap_or(0.0);
    let difference = difference_s.map(|difference| format!(" ({difference:+.3} s)")).unwrap_or_default();
    let risk = if is_at_risk { "at risk  " } else { "" };
    format!("{seconds:>9.3} s{difference}  {:>6.1} GiB  {risk}", result.peak_gib.unwrap_or(0.0))
}

/// Returns the table of the fewest devices as text.
pub(crate) fn describe_devices(table: &DeviceTable) -> String {
    let row = |row: &FewestDevices| match (row.devices, row.result.iteration_s) {
        (Some(devices), Some(seconds)) => {
            let line =
                format!("{:<20} {devices:>6} devices  {seconds:>9.3} s per iteration  {}", row.name, row.settings);
            format!("{}\n", line.trim_end())
        }
        _ => format!("{:<20} does not fit 1,024 nodes\n", row.name),
    };
    let rows: String = table.rows.iter().map(row).collect();
    let (searched, types) = (table.rows.len(), table.types);
    let rest = if table.is_partial {
        format!("the time limit was reached: {searched} of {types} device types are searched\n")
    } else {
        String::new()
    };
    format!(
        "\nfewest devices (whole nodes, or a half, a quarter or less of one), with free layout and settings:\n{rows}{rest}"
    )
}
