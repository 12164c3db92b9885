//! Paints time cursor, span outlines, dependency arrows and selection rectangle.
//!
//! The overlay is a separate canvas above the bars, so pointer movements do not repaint the bars.

use api::planner::timeline::{NO_SPAN, SpanKind, Timeline};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::area::Area;
use super::gesture::Band;
use super::layout::Row;
use super::rows::{self, Lane};
use super::scene::Scene;
use super::style::{Chrome, Style};
use super::time_text;

/// Maximum number of arrows to dependent spans. A larger number would hide the chart.
const MAX_ARROWS: usize = 16;

/// Markers on the overlay.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Marks {
    pub(crate) selected: Option<usize>,
    pub(crate) hovered: Option<usize>,
    /// Time under the pointer.
    pub(crate) cursor_ns: Option<f64>,
    /// Selection rectangle during a drag, in canvas px.
    pub(crate) band: Option<Band>,
    pub(crate) area: Option<Area>,
}

/// Paints the markers over a scene.
pub(crate) fn paint(canvas: &HtmlCanvasElement, scene: Scene<'_>, marks: Marks, style: &Style) {
    let Some(context) = scene.size.prepare(canvas) else { return };
    let chrome = &style.chrome;
    context.set_font(&style.axis_font);
    context.save();
    context.begin_path();
    context.rect(rows::HEADER - 2.0, 0.0, scene.size.plot() + 4.0, scene.size.rows());
    context.clip();
    if let Some(ns) = marks.cursor_ns.filter(|_| marks.band.is_none()) {
        cursor(&context, &scene, ns, chrome);
    }
    if let Some(area) = marks.area.as_ref().filter(|_| marks.band.is_none()) {
        selected_area(&context, &scene, area, chrome);
    }
    if let Some(timeline) = scene.timeline() {
        if let Some(span) = marks.hovered.filter(|_| marks.hovered != marks.selected) {
            outline(&context, &scene, (timeline, span), &chrome.ink, 1.0);
        }
        if let Some(span) = marks.selected {
            for later in waiting_for(timeline, span) {
                arrow(&context, &scene, timeline, (span, later), (chrome, 0.5));
            }
            if let Some(bound) = timeline.bound_by.get(span).copied().filter(|&bound| bound != NO_SPAN) {
                arrow(&context, &scene, timeline, (bound as usize, span), (chrome, 1.0));
            }
            outline(&context, &scene, (timeline, span), &chrome.panel, 4.0);
            outline(&context, &scene, (timeline, span), &chrome.accent, 2.0);
        }
    }
    if let Some(dragged) = marks.band {
        band(&context, &scene, dragged, chrome);
    }
    context.restore();
}

/// First spans on other lanes whose start was bound by the end of this span.
fn waiting_for(timeline: &Timeline, span: usize) -> Vec<usize> {
    let bound = timeline.bound_by.iter().enumerate();
    let waiting = bound.filter(|&(later, &bound)| bound as usize == span && later != span + 1);
    waiting.map(|(later, _)| later).take(MAX_ARROWS).collect()
}

/// Left, top, width and height on the canvas. The minimum width is 3 px for visibility.
pub(crate) fn span_box(scene: &Scene<'_>, timeline: &Timeline, span: usize) -> (f64, f64, f64, f64) {
    let (from, to) = (scene.x(timeline.start_ns[span] as f64), scene.x(timeline.end_ns(span) as f64));
    let computes = SpanKind::from_index(timeline.kind[span]).is_some_and(SpanKind::is_compute_lane);
    let row = scene.layout.row_index(timeline.span_rank(span));
    let (top, height) = match scene.layout.row(row) {
        Some(Row::Fold(_)) => (0.0, rows::ROW - 1.0),
        _ => rows::lane_box(if computes { Lane::Compute } else { Lane::Communication }),
    };
    (from, scene.y(row) + top, (to - from).max(3.0), height)
}

fn outline(
    context: &CanvasRenderingContext2d,
    scene: &Scene<'_>,
    (timeline, span): (&Timeline, usize),
    colour: &str,
    strength: f64,
) {
    let (left, top, width, height) = span_box(scene, timeline, span);
    context.set_stroke_style_str(colour);
    context.set_line_width(strength);
    context.stroke_rect(left, top, width, height);
}

fn cursor(context: &CanvasRenderingContext2d, scene: &Scene<'_>, ns: f64, chrome: &Chrome) {
    let window = scene.window;
    if ns < window.start_ns || ns > window.end_ns {
        return;
    }
    context.set_global_alpha(0.5);
    context.set_fill_style_str(&chrome.ink);
    context.fill_rect(scene.x(ns), 0.0, 1.0, scene.size.rows());
    context.set_global_alpha(1.0);
}

