//! State of a chart, and its redraw scheduling.

use std::ops::Range;
use std::sync::Arc;

use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use leptos::html;
use leptos::prelude::*;

use super::area::Area;
use super::colours::SpanColours;
use super::frame::{Due, request_paint};
use super::gesture::Band;
use super::layout::{Arrangement, Layout};
use super::observers::{pixel_ratio, theme_version};
use super::overlay::{self, Marks};
use super::paint::Painter;
use super::scene::{Content, Scene, Size};
use super::surface::{Surface, Viewport, write_attributes};
use super::{Selection, TimeWindow, rows, shared};

/// Shared large value, compared by pointer.
#[derive(Debug)]
pub(crate) struct Same<T>(pub(crate) Arc<T>);

impl<T> Clone for Same<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Signals and DOM elements per chart. The struct is `Copy`, so event handlers can capture it.
#[derive(Clone, Copy)]
pub(crate) struct Chart {
    pub(crate) number: usize,
    pub(crate) timeline: Signal<Option<Arc<Timeline>>>,
    /// Overview while the timeline loads.
    pub(crate) overview: Signal<Option<Arc<Overview>>>,
    pub(crate) extent_ns: Signal<u64>,
    /// Visible time range on the axis that all charts share.
    pub(crate) window: RwSignal<TimeWindow>,
    pub(crate) selection: RwSignal<Option<Selection>>,
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// Search text.
    pub(crate) query: RwSignal<String>,
    /// Folded groups and pinned ranks.
    pub(crate) arrangement: RwSignal<Arrangement>,
    /// Foldable rank groups.
    pub(crate) groups: Memo<Vec<Range<u32>>>,
    pub(crate) layout: Memo<Same<Layout>>,
    pub(super) inks: Memo<Option<Same<SpanColours>>>,
    pub(crate) area: RwSignal<Option<Area>>,
    /// Selection rectangle during a drag, in canvas px.
    pub(crate) band: RwSignal<Option<Band>>,
    pub(crate) viewport: Viewport,
    pub(super) overlay: NodeRef<html::Canvas>,
    pub(super) painter: StoredValue<Painter, LocalStorage>,
    pub(super) due: StoredValue<Due>,
}

impl Chart {
    /// Selected span, if it belongs to this chart.
    pub(crate) fn selected(self) -> Option<usize> {
        self.selection.get().filter(|selection| selection.chart == self.number).map(|selection| selection.span)
    }

    /// Describes the difference between a span and its baseline counterpart. Returns `None` if
    /// differences are hidden.
    pub(super) fn difference_text(self, timeline: &Timeline, span: usize) -> Option<String> {
        self.inks.with(|inks| inks.as_ref().and_then(|inks| inks.0.difference_text(timeline, span)))
    }

    /// End time in ns. Available as soon as the overview is loaded.
    pub(crate) fn makespan_ns(self) -> Option<u64> {
        let makespan_ns = self.timeline.with(|timeline| timeline.as_ref().map(|timeline| timeline.makespan_ns));
        makespan_ns.or_else(|| self.overview.with(|overview| overview.as_ref().map(|overview| overview.makespan_ns)))
    }

    /// Chart time per shared axis time: 1 for an absolute axis, at most 1 if each chart fills the
    /// width.
    fn scale(self) -> f64 {
        let extent = self.extent_ns.get().max(1) as f64;
        match self.makespan_ns() {
            Some(makespan) if shared::axis_is_relative().get() && makespan > 0 => makespan as f64 / extent,
            _ => 1.0,
        }
    }

    /// Axis end in chart time, in ns.
    pub(crate) fn extent(self) -> u64 {
        (self.extent_ns.get() as f64 * self.scale()).round() as u64
    }

    /// Visible range in chart time.
    pub(crate) fn visible_window(self) -> TimeWindow {
        let (window, scale) = (self.window.get(), self.scale());
        TimeWindow { start_ns: window.start_ns * scale, end_ns: window.end_ns * scale }
    }

    /// Sets the shared cursor to a time of this chart, or clears it.
    pub(super) fn set_cursor(self, ns: Option<f64>) {
        let scale = untrack(|| self.scale());
        shared::cursor_ns().set(ns.map(|ns| ns / scale));
    }

