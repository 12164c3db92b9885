//! The component: signals, frames and the markup around the two canvases.

use std::sync::Arc;

use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::html;
use leptos::prelude::*;

use super::describe::{Details, grouped};
use super::gesture::Gesture;
use super::overlay::{self, Marks};
use super::paint::{Painter, Scene, Size};
use super::table::SpanTable;
use super::tooltip::Tooltip;
use super::watch::{SizeObserver, pixel_ratio, theme_version};
use super::{Selection, TimeWindow, input, rows, shared};

/// Canvases that wait for the next frame.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    bars: bool,
    marks: bool,
}

/// Everything one chart is made of; cheap to copy into event handlers.
#[derive(Clone, Copy)]
pub(crate) struct Chart {
    pub(crate) number: usize,
    pub(crate) timeline: Signal<Option<Arc<Timeline>>>,
    pub(crate) extent_ns: Signal<u64>,
    pub(crate) window: RwSignal<TimeWindow>,
    pub(crate) selection: RwSignal<Option<Selection>>,
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// Width and height of the canvas, in px.
    pub(crate) size: RwSignal<(f64, f64)>,
    /// How far the rows are scrolled, in px.
    pub(crate) scrolled: RwSignal<f64>,
    /// The band that is being dragged, in px of the plot.
    pub(crate) band: RwSignal<Option<(f64, f64)>>,
    /// The pointer over this chart, in px of the canvas.
    pub(crate) pointer: RwSignal<Option<(f64, f64)>>,
    pub(crate) gesture: StoredValue<Gesture>,
    pub(crate) canvas: NodeRef<html::Canvas>,
    pub(crate) scroller: NodeRef<html::Div>,
    overlay: NodeRef<html::Canvas>,
    painter: StoredValue<Painter, LocalStorage>,
    due: StoredValue<Due>,
}

impl Chart {
    /// The selected span, if it is one of this chart.
    pub(crate) fn selected(self) -> Option<usize> {
        self.selection.get().filter(|selection| selection.chart == self.number).map(|selection| selection.span)
    }

    /// Width of the plot, in px.
    pub(crate) fn plot_width(self) -> f64 {
        self.measure().plot()
    }

    fn measure(self) -> Size {
        let (width, height) = self.size.try_get_untracked().unwrap_or_default();
        Size { width, height, ratio: pixel_ratio() }
    }

    /// Asks for a paint at the next frame, once however many changes come before it.
    fn request(self, due: Due) {
        let first = self.due.try_update_value(|waiting| {
            let first = !waiting.bars && !waiting.marks;
            waiting.bars |= due.bars;
            waiting.marks |= due.marks;
            first
        });
        if first == Some(true) {
            request_animation_frame(move || {
                // None where the component is gone meanwhile or has no size yet: then there is nothing to paint.
                let _painted = self.frame();
            });
        }
    }

    /// Paints what is due; does nothing once the component is gone.
    fn frame(self) -> Option<()> {
        let due = self.due.try_update_value(std::mem::take)?;
        let canvas = self.canvas.try_get_untracked()??;
        let overlay = self.overlay.try_get_untracked()??;
        let size = self.measure();
        if size.width < rows::HEADER || size.height < rows::AXIS {
            return None;
        }
        let Some(timeline) = self.timeline.try_get_untracked()? else {
            size.prepare(&canvas)?;
            size.prepare(&overlay)?;
            return None;
        };
        let scene = Scene {
            timeline: &timeline,
            window: self.window.try_get_untracked()?,
            size,
            scrolled: self.scrolled.try_get_untracked()?,
            critical: shared::critical_is_marked().get_untracked(),
        };
        self.painter.try_update_value(|painter| {
            if due.bars {
                let version = theme_version().get_untracked();
                if let Some(spans) = painter.paint(&canvas, scene, version) {
                    note(&canvas, scene.window, spans);
                }
            }
            if let Some((chrome, font)) = painter.chrome() {
                overlay::paint(&overlay, scene, self.marks(&timeline), chrome, font);
            }
        })
    }

    fn marks(self, timeline: &Timeline) -> Marks {
        let of_this = |signal: RwSignal<Option<Selection>>| {
            signal
                .try_get_untracked()
                .flatten()
                .filter(|selection| selection.chart == self.number && selection.span < timeline.len())
                .map(|selection| selection.span)
        };
        Marks {
            selected: of_this(self.selection),
            hovered: of_this(self.hover),
            cursor_ns: shared::cursor_ns().get_untracked(),
            band: self.band.try_get_untracked().flatten(),
        }
    }
}

/// Leaves on the canvas what was painted, for tests and for the curious.
fn note(canvas: &web_sys::HtmlCanvasElement, window: TimeWindow, spans: u64) {
    for (name, value) in [
        ("data-start-ns", format!("{:.0}", window.start_ns)),
        ("data-end-ns", format!("{:.0}", window.end_ns)),
        ("data-painted-spans", spans.to_string()),
    ] {
        // These names are valid, which is all that could be wrong.
        drop(canvas.set_attribute(name, &value));
    }
}

