//! Chart event handlers for pointer, wheel and keyboard.

use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent, WheelEvent};

use super::chart::Chart;
use super::gesture::{Motion, Press, Release};
use super::keys::{Command, Modifiers, command};
use super::layout::Row;
use super::navigation::{
    self, anchor, band_area, band_window, fit, fold, pan_px, pin, rows_height, selected_rank, walk_to, zoom,
};
use super::{Selection, hit, rows, shared, traversal};

/// Height of a scroll line in px, for browsers that report wheel events in lines.
const LINE_PX: f64 = 16.0;
/// Zoom rate per px of wheel movement.
const ZOOM_PER_PX: f64 = 0.005;

/// Handles a key press.
pub(crate) fn key(chart: Chart, event: &KeyboardEvent) {
    let modifiers = Modifiers { ctrl: event.ctrl_key() || event.meta_key(), alt: event.alt_key() };
    let Some(command) = command(&event.key(), modifiers) else { return };
    event.prevent_default();
    // Hides the tooltip during keyboard use, because it would cover the chart.
    chart.pointer.set(None);
    chart.hover.set(None);
    match command {
        Command::Zoom(factor) => zoom(chart, anchor(chart), factor),
        Command::Pan(share) => chart.change(|window, extent| window.panned(window.width_ns() * share, extent)),
        Command::Walk(step) => walk_to(chart, |timeline, selected, window| match selected {
            Some(span) => traversal::step(timeline, span, step),
            None => traversal::first_in(timeline, window),
        }),
        Command::Fit => fit(chart),
        Command::ZoomToSelection => navigation::zoom_to_selection(chart),
        Command::Clear => {
            chart.gesture.update_value(super::gesture::Gesture::cancel);
            chart.band.set(None);
            // The area covers the selection, so it is cleared first.
            if chart.area.get_untracked().is_some() {
                chart.area.set(None);
            } else {
                chart.selection.set(None);
            }
        }
        Command::Search => {
            if let Some(search) = chart.search.get_untracked() {
                // If the element rejects the focus, the focus does not move.
                drop(search.focus());
                search.select();
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
    }
}

/// Handles a wheel event.
///
/// Without a modifier key the page scrolls, unless the chart has the focus and no scrollable rows.
pub(crate) fn wheel(chart: Chart, event: &WheelEvent) {
    let unit = match event.delta_mode() {
        WheelEvent::DOM_DELTA_LINE => LINE_PX,
        WheelEvent::DOM_DELTA_PAGE => LINE_PX * 20.0,
        _ => 1.0,
    };
    let (across, down) = (event.delta_x() * unit, event.delta_y() * unit);
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    let zooms = event.ctrl_key() || event.meta_key();
    let focused = document()
        .active_element()
        .is_some_and(|active| chart.canvas.get_untracked().is_some_and(|canvas| active.is_same_node(Some(&canvas))));
    // Uses the row count instead of the overflow, because a tooltip also overflows.
    let scrolls = chart.layout.with_untracked(|layout| layout.0.len()) > rows::ROWS_WITHOUT_SCROLLING;
    if zooms || (focused && !scrolls && !event.shift_key() && down.abs() >= across.abs()) {
        event.prevent_default();
        let about = chart.visible_window_untracked().ns_at(x - rows::HEADER, chart.plot_width());
        zoom(chart, about, (down.clamp(-80.0, 80.0) * ZOOM_PER_PX).exp());
        point_at(chart, Some((x, y)));
    } else if event.shift_key() || (focused && across.abs() > down.abs()) {
        event.prevent_default();
        // Some browsers convert Shift+wheel to horizontal scrolling.
        let moved = if across == 0.0 { down } else { across };
        pan_px(chart, -moved);
        point_at(chart, Some((x, y)));
    }
}

/// Handles a pointer press.
pub(crate) fn pressed(chart: Chart, event: &PointerEvent) {
    let press = match (event.pointer_type().as_str(), event.button()) {
        ("touch", _) | (_, 1) => Press::Pan,
        (_, 0) if event.shift_key() => Press::Pan,
        (_, 0) if f64::from(event.offset_y()) >= rows_height(chart) => Press::Stretch,
        (_, 0) => Press::Select,
        _ => return,
    };
    if let Some(canvas) = chart.canvas.get_untracked() {
        // If pointer capture fails, a drag ends at the canvas edge.
        drop(canvas.set_pointer_capture(event.pointer_id()));
    }
    chart.gesture.update_value(|gesture| {
        gesture.down(event.pointer_id(), f64::from(event.offset_x()), f64::from(event.offset_y()), press);
    });
}

/// Handles a pointer movement.
pub(crate) fn moved(chart: Chart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    let motion = chart.gesture.try_update_value(|gesture| gesture.moved(event.pointer_id(), x, y));
    match motion {
        None | Some(Motion::Undecided) => {}
        Some(Motion::Hover) => point_at(chart, Some((x, y))),
        Some(Motion::Band(band)) => {
            chart.band.set(Some(band));
            point_at(chart, None);
        }
        Some(Motion::Pan(by)) => {
            pan_px(chart, by);
            point_at(chart, None);
        }
        Some(Motion::Pinch { factor, about, moved }) => {
            let about = chart.visible_window_untracked().ns_at(about - rows::HEADER, chart.plot_width());
            zoom(chart, about, factor);
            pan_px(chart, moved);
        }
    }
}

/// Handles a pointer release.
pub(crate) fn released(chart: Chart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    chart.band.set(None);
    match chart.gesture.try_update_value(|gesture| gesture.up(event.pointer_id(), x, y)) {
        Some(Release::Click) if x < rows::HEADER => clicked_header(chart, x, y),
        Some(Release::Click) => {
            let span = span_at(chart, x, y);
            chart.selection.set(span.map(|span| Selection { chart: chart.number, span }));
            chart.area.set(None);
        }
        Some(Release::Band(band)) => chart.area.set(band_area(chart, band)),
        Some(Release::Stretch(band)) => {
            let window = band_window(chart, band);
            chart.change(|_, extent| window.clamped(extent));
        }
        Some(Release::End) | None => {}
    }
}

/// Handles a click on a row header: the fold marker toggles the fold, and the remaining area
/// toggles the pin.
fn clicked_header(chart: Chart, x: f64, y: f64) {
    let scrolled = chart.scrolled.get_untracked();
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
    chart.gesture.update_value(super::gesture::Gesture::cancel);
    chart.band.set(None);
    point_at(chart, None);
}

/// Handles the pointer leaving the chart.
pub(crate) fn left(chart: Chart) {
    point_at(chart, None);
}

/// Handles scrolling of the rows.
pub(crate) fn scrolled(chart: Chart) {
    if let Some(scroller) = chart.scroller.get_untracked() {
        chart.scrolled.set(f64::from(scroller.scroll_top()));
    }
}

fn span_at(chart: Chart, x: f64, y: f64) -> Option<usize> {
    let (_, height) = chart.size.get_untracked();
    if x < rows::HEADER || y >= height - rows::AXIS {
        return None;
    }
    let timeline = chart.timeline.get_untracked()?;
    let scrolled = chart.scrolled.get_untracked();
    let (row, lane) = chart.layout.with_untracked(|layout| {
        let (row, lane) = layout.0.at(y, scrolled)?;
        Some((layout.0.row(row)?.clone(), lane))
    })?;
    // A folded row contains several ranks, so no single span is under the pointer.
    let Row::Rank(rank) = row else { return None };
    let window = chart.visible_window_untracked();
    hit::span_at(&timeline, window, chart.plot_width(), x - rows::HEADER, (rank as usize, lane))
}

/// Moves cursor, hover and tooltip to a canvas position, or hides them.
fn point_at(chart: Chart, point: Option<(f64, f64)>) {
    let over = point.and_then(|(x, y)| span_at(chart, x, y)).map(|span| Selection { chart: chart.number, span });
    if chart.hover.get_untracked() != over {
        chart.hover.set(over);
    }
    let plot = chart.plot_width();
    let cursor = point
        .map(|(x, _)| x - rows::HEADER)
        .filter(|x| (0.0..=plot).contains(x))
        .map(|x| chart.visible_window_untracked().ns_at(x, plot));
    chart.set_cursor(cursor);
    chart.pointer.set(point.filter(|_| over.is_some()));
}
