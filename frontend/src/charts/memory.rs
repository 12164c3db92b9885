//! Memory of one rank over time, planner beside planner.

use std::sync::Arc;

use api::planner::timeline::Timeline;
use leptos::prelude::*;
use plotly::common::{Anchor, DashType, HoverInfo, Line, LineShape, Mode, Orientation, TickMode};
use plotly::layout::{AxisRange, HoverMode, Legend, Margin};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::{CLEAR, Colours, MOST_POINTS, colour, configuration, staircase};
use crate::gantt::watch::{theme, theme_version};
use crate::gantt::{RIGHT_MARGIN_PX, TimeWindow, axis_marks, cursor_ns, rows, time_text};

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Memory of a rank under every plan, on the time axis of the Gantt charts.
#[component]
pub(crate) fn MemoryChart(
    /// Titles and timelines.
    #[prop(into)]
    timelines: Signal<Vec<(String, Arc<Timeline>)>>,
    /// The rank; one that a timeline does not have is left out.
    #[prop(into)]
    rank: Signal<usize>,
    /// Memory that a plan may use, in GiB.
    #[prop(into)]
    limit_gib: Signal<f64>,
    /// Shown stretch of time.
    window: RwSignal<TimeWindow>,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(800.0);
    let plot = Memo::new(move |_| {
        version.track();
        let view = View { rank: rank.get(), limit_gib: limit_gib.get(), window: window.get(), width_px: width.get() };
        timelines.with(|timelines| (!timelines.is_empty()).then(|| plot(timelines, view, &Colours::read())))
    });
    let label = Signal::derive(move || {
        let rank = rank.get();
        let peaks = timelines.with(|timelines| {
            let peak = |(title, timeline): &(String, Arc<Timeline>)| {
                timeline
                    .memory
                    .get(rank)
                    .map(|curve| format!("{title} {:.1} GiB", curve.peak_bytes as f64 / BYTES_PER_GIB))
            };
            timelines.iter().filter_map(peak).collect::<Vec<_>>().join(", ")
        });
        format!("Memory of rank {rank} over time, limit {:.1} GiB; peaks: {peaks}", limit_gib.get())
    });
    let cursor = cursor_ns();
    let cursor_style = move || {
        let window = window.get();
        let share = cursor
            .get()
            .map(|ns| (ns - window.start_ns) / window.width_ns())
            .filter(|share| (0.0..=1.0).contains(share));
        match share {
            Some(share) => {
                let margins = rows::HEADER + RIGHT_MARGIN_PX;
                format!("left:calc({}px + {share:.5} * (100% - {margins}px))", rows::HEADER)
            }
            None => "display:none".to_owned(),
        }
    };
    view! {
        <div class="memory-chart" data-testid="memory-chart">
            <Figure plot=plot label=label class="chart-memory" width=width />
            <i class="memory-cursor" style=cursor_style aria-hidden="true"></i>
        </div>
    }
}

#[derive(Clone, Copy)]
struct View {
    rank: usize,
    limit_gib: f64,
    window: TimeWindow,
    width_px: f64,
}

/// Line colours that every type of colour vision tells apart, for a light and a dark page, and their dashes.
const LINES: [(&str, &str, DashType); 4] = [
    ("#0072b2", "#56a5e0", DashType::Solid),
    ("#b8542a", "#ee8866", DashType::Dash),
    ("#117755", "#44bb99", DashType::Dot),
    ("#66707e", "#a0a8b4", DashType::DashDot),
];

/// The plot as JSON.
fn plot(timelines: &[(String, Arc<Timeline>)], view: View, colours: &Colours) -> String {
    let View { rank, limit_gib, window, width_px } = view;
    let (unit_ns, _) = time_text::unit_of(window.end_ns);
    let is_dark = theme() == crate::gantt::Theme::Dark;
    let mut plot = Plot::new();
    let mut peak_gib: f64 = 0.0;
    for ((title, timeline), (light, dark, dash)) in timelines.iter().zip(LINES.iter().cycle()) {
        let Some(curve) = timeline.memory.get(rank) else { continue };
        peak_gib = peak_gib.max(curve.peak_bytes as f64 / BYTES_PER_GIB);
        let points = staircase::visible(&curve.time_ns, &curve.bytes, timeline.makespan_ns, window, MOST_POINTS);
        let (x, y): (Vec<f64>, Vec<f64>) =
            points.into_iter().map(|(ns, bytes)| (ns / unit_ns, bytes as f64 / BYTES_PER_GIB)).unzip();
        let line =
            Line::new().shape(LineShape::Hv).width(1.6).color(if is_dark { *dark } else { *light }).dash(dash.clone());
        plot.add_trace(Scatter::new(x, y).mode(Mode::Lines).name(title).line(line).hover_template("%{y:.1f} GiB"));
    }
    let ends = vec![window.start_ns / unit_ns, window.end_ns / unit_ns];
    plot.add_trace(
        Scatter::new(ends.clone(), vec![limit_gib; 2])
            .mode(Mode::Lines)
            .name(format!("limit {limit_gib:.1} GiB"))
            .hover_info(HoverInfo::Skip)
            .line(Line::new().width(1.0).color(colour(&colours.bad)).dash(DashType::LongDash)),
    );

    let plot_px = (width_px - rows::HEADER - RIGHT_MARGIN_PX).max(1.0);
    let (values, texts): (Vec<f64>, Vec<String>) =
        axis_marks(window, plot_px).into_iter().map(|(ns, text)| (ns / unit_ns, text)).unzip();
    let x_axis = colours
        .axis()
        .range(ends)
        .show_grid(false)
        .tick_mode(TickMode::Array)
        .tick_values(values)
        .tick_text(texts)
        .hover_format(".4~g");
    let y_axis = colours
        .axis()
        .range(AxisRange::new(0.0, peak_gib.max(limit_gib) * 1.08))
        .n_ticks(4)
        .tick_suffix(" GiB")
        .show_line(false);
    let legend = Legend::new()
        .orientation(Orientation::Horizontal)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y(1.02)
        .y_anchor(Anchor::Bottom)
        .background_color(CLEAR)
        .font(colours.font());
    let margin = Margin::new().left(rows::HEADER as usize).right(RIGHT_MARGIN_PX as usize).top(26).bottom(22);
    plot.set_layout(
        colours
            .layout(margin)
            .x_axis(x_axis)
            .y_axis(y_axis)
            .legend(legend)
            .show_legend(true)
            .hover_mode(HoverMode::XUnified),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}
