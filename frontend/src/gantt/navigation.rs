//! Chart actions for pointer, keyboard and buttons: move the window, select, fold, pin.

use api::planner::timeline::Timeline;
use leptos::prelude::*;

use super::area::Area;
use super::chart::Chart;
use super::gesture::Band;
use super::layout::Row;
use super::surface::Surface;
use super::{Selection, TimeWindow, rows};

/// Selects a span and makes it visible.
pub(crate) fn show(chart: Chart, span: usize) {
    let Some(timeline) = chart.timeline.get_untracked() else { return };
    if span >= timeline.len() {
        return;
    }
    chart.selection.set(Some(Selection { chart: chart.number, span }));
    let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
    chart.change(|window, extent| window.revealing(start, end, extent));
    let rank = timeline.span_rank(span);
    let row = chart.layout.with_untracked(|layout| layout.0.row(layout.0.row_index(rank)).cloned());
    if matches!(row, Some(Row::Fold(_))) {
        fold(chart, rank);
    }
    chart.viewport.scroll_to(rows::AXIS, |from, height| {
        chart.layout.with_untracked(|layout| layout.0.revealing(layout.0.row_index(rank), from, height))
    });
}

/// Fixed time of a keyboard zoom: the pointer position, else the selection, else the centre.
pub(super) fn anchor(chart: Chart) -> f64 {
    let window = chart.visible();
    let inside = |ns: &f64| *ns >= window.start_ns && *ns <= window.end_ns;
    let selected = || {
        let span = untrack(|| chart.selected())?;
        chart.timeline.get_untracked().and_then(|timeline| Some(*timeline.start_ns.get(span)? as f64))
    };
    chart.cursor_ns().filter(inside).or_else(|| selected().filter(inside)).unwrap_or_else(|| window.centre_ns())
}

/// Zooms to the selected area, or else to the selected span.
pub(crate) fn zoom_to_selection(chart: Chart) {
    if let Some(area) = chart.area.get_untracked() {
        chart.change(|_, extent| area.window.clamped(extent));
        return;
    }
    let (Some(span), Some(timeline)) = (untrack(|| chart.selected()), chart.timeline.get_untracked()) else { return };
    if span < timeline.len() {
        let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
        chart.change(|_, extent| TimeWindow::around(start, end, extent));
    }
}

/// Selects the span that `to` returns for the selected span.
pub(super) fn walk_to(chart: Chart, to: impl FnOnce(&Timeline, Option<usize>, TimeWindow) -> Option<usize>) {
    let Some(timeline) = chart.timeline.get_untracked() else { return };
    let selected = untrack(|| chart.selected()).filter(|&span| span < timeline.len());
    if let Some(span) = to(&timeline, selected, chart.visible()) {
        show(chart, span);
    }
}

/// Area under a selection rectangle, with full rows.
pub(super) fn band_area(chart: Chart, band: Band) -> Option<Area> {
    let scrolled = chart.viewport.scrolled.get_untracked();
    let height = rows_height(chart);
    chart.layout.with_untracked(|layout| {
        let row = |y: f64| layout.0.at(y.clamp(0.0, height - 1.0), scrolled).map(|(row, _)| row);
        let (first, last) = (row(band.top)?, row(band.bottom)?);
        let under = |row: &usize| layout.0.is_seen(*row, scrolled);
        let mut ranks: Vec<usize> =
            (first..=last).filter(under).filter_map(|row| layout.0.row(row)).flat_map(Row::ranks).collect();
        ranks.sort_unstable();
        Some(Area { window: chart.band_window(band), ranks })
    })
}

/// Extends the selected area to the time range of the selected span, on all ranks.
pub(super) fn reach_area(chart: Chart) {
    let (Some(span), Some(timeline)) = (untrack(|| chart.selected()), chart.timeline.get_untracked()) else { return };
    if span >= timeline.len() {
        return;
    }
    let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
    let before = chart.area.get_untracked();
    let window = before.map_or(TimeWindow { start_ns: start, end_ns: end }, |area| TimeWindow {
        start_ns: area.window.start_ns.min(start),
        end_ns: area.window.end_ns.max(end),
    });
    chart.area.set(Some(Area { window, ranks: (0..timeline.ranks as usize).collect() }));
}

pub(super) fn selected_rank(chart: Chart) -> Option<usize> {
    let span = untrack(|| chart.selected())?;
    chart.timeline.with_untracked(|timeline| {
        timeline.as_ref().filter(|timeline| span < timeline.len()).map(|timeline| timeline.span_rank(span))
    })
}

/// Pins or unpins a rank.
pub(crate) fn pin(chart: Chart, rank: usize) {
    let rank = rank as u32;
    chart.arrangement.update(|arrangement| {
        if !arrangement.pinned.remove(&rank) {
            arrangement.pinned.insert(rank);
        }
    });
}

/// Folds or unfolds a rank's group.
pub(crate) fn fold(chart: Chart, rank: usize) {
    let group = chart
        .groups
        .with_untracked(|groups| groups.iter().find(|group| group.contains(&(rank as u32))).map(|group| group.start));
    if let Some(group) = group {
        chart.arrangement.update(|arrangement| {
            if !arrangement.folded.remove(&group) {
                arrangement.folded.insert(group);
            }
        });
    }
}

/// Folds all groups, or unfolds them if all are folded.
pub(crate) fn fold_all(chart: Chart) {
    let groups = chart.groups.with_untracked(|groups| groups.iter().map(|group| group.start).collect());
    chart.arrangement.update(|arrangement| {
        arrangement.folded = if arrangement.folded == groups { std::collections::BTreeSet::new() } else { groups };
    });
}

/// Row area height in px, excluding the axis.
pub(super) fn rows_height(chart: Chart) -> f64 {
    chart.viewport.size.get_untracked().1 - rows::AXIS
}
