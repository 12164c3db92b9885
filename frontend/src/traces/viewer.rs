//! Viewer component: markup around the canvas, and pointer, wheel and keyboard handling.

use std::sync::Arc;

use api::trace::{SliceKind, TraceDetail};
use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent, WheelEvent};

use super::chart::{Mark, TraceChart};
use super::hit;
use super::layout::{Content, lane_name};
use super::paint::{AXIS, HEADER};
use super::palette::{LEGEND, colours};
use super::search::SearchBar;
use super::selection::SelectionPanel;
use super::span_text::{spoken, times, title};
use crate::format;
use crate::gantt::gesture::{Motion, Press, Release};
use crate::gantt::keys::{Command, Modifiers, command};
use crate::gantt::observers::{SizeObserver, theme, theme_version};
use crate::gantt::{Step, TimeWindow, time_text};
use crate::notice::ErrorNotice;

/// Zoom factor exponent per px of wheel movement.
const ZOOM_PER_PX: f64 = 0.005;

/// Trace chart with search and selection.
#[component]
pub(crate) fn Viewer(detail: Arc<TraceDetail>) -> impl IntoView {
    let chart = TraceChart::new(Arc::clone(&detail));
    track_size(chart);
    let rows = move || format!("{}px", chart.layout.with(|layout| layout.height()) + AXIS);
    let label = format!(
        "Gantt chart of {} lanes and {} slices. Arrow keys go from span to span, W and S zoom, A and D pan, F shows everything, G folds, slash searches.",
        detail.lanes.len(),
        format::count(detail.trace.slices)
    );
    let spoken = move || chart.selected.get().map(|mark| spoken(&mark)).unwrap_or_default();
    view! {
        <SearchBar chart=chart />
        <figure class="gantt trace-chart">
            <div class="gantt-scroll trace-scroll" node_ref=chart.scroller tabindex="-1" on:scroll=move |_| {
                if let Some(scroller) = chart.scroller.get_untracked() {
                    chart.scrolled.set(f64::from(scroller.scroll_top()));
                }
            }>
                <div class="gantt-rows" style:height=rows>
                    <div class="gantt-stage trace-stage" style:height=rows>
                        <canvas
                            class="gantt-canvas"
                            data-testid="trace-canvas"
                            node_ref=chart.canvas
                            tabindex="0"
                            role="application"
                            aria-roledescription="Gantt chart"
                            aria-label=label
                            aria-describedby="trace-spoken"
                            aria-busy=move || chart.view.with(Option::is_none).to_string()
                            on:keydown=move |event| key(chart, &event)
                            on:wheel=move |event| wheel(chart, &event)
                            on:pointerdown=move |event| pressed(chart, &event)
                            on:pointermove=move |event| moved(chart, &event)
                            on:pointerup=move |event| released(chart, &event)
                            on:pointercancel=move |_| left(chart)
                            on:pointerleave=move |_| left(chart)
                            on:dblclick=move |_| chart.change(|_, extent| TimeWindow::fit(extent))
                        ></canvas>
                        <Tooltip chart=chart />
                    </div>
                </div>
            </div>
            <p id="trace-spoken" class="gantt-spoken" aria-live="polite">{spoken}</p>
        </figure>
        {move || chart.last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        <div class="trace-below">
            <Legend />
            <p class="hint">{move || level(chart)}</p>
        </div>
        <SelectionPanel chart=chart />
    }
}

/// Describes the level of detail in the view.
fn level(chart: TraceChart) -> String {
    chart.view.with(|view| match view {
        None => "Loading…".to_owned(),
        Some(view) if view.merged_ns == 0 => "Every slice in view is drawn by itself.".to_owned(),
        Some(view) => {
            let width = time_text::duration(view.merged_ns as f64);
            format!("Slices shorter than {width} are drawn together with their neighbours; none is left out.")
        }
    })
}

#[component]
fn Legend() -> impl IntoView {
    let version = theme_version();
    let entries = move || {
        version.track();
        let entry = |(kind, name): (SliceKind, &'static str)| {
            let style = format!("background:{}", colours(kind, theme()).0);
            view! { <li><i class="gantt-key" style=style aria-hidden="true"></i>{name}</li> }
        };
        LEGEND.into_iter().map(entry).collect_view()
    };
    view! { <ul class="gantt-legend">{entries}</ul> }
}

#[component]
fn Tooltip(chart: TraceChart) -> impl IntoView {
    let position_style = move || {
        let (x, y) = chart.pointer.get().unwrap_or_default();
        let (width, height) = chart.size.get();
        let across = if x + 290.0 <= width {
            format!("left:{:.0}px", x + 14.0)
        } else {
            format!("right:{:.0}px", (width - x + 14.0).max(0.0))
        };
        let down = if y + 90.0 <= height.max(180.0) {
            format!("top:{:.0}px", y + 14.0)
        } else {
            format!("bottom:{:.0}px", height - y + 14.0)
        };
        format!("{across};{down}")
    };
    let content = move || {
        let mark = chart.hover.get()?;
        let lane =
            chart.detail.with_value(|detail| detail.lanes.get(mark.lane as usize).map(lane_name)).unwrap_or_default();
        let title: String = title(&mark).chars().take(160).collect();
        Some(view! {
            <strong class="trace-name">{title}</strong>
            <span>{times(&mark)}</span>
            <span>{lane}</span>
        })
    };
    view! {
        <Show when=move || chart.hover.with(Option::is_some) && chart.pointer.with(Option::is_some)>
            <div class="gantt-tooltip" data-testid="trace-tooltip" aria-hidden="true" style=position_style>{content}</div>
        </Show>
    }
}

fn track_size(chart: TraceChart) {
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
        observer.set_value(SizeObserver::new(&canvas, read));
    });
}