/// One Gantt chart: a row per rank, on the time axis that the page's charts share.
#[component]
pub(crate) fn Gantt(
    /// Number of the chart on the page.
    chart: usize,
    /// Planner whose plan it shows.
    planner: PlannerKind,
    /// Heading.
    #[prop(into)]
    title: Signal<String>,
    /// What it shows; none while it is on its way.
    #[prop(into)]
    timeline: Signal<Option<Arc<Timeline>>>,
    /// Longest makespan of the page's charts, in ns.
    #[prop(into)]
    extent_ns: Signal<u64>,
    /// Shown stretch of time.
    window: RwSignal<TimeWindow>,
    /// Selected span of any chart.
    selection: RwSignal<Option<Selection>>,
    /// Span under the pointer, of any chart.
    hover: RwSignal<Option<Selection>>,
) -> impl IntoView {
    let chart = Chart {
        number: chart,
        timeline,
        extent_ns,
        window,
        selection,
        hover,
        size: RwSignal::new((0.0, 0.0)),
        scrolled: RwSignal::new(0.0),
        band: RwSignal::new(None),
        pointer: RwSignal::new(None),
        gesture: StoredValue::new(Gesture::default()),
        canvas: NodeRef::new(),
        scroller: NodeRef::new(),
        overlay: NodeRef::new(),
        painter: StoredValue::new_local(Painter::default()),
        due: StoredValue::new(Due::default()),
    };
    watch_size(chart);
    paint_on_change(chart);

    let ranks = Memo::new(move |before: Option<&usize>| {
        // A chart on its way keeps the height of the one before it, so that nothing below jumps.
        timeline
            .with(|timeline| timeline.as_ref().map(|timeline| timeline.ranks as usize))
            .or(before.copied())
            .unwrap_or(4)
    });
    let height = move || format!("{}px", rows::height(ranks.get()) + rows::AXIS);
    let spoken = Memo::new(move |_| {
        let span = chart.selected()?;
        timeline.with(|timeline| timeline.as_ref().map(|timeline| Details::of(timeline, span).spoken))
    });
    let label = move || {
        let spans = timeline.with(|timeline| timeline.as_ref().map_or(0, |timeline| timeline.len()));
        let (title, ranks, spans) = (title.get(), ranks.get(), grouped(spans as u64));
        format!(
            "{title}: Gantt chart of {ranks} ranks and {spans} spans. Arrow keys go from span to span, W and S zoom, \
             A and D pan, F shows everything."
        )
    };
    let spoken_id = format!("gantt-spoken-{}", planner.id());

    view! {
        <figure class="gantt">
            <figcaption class="gantt-title">{title}</figcaption>
            <div
                class="gantt-scroll"
                class:gantt-many=move || { ranks.get() > rows::ROWS_WITHOUT_SCROLLING }
                node_ref=chart.scroller
                on:scroll=move |_| input::scrolled(chart)
            >
                <div class="gantt-rows" style:height=height>
                    <div class="gantt-stage" style:height=height>
                        <canvas
                            class="gantt-canvas"
                            data-testid=format!("gantt-{}", planner.id())
                            node_ref=chart.canvas
                            tabindex="0"
                            role="application"
                            aria-roledescription="Gantt chart"
                            aria-label=label
                            aria-describedby=spoken_id.clone()
                            aria-busy=move || timeline.with(Option::is_none).to_string()
                            on:keydown=move |event| input::key(chart, &event)
                            on:wheel=move |event| input::wheel(chart, &event)
                            on:pointerdown=move |event| input::pressed(chart, &event)
                            on:pointermove=move |event| input::moved(chart, &event)
                            on:pointerup=move |event| input::released(chart, &event)
                            on:pointercancel=move |_| input::cancelled(chart)
                            on:pointerleave=move |_| input::left(chart)
                            on:dblclick=move |_| input::fit(chart)
                            on:mousedown=|event| {
                                // The middle button pans here; the browser would start its own scrolling.
                                if event.button() == 1 {
                                    event.prevent_default();
                                }
                            }
                        ></canvas>
                        <canvas class="gantt-overlay" node_ref=chart.overlay aria-hidden="true"></canvas>
                        <Show when=move || timeline.with(Option::is_none)>
                            <p class="gantt-waiting" role="status">"Loading the timeline…"</p>
                        </Show>
                        <Tooltip chart />
                    </div>
                </div>
            </div>
            <p class="gantt-spoken" id=spoken_id aria-live="polite">{move || spoken.get().unwrap_or_default()}</p>
            <SpanTable chart />
        </figure>
    }
}

fn watch_size(chart: Chart) {
    let observer = StoredValue::new_local(None::<SizeObserver>);
    Effect::new(move |_| {
        let Some(canvas) = chart.canvas.get() else { return };
        let read = move || {
            if let Some(Some(canvas)) = chart.canvas.try_get_untracked() {
                let size = (f64::from(canvas.client_width()), f64::from(canvas.client_height()));
                if chart.size.try_get_untracked().is_some_and(|before| before != size) {
                    chart.size.set(size);
                }
            }
        };
        read();
        observer.set_value(SizeObserver::of(&canvas, read));
    });
}

fn paint_on_change(chart: Chart) {
    let critical = shared::critical_is_marked();
    let theme = theme_version();
    Effect::new(move |_| {
        chart.timeline.track();
        chart.window.track();
        chart.size.track();
        chart.scrolled.track();
        critical.track();
        theme.track();
        chart.request(Due { bars: true, marks: true });
    });
    let cursor = shared::cursor_ns();
    Effect::new(move |_| {
        chart.selection.track();
        chart.hover.track();
        chart.band.track();
        cursor.track();
        chart.request(Due { bars: false, marks: true });
    });
}
