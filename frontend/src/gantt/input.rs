//! Chart event handlers for pointer, wheel and keyboard.

use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent, WheelEvent};

use super::chart::Chart;
use super::gesture::{Motion, Release};
use super::keys::{Command, Modifiers, command};
use super::layout::Row;
use super::navigation::{self, anchor, band_area, fold, pin, rows_height, selected_rank, walk_to};
use super::surface::{self, Surface, WheelMode};
use super::{Selection, hit, rows, shared, traversal};

/// Handles a key press.
pub(crate) fn key(chart: Chart, event: &KeyboardEvent) {
    let modifiers = Modifiers { ctrl: event.ctrl_key() || event.meta_key(), alt: event.alt_key() };
    let Some(command) = command(&event.key(), modifiers) else { return };
    event.prevent_default();
    // Hides the tooltip during keyboard use, because it would cover the chart.
    chart.viewport.pointer.set(None);
    chart.hover.set(None);
    let Some(command) = surface::navigate(chart, command, || anchor(chart)) else { return };
    match command {
        Command::Walk(step) => walk_to(chart, |timeline, selected, window| match selected {
            Some(span) => traversal::step(timeline, span, step),
            None => traversal::first_in(timeline, window),
        }),
        Command::ZoomToSelection => navigation::zoom_to_selection(chart),
        Command::Clear => {
            chart.viewport.gesture.update_value(super::gesture::Gesture::cancel);
            chart.band.set(None);
            // The area covers the selection, so it is cleared first.
            if chart.area.get_untracked().is_some() {
                chart.area.set(None);
            } else {
                chart.selection.set(None);
            }
        }
        Command::Area => navigation::reach_area(chart),
        Command::Pin => {
            if let Some(rank) = selected_rank(chart) {
                pin(chart, rank);
            }
        }
        Command::Fold => match selected_rank(chart) {
            Some(rank) => fold(chart, rank),
            None => navigation::fold_all(chart),
        },
        Command::ToggleCritical => shared::critical_is_marked().update(|marked| *marked = !*marked),
        Command::Zoom(_) | Command::Pan(_) | Command::Fit | Command::Search => {}
    }
}

/// Handles a wheel event.
///
/// Without a modifier key the page scrolls, unless the chart has the focus and no scrollable rows.
pub(crate) fn wheel(chart: Chart, event: &WheelEvent) {
    // Uses the row count instead of the overflow, because a tooltip also overflows.
    let scrolls = chart.layout.with_untracked(|layout| layout.0.len()) > rows::ROWS_WITHOUT_SCROLLING;
    let mode = match (chart.viewport.has_focus(), scrolls) {
        (false, _) => WheelMode::Page,
        (true, true) => WheelMode::ScrollRows,
        (true, false) => WheelMode::Zoom,
    };
    if surface::wheel(chart, event, mode) {
        point_at(chart, Some((f64::from(event.offset_x()), f64::from(event.offset_y()))));
    }
}

/// Handles a pointer press.
pub(crate) fn pressed(chart: Chart, event: &PointerEvent) {
    surface::pressed(chart, event, rows_height(chart));
}

/// Handles a pointer movement.
pub(crate) fn moved(chart: Chart, event: &PointerEvent) {
    match surface::moved(chart, event) {
        None | Some(Motion::Undecided | Motion::Pinch { .. }) => {}
        Some(Motion::Hover) => point_at(chart, Some(surface::position(event))),
        Some(Motion::Band(band)) => {
            chart.band.set(Some(band));
            point_at(chart, None);
        }
        Some(Motion::Pan(_)) => point_at(chart, None),
    }
}

/// Handles a pointer release.
pub(crate) fn released(chart: Chart, event: &PointerEvent) {
    let (x, y) = surface::position(event);
    chart.band.set(None);
    match surface::released(chart, event) {
        Some(Release::Click) if x < rows::HEADER => clicked_header(chart, x, y),
        Some(Release::Click) => {
            let span = span_at(chart, x, y);
            chart.selection.set(span.map(|span| Selection { chart: chart.number, span }));
            chart.area.set(None);
        }
        Some(Release::Band(band)) => chart.area.set(band_area(chart, band)),
        Some(Release::Stretch(band)) => {
            let window = chart.band_window(band);
            chart.change(|_, extent| window.clamped(extent));
        }
        Some(Release::End) | None => {}
    }
}

/// Handles a click on a row header: the fold marker toggles the fold, and the remaining area
/// toggles the pin.
fn clicked_header(chart: Chart, x: f64, y: f64) {
    let scrolled = chart.viewport.scrolled.get_untracked();
    let row = chart.layout.with_untracked(|layout| {
        let (row, _) = layout.0.at(y, scrolled)?;
        layout.0.row(row).cloned()
    });
    let folds = chart.groups.with_untracked(|groups| !groups.is_empty());
    match row {
        Some(Row::Fold(ranks)) => fold(chart, ranks.start as usize),
        Some(Row::Rank(rank)) if folds && x < rows::HEADER / 2.0 => fold(chart, rank as usize),
        Some(Row::Rank(rank)) => pin(chart, rank as usize),
        None => {}
    }
}

/// Handles a `pointercancel` event.
pub(crate) fn cancelled(chart: Chart) {
    chart.viewport.gesture.update_value(super::gesture::Gesture::cancel);
    chart.band.set(None);
    point_at(chart, None);
}

/// Handles the pointer leaving the chart.
pub(crate) fn left(chart: Chart) {
    point_at(chart, None);
}

fn span_at(chart: Chart, x: f64, y: f64) -> Option<usize> {
    let (_, height) = chart.viewport.size.get_untracked();
    if x < rows::HEADER || y >= height - rows::AXIS {
        return None;
    }
    let timeline = chart.timeline.get_untracked()?;
    let scrolled = chart.viewport.scrolled.get_untracked();
    let (row, lane) = chart.layout.with_untracked(|layout| {
        let (row, lane) = layout.0.at(y, scrolled)?;
        Some((layout.0.row(row)?.clone(), lane))
    })?;
    // A folded row contains several ranks, so no single span is under the pointer.
    let Row::Rank(rank) = row else { return None };
    let window = chart.visible();
    hit::span_at(&timeline, window, chart.plot_px(), x - rows::HEADER, (rank as usize, lane))
}

/// Moves cursor, hover and tooltip to a canvas position, or hides them.
fn point_at(chart: Chart, point: Option<(f64, f64)>) {
    let over = point.and_then(|(x, y)| span_at(chart, x, y)).map(|span| Selection { chart: chart.number, span });
    if chart.hover.get_untracked() != over {
        chart.hover.set(over);
    }
    let plot = chart.plot_px();
    let cursor = point
        .map(|(x, _)| x - rows::HEADER)
        .filter(|x| (0.0..=plot).contains(x))
        .map(|x| chart.visible().ns_at(x, plot));
    chart.set_cursor(cursor);
    chart.viewport.pointer.set(point.filter(|_| over.is_some()));
}
