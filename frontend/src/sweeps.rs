//! Shared code for sweep pages: progress updates and chart curves.

mod form;
mod scaling;

pub(crate) use scaling::ScalingCard;

use api::path;
use api::sweep::{LabelledAxis, Layer, Picture, StoredSweep, SweepProgress, SweepState};
use leptos::prelude::*;

use crate::charts::{Curve, Dash, Form, Stroke, tick_text};
use crate::client::{self, Body, PAUSES_MS, RequestError, pause};
use crate::runs::clock;

/// Poll interval in ms for a running sweep.
const LOOK_MS: i32 = 600;
/// Field of the number of nodes.
const NODES: &str = "/cluster/nodes";
const DASHES: [Dash; 4] = [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Alternating];

/// URL of a sweep page.
pub(crate) fn page(id: &str) -> String {
    format!("/sweeps/{id}")
}

/// True while points are being planned.
pub(crate) fn is_running(sweep: &StoredSweep) -> bool {
    sweep.progress.state == SweepState::Running
}

/// Stores a sweep and starts it.
pub(crate) async fn begin(sweep: String) -> Result<StoredSweep, RequestError> {
    let stored: StoredSweep = client::send("POST", path::SWEEPS, Body::Json(sweep)).await?;
    if stored.progress.state == SweepState::Done {
        return Ok(stored);
    }
    client::submit("POST", &path::sweep_start(&stored.id), Body::Empty).await?;
    client::get(&path::sweep(&stored.id)).await
}

/// Polls a sweep until planning stops. `seen` receives each update and stops polling if it returns
/// `false`. After a server restart the sweep continues, so polling retries. `is_silent` is true meanwhile.
pub(crate) async fn follow(
    mut sweep: StoredSweep,
    is_silent: RwSignal<bool>,
    seen: impl Fn(&StoredSweep) -> bool,
) -> Result<(), RequestError> {
    while seen(&sweep) && is_running(&sweep) {
        pause(LOOK_MS).await;
        let mut silent = 0;
        sweep = loop {
            match client::get(&path::sweep(&sweep.id)).await {
                Ok(next) => {
                    if is_silent.try_get_untracked() == Some(true) {
                        is_silent.try_set(false);
                    }
                    break next;
                }
                Err(RequestError::Offline) if silent < PAUSES_MS.len() => {
                    is_silent.try_set(true);
                    pause(PAUSES_MS[silent]).await;
                    silent += 1;
                }
                Err(error) => {
                    is_silent.try_set(false);
                    return Err(error);
                }
            }
        };
    }
    Ok(())
}

/// Describes the progress. Points that are refused take no time, so the rate is that of the plans.
fn progress_text(progress: &SweepProgress) -> String {
    let SweepProgress { state, points, done, without_plan, points_per_s } = progress;
    let is_running = *state == SweepState::Running;
    let counts = if *without_plan == 0 {
        format!("{done} of {points} points planned")
    } else {
        let plans = done.saturating_sub(*without_plan);
        format!("{done} of {points} points done: {plans} planned, {without_plan} not possible")
    };
    let left = points_per_s.filter(|rate| is_running && *rate > 0.0);
    let left = left.map(|rate| format!("; about {} left", clock(f64::from(points.saturating_sub(*done)) / rate)));
    let detail = match state {
        SweepState::Failed { detail } => format!(": {detail}"),
        _ => String::new(),
    };
    let begin = if is_running { "Planning: " } else { "" };
    format!("{begin}{counts}{}{detail}", left.unwrap_or_default())
}

/// Colours of the rings around points at risk.
const RISK_COLOURS: (&str, &str) = ("#9a4700", "#f0a35e");

/// Returns the curves of a picture over one axis, by planner, and rings around points at risk of running out of memory.
/// Infeasible points are omitted.
pub(crate) fn curves(picture: &Picture, axis: &LabelledAxis) -> Vec<Curve> {
    let curve = |(index, layer): (usize, &Layer)| {
        let cells = layer.cells.first()?;
        let points: Vec<(f64, f64)> = cells
            .iter()
            .enumerate()
            .filter_map(|(cell_index, cell)| Some((position(axis, cell_index), cell.value?)))
            .collect();
        let (light, dark) = Stroke::for_planner(layer.planner.planner).colours();
        let dash = DASHES[index % DASHES.len()];
        let name = layer.planner.title.clone();
        (!points.is_empty()).then_some(Curve { name, light, dark, dash, form: Form::Marked, points })
    };
    let mut curves: Vec<Curve> = picture.layers.iter().enumerate().filter_map(curve).collect();
    let risky = |layer: &Layer| -> Vec<(f64, f64)> {
        let cells = layer.cells.iter().flatten().enumerate();
        cells
            .filter(|(_, cell)| cell.risk.is_some())
            .filter_map(|(index, cell)| Some((position(axis, index), cell.value?)))
            .collect()
    };
    let points: Vec<(f64, f64)> = picture.layers.iter().flat_map(risky).collect();
    if !points.is_empty() {
        let (light, dark) = RISK_COLOURS;
        let name = "at risk of running out of memory".to_owned();
        curves.push(Curve { name, light, dark, dash: Dash::Solid, form: Form::Rings, points });
    }
    curves
}

