//! Paints a chart: idle time, bars, labels, critical path, headers, axis. Calls the canvas and decides nothing.

use std::ops::Range;

use api::planner::timeline::{SpanKind, Timeline};
use wasm_bindgen::JsCast;
use web_sys::{CanvasPattern, CanvasRenderingContext2d, HtmlCanvasElement};

use super::TimeWindow;
use super::label::{self, GlyphWidths};
use super::lod::{self, Cell};
use super::palette::{self, Theme};
use super::rows::{self, Lane};
use super::ticks;
use super::watch;

/// Free room right of the plot, so that the last label of the axis fits, in px.
pub(crate) const RIGHT: f64 = 12.0;

/// What stands around the bars, taken from the page's CSS variables.
pub(crate) struct Chrome {
    pub(crate) theme: Theme,
    pub(crate) ink: String,
    pub(crate) mute: String,
    pub(crate) hatch: String,
    pub(crate) panel: String,
    pub(crate) accent: String,
    pub(crate) family: String,
}

impl Chrome {
    /// Reads the page; the font is the canvas' own.
    fn read(canvas: &HtmlCanvasElement) -> Self {
        let variable = watch::css_variables();
        let family = leptos::prelude::window()
            .get_computed_style(canvas)
            .ok()
            .flatten()
            .and_then(|style| style.get_property_value("font-family").ok())
            .filter(|family| !family.is_empty())
            .unwrap_or_else(|| "sans-serif".to_owned());
        Self {
            theme: watch::theme(),
            ink: variable("--ink", "#1a1d21"),
            mute: variable("--mute", "#667080"),
            hatch: variable("--hatch", "#d8dce2"),
            panel: variable("--panel", "#ffffff"),
            accent: variable("--accent", "#0b62d6"),
            family,
        }
    }
}

/// Size of a canvas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    /// Width, in px.
    pub(crate) width: f64,
    /// Height, in px.
    pub(crate) height: f64,
    /// Device pixels per px.
    pub(crate) ratio: f64,
}

impl Size {
    /// Width of the plot between headers and margin, in px.
    pub(crate) fn plot(self) -> f64 {
        (self.width - rows::HEADER - RIGHT).max(1.0)
    }

    /// Height that the rows have above the axis, in px.
    pub(crate) fn rows(self) -> f64 {
        (self.height - rows::AXIS).max(0.0)
    }

    /// Makes a canvas as large as this, cleared, and scaled to px.
    pub(crate) fn prepare(self, canvas: &HtmlCanvasElement) -> Option<CanvasRenderingContext2d> {
        let (width, height) = ((self.width * self.ratio).round() as u32, (self.height * self.ratio).round() as u32);
        if (canvas.width(), canvas.height()) != (width, height) {
            canvas.set_width(width);
            canvas.set_height(height);
        }
        let context = canvas.get_context("2d").ok().flatten()?.dyn_into::<CanvasRenderingContext2d>().ok()?;
        context.set_transform(self.ratio, 0.0, 0.0, self.ratio, 0.0, 0.0).ok()?;
        context.clear_rect(0.0, 0.0, self.width, self.height);
        Some(context)
    }
}

/// What a chart shows.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) timeline: &'a Timeline,
    pub(crate) window: TimeWindow,
    pub(crate) size: Size,
    /// How far the rows are scrolled, in px.
    pub(crate) scrolled: f64,
    /// Whether the critical path is marked.
    pub(crate) critical: bool,
}

impl Scene<'_> {
    /// Horizontal position of a time on the canvas, on a device pixel.
    pub(crate) fn x(&self, ns: f64) -> f64 {
        let x = self.window.x_of(ns, self.size.plot()).clamp(-10.0, self.size.plot() + 10.0);
        rows::HEADER + self.snap(x)
    }

    /// Vertical position of a rank's row on the canvas.
    pub(crate) fn y(&self, rank: usize) -> f64 {
        self.snap(rows::top(rank) - self.scrolled)
    }

    /// The nearest device pixel.
    pub(crate) fn snap(&self, px: f64) -> f64 {
        (px * self.size.ratio).round() / self.size.ratio
    }

    fn visible_ranks(&self) -> Range<usize> {
        rows::visible(self.scrolled, self.size.rows(), self.timeline.ranks as usize)
    }
}

/// A lane's share of the cells.
struct LaneCells {
    lane: Lane,
    top: f64,
    height: f64,
    cells: Range<usize>,
}

/// Buffers and styles that live from paint to paint, so that a paint allocates nothing per span.
#[derive(Default)]
pub(crate) struct Painter {
    cells: Vec<Cell>,
    lanes: Vec<LaneCells>,
    text: String,
    style: Option<Style>,
}

struct Style {
    version: u32,
    ratio: f64,
    chrome: Chrome,
    hatch: Option<CanvasPattern>,
    label_font: String,
    axis_font: String,
    glyphs: GlyphWidths,
}

