//! Paints headings, spans, names, steps, arrows and axis. It only calls the canvas API.

mod arrows;

use api::trace::{SliceArrow, SliceKind, TraceDetail, TraceView};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::layout::{Content, HEADING, Layout, ROW, lane_name, process_name};
use super::palette::colours;
use crate::gantt::axis_paint::{self, AxisStyle};
use crate::gantt::surface::plot_px;
use crate::gantt::{Size, Theme, TimeWindow, observers};

/// Width of the lane names in px.
pub(super) const HEADER: f64 = 150.0;
/// Axis height in px.
pub(super) const AXIS: f64 = 20.0;
/// Upper estimate for the character width of small text in px.
const CHARACTER: f64 = 6.4;
/// Minimum width of a span with a name in px.
const NAMED: f64 = 24.0;

/// Data to paint.
pub(super) struct Scene<'a> {
    pub(super) detail: &'a TraceDetail,
    pub(super) layout: &'a Layout,
    /// Fetched data. `None` until the response arrives.
    pub(super) view: Option<&'a TraceView>,
    /// Search hits by name index. Empty without a search.
    pub(super) found: &'a [bool],
    /// Visible time range.
    pub(super) window: TimeWindow,
    /// Canvas size.
    pub(super) size: Size,
    /// Vertical scroll offset in px.
    pub(super) scrolled: f64,
    /// Selected span and hovered span: lane, row, start, extent.
    pub(super) marked: [Option<(u32, u16, u64, u64)>; 2],
    /// Collapsed processes.
    pub(super) folded: &'a std::collections::BTreeSet<u32>,
    /// Arrows of the selected span.
    pub(super) arrows: &'a [SliceArrow],
}

/// Statistics of a paint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Painted {
    /// Slices in the painted spans.
    pub(super) slices: u64,
    /// Arrows with at least one visible end.
    pub(super) arrows: usize,
}

impl Scene<'_> {
    fn x(&self, ns: f64) -> f64 {
        let plot = plot_px(self.size.width, HEADER);
        HEADER + self.window.x_at(ns, plot).clamp(-4.0, plot + 4.0)
    }

    fn rows_height(&self) -> f64 {
        (self.size.height - AXIS).max(0.0)
    }
}

pub(super) fn paint(canvas: &HtmlCanvasElement, scene: &Scene<'_>) -> Option<Painted> {
    let context = scene.size.prepare(canvas)?;
    let variable = observers::css_variables();
    let (ink, mute, line, panel, accent) = (
        variable("--ink", "#1a1d21"),
        variable("--mute", "#667080"),
        variable("--line", "#e0e3e7"),
        variable("--panel", "#ffffff"),
        variable("--accent", "#0b62d6"),
    );
    let family = variable("--face", "sans-serif");
    let font = format!("11px {family}");
    context.set_font(&font);
    context.set_text_baseline("middle");
    context.save();
    context.begin_path();
    context.rect(0.0, 0.0, scene.size.width, scene.rows_height());
    context.clip();
    steps(&context, scene, &line);
    let slices = spans(&context, scene, observers::theme());
    marks(&context, scene, &ink, &accent);
    let arrows = arrows::paint(&context, scene, &accent);
    headings(&context, scene, [&ink, &mute, &line, &panel]);
    context.restore();
    let axis_style = AxisStyle { font: &font, ink: &ink, mute: &mute };
    axis_paint::paint(&context, &axis_style, scene.window, (scene.size, HEADER, scene.rows_height()));
    Some(Painted { slices, arrows })
}

fn steps(context: &CanvasRenderingContext2d, scene: &Scene<'_>, line: &str) {
    context.set_fill_style_str(line);
    for step in &scene.detail.steps {
        let x = scene.x(step.start_ns as f64);
        if x >= HEADER && x <= scene.size.width {
            context.fill_rect(x.round(), 0.0, 1.0, scene.rows_height());
        }
    }
}