/// Axis position of a value: the number, or the index for non-numeric values.
fn position(axis: &LabelledAxis, index: usize) -> f64 {
    axis.numbers.as_ref().and_then(|numbers| numbers.get(index).copied()).unwrap_or(index as f64)
}

/// Describes a risk of running out of memory.
pub(crate) fn risk_text(risk: f64) -> String {
    format!("! At risk: {}", crate::format::probability(risk))
}

/// Text of a value of an axis: "16K" for 16,384 tokens, otherwise its label.
fn value_text(axis: &LabelledAxis, index: usize) -> String {
    let number = axis.numbers.as_ref().and_then(|numbers| numbers.get(index));
    let label = || axis.labels.get(index).cloned().unwrap_or_default();
    number.map_or_else(label, |number| tick_text(*number, &axis.title))
}

/// Name of an axis without its unit.
fn axis_name(axis: &LabelledAxis) -> &str {
    axis.title.split(", ").next().unwrap_or(&axis.title)
}

/// Name before the values of an axis. A number of nodes has its name after the value.
fn name_before(axis: &LabelledAxis) -> String {
    if axis.pointer == NODES { String::new() } else { format!("{} ", axis_name(axis)) }
}

/// Text of a value after [`name_before`]: "16K" or "8 nodes".
fn named_value(axis: &LabelledAxis, index: usize) -> String {
    let value = value_text(axis, index);
    if axis.pointer != NODES {
        return value;
    }
    if value == "1" { "1 node".to_owned() } else { format!("{value} nodes") }
}

/// Lists the planners with points at risk of running out of memory, and the infeasible points with the reasons.
pub(crate) fn reasons(picture: &Picture, axis: &LabelledAxis) -> Vec<String> {
    let mut found = Vec::new();
    for layer in &picture.layers {
        let cells = layer.cells.iter().flatten().enumerate();
        let risky = cells.filter_map(|(index, cell)| {
            Some(format!("{} ({})", named_value(axis, index), crate::format::probability(cell.risk?)))
        });
        let risky: Vec<String> = risky.collect();
        if !risky.is_empty() {
            let (planner, name) = (&layer.planner.title, name_before(axis));
            found.push(format!("{planner}: at risk of running out of memory at {name}{}", risky.join(", ")));
        }
    }
    for layer in &picture.layers {
        for (index, cell) in layer.cells.iter().flatten().enumerate() {
            if let Some(reason) = &cell.reason {
                let (name, value) = (name_before(axis), named_value(axis, index));
                found.push(format!("{name}{value}, {}: {}", layer.planner.title, crate::format::gib_in(reason)));
            }
        }
    }
    found.extend(equal_end(picture, axis));
    found
}

/// States that the last values of a numeric axis have the same results: the field no longer limits the plans.
fn equal_end(picture: &Picture, axis: &LabelledAxis) -> Option<String> {
    axis.numbers.as_ref()?;
    let count = axis.labels.len();
    let is_same = |index: usize, other: usize| {
        picture.layers.iter().all(|layer| {
            let cells: Vec<_> = layer.cells.iter().flatten().collect();
            let value = |index: usize| cells.get(index).and_then(|cell| cell.value);
            matches!((value(index), value(other)), (Some(a), Some(b)) if (a - b).abs() <= 1e-9 * a.abs())
        })
    };
    let last = count.checked_sub(1)?;
    let first = (0..last).rev().take_while(|index| is_same(*index, last)).last()?;
    let later: Vec<String> = (first + 1..count).map(|index| named_value(axis, index)).collect();
    let why = if axis.pointer.ends_with("/context_length") { ": no sample is longer" } else { "" };
    let (name, base) = (name_before(axis), named_value(axis, first));
    Some(format!("The results of {name}{} are those of {base}{why}", later.join(", ")))
}

