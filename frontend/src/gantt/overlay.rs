//! Paints what follows the pointer: time cursor, outlines, the arrow of the selection, the band.
//!
//! It has a canvas of its own above the bars, so that moving the pointer repaints none of them.

use api::planner::timeline::{NO_SPAN, SpanKind};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::paint::{Chrome, Scene};
use super::rows::{self, Lane};
use super::time_text;

/// What follows the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Marks {
    /// The selected span.
    pub(crate) selected: Option<usize>,
    /// The span under the pointer.
    pub(crate) hovered: Option<usize>,
    /// The time under the pointer.
    pub(crate) cursor_ns: Option<f64>,
    /// The band, in px of the plot.
    pub(crate) band: Option<(f64, f64)>,
}

/// Paints the marks over a scene.
pub(crate) fn paint(canvas: &HtmlCanvasElement, scene: Scene<'_>, marks: Marks, chrome: &Chrome, font: &str) {
    let Some(context) = scene.size.prepare(canvas) else { return };
    context.set_font(font);
    context.save();
    context.begin_path();
    context.rect(rows::HEADER - 2.0, 0.0, scene.size.plot() + 4.0, scene.size.rows());
    context.clip();
    if let Some(ns) = marks.cursor_ns.filter(|_| marks.band.is_none()) {
        cursor(&context, &scene, ns, chrome);
    }
    let in_it = |span: &usize| *span < scene.timeline.len();
    if let Some(span) = marks.hovered.filter(in_it).filter(|_| marks.hovered != marks.selected) {
        outline(&context, &scene, span, &chrome.ink, 1.0);
    }
    if let Some(span) = marks.selected.filter(in_it) {
        arrow(&context, &scene, span, chrome);
        outline(&context, &scene, span, &chrome.panel, 4.0);
        outline(&context, &scene, span, &chrome.accent, 2.0);
    }
    if let Some((from, to)) = marks.band {
        band(&context, &scene, from, to, chrome);
    }
    context.restore();
}

/// Left, top, width and height of a span on the canvas; at least 3 px wide, so that it can be found.
pub(crate) fn span_box(scene: &Scene<'_>, span: usize) -> (f64, f64, f64, f64) {
    let timeline = scene.timeline;
    let (from, to) = (scene.x(timeline.start_ns[span] as f64), scene.x(timeline.end_ns(span) as f64));
    let computes = SpanKind::from_index(timeline.kind[span]).is_some_and(SpanKind::is_compute_lane);
    let (top, height) = rows::lane_box(if computes { Lane::Compute } else { Lane::Communication });
    (from, scene.y(timeline.rank_of(span)) + top, (to - from).max(3.0), height)
}

fn outline(context: &CanvasRenderingContext2d, scene: &Scene<'_>, span: usize, colour: &str, strength: f64) {
    let (left, top, width, height) = span_box(scene, span);
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

/// From the end of what a span waited for to its start.
fn arrow(context: &CanvasRenderingContext2d, scene: &Scene<'_>, span: usize, chrome: &Chrome) {
    let bound = scene.timeline.bound_by[span];
    if bound == NO_SPAN || bound as usize >= scene.timeline.len() {
        return;
    }
    let (left, top, width, height) = span_box(scene, bound as usize);
    let (to_left, to_top, _, to_height) = span_box(scene, span);
    let (from_x, from_y) = (left + width, top + height / 2.0);
    let (to_x, to_y) = (to_left, to_top + to_height / 2.0);
    if (from_y - to_y).abs() < 1.0 && to_x - from_x < 6.0 {
        // Its neighbour on the left; an arrow of no length tells nothing.
        return;
    }
    let bend = ((to_x - from_x).abs() / 2.0).clamp(8.0, 40.0);
    let path = || {
        context.begin_path();
        context.move_to(from_x, from_y);
        context.bezier_curve_to(from_x + bend, from_y, to_x - bend, to_y, to_x - 3.0, to_y);
        context.stroke();
    };
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
}

fn band(context: &CanvasRenderingContext2d, scene: &Scene<'_>, from: f64, to: f64, chrome: &Chrome) {
    let plot = scene.size.plot();
    let (from, to) = (from.clamp(0.0, plot), to.clamp(0.0, plot));
    let height = scene.size.rows();
    context.set_fill_style_str(&chrome.accent);
    context.set_global_alpha(0.18);
    context.fill_rect(rows::HEADER + from, 0.0, to - from, height);
    context.set_global_alpha(1.0);
    context.fill_rect(rows::HEADER + from, 0.0, 1.0, height);
    context.fill_rect(rows::HEADER + to - 1.0, 0.0, 1.0, height);

    let ns = scene.window.ns_at(to, plot) - scene.window.ns_at(from, plot);
    let text = time_text::duration(ns);
    let width = context.measure_text(&text).map_or(0.0, |metrics| metrics.width());
    let left = (f64::midpoint(from, to) - width / 2.0).clamp(4.0, (plot - width - 4.0).max(4.0)) + rows::HEADER;
    let middle = height / 2.0;
    context.set_fill_style_str(&chrome.panel);
    context.fill_rect(left - 5.0, middle - 9.0, width + 10.0, 18.0);
    context.set_stroke_style_str(&chrome.accent);
    context.set_line_width(1.0);
    context.stroke_rect(left - 5.0, middle - 9.0, width + 10.0, 18.0);
    context.set_fill_style_str(&chrome.ink);
    context.set_text_align("left");
    context.set_text_baseline("middle");
    // A canvas refuses text only for want of arguments.
    let _ = context.fill_text(&text, left, middle + 0.5);
}