/// Paints spans grouped by kind, to reduce colour changes.
fn spans(context: &CanvasRenderingContext2d, scene: &Scene<'_>, theme: Theme) -> u64 {
    let Some(view) = scene.view else { return 0 };
    context.save();
    context.begin_path();
    context.rect(HEADER, 0.0, (scene.size.width - HEADER).max(0.0), scene.rows_height());
    context.clip();
    context.set_text_align("left");
    let mut slices = 0;
    let bands = scene.layout.visible(scene.scrolled, scene.rows_height());
    for kind in SliceKind::ALL {
        let (fill, ink) = colours(kind, theme);
        let mut names = Vec::new();
        context.set_fill_style_str(fill);
        for band in bands {
            let Content::Lane(lane) = band.content else { continue };
            let Ok(position) = view.lanes.binary_search(&lane) else { continue };
            for span in view.lane(position).filter(|&span| view.kind[span] == kind as u8) {
                let start = view.start_ns[span] as f64;
                let end = start + view.extent_ns[span] as f64;
                if end < scene.window.start_ns || start > scene.window.end_ns {
                    continue;
                }
                let (x0, x1) = (scene.x(start), scene.x(end));
                let width = (x1 - x0).max(1.0);
                let y = band.top - scene.scrolled + f64::from(view.row[span]) * ROW;
                let is_found = scene.found.is_empty() || scene.found.get(view.name[span] as usize) == Some(&true);
                context.set_global_alpha(if is_found { opacity(view, span) } else { 0.18 });
                let gap = if width >= 4.0 { 1.0 } else { 0.0 };
                context.fill_rect(x0, y + 1.0, width - gap, ROW - 2.0);
                slices += u64::from(view.count[span]);
                if width >= NAMED && view.count[span] == 1 && is_found {
                    names.push((span, x0, width, y));
                }
            }
        }
        context.set_global_alpha(1.0);
        context.set_fill_style_str(ink);
        for (span, x, width, y) in names {
            let left = x.max(HEADER);
            let max_characters = ((x + width - left - 6.0) / CHARACTER).max(0.0) as usize;
            let name = view.names.get(view.name[span] as usize).map_or("", String::as_str);
            let visible_name: String = name.chars().take(max_characters).collect();
            if visible_name.chars().count() > 1 {
                // `fill_text` fails only for missing arguments.
                let _ = context.fill_text(&visible_name, left + 3.0, y + ROW / 2.0 + 0.5);
            }
        }
    }
    context.restore();
    slices
}

/// Opacity of a merged span in proportion to its busy share, with a visible minimum.
fn opacity(view: &TraceView, span: usize) -> f64 {
    if view.count[span] == 1 || view.extent_ns[span] == 0 {
        return 1.0;
    }
    let active_share = view.busy_ns[span] as f64 / view.extent_ns[span] as f64;
    0.4 + 0.6 * active_share.min(1.0)
}

fn marks(context: &CanvasRenderingContext2d, scene: &Scene<'_>, ink: &str, accent: &str) {
    for (mark, colour) in scene.marked.iter().zip([accent, ink]) {
        let Some((lane, row, start, extent)) = *mark else { continue };
        let Some(band) = scene.layout.lane_band(lane) else { continue };
        let (x0, x1) = (scene.x(start as f64), scene.x(start.saturating_add(extent) as f64));
        let y = band.top - scene.scrolled + f64::from(row) * ROW;
        context.set_stroke_style_str(colour);
        context.set_line_width(2.0);
        context.stroke_rect(x0.max(HEADER), y + 1.0, (x1 - x0.max(HEADER)).max(2.0), ROW - 2.0);
    }
}

/// Shortens a text to a number of characters. A cut text ends with an ellipsis.
fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most.saturating_sub(1)) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

fn headings(context: &CanvasRenderingContext2d, scene: &Scene<'_>, [ink, mute, line, panel]: [&String; 4]) {
    context.set_text_align("left");
    for band in scene.layout.visible(scene.scrolled, scene.rows_height()) {
        let y = band.top - scene.scrolled;
        match band.content {
            Content::Process(process) => {
                context.set_fill_style_str(line);
                context.fill_rect(0.0, y, scene.size.width, HEADING);
                context.set_fill_style_str(ink);
                let name = scene.detail.processes.get(process as usize).map_or_else(String::new, process_name);
                let sign = if scene.folded.contains(&process) { "▸" } else { "▾" };
                let _ = context.fill_text(&clipped(&format!("{sign} {name}"), 120), 6.0, y + HEADING / 2.0);
            }
            Content::Lane(lane) => {
                context.set_fill_style_str(panel);
                context.fill_rect(0.0, y, HEADER - 4.0, band.height);
                context.set_fill_style_str(mute);
                let name = scene.detail.lanes.get(lane as usize).map_or_else(String::new, lane_name);
                let _ = context.fill_text(
                    &clipped(&name, ((HEADER - 20.0) / CHARACTER) as usize),
                    12.0,
                    y + ROW / 2.0 + 0.5,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_name_ends_with_an_ellipsis() {
        assert_eq!(clipped("thread 1102 (pt_main_thread)", 20), "thread 1102 (pt_mai…");
        assert_eq!([clipped("µs thread", 9), clipped("µs thread", 8), clipped("", 8)], ["µs thread", "µs thre…", ""]);
    }
}
