//! Paints idle time, bars, labels and critical path into a raster image, and row headers and axis
//! around it. Contains no layout logic.

use api::planner::timeline::levels::Level;
use api::planner::timeline::{SpanKind, Timeline};
use wasm_bindgen::Clamped;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use super::axis_paint::{self, AxisStyle};
use super::colours::{Colouring, MANY, SpanColours};
use super::label;
use super::layout::Row;
use super::lod::{self, Cell, Fold};
use super::raster::{Area, Line, Raster};
use super::rows::{self, Lane};
use super::scene::{Content, Scene};
use super::style::Style;

/// Distance between hatch lines of idle time, in px.
const HATCH: f64 = 6.0;

/// Buffers and styles reused by all paints, which avoids allocations per span.
#[derive(Default)]
pub(crate) struct Painter {
    cells: Vec<Cell>,
    fold: Fold,
    line: Line,
    raster: Raster,
    text: String,
    style: Option<Style>,
}

impl Painter {
    /// Colours and fonts of the last paint.
    pub(crate) const fn style(&self) -> Option<&Style> {
        self.style.as_ref()
    }

    /// Paints a scene and returns the number of spans in its cells.
    pub(crate) fn paint(&mut self, canvas: &HtmlCanvasElement, scene: Scene<'_>, theme_version: u32) -> Option<u64> {
        let context = scene.size.prepare(canvas)?;
        let ratio = scene.size.ratio;
        let current = self.style.take().filter(|style| style.is_current(theme_version, ratio));
        let style = current.unwrap_or_else(|| Style::read(theme_version, ratio, canvas));
        let spans = self.picture(&style, &scene);
        self.put(&context, &scene);
        headers(&context, &style, &scene);
        let axis_style = AxisStyle { font: &style.axis_font, ink: &style.chrome.ink, mute: &style.chrome.mute };
        axis_paint::paint(&context, &axis_style, scene.window, (scene.size, rows::HEADER, scene.size.rows()));
        self.style = Some(style);
        Some(spans)
    }

    /// Paints the rows into the raster image.
    fn picture(&mut self, style: &Style, scene: &Scene<'_>) -> u64 {
        let ratio = scene.size.ratio;
        let pixels = |px: f64| (px * ratio).round().max(0.0) as usize;
        self.raster.clear(pixels(scene.size.plot()).max(1), pixels(scene.size.rows()).max(1), style.panel);
        let source = Source::new(scene);
        let mut spans = 0;
        let pinned = pixels(scene.layout.pinned_height());
        // Pinned rows are painted last, over the scrolled rows.
        let (stay, scroll): (Vec<usize>, Vec<usize>) = scene.rows().partition(|&row| scene.layout.is_pinned(row));
        for row in scroll {
            spans += self.row(style, scene, source, row);
        }
        if !stay.is_empty() {
            self.raster.fill(Area { left: 0, top: 0, right: usize::MAX, bottom: pinned }, style.panel);
            for row in stay {
                spans += self.row(style, scene, source, row);
            }
            let line = Area { left: 0, top: pinned.saturating_sub(1), right: usize::MAX, bottom: pinned };
            self.raster.fill(line, style.ink);
        }
        spans
    }

    fn row(&mut self, style: &Style, scene: &Scene<'_>, source: Source<'_>, index: usize) -> u64 {
        let Some(row) = scene.layout.row(index) else { return 0 };
        let ratio = scene.size.ratio;
        let top = (scene.y(index) * ratio).round();
        self.idle(style, scene, top);
        let mut spans = 0;
        for lane in [Lane::Compute, Lane::Exposed, Lane::Communication] {
            self.cells.clear();
            if lane == Lane::Exposed {
                let Some(inside) = Source::inside(scene) else { continue };
                self.collect(scene, inside, row, Lane::Compute);
            } else {
                self.collect(scene, source, row, lane);
                spans += self.cells.iter().map(|cell| u64::from(cell.spans)).sum::<u64>();
            }
            let (under, height) = rows::lane_box(lane);
            let top = top + (under * ratio).round();
            self.bars(style, ratio, top as i32, (height * ratio).round() as usize);
            if let (Lane::Compute, Content::Spans { timeline, inks }) = (lane, scene.content) {
                self.labels(style, scene, (timeline, inks), top as i32);
            }
        }
        if let (true, Row::Rank(rank), Some(timeline)) = (scene.critical, row, scene.timeline()) {
            self.critical(style, scene, timeline, *rank as usize, top);
        }
        spans
    }

