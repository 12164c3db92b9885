//! Events of a chart: what the pointer, the wheel and the keys do to window and selection.

use api::planner::timeline::Timeline;
use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent, WheelEvent};

use super::chart::Chart;
use super::gesture::{Motion, Press, Release};
use super::keys::{Command, Held, command};
use super::{Selection, TimeWindow, hit, rows, shared, walk};

/// Wheel events count lines in some browsers; one of them is this many px.
const LINE_PX: f64 = 16.0;
/// Growth of the window per px of wheel.
const ZOOM_PER_PX: f64 = 0.005;

/// A key was pressed.
pub(crate) fn key(chart: Chart, event: &KeyboardEvent) {
    let held = Held { ctrl: event.ctrl_key() || event.meta_key(), alt: event.alt_key() };
    let Some(command) = command(&event.key(), held) else { return };
    event.prevent_default();
    // The pointer rests while keys are used; its box would stand in the way.
    chart.pointer.set(None);
    chart.hover.set(None);
    match command {
        Command::Zoom(factor) => zoom(chart, anchor(chart), factor),
        Command::Pan(share) => change(chart, |window, extent| window.panned(window.width_ns() * share, extent)),
        Command::Walk(step) => walk_to(chart, |timeline, selected, window| match selected {
            Some(span) => walk::step(timeline, span, step),
            None => walk::first_in(timeline, window),
        }),
        Command::Fit => fit(chart),
        Command::ZoomToSelection => zoom_to_selection(chart),
        Command::Clear => {
            chart.gesture.update_value(super::gesture::Gesture::cancel);
            chart.band.set(None);
            chart.selection.set(None);
        }
        Command::ToggleCritical => shared::critical_is_marked().update(|marked| *marked = !*marked),
    }
}

/// The wheel was turned.
///
/// Without a modifier it belongs to the page, unless the chart has the focus and does not scroll itself.
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
    // By the rows, not by the overflow: a tooltip overflows too.
    let ranks = chart.timeline.with_untracked(|timeline| timeline.as_ref().map_or(0, |timeline| timeline.ranks));
    let scrolls = ranks as usize > rows::ROWS_WITHOUT_SCROLLING;
    if zooms || (focused && !scrolls && !event.shift_key() && down.abs() >= across.abs()) {
        event.prevent_default();
        let about = chart.window.get_untracked().ns_at(x - rows::HEADER, chart.plot_width());
        zoom(chart, about, (down.clamp(-80.0, 80.0) * ZOOM_PER_PX).exp());
        point_at(chart, Some((x, y)));
    } else if event.shift_key() || (focused && across.abs() > down.abs()) {
        event.prevent_default();
        // Browsers turn Shift+wheel into a horizontal one, some of them.
        let moved = if across == 0.0 { down } else { across };
        pan_px(chart, -moved);
        point_at(chart, Some((x, y)));
    }
}

/// A pointer was pressed.
pub(crate) fn pressed(chart: Chart, event: &PointerEvent) {
    let press = match (event.pointer_type().as_str(), event.button()) {
        ("touch", _) | (_, 1) => Press::Pan,
        (_, 0) if event.shift_key() => Press::Pan,
        (_, 0) => Press::Select,
        _ => return,
    };
    if let Some(canvas) = chart.canvas.get_untracked() {
        // Without capture a drag ends at the edge of the canvas, which is no fault.
        drop(canvas.set_pointer_capture(event.pointer_id()));
    }
    chart.gesture.update_value(|gesture| {
        gesture.down(event.pointer_id(), f64::from(event.offset_x()), f64::from(event.offset_y()), press);
    });
}

/// A pointer moved.
pub(crate) fn moved(chart: Chart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    let motion = chart.gesture.try_update_value(|gesture| gesture.moved(event.pointer_id(), x, y));
    match motion {
        None | Some(Motion::Undecided) => {}
        Some(Motion::Hover) => point_at(chart, Some((x, y))),
        Some(Motion::Band(from, to)) => {
            chart.band.set(Some((from - rows::HEADER, to - rows::HEADER)));
            point_at(chart, None);
        }
        Some(Motion::Pan(by)) => {
            pan_px(chart, by);
            point_at(chart, None);
        }
        Some(Motion::Pinch { factor, about, moved }) => {
            let about = chart.window.get_untracked().ns_at(about - rows::HEADER, chart.plot_width());
            zoom(chart, about, factor);
            pan_px(chart, moved);
        }
    }
}

/// A pointer was released.
pub(crate) fn released(chart: Chart, event: &PointerEvent) {
    let (x, y) = (f64::from(event.offset_x()), f64::from(event.offset_y()));
    chart.band.set(None);
    match chart.gesture.try_update_value(|gesture| gesture.up(event.pointer_id(), x)) {
        Some(Release::Click) => {
            let span = span_at(chart, x, y);
            chart.selection.set(span.map(|span| Selection { chart: chart.number, span }));
        }
        Some(Release::Band(from, to)) => {
            let plot = chart.plot_width();
            change(chart, |window, extent| {
                let ns = |x: f64| window.ns_at((x - rows::HEADER).clamp(0.0, plot), plot);
                TimeWindow { start_ns: ns(from), end_ns: ns(to) }.clamped(extent)
            });
        }
        Some(Release::End) | None => {}
    }
}