    /// Shared cursor in chart time.
    pub(super) fn cursor_ns(self) -> Option<f64> {
        let scale = untrack(|| self.scale());
        shared::cursor_ns().get_untracked().map(|ns| ns * scale)
    }

    fn measure(self) -> Size {
        let (width, height) = self.viewport.size.try_get_untracked().unwrap_or_default();
        Size { width, height, ratio: pixel_ratio() }
    }

    /// Schedules a repaint for the next frame. Combines several requests.
    pub(super) fn request(self, due: Due) {
        request_paint(self.due, due, move || {
            // `None` means that the component is unmounted or still has zero size.
            let _painted = self.frame();
        });
    }

    /// Paints the requested canvases. Does nothing after unmounting.
    fn frame(self) -> Option<()> {
        let due = self.due.try_update_value(std::mem::take)?;
        let canvas = self.viewport.canvas.try_get_untracked()??;
        let overlay = self.overlay.try_get_untracked()??;
        let size = self.measure();
        if size.width < rows::HEADER || size.height < rows::AXIS {
            return None;
        }
        let timeline = self.timeline.try_get_untracked()?;
        let overview = self.overview.try_get_untracked()?;
        let inks = self.inks.try_get_untracked()?;
        let content = match (&timeline, &inks, &overview) {
            (Some(timeline), Some(inks), _) => Content::Spans { timeline, inks: &inks.0 },
            (_, _, Some(overview)) => Content::Overview(overview),
            _ => {
                size.prepare(&canvas)?;
                size.prepare(&overlay)?;
                return None;
            }
        };
        let layout = self.layout.try_get_untracked()?;
        let scene = Scene {
            content,
            layout: &layout.0,
            folds: self.groups.try_with_untracked(|groups| !groups.is_empty())?,
            window: self.visible(),
            size,
            scrolled: self.viewport.scrolled.try_get_untracked()?,
            critical: shared::critical_is_marked().get_untracked(),
        };
        self.painter.try_update_value(|painter| {
            if due.bars {
                let version = theme_version().get_untracked();
                if let Some(spans) = painter.paint(&canvas, scene, version) {
                    note(&canvas, scene, spans);
                }
            }
            if let Some(style) = painter.style() {
                overlay::paint(
                    &overlay,
                    scene,
                    self.marks(timeline.as_ref().map_or(0, |timeline| timeline.len())),
                    style,
                );
            }
        })
    }

    /// Selection, hover and cursor markers. `spans` is the chart's span count.
    fn marks(self, spans: usize) -> Marks {
        let in_chart = |signal: RwSignal<Option<Selection>>| {
            signal
                .try_get_untracked()
                .flatten()
                .filter(|selection| selection.chart == self.number && selection.span < spans)
                .map(|selection| selection.span)
        };
        Marks {
            selected: in_chart(self.selection),
            hovered: in_chart(self.hover),
            cursor_ns: self.cursor_ns(),
            band: self.band.try_get_untracked().flatten(),
            area: self.area.try_get_untracked().flatten(),
        }
    }
}

/// Writes the painted range and span count to data attributes of the canvas, for tests and
/// debugging.
fn note(canvas: &web_sys::HtmlCanvasElement, scene: Scene<'_>, spans: u64) {
    let painted_layer = if scene.timeline().is_some() { "spans" } else { "overview" };
    write_attributes(
        canvas,
        [
            ("data-start-ns", format!("{:.0}", scene.window.start_ns)),
            ("data-end-ns", format!("{:.0}", scene.window.end_ns)),
            ("data-painted-spans", spans.to_string()),
            ("data-painted", painted_layer.to_owned()),
        ],
    );
}

impl Surface for Chart {
    const HEADER_PX: f64 = rows::HEADER;

    fn viewport(self) -> Viewport {
        self.viewport
    }

    /// Visible range in chart time.
    fn visible(self) -> TimeWindow {
        untrack(|| self.visible_window())
    }

    /// Changes the visible range in chart time. The change applies to all charts.
    fn change(self, to: impl FnOnce(TimeWindow, u64) -> TimeWindow) {
        let scale = untrack(|| self.scale());
        let before = self.visible();
        let after = to(before, untrack(|| self.extent()));
        if after != before {
            self.window.set(TimeWindow { start_ns: after.start_ns / scale, end_ns: after.end_ns / scale });
        }
    }
}
