//! Gantt chart component: signals, and markup around the two canvases.

use std::sync::Arc;

use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use leptos::prelude::*;

use super::area_panel::AreaPanel;
use super::chart::{Chart, Same};
use super::colours::{Colouring, SpanColours};
use super::describe::{Details, grouped};
use super::differences::Differences;
use super::frame::Due;
use super::layout::{self, Layout};
use super::minimap::Minimap;
use super::observers::theme_version;
use super::paint::Painter;
use super::rank_devices::ComparedDevices;
use super::surface::{Surface, Viewport};
use super::table::SpanTable;
use super::tools::{Found, Tools};
use super::tooltip::Tooltip;
use super::{Selection, TimeWindow, input, rows, shared};

/// Gantt chart with one row per rank, on the page's shared time axis.
#[component]
pub(crate) fn Gantt(
    /// Chart index on the page.
    chart: usize,
    /// Identifier of the plan or schedule in links.
    #[prop(into)]
    id: String,
    #[prop(into)] title: Signal<String>,
    /// Timeline; `None` while it loads.
    #[prop(into)]
    timeline: Signal<Option<Arc<Timeline>>>,
    /// Overview while a large timeline loads.
    #[prop(optional, into)]
    overview: Signal<Option<Arc<Overview>>>,
    /// Baseline timeline for differences.
    #[prop(optional, into)]
    against: Signal<Option<Arc<Timeline>>>,
    /// Device counts for both timelines.
    #[prop(optional, into)]
    devices: Signal<ComparedDevices>,
    /// Maximum makespan of the page's charts, in ns.
    #[prop(into)]
    extent_ns: Signal<u64>,
    /// Visible time range.
    window: RwSignal<TimeWindow>,
    /// Selected span of any chart.
    selection: RwSignal<Option<Selection>>,
    /// Span under the pointer in any chart.
    hover: RwSignal<Option<Selection>>,
) -> impl IntoView {
    let ranks = Memo::new(move |before: Option<&u32>| {
        // During loading, the chart has the previous chart's height, so that the page layout does
        // not jump.
        timeline
            .with(|timeline| timeline.as_ref().map(|timeline| timeline.ranks))
            .or_else(|| overview.with(|overview| overview.as_ref().map(|overview| overview.ranks)))
            .or(before.copied())
            .unwrap_or(4)
    });
    let query = RwSignal::new(String::new());
    let found =
        Memo::new(move |_| query.with(|query| timeline.with(|timeline| Found::search(query, timeline.as_deref()))));
    let arrangement = RwSignal::new(layout::Arrangement::default());
    let groups = Memo::new(move |_| {
        timeline
            .with(|timeline| timeline.as_ref().map_or_else(|| layout::by_eight(ranks.get()), |it| layout::groups(it)))
    });
    let names = Memo::new(move |_| {
        timeline.with(|timeline| timeline.as_deref().map(rows::RowNames::from_timeline).unwrap_or_default())
    });
    let layout = Memo::new(move |_| {
        let layout =
            groups.with(|groups| arrangement.with(|arrangement| Layout::new(ranks.get(), groups, arrangement)));
        Same(Arc::new(layout.named(names.get())))
    });
    let chart = Chart {
        number: chart,
        timeline,
        overview,
        extent_ns,
        window,
        selection,
        hover,
        query,
        arrangement,
        groups,
        layout,
        inks: inks(timeline, (against, devices), found),
        area: RwSignal::new(None),
        band: RwSignal::new(None),
        viewport: Viewport::new(),
        overlay: NodeRef::new(),
        painter: StoredValue::new_local(Painter::default()),
        due: StoredValue::new(Due::default()),
    };
    chart.viewport.track_size();
    paint_on_change(chart);
    // An area is valid only for its timeline.
    Effect::new(move |_| {
        timeline.track();
        chart.area.set(None);
    });

    let difference = Memo::new(move |_| {
        let span = chart.selected()?;
        chart.difference_text(&*timeline.get()?, span)
    });
    let spoken = Memo::new(move |_| {
        let span = chart.selected()?;
        let spoken =
            |names: &_| timeline.with(|timeline| Some(Details::named(timeline.as_deref()?, span, names).spoken));
        let description = names.with(spoken)?;
        Some(difference.with(|text| {
            text.as_ref()
                .map_or_else(|| description.clone(), |difference_text| format!("{description}, {difference_text}"))
        }))
    });
    let selection_difference = shared::selection_difference();
    Effect::new(move |_| {
        if chart.selected().is_some() {
            selection_difference.set(difference.get());
        }
    });
    let label = move || {
        let spans = timeline.with(|timeline| timeline.as_ref().map_or(0, |timeline| timeline.len()));
        let (title, ranks) = (title.get(), ranks.get());
        let spans = match spans {
            0 => overview.with(|overview| overview.as_ref().map_or(0, |overview| overview.spans)),
            spans => spans as u64,
        };
        let spans = grouped(spans);
        format!(
            "{title}: Gantt chart of {ranks} ranks and {spans} spans. Arrow keys go from span to span, W and S zoom, \
             A and D pan, F shows everything, slash searches, question mark lists all keys."
        )
    };
    let spoken_id = format!("gantt-spoken-{id}");
    let test_id = ["gantt-".to_owned(), id].concat();

    view! {
        <figure class="gantt">
            <figcaption class="gantt-title">{title}</figcaption>
            <Stage chart label=Signal::derive(label) spoken_id=spoken_id.clone() test_id=test_id />
            <Minimap chart />
            <AreaPanel chart />
            <Tools chart found />
            <p class="gantt-spoken" id=spoken_id aria-live="polite">{move || spoken.get().unwrap_or_default()}</p>
            <SpanTable chart />
        </figure>
    }
}