    /// Collects the cells for a lane in a row.
    fn collect(&mut self, scene: &Scene<'_>, source: Source<'_>, row: &Row, lane: Lane) {
        // The minimum cell width is one device pixel.
        let width = self.raster.width() as f64;
        let number = |rank: usize| 2 * rank + usize::from(lane == Lane::Communication);
        let is_fold = matches!(row, Row::Fold(_));
        if is_fold {
            self.fold.clear(width);
        }
        for rank in row.ranks() {
            match source {
                Source::Level(level) if is_fold => self.fold.add_level(level, number(rank), scene.window, width),
                Source::Level(level) => {
                    lod::level_cells(level, number(rank), scene.window, width, &mut self.cells);
                }
                Source::Spans(timeline, inks) => {
                    let spans = match lane {
                        Lane::Compute | Lane::Exposed => timeline.compute_lane(rank),
                        Lane::Communication => timeline.communication_lane(rank),
                    };
                    if is_fold {
                        self.fold.add(timeline, inks, spans, scene.window, width);
                    } else {
                        lod::cells(timeline, inks, spans, scene.window, width, &mut self.cells);
                    }
                }
            }
        }
        if is_fold {
            self.fold.cells(&mut self.cells);
        }
    }

    fn idle(&mut self, style: &Style, scene: &Scene<'_>, top: f64) {
        let ratio = scene.size.ratio;
        let pixel = |ns: f64| ((scene.x(ns) - rows::HEADER) * ratio).round().max(0.0) as usize;
        let (left, right) = (pixel(0.0), pixel(scene.content.makespan_ns() as f64));
        let bottom = (top + (rows::ROW - 1.0) * ratio).round().max(0.0) as usize;
        let area = Area { left, top: top.max(0.0) as usize, right, bottom };
        let (period, strength) = ((HATCH * ratio).round() as usize, ratio.round().max(1.0) as usize);
        self.raster.hatch(area, style.hatch, period, strength);
    }

    fn bars(&mut self, style: &Style, ratio: f64, top: i32, height: usize) {
        self.line.clear(self.raster.width());
        for cell in &self.cells {
            let (left, right) = bar(cell, ratio);
            let paint = style.paints[usize::from(cell.ink)];
            let parts = shade(cell.occupancy);
            let fill = if parts == 255 { paint.fill } else { paint.fill.over(style.panel, parts) };
            let outline = paint.outline.filter(|_| right - left >= (4.0 * ratio) as usize);
            self.line.bar(left, right, fill, outline);
        }
        self.line.close();
        self.raster.lane(&self.line, top, height);
    }

    fn labels(&mut self, style: &Style, scene: &Scene<'_>, (timeline, inks): (&Timeline, &SpanColours), top: i32) {
        let ratio = scene.size.ratio;
        for cell in self.cells.iter().filter(|cell| cell.spans == 1) {
            let (left, right) = bar(cell, ratio);
            let available_px = (right - left) as f64;
            if available_px < label::NARROWEST * ratio || cell.first >= timeline.len() {
                continue;
            }
            let Some(kind) = SpanKind::from_index(timeline.kind[cell.first]) else { continue };
            let width = |text: &str| text.chars().map(|sign| style.glyphs.width(sign)).sum::<f64>();
            match &inks.colouring {
                Colouring::Differences { against, pairs, aspect } => {
                    let difference = pairs.at(timeline, against, cell.first, *aspect);
                    label::difference(difference, available_px, ratio, width, &mut self.text);
                }
                _ => label::fit(kind, timeline.microbatch[cell.first], available_px, ratio, width, &mut self.text),
            }
            let colour = style.paints[usize::from(cell.ink)].letters;
            let mut x = left as f64 + (available_px - width(&self.text)) / 2.0;
            for sign in self.text.chars() {
                let Some((mask, advance)) = style.glyphs.get(sign) else { continue };
                self.raster.mask(mask, x.round() as i32, top, colour);
                x += advance;
            }
        }
    }

    fn critical(&mut self, style: &Style, scene: &Scene<'_>, timeline: &Timeline, rank: usize, top: f64) {
        if top < 0.0 {
            return;
        }
        let ratio = scene.size.ratio;
        let lane = timeline.compute_lane(rank);
        // Spans of the path do not overlap, so their ends are also sorted.
        let left = |&span: &u32| (timeline.end_ns(span as usize) as f64) < scene.window.start_ns;
        let first = timeline.critical_path.partition_point(left);
        let pixel = |ns: f64| ((scene.x(ns) - rows::HEADER) * ratio).round().max(0.0) as usize;
        for &span in &timeline.critical_path[first..] {
            let span = span as usize;
            if timeline.start_ns[span] as f64 > scene.window.end_ns {
                break;
            }
            if lane.contains(&span) {
                let (left, right) = (pixel(timeline.start_ns[span] as f64), pixel(timeline.end_ns(span) as f64));
                let bottom = (top + 2.0 * ratio).round() as usize;
                let area = Area { left, top: top as usize, right: right.saturating_sub(1).max(left + 1), bottom };
                self.raster.fill(area, style.ink);
            }
        }
    }

