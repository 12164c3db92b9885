//! Ranks on one axis: rows of segments as paths.

use api::path;
use api::planner::trace_comparison::{RankAxis, Segment, SegmentKind, SegmentRow};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Width of the drawing; the browser scales it.
const WIDTH: f64 = 1000.0;
/// Height of a row, and of the bar in it.
const ROW: f64 = 20.0;
const BAR: f64 = 15.0;
/// Segments per rank: two per pixel of a wide screen are not visible.
const SEGMENTS: u32 = 1000;
const KINDS: [(SegmentKind, &str, &str); 4] = [
    (SegmentKind::Compute, "compute", "computes"),
    (SegmentKind::Wait, "wait", "waits in a collective"),
    (SegmentKind::Transfer, "transfer", "communicates"),
    (SegmentKind::Copy, "copy", "copies"),
];

/// Chart of the ranks.
#[component]
pub(super) fn AxisChart(
    /// Trace identifiers, separated by commas.
    traces: String,
    /// Steps that can be chosen.
    steps: Vec<u64>,
) -> impl IntoView {
    let step = RwSignal::new(None::<u64>);
    let axis = RwSignal::new(None::<Result<RankAxis, RequestError>>);
    Effect::new(move |_| {
        let chosen = step.get();
        let step_query = chosen.map_or_else(String::new, |step| format!("&step={step}"));
        let url = format!("{}&segments={SEGMENTS}{step_query}", path::trace_axis(&traces));
        spawn_local(async move {
            let answer = client::get::<RankAxis>(&url).await;
            if step.try_get_untracked() == Some(chosen) {
                axis.set(Some(answer));
            }
        });
    });
    let options =
        steps.into_iter().map(|step| view! { <option value=step.to_string()>{format!("Step {step}")}</option> });
    let chart = move || match axis.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error /> }.into_any(),
        Some(Ok(axis)) => drawing(&axis).into_any(),
    };
    view! {
        <h3>"Ranks on one axis"</h3>
        <div class="field picker">
            <label for="axis-step">"Show"</label>
            <select id="axis-step" on:change=move |event| step.set(event_target_value(&event).parse().ok())>
                <option value="">"The complete traces"</option>
                {options.collect_view()}
            </select>
        </div>
        {chart}
        <ul class="axis-legend" aria-label="Colours">
            {KINDS.map(|(_, class, meaning)| view! { <li><i class=class aria-hidden="true"></i>{meaning}</li> }).collect_view()}
            <li><i aria-hidden="true"></i>"idle"</li>
        </ul>
    }
}

fn drawing(axis: &RankAxis) -> impl IntoView + use<> {
    let span_ns = axis.span_ns;
    let rows = axis.rows.iter().enumerate().map(|(index, row)| {
        let top = ROW * index as f64;
        let bars = KINDS.map(|(kind, class, _)| {
            let bar_path = bars(&row.segments, kind, span_ns, top);
            view! { <path class=class d=bar_path></path> }
        });
        view! { <rect class="idle" x="0" y=top width=WIDTH height=BAR></rect>{bars.collect_view()} }
    });
    let rows = rows.collect_view();
    let height = ROW * axis.rows.len() as f64;
    let labels = axis.rows.iter().map(rank_label).collect_view();
    let description = format!("{} ranks over {}", axis.rows.len(), time_text::duration(span_ns as f64));
    view! {
        <div class="axis" data-testid="trace-axis">
            <ol class="axis-ranks">{labels}</ol>
            <svg
                viewBox=format!("0 0 {WIDTH} {height}")
                preserveAspectRatio="none"
                style=format!("height:{height}px")
                role="img"
                aria-label=description
            >
                {rows}
            </svg>
        </div>
        <p class="axis-ends muted"><span>"0"</span><span>{time_text::duration(span_ns as f64)}</span></p>
    }
}

fn rank_label(row: &SegmentRow) -> impl IntoView + use<> {
    let note = if row.is_aligned { "" } else { " (own clock)" };
    let text = format!("rank {}{note}", row.rank);
    view! { <li>{text}</li> }
}

/// Returns a path with a rectangle per segment of a kind.
fn bars(segments: &[Segment], kind: SegmentKind, span_ns: u64, top: f64) -> String {
    let scale = WIDTH / span_ns.max(1) as f64;
    let mut path = String::new();
    for segment in segments.iter().filter(|segment| segment.kind == kind) {
        let (start, width) = (segment.start_ns as f64 * scale, segment.duration_ns as f64 * scale);
        let bar = format!("M{start:.2} {top:.0}h{width:.2}v{BAR}h-{width:.2}z");
        path.push_str(&bar);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_become_rectangles() {
        let segment = |kind, start_ns, duration_ns| Segment { kind, start_ns, duration_ns };
        let segments = [
            segment(SegmentKind::Compute, 0, 500),
            segment(SegmentKind::Wait, 500, 100),
            segment(SegmentKind::Compute, 600, 400),
        ];
        assert_eq!(
            bars(&segments, SegmentKind::Compute, 2000, 20.0),
            "M0.00 20h250.00v15h-250.00zM300.00 20h200.00v15h-200.00z"
        );
        assert_eq!(bars(&segments, SegmentKind::Copy, 0, 0.0), "");
    }
}