fn key(chart: TraceChart, event: &KeyboardEvent) {
    let modifiers = Modifiers { ctrl: event.ctrl_key() || event.meta_key(), alt: event.alt_key() };
    let Some(command) = command(&event.key(), modifiers) else { return };
    // Traces have no critical path, areas or pins. The browser handles these keys.
    if matches!(command, Command::ToggleCritical | Command::Area | Command::Pin) {
        return;
    }
    event.prevent_default();
    let window = chart.window.get_untracked();
    let about = match (chart.pointer.get_untracked(), chart.selected.get_untracked()) {
        (Some((x, _)), _) => window.ns_at(x - HEADER, chart.plot()),
        (None, Some(mark)) if (mark.start_ns as f64) < window.end_ns && mark.start_ns as f64 > window.start_ns => {
            mark.start_ns as f64
        }
        _ => window.centre_ns(),
    };
    match command {
        Command::Zoom(factor) => chart.change(|window, extent| window.zoomed(about, factor, extent)),
        Command::Pan(share) => chart.change(|window, extent| window.panned(window.width_ns() * share, extent)),
        Command::Fit => chart.change(|_, extent| TimeWindow::fit(extent)),
        Command::Clear => chart.selected.set(None),
        Command::ZoomToSelection => chart.zoom_to_selection(),
        Command::Walk(step) => walk(chart, step),
        Command::Search => {
            if let Some(field) = chart.search.get_untracked() {
                // If the browser refuses the focus, the field is reachable with Tab.
                drop(field.focus());
            }
        }
        Command::Fold => fold(chart),
        Command::ToggleCritical | Command::Area | Command::Pin => {}
    }
}

/// Collapses or expands the process of the selection. Without a selection, all processes.
fn fold(chart: TraceChart) {
    let process = chart.selected.get_untracked().and_then(|mark| {
        chart.detail.with_value(|detail| detail.lanes.get(mark.lane as usize).map(|lane| lane.process))
    });
    match process {
        Some(process) => chart.folded.update(|folded| {
            if !folded.remove(&process) {
                folded.insert(process);
            }
        }),
        None => chart.fold_all(),
    }
}

/// Selects the next span in the row, or the nearest span in the row above or below.
fn walk(chart: TraceChart, step: Step) {
    let Some(view) = chart.view.get_untracked() else { return };
    let Some(mark) = chart.selected.get_untracked() else {
        let first = view.lanes.iter().find_map(|&lane| hit::row(&view, lane, 0).next().map(|span| (lane, span)));
        if let Some((lane, span)) = first {
            chart.show(Mark::from_view(&view, lane, span));
        }
        return;
    };
    let row = hit::row(&view, mark.lane, mark.row);
    let starts = &view.start_ns[row.clone()];
    let found = match step {
        Step::Next | Step::NextCritical => {
            let at = row.start + starts.partition_point(|&start| start <= mark.start_ns);
            Some((mark.lane, at)).filter(|(_, span)| row.contains(span))
        }
        Step::Previous | Step::PreviousCritical => {
            let at = row.start + starts.partition_point(|&start| start < mark.start_ns);
            at.checked_sub(1).map(|span| (mark.lane, span)).filter(|(_, span)| row.contains(span))
        }
        Step::Up => neighbour(chart, &mark, &view, -1),
        Step::Down => neighbour(chart, &mark, &view, 1),
    };
    if let Some((lane, span)) = found {
        chart.show(Mark::from_view(&view, lane, span));
    }
}

