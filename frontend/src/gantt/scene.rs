//! Data for a chart paint: spans, rows and time range.

use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::TimeWindow;
use super::colours::SpanColours;
use super::layout::Layout;
use super::rows;
use super::surface::plot_px;

/// Canvas size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    /// Width in px.
    pub(crate) width: f64,
    /// Height in px.
    pub(crate) height: f64,
    /// Device pixels per CSS pixel.
    pub(crate) ratio: f64,
}

impl Size {
    /// Plot width in px, excluding headers and margin.
    pub(crate) fn plot(self) -> f64 {
        plot_px(self.width, rows::HEADER)
    }

    /// Row area height in px, excluding the axis.
    pub(crate) fn rows(self) -> f64 {
        (self.height - rows::AXIS).max(0.0)
    }

    /// Rounds to the nearest device pixel.
    pub(crate) fn snap(self, px: f64) -> f64 {
        (px * self.ratio).round() / self.ratio
    }

    /// Resizes and clears a canvas, and scales its context to CSS pixels.
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

/// Chart spans, or an overview during loading.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// All spans.
    Spans {
        timeline: &'a Timeline,
        inks: &'a SpanColours,
    },
    Overview(&'a Overview),
}

impl Content<'_> {
    pub(crate) fn makespan_ns(&self) -> u64 {
        match self {
            Self::Spans { timeline, .. } => timeline.makespan_ns,
            Self::Overview(overview) => overview.makespan_ns,
        }
    }
}

/// Data for a chart paint.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) layout: &'a Layout,
    /// True if ranks can be folded.
    pub(crate) folds: bool,
    pub(crate) window: TimeWindow,
    pub(crate) size: Size,
    /// Scroll offset of the rows in px.
    pub(crate) scrolled: f64,
    /// True if the critical path is shown.
    pub(crate) critical: bool,
}

impl<'a> Scene<'a> {
    /// Horizontal canvas position for a time, rounded to a device pixel.
    pub(crate) fn x(&self, ns: f64) -> f64 {
        let x = self.window.x_at(ns, self.size.plot()).clamp(-10.0, self.size.plot() + 10.0);
        rows::HEADER + self.snap(x)
    }

    /// Vertical canvas position for a row.
    pub(crate) fn y(&self, row: usize) -> f64 {
        self.snap(self.layout.top(row, self.scrolled))
    }

    /// Rounds to the nearest device pixel.
    pub(crate) fn snap(&self, px: f64) -> f64 {
        self.size.snap(px)
    }

    /// Visible row indices.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        self.layout.visible(self.scrolled, self.size.rows())
    }

    /// Returns the timeline, or `None` while it loads.
    pub(crate) const fn timeline(&self) -> Option<&'a Timeline> {
        match self.content {
            Content::Spans { timeline, .. } => Some(timeline),
            Content::Overview(_) => None,
        }
    }
}
