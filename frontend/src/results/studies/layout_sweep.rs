//! Every layout of the modules as a point: does it pay that each has its own?

use std::sync::Arc;

use api::planner::study::layouts::{Freedom, LayoutPoint, LayoutSweep};
use leptos::prelude::*;

use crate::charts::{Cloud, Mark, ScatterChart};
use crate::format;

const KINDS: [(Freedom, &str, &str, &str, Mark); 3] = [
    (Freedom::Homogeneous, "one layout for all", "#66707e", "#a0a8b4", Mark::Disc),
    (Freedom::Colocated, "own layouts, shared devices", "#b8542a", "#ee8866", Mark::Square),
    (Freedom::NonColocated, "own layouts, own devices", "#1b7f3b", "#66cc88", Mark::Diamond),
];

const fn name(freedom: Freedom) -> &'static str {
    match freedom {
        Freedom::Homogeneous => KINDS[0].1,
        Freedom::Colocated => KINDS[1].1,
        Freedom::NonColocated => KINDS[2].1,
    }
}

fn clouds(sweep: &LayoutSweep) -> Vec<Cloud> {
    let of = |&(freedom, name, light, dark, mark): &(Freedom, &str, &'static str, &'static str, Mark)| {
        let own = sweep.points.iter().filter(|point| point.freedom == freedom);
        let points = own.filter_map(|point| {
            let figures = point.figures?;
            Some((figures.tokens_per_s, figures.tflops_per_device, hover(point)))
        });
        Cloud { name: name.to_owned(), light, dark, mark, points: points.collect() }
    };
    KINDS.iter().map(of).collect()
}

fn hover(point: &LayoutPoint) -> String {
    let time = point.figures.map(|figures| format::seconds(figures.iteration_s)).unwrap_or_default();
    format!("{}<br>{} devices, {} a microbatch, {time}", point.title, point.devices, point.microbatch)
}

/// The points that no other beats in both throughputs, from left to right.
fn front(sweep: &LayoutSweep) -> Vec<(f64, f64)> {
    let mut front: Vec<(f64, f64)> = sweep
        .points
        .iter()
        .filter(|point| point.is_on_front)
        .filter_map(|point| point.figures.map(|figures| (figures.tokens_per_s, figures.tflops_per_device)))
        .collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    front
}

/// The best of each freedom, and what it wins.
fn verdict(sweep: &LayoutSweep) -> Vec<String> {
    let of = |best: &api::planner::study::layouts::BestPoint| {
        let point = sweep.points.get(best.point as usize)?;
        let gain = match best.gain_percent {
            Some(gain) if best.freedom != Freedom::Homogeneous => {
                format!(", {} tokens/s against one layout", format::signed_percent(gain / 100.0))
            }
            _ => String::new(),
        };
        Some(format!("{}: {}{gain}", name(best.freedom), point.title))
    };
    sweep.best.iter().filter_map(of).collect()
}

/// The card's content.
pub(super) fn show(sweep: Arc<LayoutSweep>) -> impl IntoView {
    let sweep = Arc::unwrap_or_clone(sweep);
    let (clouds, line) = (clouds(&sweep), front(&sweep));
    let words = verdict(&sweep);
    let label =
        format!("Throughput of a device against throughput of all, {} layouts. {}", sweep.simulated, words.join(". "));
    let lines = words.into_iter().map(|words| view! { <li>{words}</li> }).collect_view();
    let rejected = sweep.rejections.iter().take(12).map(|rejection| {
        view! { <tr><th scope="row">{format::count(rejection.count.into())}</th><td class="notation">{rejection.reason.clone()}</td></tr> }
    });
    let rejected = rejected.collect_view();
    let caption = format!(
        "{} layouts simulated on a batch of {} sequences that no plan is judged on, {} left out by their estimates.",
        format::count(sweep.simulated.into()),
        format::count(sweep.sequences.into()),
        format::count(sweep.left_out.into())
    );
    view! {
        <ul class="plain" data-testid="layouts-verdict">{lines}</ul>
        <ScatterChart
            clouds=Signal::stored(clouds)
            front=Signal::stored(line)
            axes=("tokens/s of all devices", "TFLOP/s of a device")
            label=Signal::stored(label)
            test_id="layouts-chart"
        />
        <p class="hint">{caption}{sweep.is_partial.then_some(" The time was up before all were.")}</p>
        <details class="advanced">
            <summary>"Why others cannot be"</summary>
            <div class="table-scroll" role="region" aria-label="Layouts that cannot be, by reason" tabindex="0">
                <table class="figures assignment">
                    <thead><tr><th scope="col">"Layouts"</th><th scope="col">"Reason"</th></tr></thead>
                    <tbody>{rejected}</tbody>
                </table>
            </div>
        </details>
    }
}
