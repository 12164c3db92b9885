//! What a chart shows: which spans, in which rows, for which stretch of time.

use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::TimeWindow;
use super::inks::Inks;
use super::layout::Layout;
use super::rows;

/// Free room right of the plot, so that the last label of the axis fits, in px.
pub(crate) const RIGHT: f64 = 12.0;

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

/// The spans of a chart, or what is known of them before they are there.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// All spans.
    Spans {
        /// The spans.
        timeline: &'a Timeline,
        /// Their inks.
        inks: &'a Inks,
    },
    /// The first look at a large timeline.
    Overview(&'a Overview),
}

impl Content<'_> {
    /// End of the last span, in ns.
    pub(crate) fn makespan_ns(&self) -> u64 {
        match self {
            Self::Spans { timeline, .. } => timeline.makespan_ns,
            Self::Overview(overview) => overview.makespan_ns,
        }
    }
}

/// What a chart shows.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) layout: &'a Layout,
    /// Whether ranks can be folded.
    pub(crate) folds: bool,
    pub(crate) window: TimeWindow,
    pub(crate) size: Size,
    /// How far the rows are scrolled, in px.
    pub(crate) scrolled: f64,
    /// Whether the critical path is marked.
    pub(crate) critical: bool,
}

impl<'a> Scene<'a> {
    /// Horizontal position of a time on the canvas, on a device pixel.
    pub(crate) fn x(&self, ns: f64) -> f64 {
        let x = self.window.x_of(ns, self.size.plot()).clamp(-10.0, self.size.plot() + 10.0);
        rows::HEADER + self.snap(x)
    }

    /// Vertical position of a row on the canvas.
    pub(crate) fn y(&self, row: usize) -> f64 {
        self.snap(self.layout.top(row, self.scrolled))
    }

    /// The nearest device pixel.
    pub(crate) fn snap(&self, px: f64) -> f64 {
        (px * self.size.ratio).round() / self.size.ratio
    }

    /// Places of the rows in view.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        self.layout.visible(self.scrolled, self.size.rows())
    }

    /// The spans, once they are there.
    pub(crate) const fn timeline(&self) -> Option<&'a Timeline> {
        match self.content {
            Content::Spans { timeline, .. } => Some(timeline),
            Content::Overview(_) => None,
        }
    }
}
