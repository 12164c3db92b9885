//! Chart of one rank's memory over time for several planners.

use std::sync::Arc;
use std::time::Duration;

use api::planner::timeline::Timeline;
use leptos::prelude::*;
use plotly::common::{DashType, HoverInfo, Line, LineShape, Mode, TickMode};
use plotly::layout::{AxisRange, HoverMode, Margin, TicksDirection};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::stroke::Stroke;
use super::{Colours, MAX_POINTS, colour, configuration, staircase};
use crate::gantt::observers::theme_version;
use crate::gantt::time_text::{Measure, measure};
use crate::gantt::{RIGHT_MARGIN_PX, TimeWindow, axis, cursor_ns, rows, time_text};

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Memory curve of a plan or schedule.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLine {
    pub(crate) title: String,
    pub(crate) stroke: Stroke,
    /// Timeline with the memory samples.
    pub(crate) timeline: Arc<Timeline>,
}

/// Bytes per display unit, and the unit symbol.
fn unit() -> (f64, &'static str) {
    match measure() {
        Measure::Physical => (BYTES_PER_GIB, " GiB"),
        Measure::Units { activation_bytes, .. } => (activation_bytes, ""),
    }
}

/// Memory of a rank under each plan. The time axis matches the Gantt charts.
#[component]
pub(crate) fn MemoryChart(
    #[prop(into)] lines: Signal<Vec<MemoryLine>>,
    /// Rank index. Timelines without this rank are skipped.
    #[prop(into)]
    rank: Signal<usize>,
    /// Memory limit of a plan, in GiB or activations.
    #[prop(into)]
    limit: Signal<Option<f64>>,
    /// Visible time range.
    window: RwSignal<TimeWindow>,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(800.0);
    let visible_window = follow(window, lines);
    let plot = Memo::new(move |_| {
        version.track();
        let view = View { rank: rank.get(), limit: limit.get(), window: visible_window.get(), width_px: width.get() };
        lines.with(|lines| (!lines.is_empty()).then(|| plot(lines, view, &Colours::read())))
    });
    let label = Signal::derive(move || {
        let rank = rank.get();
        let (size, symbol) = unit();
        let peaks = lines.with(|lines| {
            let peak = |line: &MemoryLine| {
                let curve = line.timeline.memory.get(rank)?;
                Some(format!("{} {:.1}{symbol}", line.title, curve.peak_bytes as f64 / size))
            };
            lines.iter().filter_map(peak).collect::<Vec<_>>().join(", ")
        });
        let limit = limit.get().map_or(String::new(), |limit| format!(", limit {limit:.1}{symbol}"));
        format!("Memory of rank {rank} over time{limit}; peaks: {peaks}")
    });
    let cursor = cursor_ns();
    let cursor_style = move || {
        let window = visible_window.get();
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
    let theme_changes = theme_version();
    let legend = move || {
        theme_changes.track();
        let entry = |line: MemoryLine| {
            view! {
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke=line.stroke.colour() stroke-dasharray=line.stroke.strokes />
                    </svg>
                    {line.title}
                </li>
            }
        };
        lines.get().into_iter().map(entry).collect_view()
    };
    let limit_entry = move || {
        limit.get().map(|limit| {
            view! {
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke="var(--bad)" stroke-dasharray="9 4" />
                    </svg>
                    {format!("limit {limit:.1}{}", unit().1)}
                </li>
            }
        })
    };
    view! {
        <div class="memory-chart" data-testid="memory-chart">
            <ul class="memory-legend">
                {legend}
                {limit_entry}
            </ul>
            <div class="memory-plot">
            <Figure plot=plot label=label class="chart-memory" width=width />
            <i class="memory-cursor" style=cursor_style aria-hidden="true"></i>
            <span class="memory-origin" aria-hidden="true">
                {move || axis(visible_window.get(), width.get() - rows::HEADER - RIGHT_MARGIN_PX).origin}
            </span>
            </div>
        </div>
    }
}

/// Returns a copy of the window that updates after the Gantt charts. The update rate depends on the
/// point count.
fn follow(window: RwSignal<TimeWindow>, lines: Signal<Vec<MemoryLine>>) -> RwSignal<TimeWindow> {
    /// Above this point count, a plotly.js redraw takes longer than one frame.
    const MANY_POINTS: usize = 1_000;
    const PAUSE: Duration = Duration::from_millis(200);
    const FRAMES: Duration = Duration::from_millis(33);
    let visible_window = RwSignal::new(window.get_untracked());
    let waits = StoredValue::new(false);
    Effect::new(move |_| {
        let now = window.get();
        let points = lines.with_untracked(|lines| {
            let ranks = lines.iter().filter_map(|line| line.timeline.memory.first());
            ranks.map(|curve| curve.time_ns.len()).sum::<usize>()
        });
        if now != visible_window.get_untracked() && !waits.get_value() {
            waits.set_value(true);
            set_timeout(
                move || {
                    // The component may be unmounted by now.
                    if let Some(latest) = window.try_get_untracked()
                        && waits.try_set_value(false).is_none()
                    {
                        visible_window.set(latest);
                    }
                },
                if points <= MANY_POINTS { FRAMES } else { PAUSE },
            );
        }
    });
    visible_window
}

#[derive(Clone, Copy)]
struct View {
    rank: usize,
    limit: Option<f64>,
    window: TimeWindow,
    width_px: f64,
}

/// Returns the plot as JSON.
fn plot(lines: &[MemoryLine], view: View, colours: &Colours) -> String {
    let View { rank, limit, window, width_px } = view;
    let (unit_ns, _) = time_text::time_unit(window.end_ns);
    let mut plot = Plot::new();
    let (size, symbol) = unit();
    let mut peak: f64 = 0.0;
    for MemoryLine { title, stroke, timeline } in lines {
        let Some(curve) = timeline.memory.get(rank) else { continue };
        peak = peak.max(curve.peak_bytes as f64 / size);
        let points = staircase::visible(&curve.time_ns, &curve.bytes, timeline.makespan_ns, window, MAX_POINTS);
        let (x, y): (Vec<f64>, Vec<f64>) =
            points.into_iter().map(|(ns, bytes)| (ns / unit_ns, bytes as f64 / size)).unzip();
        let line = Line::new().shape(LineShape::Hv).width(1.6).color(stroke.colour()).dash(stroke.dash.clone());
        plot.add_trace(
            Scatter::new(x, y).mode(Mode::Lines).name(title).line(line).hover_template(format!("%{{y:.1f}}{symbol}")),
        );
    }
    let ends = vec![window.start_ns / unit_ns, window.end_ns / unit_ns];
    if let Some(limit) = limit {
        plot.add_trace(
            Scatter::new(ends.clone(), vec![limit; 2])
                .mode(Mode::Lines)
                .name(format!("limit {limit:.1}{symbol}"))
                .hover_info(HoverInfo::Skip)
                .line(Line::new().width(1.0).color(colour(&colours.bad)).dash(DashType::LongDash)),
        );
    }

    let plot_px = (width_px - rows::HEADER - RIGHT_MARGIN_PX).max(1.0);
    let marks = axis(window, plot_px).ticks.into_iter();
    let (values, texts): (Vec<f64>, Vec<String>) =
        marks.map(|tick| (window.ns_at(tick.x, plot_px) / unit_ns, tick.label)).unzip();
    let x_axis = colours
        .axis()
        .range(ends)
        .show_grid(false)
        .tick_mode(TickMode::Array)
        .tick_values(values)
        .tick_text(texts)
        .ticks(TicksDirection::Outside)
        .tick_length(4)
        .tick_color(colour(&colours.mute))
        .hover_format(".4~g")
        .spike_thickness(1)
        .spike_dash(DashType::Solid)
        .spike_color(colour(&colours.mute));
    let y_axis = colours
        .axis()
        .range(AxisRange::new(0.0, peak.max(limit.unwrap_or(0.0)) * 1.08))
        .n_ticks(6)
        .tick_suffix(symbol)
        .show_line(false);
    // The background is opaque, because plotly.js outlines its hover line in the background colour.
    let margin = Margin::new().left(rows::HEADER as usize).right(RIGHT_MARGIN_PX as usize).top(8).bottom(22);
    plot.set_layout(
        colours
            .layout(margin)
            .paper_background_color(colour(&colours.panel))
            .x_axis(x_axis)
            .y_axis(y_axis)
            .show_legend(false)
            .hover_mode(HoverMode::XUnified),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}
