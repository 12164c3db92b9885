//! Scatter chart with all module layouts. It shows the benefit of different layouts per module. A
//! selected point is shown in detail.

mod selected_layout;
mod table;

use std::sync::Arc;

use api::planner::analysis::layouts::{Freedom, LayoutPoint, LayoutSweep};
use leptos::prelude::*;

use crate::charts::{Cloud, Mark, ScatterChart};
use crate::explore::use_explore;
use crate::format;
use selected_layout::SelectedLayout;
use table::PointTables;

const KINDS: [(Freedom, &str, &str, &str, Mark); 3] = [
    (Freedom::Homogeneous, "one layout for all", "#66707e", "#a0a8b4", Mark::Disc),
    (Freedom::Colocated, "own layouts, shared devices", "#b8542a", "#ee8866", Mark::Square),
    (Freedom::NonColocated, "own layouts, own devices", "#1b7f3b", "#66cc88", Mark::Diamond),
];

const fn freedom_name(freedom: Freedom) -> &'static str {
    match freedom {
        Freedom::Homogeneous => KINDS[0].1,
        Freedom::Colocated => KINDS[1].1,
        Freedom::NonColocated => KINDS[2].1,
    }
}

fn clouds(sweep: &LayoutSweep) -> Vec<Cloud> {
    let cloud = |&(freedom, name, light, dark, mark): &(Freedom, &str, &'static str, &'static str, Mark)| {
        let kind_points = sweep.points.iter().filter(|point| point.freedom == freedom);
        let points = kind_points.filter_map(|point| {
            let metrics = point.figures?;
            Some((metrics.tokens_per_s, metrics.tflops_per_device, hover(point)))
        });
        Cloud { name: name.to_owned(), light, dark, mark, points: points.collect(), names: Vec::new() }
    };
    KINDS.iter().map(cloud).collect()
}

/// Returns the indexes of the drawn points for each kind of layout.
fn drawn(sweep: &LayoutSweep) -> Vec<Vec<usize>> {
    let drawn_indices = |&(freedom, ..): &(Freedom, &str, &str, &str, Mark)| {
        let is_drawn =
            |index: &usize| sweep.points[*index].freedom == freedom && sweep.points[*index].figures.is_some();
        (0..sweep.points.len()).filter(is_drawn).collect()
    };
    KINDS.iter().map(drawn_indices).collect()
}

fn hover(point: &LayoutPoint) -> String {
    let time = point.figures.map(|metrics| format::seconds(metrics.iteration_s)).unwrap_or_default();
    let title = point.title.replace("; ", "<br>");
    format!("{title}<br>{} devices, {time}", point.devices)
}

/// Returns the Pareto front in both throughputs, in ascending order.
fn front(sweep: &LayoutSweep) -> Vec<(f64, f64)> {
    let mut front: Vec<(f64, f64)> = sweep
        .points
        .iter()
        .filter(|point| point.is_on_front)
        .filter_map(|point| point.figures.map(|metrics| (metrics.tokens_per_s, metrics.tflops_per_device)))
        .collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    front
}

/// Describes the best layout of each kind and its gain.
fn summary_lines(sweep: &LayoutSweep) -> Vec<String> {
    let describe = |best: &api::planner::analysis::layouts::BestPoint| {
        let point = sweep.points.get(best.point as usize)?;
        let gain = match best.gain_percent {
            Some(gain) if best.freedom != Freedom::Homogeneous => {
                format!(", {} tokens/s against one layout", format::signed_percent(gain / 100.0))
            }
            _ => String::new(),
        };
        Some(format!("{}: {}{gain}", freedom_name(best.freedom), point.title))
    };
    sweep.best.iter().filter_map(describe).collect()
}

pub(super) fn show(sweep: Arc<LayoutSweep>) -> impl IntoView {
    view! { <Sweep sweep=sweep /> }
}

#[component]
fn Sweep(sweep: Arc<LayoutSweep>) -> impl IntoView {
    let explore = use_explore();
    let (clouds, line, places) = (clouds(&sweep), front(&sweep), drawn(&sweep));
    let summary = summary_lines(&sweep);
    let label = format!(
        "Throughput of a device against throughput of all, {} layouts. {}",
        sweep.simulated,
        summary.join(". ")
    );
    let lines = summary.into_iter().map(|text| view! { <li>{text}</li> }).collect_view();
    let caption = format!(
        "{} layouts simulated on a separate batch of {} sequences; {} not simulated because of their estimates. Click a point for its timeline.",
        format::count(sweep.simulated.into()),
        format::count(sweep.sequences.into()),
        format::count(sweep.left_out.into())
    );
    let is_partial = sweep.is_partial;
    let named = Arc::clone(&sweep);
    // A link may name a layout from a different scenario. Such a name is ignored.
    let selected = Memo::new(move |_| {
        let name = explore.view.with(|view| view.layout.clone())?;
        named.points.iter().find(|point| point.name == name && point.figures.is_some()).cloned()
    });
    let ring = Signal::derive(move || {
        let metrics = selected.get()?.figures?;
        Some((metrics.tokens_per_s, metrics.tflops_per_device))
    });
    let pick = Callback::new(move |name: String| explore.view.update(|view| view.layout = Some(name)));
    let names: Vec<Vec<String>> =
        places.iter().map(|kind| kind.iter().map(|&index| sweep.points[index].name.clone()).collect()).collect();
    let on_pick = Callback::new(move |(kind, point): (usize, usize)| {
        if let Some(name) = names.get(kind).and_then(|names| names.get(point)) {
            pick.run(name.clone());
        }
    });
    let selected_name = Signal::derive(move || selected.get().map(|point| point.name));
    let rejections = rejections(&sweep);
    view! {
        <ul class="plain" data-testid="layouts-verdict">{lines}</ul>
        <ScatterChart
            clouds=Signal::stored(clouds)
            front=Signal::stored(line)
            axes=("tokens/s of all devices", "TFLOP/s of a device")
            label=Signal::stored(label)
            selected=ring
            on_pick=on_pick
            test_id="layouts-chart"
        />
        <p class="hint">{caption}{is_partial.then_some(" The server's time limit was reached before all were simulated.")}</p>
        <PointTables sweep=sweep selected=selected_name on_choose=pick />
        <SelectedLayout point=selected />
        {rejections}
    }
}

/// Reasons for rejected layouts.
fn rejections(sweep: &LayoutSweep) -> impl IntoView + use<> {
    let rejected = sweep.rejections.iter().take(12).map(|rejection| {
        view! { <tr><th scope="row">{format::count(rejection.count.into())}</th><td class="notation">{rejection.reason.clone()}</td></tr> }
    });
    let rejected = rejected.collect_view();
    view! {
        <details class="advanced">
            <summary>"Rejected layouts, by reason"</summary>
            <div class="table-scroll" role="region" aria-label="Rejected layouts, by reason" tabindex="0">
                <table class="figures assignment">
                    <thead><tr><th scope="col">"Layouts"</th><th scope="col">"Reason"</th></tr></thead>
                    <tbody>{rejected}</tbody>
                </table>
            </div>
        </details>
    }
}