/// Sweep progress with buttons that stop and resume it.
#[component]
pub(crate) fn Progress(
    sweep: Signal<StoredSweep>,
    /// True while the server is silent.
    is_silent: RwSignal<bool>,
    /// True from the click of a button until the server has answered. The page resets it.
    is_switching: RwSignal<bool>,
    /// Receives true to start and false to stop.
    on_switch: Callback<bool>,
) -> impl IntoView {
    let running = Memo::new(move |_| sweep.with(is_running));
    Effect::new(move |before: Option<bool>| {
        let now = running.get();
        if before.is_some_and(|before| before != now) {
            is_switching.set(false);
        }
        now
    });
    let switch = move |is_on: bool| {
        is_switching.set(true);
        on_switch.run(is_on);
    };
    let status_text = move || sweep.with(|sweep| progress_text(&sweep.progress));
    let is_done = move || sweep.with(|sweep| sweep.progress.done == sweep.progress.points);
    view! {
        <div class="sweep-progress" data-testid="sweep-progress" data-state=move || if running.get() { "running" } else if is_done() { "done" } else { "idle" }>
            <Show when=move || !is_done()>
                <progress
                    aria-label="Points planned"
                    max=move || sweep.with(|sweep| sweep.progress.points.to_string())
                    prop:value=move || sweep.with(|sweep| f64::from(sweep.progress.done))
                ></progress>
            </Show>
            <span role="status">
                {status_text}
                <Show when=move || is_silent.get()>
                    <span class="slower">" The server cannot be reached. Trying again…"</span>
                </Show>
            </span>
            <Show when=move || running.get()>
                <button class="quiet" disabled=move || is_switching.get() on:click=move |_| switch(false)>
                    {move || if is_switching.get() { "Cancelling…" } else { "Cancel" }}
                </button>
            </Show>
            <Show when=move || !running.get() && !is_done()>
                <button disabled=move || is_switching.get() on:click=move |_| switch(true)>
                    {move || if is_switching.get() { "Starting…" } else { "Plan the rest" }}
                </button>
            </Show>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::scenario::PlannerKind;
    use api::sweep::{Cell, Metric, NamedPlanner};

    use super::*;

    #[test]
    fn points_without_a_plan_leave_no_mark_but_a_word() {
        let cell =
            |point, value, reason: Option<&str>| Cell { point, value, reason: reason.map(str::to_owned), risk: None };
        let cells = vec![vec![cell(0, Some(2.0), None), cell(1, None, Some("too large")), cell(2, None, None)]];
        let planner = NamedPlanner { planner: PlannerKind::OneFOneB, title: "1F1B".into() };
        let picture = Picture {
            metric: Metric::IterationS,
            title: "step time, s".into(),
            x: 0,
            y: None,
            layers: vec![Layer { planner, cells }],
        };
        let axis = LabelledAxis {
            pointer: "/cluster/nodes".into(),
            title: "nodes".into(),
            labels: vec!["4".into(), "8".into(), "16".into()],
            numbers: Some(vec![4.0, 8.0, 16.0]),
        };
        assert_eq!(curves(&picture, &axis)[0].points, [(4.0, 2.0)]);
        let mut at_risk = picture.clone();
        at_risk.layers[0].cells[0][0].risk = Some(0.5);
        assert_eq!(
            reasons(&at_risk, &axis)[0].replace('\u{202f}', " "),
            "1F1B: at risk of running out of memory at 4 nodes (50.0 %)"
        );
        let rings = curves(&at_risk, &axis).pop().unwrap();
        assert_eq!((rings.form, rings.points), (Form::Rings, vec![(4.0, 2.0)]));
        assert_eq!(reasons(&picture, &axis), ["8 nodes, 1F1B: too large"]);
        let text_axis = LabelledAxis { numbers: None, ..axis };
        assert!((position(&text_axis, 2) - 2.0).abs() < 1e-12, "its place");
    }

    #[test]
    fn equal_results_at_the_end_are_stated() {
        let cell = |value| Cell { point: 0, value: Some(value), reason: None, risk: None };
        let planner = NamedPlanner { planner: PlannerKind::OneFOneB, title: "1F1B".into() };
        let cells = vec![[5.0, 4.0, 3.0, 3.0, 3.0].map(cell).to_vec()];
        let picture = Picture {
            metric: Metric::IterationS,
            title: "step time, s".into(),
            x: 0,
            y: None,
            layers: vec![Layer { planner, cells }],
        };
        let numbers = [8_192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0];
        let axis = LabelledAxis {
            pointer: "/workload/context_length".into(),
            title: "context length, tokens".into(),
            labels: numbers.map(|number| number.to_string()).to_vec(),
            numbers: Some(numbers.to_vec()),
        };
        assert_eq!(
            reasons(&picture, &axis),
            ["The results of context length 64K, 128K are those of 32K: no sample is longer"]
        );
    }

    #[test]
    fn progress_has_the_time_left_after_the_first_plan() {
        let progress = |done, without_plan, points_per_s| {
            let state = if done == 30 { SweepState::Done } else { SweepState::Running };
            let progress = SweepProgress { state, points: 30, done, without_plan, points_per_s };
            progress_text(&progress).replace('\u{202f}', " ")
        };
        assert_eq!(progress(7, 7, None), "Planning: 7 of 30 points done: 0 planned, 7 not possible");
        assert_eq!(
            progress(10, 7, Some(0.1)),
            "Planning: 10 of 30 points done: 3 planned, 7 not possible; about 3 min left"
        );
        assert_eq!(progress(30, 0, Some(0.1)), "30 of 30 points planned");
    }
}