/// The browser took the pointers away.
pub(crate) fn cancelled(chart: Chart) {
    chart.gesture.update_value(super::gesture::Gesture::cancel);
    chart.band.set(None);
    point_at(chart, None);
}

/// The pointer left the chart.
pub(crate) fn left(chart: Chart) {
    point_at(chart, None);
}

/// Everything is to be shown.
pub(crate) fn fit(chart: Chart) {
    change(chart, |_, extent| TimeWindow::fit(extent));
}

/// The rows were scrolled.
pub(crate) fn scrolled(chart: Chart) {
    if let Some(scroller) = chart.scroller.get_untracked() {
        chart.scrolled.set(f64::from(scroller.scroll_top()));
    }
}

/// Selects a span and moves window and rows so that it is seen.
pub(crate) fn show(chart: Chart, span: usize) {
    let Some(timeline) = chart.timeline.get_untracked() else { return };
    if span >= timeline.len() {
        return;
    }
    chart.selection.set(Some(Selection { chart: chart.number, span }));
    let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
    change(chart, |window, extent| window.revealing(start, end, extent));
    if let Some(scroller) = chart.scroller.get_untracked() {
        let top = rows::top(timeline.rank_of(span));
        let (from, height) = (f64::from(scroller.scroll_top()), f64::from(scroller.client_height()) - rows::AXIS);
        let wanted = from.clamp((top + rows::ROW - height).max(0.0), top.max((top + rows::ROW - height).max(0.0)));
        if (wanted - from).abs() >= 1.0 {
            scroller.set_scroll_top(wanted as i32);
        }
    }
}

fn change(chart: Chart, to: impl FnOnce(TimeWindow, u64) -> TimeWindow) {
    let before = chart.window.get_untracked();
    let after = to(before, chart.extent_ns.get_untracked());
    if after != before {
        chart.window.set(after);
    }
}

fn zoom(chart: Chart, about_ns: f64, factor: f64) {
    change(chart, |window, extent| window.zoomed(about_ns, factor, extent));
}

fn pan_px(chart: Chart, px: f64) {
    let plot = chart.plot_width();
    change(chart, |window, extent| window.panned(-px / plot * window.width_ns(), extent));
}

/// The time that a key zooms about: under the pointer, else the selection, else the middle.
fn anchor(chart: Chart) -> f64 {
    let window = chart.window.get_untracked();
    let inside = |ns: &f64| *ns >= window.start_ns && *ns <= window.end_ns;
    let selected = || {
        let span = untrack(|| chart.selected())?;
        chart.timeline.get_untracked().and_then(|timeline| Some(*timeline.start_ns.get(span)? as f64))
    };
    shared::cursor_ns()
        .get_untracked()
        .filter(inside)
        .or_else(|| selected().filter(inside))
        .unwrap_or_else(|| window.centre_ns())
}

fn zoom_to_selection(chart: Chart) {
    let (Some(span), Some(timeline)) = (untrack(|| chart.selected()), chart.timeline.get_untracked()) else { return };
    if span < timeline.len() {
        let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
        change(chart, |_, extent| TimeWindow::around(start, end, extent));
    }
}

fn walk_to(chart: Chart, to: impl FnOnce(&Timeline, Option<usize>, TimeWindow) -> Option<usize>) {
    let Some(timeline) = chart.timeline.get_untracked() else { return };
    let selected = untrack(|| chart.selected()).filter(|&span| span < timeline.len());
    if let Some(span) = to(&timeline, selected, chart.window.get_untracked()) {
        show(chart, span);
    }
}

fn span_at(chart: Chart, x: f64, y: f64) -> Option<usize> {
    let (_, height) = chart.size.get_untracked();
    if x < rows::HEADER || y >= height - rows::AXIS {
        return None;
    }
    let timeline = chart.timeline.get_untracked()?;
    let (window, scrolled) = (chart.window.get_untracked(), chart.scrolled.get_untracked());
    hit::span_at(&timeline, window, chart.plot_width(), x - rows::HEADER, y + scrolled)
}

/// Moves cursor, hover and tooltip to a point of the canvas, or takes them away.
fn point_at(chart: Chart, point: Option<(f64, f64)>) {
    let over = point.and_then(|(x, y)| span_at(chart, x, y)).map(|span| Selection { chart: chart.number, span });
    if chart.hover.get_untracked() != over {
        chart.hover.set(over);
    }
    let plot = chart.plot_width();
    let cursor = point
        .map(|(x, _)| x - rows::HEADER)
        .filter(|x| (0.0..=plot).contains(x))
        .map(|x| chart.window.get_untracked().ns_at(x, plot));
    shared::cursor_ns().set(cursor);
    chart.pointer.set(point.filter(|_| over.is_some()));
}
