//! Decision texts for heterogeneous layouts.

use super::fill::{Dealing, Order};
use super::search::{Seen, Sweep};
use super::space::{Mode, Point};
use planscope_core::model::Model;
use planscope_plan::plan::ModuleLayout;
use planscope_plan::scenario::Scenario;

/// Formats all layouts, for example "ViT 5B: TP 1 · DP 8; Llama-3 8B: TP 4 · CP 2 · DP 1; mb 2".
pub(crate) fn describe(model: &Model, point: &Point) -> String {
    let layouts: Vec<String> = point.modules.iter().map(|layout| describe_layout(model, layout)).collect();
    let chain = if point.mode == Mode::Chain { " in one chain" } else { "" };
    format!("{}{chain}; mb {}", layouts.join("; "), point.microbatch)
}

/// Formats a layout. Omits degrees of 1, except TP and DP.
pub(crate) fn describe_layout(model: &Model, layout: &ModuleLayout) -> String {
    let names: Vec<&str> = layout.modules().map(|module| model.modules[module].name.as_str()).collect();
    let optional = [("CP", layout.context), ("PP", layout.pipeline), ("EP", layout.expert)];
    let more: String = optional
        .iter()
        .filter(|entry| entry.1 > 1)
        .fold(String::new(), |text, (name, degree)| text + &format!(" · {name} {degree}"));
    let devices = layout.devices();
    let (first, last) = (devices.start, devices.end - 1);
    let (names, tensor, data) = (names.join(" + "), layout.tensor, layout.data);
    format!("{names}: TP {tensor}{more} · DP {data} on devices {first}-{last}")
}

pub(crate) const fn algorithm(mode: Mode) -> &'static str {
    match mode {
        Mode::Homogeneous | Mode::Chain => {
            "one layout for all modules, with a search over CP; 1F1B of all layers in a chain, or of each module over all ranks"
        }
        Mode::Colocated => {
            "sweep over a layout for each module on shared devices; multi-module 1F1B or encoders in waves"
        }
        Mode::NonColocated => "sweep over a layout and devices for each module; multi-module 1F1B",
    }
}

/// Describes the order of actions in one batch.
pub(crate) fn order(mode: Mode, (order, dealing): (Order, Dealing), microbatches: usize) -> String {
    match (order, mode) {
        (Order::Interleaved, Mode::NonColocated) if dealing == Dealing::InTurn => {
            format!(
                "{microbatches} microbatches, multi-module 1F1B, microbatches assigned round-robin to encoder copies"
            )
        }
        (Order::Interleaved, Mode::NonColocated) => format!("{microbatches} microbatches, multi-module 1F1B"),
        (Order::Interleaved, Mode::Chain) => format!("{microbatches} microbatches, 1F1B of all layers in one chain"),
        (Order::Interleaved, _) => format!("{microbatches} microbatches, encoders between the stages of the backbone"),
        (Order::Waves(size), _) => {
            format!("{microbatches} microbatches, encoder passes before and after every {size} microbatches of a copy")
        }
    }
}

pub(crate) fn decisions(scenario: &Scenario, sweep: &Sweep<'_>, sequences: usize, failed_later: u32) -> Vec<String> {
    let Some((_, point)) = sweep.best() else { return Vec::new() };
    let mut decisions = vec![format!(
        "{}: the fastest of {} layouts simulated on a representative batch of {sequences} sequences.",
        describe(&scenario.model, point),
        sweep.simulated
    )];
    if failed_later > 0 {
        let fails = if failed_later == 1 { "layout fails" } else { "layouts fail" };
        decisions.push(format!("{failed_later} faster {fails} on another batch."));
    }
    let illegal = sweep.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Rejected(_))).count();
    decisions.push(format!("{illegal} combinations of layouts are invalid or too large for memory."));
    decisions
}

/// Compares separate layouts with the best single layout on the sizing batch. A single layout
/// splits each module across all ranks, or all layers in a chain.
pub(crate) fn compare_with_single(scenario: &Scenario, sweep: &Sweep<'_>, single: &Sweep<'_>) -> String {
    let Some((separate_time, _)) = sweep.best() else { return String::new() };
    let best = single.best().map(|(seconds, point)| (seconds, describe(&scenario.model, point)));
    let Some((single_time, description)) = best else {
        return "Separate layouts are necessary: no single layout for all modules fits.".to_owned();
    };
    let gain = 100.0 * (single_time / separate_time - 1.0);
    if gain >= 0.5 {
        format!(
            "Separate layouts are {gain:.1} % faster on the representative batch than the best single layout ({description})."
        )
    } else {
        format!(
            "Separate layouts give no advantage here: {gain:+.1} % compared with the best single layout ({description})."
        )
    }
}
