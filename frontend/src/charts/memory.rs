//! Memory of one rank over time, planner beside planner.

use std::sync::Arc;
use std::time::Duration;

use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::prelude::*;
use plotly::common::{DashType, HoverInfo, Line, LineShape, Mode, TickMode};
use plotly::layout::{AxisRange, HoverMode, Margin, TicksDirection};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::{Colours, MOST_POINTS, colour, configuration, staircase};
use crate::gantt::watch::{theme, theme_version};
use crate::gantt::{RIGHT_MARGIN_PX, Theme, TimeWindow, axis, cursor_ns, rows, time_text};

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Memory of a rank under every plan, on the time axis of the Gantt charts.
#[component]
pub(crate) fn MemoryChart(
    /// Planners and timelines.
    #[prop(into)]
    timelines: Signal<Vec<(PlannerKind, Arc<Timeline>)>>,
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
    let shown = follow(window, timelines);
    let plot = Memo::new(move |_| {
        version.track();
        let view = View { rank: rank.get(), limit_gib: limit_gib.get(), window: shown.get(), width_px: width.get() };
        timelines.with(|timelines| (!timelines.is_empty()).then(|| plot(timelines, view, &Colours::read())))
    });
    let label = Signal::derive(move || {
        let rank = rank.get();
        let peaks = timelines.with(|timelines| {
            let peak = |(planner, timeline): &(PlannerKind, Arc<Timeline>)| {
                timeline
                    .memory
                    .get(rank)
                    .map(|curve| format!("{} {:.1} GiB", planner.title(), curve.peak_bytes as f64 / BYTES_PER_GIB))
            };
            timelines.iter().filter_map(peak).collect::<Vec<_>>().join(", ")
        });
        format!("Memory of rank {rank} over time, limit {:.1} GiB; peaks: {peaks}", limit_gib.get())
    });
    let cursor = cursor_ns();
    let cursor_style = move || {
        let window = shown.get();
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
    let lines = move || {
        theme_changes.track();
        let drawn = timelines.with(|timelines| timelines.iter().map(|timeline| timeline.0).collect::<Vec<_>>());
        drawn
            .into_iter()
            .map(|planner| {
                let line = Stroke::of(planner);
                view! {
                    <li>
                        <svg viewBox="0 0 22 4" aria-hidden="true">
                            <line x1="0" y1="2" x2="22" y2="2" stroke=line.colour() stroke-dasharray=line.strokes />
                        </svg>
                        {planner.title()}
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <div class="memory-chart" data-testid="memory-chart">
            <ul class="memory-legend">
                {lines}
                <li>
                    <svg viewBox="0 0 22 4" aria-hidden="true">
                        <line x1="0" y1="2" x2="22" y2="2" stroke="var(--bad)" stroke-dasharray="9 4" />
                    </svg>
                    {move || format!("limit {:.1} GiB", limit_gib.get())}
                </li>
            </ul>
            <div class="memory-plot">
            <Figure plot=plot label=label class="chart-memory" width=width />
            <i class="memory-cursor" style=cursor_style aria-hidden="true"></i>
            <span class="memory-origin" aria-hidden="true">
                {move || axis(shown.get(), width.get() - rows::HEADER - RIGHT_MARGIN_PX).origin}
            </span>
            </div>
        </div>
    }
}

/// The window, taken over as often as a chart of so many points can be drawn while it moves.
fn follow(window: RwSignal<TimeWindow>, timelines: Signal<Vec<(PlannerKind, Arc<Timeline>)>>) -> RwSignal<TimeWindow> {
    /// More points than this take plotly.js longer than a frame.
    const MANY_POINTS: usize = 1_000;
    const PAUSE: Duration = Duration::from_millis(200);
    let shown = RwSignal::new(window.get_untracked());
    let waits = StoredValue::new(false);
    Effect::new(move |_| {
        let now = window.get();
        let points = timelines.with_untracked(|timelines| {
            let ranks = timelines.iter().filter_map(|(_, timeline)| timeline.memory.first());
            ranks.map(|curve| curve.time_ns.len()).sum::<usize>()
        });
        if points <= MANY_POINTS {
            shown.set(now);
        } else if !waits.get_value() {
            waits.set_value(true);
            set_timeout(
                move || {
                    // The component may be gone meanwhile.
                    if let Some(latest) = window.try_get_untracked()
                        && waits.try_set_value(false).is_none()
                    {
                        shown.set(latest);
                    }
                },
                PAUSE,
            );
        }
    });
    shown
}

#[derive(Clone, Copy)]
struct View {
    rank: usize,
    limit_gib: f64,
    window: TimeWindow,
    width_px: f64,
}

/// How a plan's line is drawn.
#[derive(Clone)]
struct Stroke {
    /// On a light page.
    light: &'static str,
    /// On a dark page.
    dark: &'static str,
    dash: DashType,
    /// The dash as SVG writes it, for the legend.
    strokes: &'static str,
}

impl Stroke {
    /// The planner's own colour, as its pill has it (10-tokens.css), and a dash, so that lines differ without
    /// colour too.
    const fn of(planner: PlannerKind) -> Self {
        let (light, dark, dash, strokes) = match planner {
            PlannerKind::WaitFreeCyclic => ("#0072b2", "#56a5e0", DashType::Solid, "none"),
            PlannerKind::Interleaved => ("#b8542a", "#ee8866", DashType::Dash, "6 4"),
            PlannerKind::Gpipe => ("#117755", "#44bb99", DashType::Dot, "2 2"),
            PlannerKind::OneFOneB => ("#66707e", "#a0a8b4", DashType::DashDot, "6 3 2 3"),
        };
        Self { light, dark, dash, strokes }
    }

    fn colour(&self) -> &'static str {
        if theme() == Theme::Dark { self.dark } else { self.light }
    }
}

/// The plot as JSON.
fn plot(timelines: &[(PlannerKind, Arc<Timeline>)], view: View, colours: &Colours) -> String {
    let View { rank, limit_gib, window, width_px } = view;
    let (unit_ns, _) = time_text::unit_of(window.end_ns);
    let mut plot = Plot::new();
    let mut peak_gib: f64 = 0.0;
    for (planner, timeline) in timelines {
        let stroke = Stroke::of(*planner);
        let Some(curve) = timeline.memory.get(rank) else { continue };
        peak_gib = peak_gib.max(curve.peak_bytes as f64 / BYTES_PER_GIB);
        let points = staircase::visible(&curve.time_ns, &curve.bytes, timeline.makespan_ns, window, MOST_POINTS);
        let (x, y): (Vec<f64>, Vec<f64>) =
            points.into_iter().map(|(ns, bytes)| (ns / unit_ns, bytes as f64 / BYTES_PER_GIB)).unzip();
        let line = Line::new().shape(LineShape::Hv).width(1.6).color(stroke.colour()).dash(stroke.dash);
        plot.add_trace(
            Scatter::new(x, y).mode(Mode::Lines).name(planner.title()).line(line).hover_template("%{y:.1f} GiB"),
        );
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
        .range(AxisRange::new(0.0, peak_gib.max(limit_gib) * 1.08))
        .n_ticks(6)
        .tick_suffix(" GiB")
        .show_line(false);
    // The ground is opaque: plotly.js outlines its hover line against it.
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