    /// Copies the raster image to the canvas.
    fn put(&self, context: &CanvasRenderingContext2d, scene: &Scene<'_>) {
        let (width, height) = (self.raster.width() as u32, self.raster.height() as u32);
        let left = (rows::HEADER * scene.size.ratio).round();
        // `ImageData` rejects only buffers with the wrong size.
        if let Ok(image) = ImageData::new_with_u8_clamped_array_and_sh(Clamped(self.raster.bytes()), width, height) {
            let _ = context.put_image_data(&image, left, 0.0);
        }
    }
}

/// Cell input.
#[derive(Clone, Copy)]
enum Source<'a> {
    Level(&'a Level),
    Spans(&'a Timeline, &'a [u8]),
}

impl<'a> Source<'a> {
    /// Exposed communication inside actions.
    fn inside(scene: &Scene<'a>) -> Option<Self> {
        let Content::Spans { inks, .. } = scene.content else { return None };
        let inside = inks.inside.as_ref()?;
        let pixel_ns = scene.window.width_ns() / (scene.size.plot() * scene.size.ratio);
        let spans = Self::Spans(&inside.spans, &inside.spans.kind);
        Some(lod::level_for(&inside.levels, pixel_ns).map_or(spans, Self::Level))
    }

    /// Selects a level for a large number of visible spans, otherwise the spans.
    fn new(scene: &Scene<'a>) -> Self {
        let (timeline, inks) = match scene.content {
            Content::Overview(overview) => return Self::Level(&overview.level),
            Content::Spans { timeline, inks } => (timeline, inks),
        };
        let spans = Self::Spans(timeline, inks.column(timeline));
        let in_view = || -> usize {
            let ranks = scene.rows().filter_map(|row| scene.layout.row(row)).flat_map(Row::ranks);
            let lanes = ranks.flat_map(|rank| [timeline.compute_lane(rank), timeline.communication_lane(rank)]);
            lanes.map(|lane| lod::visible(timeline, lane, scene.window).len()).sum()
        };
        if inks.levels.is_empty() || in_view() < MANY {
            return spans;
        }
        let pixel_ns = scene.window.width_ns() / (scene.size.plot() * scene.size.ratio);
        lod::level_for(&inks.levels, pixel_ns).map_or(spans, Self::Level)
    }
}

/// Left and right cell edge in device pixels, with a gap to the right neighbour.
fn bar(cell: &Cell, ratio: f64) -> (usize, usize) {
    let (left, right) = (cell.x0.round().max(0.0) as usize, cell.x1.round().max(0.0) as usize);
    let right = right.max(left + 1);
    let gap = if (right - left) as f64 >= 4.0 * ratio { ratio.round().max(1.0) as usize } else { 0 };
    (left, right - gap)
}

/// Opacity for a partly busy pixel in four steps. The minimum opacity is still visible.
fn shade(occupancy: f64) -> u8 {
    match occupancy {
        b if b > 0.75 => 255,
        b if b > 0.5 => 204,
        b if b > 0.25 => 153,
        _ => 115,
    }
}

fn headers(context: &CanvasRenderingContext2d, style: &Style, scene: &Scene<'_>) {
    context.set_font(&style.label_font);
    context.set_text_baseline("middle");
    let pinned = scene.layout.pinned_height();
    for row in scene.rows() {
        let is_pinned = scene.layout.is_pinned(row);
        context.save();
        context.begin_path();
        let top = if is_pinned { 0.0 } else { pinned };
        context.rect(0.0, top, rows::HEADER, scene.size.rows() - top);
        context.clip();
        let middle = scene.snap(scene.y(row) + rows::BAR / 2.0 + 1.5);
        context.set_fill_style_str(if is_pinned { &style.chrome.ink } else { &style.chrome.mute });
        context.set_text_align("right");
        let text =
            scene.layout.row(row).map(|row| label::header(row, &scene.layout.names, scene.folds)).unwrap_or_default();
        // `fill_text` cannot fail with these arguments.
        let _ = context.fill_text(&text, rows::HEADER - 8.0, middle);
        if is_pinned {
            context.set_fill_style_str(&style.chrome.accent);
            context.fill_rect(0.0, scene.y(row) + 1.0, 3.0, rows::BAR - 2.0);
        }
        context.restore();
    }
}