impl Style {
    fn read(version: u32, ratio: f64, canvas: &HtmlCanvasElement, context: &CanvasRenderingContext2d) -> Self {
        let chrome = Chrome::read(canvas);
        let label_font = format!("11px {}", chrome.family);
        let axis_font = format!("10.5px {}", chrome.family);
        let width = |text: &str| context.measure_text(text).map_or(8.0, |metrics| metrics.width());
        context.set_font(&label_font);
        let letters = SpanKind::ALL.map(|kind| width(label::letter(kind)));
        let glyphs = GlyphWidths { letters, digit: width("0") };
        let hatch = hatch(&chrome.hatch, ratio, context);
        Self { version, ratio, chrome, hatch, label_font, axis_font, glyphs }
    }
}

/// Diagonal lines, one device pixel strong.
fn hatch(colour: &str, ratio: f64, context: &CanvasRenderingContext2d) -> Option<CanvasPattern> {
    let side = (6.0 * ratio).round().max(4.0);
    let tile = leptos::prelude::document().create_element("canvas").ok()?.dyn_into::<HtmlCanvasElement>().ok()?;
    tile.set_width(side as u32);
    tile.set_height(side as u32);
    let lines = tile.get_context("2d").ok().flatten()?.dyn_into::<CanvasRenderingContext2d>().ok()?;
    lines.set_stroke_style_str(colour);
    lines.set_line_width(ratio.max(1.0));
    lines.begin_path();
    // Once through the tile and once through each corner that the line's width reaches into.
    for shift in [-side, 0.0, side] {
        lines.move_to(shift - 1.0, side + 1.0);
        lines.line_to(shift + side + 1.0, -1.0);
    }
    lines.stroke();
    context.create_pattern_with_html_canvas_element(&tile, "repeat").ok().flatten()
}

impl Painter {
    /// Colours and fonts, as read at the last paint.
    pub(crate) fn chrome(&self) -> Option<(&Chrome, &str)> {
        self.style.as_ref().map(|style| (&style.chrome, style.axis_font.as_str()))
    }

    /// Paints a scene; gives the number of spans that its cells stand for.
    pub(crate) fn paint(&mut self, canvas: &HtmlCanvasElement, scene: Scene<'_>, theme_version: u32) -> Option<u64> {
        let context = scene.size.prepare(canvas)?;
        let ratio = scene.size.ratio;
        let is_current = |style: &Style| style.version == theme_version && style.ratio.total_cmp(&ratio).is_eq();
        let current = self.style.take().filter(is_current);
        let style = current.unwrap_or_else(|| Style::read(theme_version, ratio, canvas, &context));
        self.collect(&scene);
        context.save();
        context.begin_path();
        context.rect(rows::HEADER, 0.0, scene.size.plot(), scene.size.rows());
        context.clip();
        idle(&context, &style, &scene);
        for kind in SpanKind::ALL {
            self.bars(&context, &style, &scene, kind);
        }
        if scene.critical {
            critical(&context, &style, &scene);
        }
        context.restore();
        headers(&context, &style, &scene);
        axis(&context, &style, &scene);
        self.style = Some(style);
        Some(self.cells.iter().map(|cell| u64::from(cell.spans)).sum())
    }

    fn collect(&mut self, scene: &Scene<'_>) {
        self.cells.clear();
        self.lanes.clear();
        // Cells are as narrow as a device pixel.
        let width = scene.size.plot() * scene.size.ratio;
        for rank in scene.visible_ranks() {
            for lane in [Lane::Compute, Lane::Communication] {
                let spans = match lane {
                    Lane::Compute => scene.timeline.compute_lane(rank),
                    Lane::Communication => scene.timeline.communication_lane(rank),
                };
                let first = self.cells.len();
                lod::cells(scene.timeline, spans, scene.window, width, &mut self.cells);
                let (top, height) = rows::lane_box(lane);
                let top = scene.y(rank) + top;
                self.lanes.push(LaneCells { lane, top, height, cells: first..self.cells.len() });
            }
        }
    }

    /// All bars of one kind, with their labels: a change of style costs more than another look at the cells.
    fn bars(&mut self, context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>, kind: SpanKind) {
        let ratio = scene.size.ratio;
        let theme = style.chrome.theme;
        let number = kind as u8;
        context.set_fill_style_str(palette::fill(kind, theme));
        let outline = palette::outline(kind, theme);
        if let Some(outline) = outline {
            context.set_stroke_style_str(outline);
            context.set_line_width(1.0);
        }
        let mut alpha = 1.0;
        for lane in &self.lanes {
            for cell in self.cells[lane.cells.clone()].iter().filter(|cell| cell.kind == number) {
                let (x, width) = bar(cell, ratio);
                let wanted = shade(cell.busy);
                if (wanted - alpha).abs() > f64::EPSILON {
                    alpha = wanted;
                    context.set_global_alpha(alpha);
                }
                context.fill_rect(x, lane.top, width, lane.height);
                if outline.is_some() && width >= 4.0 {
                    context.stroke_rect(x + 0.5, lane.top + 0.5, width - 1.0, lane.height - 1.0);
                }
            }
        }
        context.set_global_alpha(1.0);

        context.set_fill_style_str(palette::ink(kind, theme));
        context.set_font(&style.label_font);
        context.set_text_align("left");
        context.set_text_baseline("middle");
        for lane in self.lanes.iter().filter(|lane| lane.lane == Lane::Compute) {
            for cell in self.cells[lane.cells.clone()].iter().filter(|cell| cell.kind == number && cell.spans == 1) {
                let (x, width) = bar(cell, ratio);
                let microbatch = scene.timeline.microbatch[cell.first];
                let taken = label::fit(kind, microbatch, width, style.glyphs, &mut self.text);
                if taken > 0.0 {
                    let middle = scene.snap(lane.top + lane.height / 2.0 + 0.5);
                    // A canvas refuses text only for want of arguments.
                    let _ = context.fill_text(&self.text, scene.snap(x + (width - taken) / 2.0), middle);
                }
            }
        }
    }
}