/// The two canvases in a scrolling container.
#[component]
fn Stage(chart: Chart, label: Signal<String>, spoken_id: String, test_id: String) -> impl IntoView {
    let Chart { layout, timeline, overview, .. } = chart;
    let height = move || format!("{}px", layout.with(|layout| layout.0.height()) + rows::AXIS);
    view! {
        <div
            class="gantt-scroll"
            class:gantt-many=move || { layout.with(|layout| layout.0.len()) > rows::ROWS_WITHOUT_SCROLLING }
            node_ref=chart.viewport.scroller
            on:scroll=move |_| chart.viewport.read_scroll()
        >
            <div class="gantt-rows" style:height=height>
                <div class="gantt-stage" style:height=height>
                    <canvas
                        class="gantt-canvas"
                        data-testid=test_id.clone()
                        node_ref=chart.viewport.canvas
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
                        on:dblclick=move |_| chart.fit()
                        on:mousedown=|event| {
                            // The middle button pans. Prevents the browser's autoscroll.
                            if event.button() == 1 {
                                event.prevent_default();
                            }
                        }
                    ></canvas>
                    <canvas class="gantt-overlay" node_ref=chart.overlay aria-hidden="true"></canvas>
                    <Show when=move || timeline.with(Option::is_none) && overview.with(Option::is_none)>
                        <p class="gantt-waiting" role="status">"Loading the timeline…"</p>
                    </Show>
                    <Tooltip chart />
                </div>
            </div>
        </div>
    }
}

/// Selects the colour scheme. A search has priority over differences, and differences over kinds.
fn inks(
    timeline: Signal<Option<Arc<Timeline>>>,
    (against, devices): (Signal<Option<Arc<Timeline>>>, Signal<ComparedDevices>),
    found: Memo<Found>,
) -> Memo<Option<Same<SpanColours>>> {
    let differences = shared::differences_enabled();
    Memo::new(move |_| {
        let timeline = timeline.get()?;
        let searched = match found.get() {
            Found::Spans(spans) if spans.0.iter().all(|&span| span < timeline.len()) => Some(spans.0),
            _ => None,
        };
        let colouring = match (searched, against.get().filter(|_| differences.get())) {
            (Some(spans), _) => Colouring::Search(spans),
            (None, Some(against)) => {
                let pairs = devices.with(|devices| Differences::between(&timeline, &against, devices));
                if let Some(reason) = pairs.refusal() {
                    Colouring::NotComparable { reason }
                } else {
                    let aspect = pairs.clearest_aspect(&timeline, &against);
                    Colouring::Differences { against, pairs: Arc::new(pairs), aspect }
                }
            }
            (None, None) => Colouring::Kinds,
        };
        Some(Same(Arc::new(SpanColours::new(&timeline, colouring))))
    })
}

fn paint_on_change(chart: Chart) {
    let critical = shared::critical_is_marked();
    let theme = theme_version();
    Effect::new(move |_| {
        chart.timeline.track();
        chart.overview.track();
        chart.inks.track();
        chart.layout.track();
        chart.visible_window();
        chart.viewport.size.track();
        chart.viewport.scrolled.track();
        critical.track();
        theme.track();
        chart.request(Due::ALL);
    });
    let cursor = shared::cursor_ns();
    Effect::new(move |_| {
        chart.selection.track();
        chart.hover.track();
        chart.band.track();
        chart.area.track();
        cursor.track();
        chart.request(Due::MARKS);
    });
}
