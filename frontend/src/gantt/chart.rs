//! What one chart is made of, and when it paints.

use std::sync::Arc;

use api::planner::timeline::Timeline;
use leptos::html;
use leptos::prelude::*;

use super::gesture::Gesture;
use super::overlay::{self, Marks};
use super::paint::{Painter, Scene, Size};
use super::watch::{pixel_ratio, theme_version};
use super::{Selection, TimeWindow, rows, shared};

/// Canvases that wait for the next frame.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Due {
    pub(super) bars: bool,
    pub(super) marks: bool,
}

/// Everything one chart is made of; cheap to copy into event handlers.
#[derive(Clone, Copy)]
pub(crate) struct Chart {
    pub(crate) number: usize,
    pub(crate) timeline: Signal<Option<Arc<Timeline>>>,
    pub(crate) extent_ns: Signal<u64>,
    pub(crate) window: RwSignal<TimeWindow>,
    pub(crate) selection: RwSignal<Option<Selection>>,
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// Width and height of the canvas, in px.
    pub(crate) size: RwSignal<(f64, f64)>,
    /// How far the rows are scrolled, in px.
    pub(crate) scrolled: RwSignal<f64>,
    /// The band that is being dragged, in px of the plot.
    pub(crate) band: RwSignal<Option<(f64, f64)>>,
    /// The pointer over this chart, in px of the canvas.
    pub(crate) pointer: RwSignal<Option<(f64, f64)>>,
    pub(crate) gesture: StoredValue<Gesture>,
    pub(crate) canvas: NodeRef<html::Canvas>,
    pub(crate) scroller: NodeRef<html::Div>,
    pub(super) overlay: NodeRef<html::Canvas>,
    pub(super) painter: StoredValue<Painter, LocalStorage>,
    pub(super) due: StoredValue<Due>,
}

impl Chart {
    /// The selected span, if it is one of this chart.
    pub(crate) fn selected(self) -> Option<usize> {
        self.selection.get().filter(|selection| selection.chart == self.number).map(|selection| selection.span)
    }

    /// Width of the plot, in px.
    pub(crate) fn plot_width(self) -> f64 {
        self.measure().plot()
    }

    fn measure(self) -> Size {
        let (width, height) = self.size.try_get_untracked().unwrap_or_default();
        Size { width, height, ratio: pixel_ratio() }
    }

    /// Asks for a paint at the next frame, once however many changes come before it.
    pub(super) fn request(self, due: Due) {
        let first = self.due.try_update_value(|waiting| {
            let first = !waiting.bars && !waiting.marks;
            waiting.bars |= due.bars;
            waiting.marks |= due.marks;
            first
        });
        if first == Some(true) {
            request_animation_frame(move || {
                // None where the component is gone meanwhile or has no size yet: then there is nothing to paint.
                let _painted = self.frame();
            });
        }
    }

    /// Paints what is due; does nothing once the component is gone.
    fn frame(self) -> Option<()> {
        let due = self.due.try_update_value(std::mem::take)?;
        let canvas = self.canvas.try_get_untracked()??;
        let overlay = self.overlay.try_get_untracked()??;
        let size = self.measure();
        if size.width < rows::HEADER || size.height < rows::AXIS {
            return None;
        }
        let Some(timeline) = self.timeline.try_get_untracked()? else {
            size.prepare(&canvas)?;
            size.prepare(&overlay)?;
            return None;
        };
        let scene = Scene {
            timeline: &timeline,
            window: self.window.try_get_untracked()?,
            size,
            scrolled: self.scrolled.try_get_untracked()?,
            critical: shared::critical_is_marked().get_untracked(),
        };
        self.painter.try_update_value(|painter| {
            if due.bars {
                let version = theme_version().get_untracked();
                if let Some(spans) = painter.paint(&canvas, scene, version) {
                    note(&canvas, scene.window, spans);
                }
            }
            if let Some((chrome, font)) = painter.chrome() {
                overlay::paint(&overlay, scene, self.marks(&timeline), chrome, font);
            }
        })
    }

    fn marks(self, timeline: &Timeline) -> Marks {
        let of_this = |signal: RwSignal<Option<Selection>>| {
            signal
                .try_get_untracked()
                .flatten()
                .filter(|selection| selection.chart == self.number && selection.span < timeline.len())
                .map(|selection| selection.span)
        };
        Marks {
            selected: of_this(self.selection),
            hovered: of_this(self.hover),
            cursor_ns: shared::cursor_ns().get_untracked(),
            band: self.band.try_get_untracked().flatten(),
        }
    }
}

/// Leaves on the canvas what was painted, for tests and for the curious.
fn note(canvas: &web_sys::HtmlCanvasElement, window: TimeWindow, spans: u64) {
    for (name, value) in [
        ("data-start-ns", format!("{:.0}", window.start_ns)),
        ("data-end-ns", format!("{:.0}", window.end_ns)),
        ("data-painted-spans", spans.to_string()),
    ] {
        // These names are valid, which is all that could be wrong.
        drop(canvas.set_attribute(name, &value));
    }
}