/// Left edge and width of a cell on the canvas, on device pixels, with a gap to its right neighbour.
fn bar(cell: &Cell, ratio: f64) -> (f64, f64) {
    let (x0, x1) = (cell.x0.round(), cell.x1.round());
    let width = (x1 - x0).max(1.0);
    let gap = if width >= 4.0 * ratio { ratio.round().max(1.0) } else { 0.0 };
    (rows::HEADER + x0 / ratio, (width - gap) / ratio)
}

/// Opacity of a pixel that is partly busy, in four steps; never so faint that it cannot be seen.
fn shade(busy: f64) -> f64 {
    match busy {
        b if b > 0.75 => 1.0,
        b if b > 0.5 => 0.8,
        b if b > 0.25 => 0.6,
        _ => 0.45,
    }
}

fn idle(context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>) {
    let Some(hatch) = &style.hatch else { return };
    let (from, to) = (scene.x(0.0), scene.x(scene.timeline.makespan_ns as f64));
    // The pattern is drawn in device pixels.
    let ratio = scene.size.ratio;
    context.save();
    if context.scale(1.0 / ratio, 1.0 / ratio).is_ok() {
        context.set_fill_style_canvas_pattern(hatch);
        for rank in scene.visible_ranks() {
            context.fill_rect(from * ratio, scene.y(rank) * ratio, (to - from) * ratio, (rows::ROW - 1.0) * ratio);
        }
    }
    context.restore();
}

fn critical(context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>) {
    let timeline = scene.timeline;
    context.set_fill_style_str(&style.chrome.ink);
    let ranks = scene.visible_ranks();
    // Each span of the path ends before the next begins, so that the ends are in order too.
    let left = |&span: &u32| (timeline.end_ns(span as usize) as f64) < scene.window.start_ns;
    let first = timeline.critical_path.partition_point(left);
    for &span in &timeline.critical_path[first..] {
        let span = span as usize;
        if timeline.start_ns[span] as f64 > scene.window.end_ns {
            break;
        }
        let rank = timeline.rank_of(span);
        let computes = SpanKind::from_index(timeline.kind[span]).is_some_and(SpanKind::is_compute_lane);
        if !ranks.contains(&rank) || !computes {
            continue;
        }
        let (from, to) = (scene.x(timeline.start_ns[span] as f64), scene.x(timeline.end_ns(span) as f64));
        context.fill_rect(from, scene.y(rank), (to - from - 1.0).max(1.0), 2.0);
    }
}

fn headers(context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>) {
    context.save();
    context.begin_path();
    context.rect(0.0, 0.0, rows::HEADER, scene.size.rows());
    context.clip();
    context.set_font(&style.label_font);
    context.set_fill_style_str(&style.chrome.mute);
    context.set_text_align("right");
    context.set_text_baseline("middle");
    for rank in scene.visible_ranks() {
        let middle = scene.snap(scene.y(rank) + rows::BAR / 2.0 + 1.5);
        let _ = context.fill_text(&format!("rank {rank}"), rows::HEADER - 8.0, middle);
    }
    context.restore();
}

fn axis(context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>) {
    let top = scene.size.rows();
    let axis = ticks::axis(scene.window, scene.size.plot());
    context.set_font(&style.axis_font);
    context.set_text_baseline("top");
    context.set_text_align("left");
    for tick in &axis.ticks {
        let x = rows::HEADER + scene.snap(tick.x);
        context.set_fill_style_str(&style.chrome.mute);
        context.fill_rect(x, top, 1.0 / scene.size.ratio.min(1.0), 3.0);
        let width = context.measure_text(&tick.label).map_or(0.0, |metrics| metrics.width());
        let left = (x - width / 2.0).min(scene.size.width - width).max(rows::HEADER - 10.0);
        let _ = context.fill_text(&tick.label, scene.snap(left), top + 6.0);
    }
    if let Some(origin) = &axis.origin {
        context.set_fill_style_str(&style.chrome.ink);
        context.set_text_align("right");
        let _ = context.fill_text(origin, rows::HEADER - 12.0, top + 6.0);
    }
}
