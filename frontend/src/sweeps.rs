//! Shared code for sweep pages: progress updates and chart curves.

mod form;
mod scaling;

pub(crate) use scaling::ScalingCard;

use api::path;
use api::sweep::{LabelledAxis, Layer, Picture, StoredSweep, SweepState};
use leptos::prelude::*;

use crate::charts::{Curve, Dash, Form, Stroke};
use crate::client::{self, Body, PAUSES_MS, RequestError, pause};

/// Poll interval in ms for a running sweep.
const LOOK_MS: i32 = 600;
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
/// `false`. After a server restart the sweep continues, so polling retries.
pub(crate) async fn follow(mut sweep: StoredSweep, seen: impl Fn(&StoredSweep) -> bool) -> Result<(), RequestError> {
    while seen(&sweep) && is_running(&sweep) {
        pause(LOOK_MS).await;
        let mut silent = 0;
        sweep = loop {
            match client::get(&path::sweep(&sweep.id)).await {
                Ok(next) => break next,
                Err(RequestError::Offline) if silent < PAUSES_MS.len() => {
                    pause(PAUSES_MS[silent]).await;
                    silent += 1;
                }
                Err(error) => return Err(error),
            }
        };
    }
    Ok(())
}

/// Returns the curves of a picture over one axis, by planner. Infeasible points are omitted.
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
    picture.layers.iter().enumerate().filter_map(curve).collect()
}

/// Axis position of a value: the number, or the index for non-numeric values.
fn position(axis: &LabelledAxis, index: usize) -> f64 {
    axis.numbers.as_ref().and_then(|numbers| numbers.get(index).copied()).unwrap_or(index as f64)
}

/// Lists the first infeasible points and the reasons.
pub(crate) fn reasons(picture: &Picture, axis: &LabelledAxis) -> Vec<String> {
    let mut found = Vec::new();
    for layer in &picture.layers {
        for (index, cell) in layer.cells.iter().flatten().enumerate() {
            if let Some(reason) = &cell.reason {
                let label = axis.labels.get(index).map(String::as_str).unwrap_or_default();
                found.push(format!("{} {label}, {}: {reason}", axis.title, layer.planner.title));
            }
        }
    }
    found
}

/// Sweep progress with buttons that stop and resume it.
#[component]
pub(crate) fn Progress(
    sweep: Signal<StoredSweep>,
    /// Receives true to start and false to stop.
    on_switch: Callback<bool>,
) -> impl IntoView {
    let running = Memo::new(move |_| sweep.with(is_running));
    let status_text = move || {
        sweep.with(|sweep| {
            let progress = &sweep.progress;
            let rate = progress.points_per_s.filter(|_| is_running(sweep));
            let rate = rate.map(|rate| format!(", {} a second", crate::format::three_digits(rate)));
            let barren = (progress.without_plan > 0).then(|| format!("; {} without any plan", progress.without_plan));
            let detail = match &progress.state {
                SweepState::Failed { detail } => format!(": {detail}"),
                _ => String::new(),
            };
            format!(
                "{} of {} points planned{}{}{detail}",
                progress.done,
                progress.points,
                rate.unwrap_or_default(),
                barren.unwrap_or_default()
            )
        })
    };
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
            <span role="status">{status_text}</span>
            <Show when=move || running.get()>
                <button class="quiet" on:click=move |_| on_switch.run(false)>"Cancel"</button>
            </Show>
            <Show when=move || !running.get() && !is_done()>
                <button on:click=move |_| on_switch.run(true)>"Plan the rest"</button>
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
        let cell = |point, value, reason: Option<&str>| Cell { point, value, reason: reason.map(str::to_owned) };
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
        assert_eq!(reasons(&picture, &axis), ["nodes 8, 1F1B: too large"]);
        let text_axis = LabelledAxis { numbers: None, ..axis };
        assert!((position(&text_axis, 2) - 2.0).abs() < 1e-12, "its place");
    }
}