/// Draws an arrow from the end of a span to the start of a dependent span.
fn arrow(
    context: &CanvasRenderingContext2d,
    scene: &Scene<'_>,
    timeline: &Timeline,
    (from, to): (usize, usize),
    (chrome, strength): (&Chrome, f64),
) {
    if from >= timeline.len() || to >= timeline.len() {
        return;
    }
    let (left, top, width, height) = span_box(scene, timeline, from);
    let (to_left, to_top, _, to_height) = span_box(scene, timeline, to);
    let (from_x, from_y) = (left + width, top + height / 2.0);
    let (to_x, to_y) = (to_left, to_top + to_height / 2.0);
    if (from_y - to_y).abs() < 1.0 && to_x - from_x < 6.0 {
        // The spans are adjacent, and an arrow with zero length is useless.
        return;
    }
    let bend = ((to_x - from_x).abs() / 2.0).clamp(8.0, 40.0);
    let path = || {
        context.begin_path();
        context.move_to(from_x, from_y);
        context.bezier_curve_to(from_x + bend, from_y, to_x - bend, to_y, to_x - 3.0, to_y);
        context.stroke();
    };
    context.set_global_alpha(strength);
    context.set_stroke_style_str(&chrome.panel);
    context.set_line_width(4.0);
    path();
    context.set_stroke_style_str(&chrome.ink);
    context.set_line_width(1.5);
    path();
    context.set_fill_style_str(&chrome.ink);
    context.begin_path();
    context.move_to(to_x, to_y);
    context.line_to(to_x - 7.0, to_y - 4.0);
    context.line_to(to_x - 7.0, to_y + 4.0);
    context.close_path();
    context.fill();
    context.set_global_alpha(1.0);
}

/// Canvas top and bottom of the rows that contain `ranks`.
fn row_range(scene: &Scene<'_>, ranks: &[usize]) -> Option<(f64, f64)> {
    let places = ranks.iter().map(|&rank| scene.y(scene.layout.row_index(rank)));
    let (top, last) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    top.is_finite().then_some((top, last + rows::ROW - 1.0))
}

fn selected_area(context: &CanvasRenderingContext2d, scene: &Scene<'_>, area: &Area, chrome: &Chrome) {
    let Some((top, bottom)) = row_range(scene, &area.ranks) else { return };
    let (left, right) = (scene.x(area.window.start_ns), scene.x(area.window.end_ns));
    frame(context, (left, top, right - left, bottom - top), chrome);
}

/// Draws a transparent rectangle (left, top, width, height), so that the bars remain visible.
fn frame(context: &CanvasRenderingContext2d, (left, top, width, height): (f64, f64, f64, f64), chrome: &Chrome) {
    context.set_fill_style_str(&chrome.accent);
    context.set_global_alpha(0.18);
    context.fill_rect(left, top, width, height);
    context.set_global_alpha(1.0);
    context.set_stroke_style_str(&chrome.accent);
    context.set_line_width(1.0);
    context.stroke_rect(left + 0.5, top + 0.5, (width - 1.0).max(1.0), (height - 1.0).max(1.0));
}

fn band(context: &CanvasRenderingContext2d, scene: &Scene<'_>, band: Band, chrome: &Chrome) {
    let plot = scene.size.plot();
    let inside = |x: f64| (x - rows::HEADER).clamp(0.0, plot);
    let (from, to) = (inside(band.left), inside(band.right));
    // The selection covers full rows. A drag that starts on the axis selects only time.
    let row = |y: f64| scene.layout.at(y.clamp(0.0, scene.size.rows() - 1.0), scene.scrolled).map(|(row, _)| row);
    let (top, bottom) = match (row(band.top), row(band.bottom)) {
        (Some(first), Some(last)) if band.bottom < scene.size.rows() => {
            (scene.y(first), scene.y(last) + rows::ROW - 1.0)
        }
        _ => (0.0, scene.size.rows()),
    };
    frame(context, (rows::HEADER + from, top, to - from, bottom - top), chrome);

    let ns = scene.window.ns_at(to, plot) - scene.window.ns_at(from, plot);
    let text = time_text::duration(ns);
    let width = context.measure_text(&text).map_or(0.0, |metrics| metrics.width());
    let left = (f64::midpoint(from, to) - width / 2.0).clamp(4.0, (plot - width - 4.0).max(4.0)) + rows::HEADER;
    let middle = f64::midpoint(top, bottom);
    context.set_fill_style_str(&chrome.panel);
    context.fill_rect(left - 5.0, middle - 9.0, width + 10.0, 18.0);
    context.set_stroke_style_str(&chrome.accent);
    context.set_line_width(1.0);
    context.stroke_rect(left - 5.0, middle - 9.0, width + 10.0, 18.0);
    context.set_fill_style_str(&chrome.ink);
    context.set_text_align("left");
    context.set_text_baseline("middle");
    // `fill_text` cannot fail with these arguments.
    let _ = context.fill_text(&text, left, middle + 0.5);
}