/// Returns the span nearest in time in the next non-empty row, above or below.
fn neighbour(chart: TraceChart, mark: &Mark, view: &api::trace::TraceView, by: i64) -> Option<(u32, usize)> {
    let rows: Vec<(u32, u16)> = chart.detail.with_value(|detail| {
        let lanes = detail.lanes.iter().enumerate();
        lanes.flat_map(|(lane, trace_lane)| (0..trace_lane.rows).map(move |row| (lane as u32, row as u16))).collect()
    });
    let from = rows.iter().position(|&row| row == (mark.lane, mark.row))?;
    let mut at = i64::try_from(from).ok()? + by;
    while let Some(&(lane, row)) = usize::try_from(at).ok().and_then(|at| rows.get(at)) {
        if let Some(span) = hit::nearest(view, lane, row, mark.start_ns as f64, f64::INFINITY) {
            return Some((lane, span));
        }
        at += by;
    }
    None
}

fn wheel(chart: TraceChart, event: &WheelEvent) {
    let unit = match event.delta_mode() {
        WheelEvent::DOM_DELTA_LINE => 16.0,
        WheelEvent::DOM_DELTA_PAGE => 320.0,
        _ => 1.0,
    };
    let (across, down) = (event.delta_x() * unit, event.delta_y() * unit);
    if event.ctrl_key() || event.meta_key() {
        event.prevent_default();
        let about = chart.window.get_untracked().ns_at(f64::from(event.offset_x()) - HEADER, chart.plot());
        let factor = (down.clamp(-80.0, 80.0) * ZOOM_PER_PX).exp();
        chart.change(|window, extent| window.zoomed(about, factor, extent));
    } else if event.shift_key() || across.abs() > down.abs() {
        event.prevent_default();
        pan_px(chart, -if across == 0.0 { down } else { across });
    }
}

fn pan_px(chart: TraceChart, px: f64) {
    let plot = chart.plot();
    chart.change(|window, extent| window.panned(-px / plot * window.width_ns(), extent));
}

fn pressed(chart: TraceChart, event: &PointerEvent) {
    let press = match (event.pointer_type().as_str(), event.button()) {
        ("touch", _) | (_, 1) => Press::Pan,
        (_, 0) if event.shift_key() => Press::Pan,
        (_, 0) => Press::Select,
        _ => return,
    };
    if let Some(canvas) = chart.canvas.get_untracked() {
        // Without pointer capture, a drag ends at the canvas edge. This is acceptable.
        drop(canvas.set_pointer_capture(event.pointer_id()));
    }
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    chart.gesture.update_value(|gesture| gesture.down(event.pointer_id(), x, y, press));
}

fn moved(chart: TraceChart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    match chart.gesture.try_update_value(|gesture| gesture.moved(event.pointer_id(), x, y)) {
        Some(Motion::Hover) => {
            chart.pointer.set(Some((x, y)));
            let over = chart.at(x, y);
            if chart.hover.with_untracked(|hover| *hover != over) {
                chart.hover.set(over);
            }
        }
        Some(Motion::Pan(by)) => pan_px(chart, by),
        Some(Motion::Pinch { factor, about, moved }) => {
            let about = chart.window.get_untracked().ns_at(about - HEADER, chart.plot());
            chart.change(|window, extent| window.zoomed(about, factor, extent));
            pan_px(chart, moved);
        }
        Some(Motion::Undecided | Motion::Band(..)) | None => {}
    }
}

fn released(chart: TraceChart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    match chart.gesture.try_update_value(|gesture| gesture.up(event.pointer_id(), x, y)) {
        Some(Release::Click) => clicked(chart, x, y),
        Some(Release::Band(band) | Release::Stretch(band)) => {
            let plot = chart.plot();
            chart.change(|window, extent| {
                let ns = |x: f64| window.ns_at((x - HEADER).clamp(0.0, plot), plot);
                TimeWindow { start_ns: ns(band.left), end_ns: ns(band.right) }.clamped(extent)
            });
        }
        Some(Release::End) | None => {}
    }
}

fn clicked(chart: TraceChart, x: f64, y: f64) {
    let band = chart.layout.with_untracked(|layout| layout.at(y + chart.scrolled.get_untracked()));
    if let Some(Content::Process(process)) = band.map(|band| band.content) {
        chart.folded.update(|folded| {
            if !folded.remove(&process) {
                folded.insert(process);
            }
        });
        return;
    }
    chart.selected.set(chart.at(x, y));
}

fn left(chart: TraceChart) {
    chart.pointer.set(None);
    chart.hover.set(None);
}
