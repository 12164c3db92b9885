//! Viewer component: markup around the canvas, and pointer, wheel and keyboard handling.

use std::sync::Arc;

use api::trace::{SliceKind, TraceDetail};
use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent};

use super::chart::{Mark, TraceChart};
use super::hit;
use super::layout::{Content, lane_name};
use super::paint::AXIS;
use super::palette::{LEGEND, colours};
use super::search::SearchBar;
use super::selection::SelectionPanel;
use super::span_text::{spoken, times, title};
use crate::format;
use crate::gantt::gesture::{Motion, Release};
use crate::gantt::keys::{Command, Modifiers, command};
use crate::gantt::observers::{theme, theme_version};
use crate::gantt::surface::{self, Surface, WheelMode, tooltip_style};
use crate::gantt::{Step, time_text};
use crate::notice::ErrorNotice;

/// Largest size of the tooltip in px.
const TOOLTIP_EXTENT: (f64, f64) = (276.0, 90.0);

/// Trace chart with search and selection.
#[component]
pub(crate) fn Viewer(detail: Arc<TraceDetail>) -> impl IntoView {
    let chart = TraceChart::new(Arc::clone(&detail));
    chart.viewport.track_size();
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
            <div class="gantt-scroll trace-scroll" node_ref=chart.viewport.scroller tabindex="-1" on:scroll=move |_| chart.viewport.read_scroll()>
                <div class="gantt-rows" style:height=rows>
                    <div class="gantt-stage trace-stage" style:height=rows>
                        <canvas
                            class="gantt-canvas"
                            data-testid="trace-canvas"
                            node_ref=chart.viewport.canvas
                            tabindex="0"
                            role="application"
                            aria-roledescription="Gantt chart"
                            aria-label=label
                            aria-describedby="trace-spoken"
                            aria-busy=move || chart.view.with(Option::is_none).to_string()
                            on:keydown=move |event| key(chart, &event)
                            on:wheel=move |event| {
                                // The hover follows at the next movement of the pointer.
                                let _moved = surface::wheel(chart, &event, WheelMode::ScrollRows);
                            }
                            on:pointerdown=move |event| surface::pressed(chart, &event, f64::INFINITY)
                            on:pointermove=move |event| moved(chart, &event)
                            on:pointerup=move |event| released(chart, &event)
                            on:pointercancel=move |_| left(chart)
                            on:pointerleave=move |_| left(chart)
                            on:dblclick=move |_| chart.fit()
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
        Some(view) if view.merged_ns == 0 => "Every slice in view is drawn.".to_owned(),
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
        tooltip_style(chart.viewport.pointer.get().unwrap_or_default(), chart.viewport.size.get(), TOOLTIP_EXTENT)
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
        <Show when=move || chart.hover.with(Option::is_some) && chart.viewport.pointer.with(Option::is_some)>
            <div class="gantt-tooltip" data-testid="trace-tooltip" aria-hidden="true" style=position_style>{content}</div>
        </Show>
    }
}

fn key(chart: TraceChart, event: &KeyboardEvent) {
    let modifiers = Modifiers { ctrl: event.ctrl_key() || event.meta_key(), alt: event.alt_key() };
    let Some(command) = command(&event.key(), modifiers) else { return };
    // Traces have no critical path, areas or pins. The browser handles these keys.
    if matches!(command, Command::ToggleCritical | Command::Area | Command::Pin) {
        return;
    }
    event.prevent_default();
    let Some(command) = surface::navigate(chart, command, || anchor(chart)) else { return };
    match command {
        Command::Clear => chart.selected.set(None),
        Command::ZoomToSelection => chart.zoom_to_selection(),
        Command::Walk(step) => walk(chart, step),
        Command::Fold => fold(chart),
        Command::Zoom(_)
        | Command::Pan(_)
        | Command::Fit
        | Command::Search
        | Command::ToggleCritical
        | Command::Area
        | Command::Pin => {}
    }
}

/// Fixed time of a keyboard zoom: the pointer position, else the start of the selection, else the
/// centre.
fn anchor(chart: TraceChart) -> f64 {
    let window = chart.visible();
    let inside = |ns: &f64| *ns > window.start_ns && *ns < window.end_ns;
    let selected = || chart.selected.with_untracked(|mark| mark.as_ref().map(|mark| mark.start_ns as f64));
    let pointer = chart.viewport.pointer.get_untracked().map(|(x, _)| chart.ns_at(x));
    pointer.or_else(|| selected().filter(inside)).unwrap_or_else(|| window.centre_ns())
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

fn moved(chart: TraceChart, event: &PointerEvent) {
    if surface::moved(chart, event) == Some(Motion::Hover) {
        let (x, y) = surface::position(event);
        chart.viewport.pointer.set(Some((x, y)));
        let over = chart.at(x, y);
        if chart.hover.with_untracked(|hover| *hover != over) {
            chart.hover.set(over);
        }
    }
}

fn released(chart: TraceChart, event: &PointerEvent) {
    let (x, y) = surface::position(event);
    match surface::released(chart, event) {
        Some(Release::Click) => clicked(chart, x, y),
        Some(Release::Band(band) | Release::Stretch(band)) => {
            let window = chart.band_window(band);
            chart.change(|_, extent| window.clamped(extent));
        }
        Some(Release::End) | None => {}
    }
}

fn clicked(chart: TraceChart, x: f64, y: f64) {
    let band = chart.layout.with_untracked(|layout| layout.at(y + chart.viewport.scrolled.get_untracked()));
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
    chart.viewport.pointer.set(None);
    chart.hover.set(None);
}
