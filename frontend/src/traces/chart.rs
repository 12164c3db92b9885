//! Chart state: when to paint, and which data to fetch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::path;
use api::trace::{SliceArrow, SliceDetail, SliceKind, TraceDetail, TraceView, VIEW_MEDIA_TYPE, decode};
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::hit;
use super::layout::{Content, Layout, ROW};
use super::paint::{self, AXIS, HEADER, Scene};
use crate::client::{self, RequestError};
use crate::gantt::frame::{Due, request_paint};
use crate::gantt::hit::REACH;
use crate::gantt::observers::{pixel_ratio, theme_version};
use crate::gantt::surface::{Surface, Viewport, plot_px, write_attributes};
use crate::gantt::{Size, TimeWindow};

/// Debounce interval for requests.
const PAUSE: Duration = Duration::from_millis(70);

/// Span copied from a view, so that it remains valid when the view changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) lane: u32,
    /// Row in the lane.
    pub(super) row: u16,
    /// Start of the first slice.
    pub(super) start_ns: u64,
    /// Time from the start to the end of the last slice.
    pub(super) extent_ns: u64,
    /// Total duration of the slices.
    pub(super) active_ns: u64,
    /// Slice count.
    pub(super) count: u32,
    /// Name of the slice, or of the longest merged slice.
    pub(super) name: String,
    /// Predominant kind.
    pub(super) kind: SliceKind,
}

impl Mark {
    /// Copies a span from a view.
    pub(super) fn from_view(view: &TraceView, lane: u32, span: usize) -> Self {
        Self {
            lane,
            row: view.row[span],
            start_ns: view.start_ns[span],
            extent_ns: view.extent_ns[span],
            active_ns: view.busy_ns[span],
            count: view.count[span],
            name: view.names.get(view.name[span] as usize).cloned().unwrap_or_default(),
            kind: SliceKind::from_index(view.kind[span]).unwrap_or(SliceKind::Other),
        }
    }

    /// Creates a mark for a single slice.
    pub(super) fn from_slice(slice: &SliceDetail) -> Self {
        Self {
            lane: slice.lane,
            row: u16::try_from(slice.depth).unwrap_or(u16::MAX),
            start_ns: slice.start_ns,
            extent_ns: slice.duration_ns,
            active_ns: slice.duration_ns,
            count: 1,
            name: slice.name.clone(),
            kind: slice.kind,
        }
    }

    fn position(&self) -> (u32, u16, u64, u64) {
        (self.lane, self.row, self.start_ns, self.extent_ns)
    }
}

/// Chart state. It is cheap to copy into event handlers.
#[derive(Clone, Copy)]
pub(super) struct TraceChart {
    pub(super) detail: StoredValue<Arc<TraceDetail>>,
    pub(super) folded: RwSignal<BTreeSet<u32>>,
    pub(super) layout: Memo<Arc<Layout>>,
    pub(super) window: RwSignal<TimeWindow>,
    pub(super) view: RwSignal<Option<Arc<TraceView>>>,
    pub(super) last_error: RwSignal<Option<RequestError>>,
    pub(super) hover: RwSignal<Option<Mark>>,
    pub(super) selected: RwSignal<Option<Mark>>,
    /// Arrows of the selected slice.
    pub(super) arrows: RwSignal<Vec<SliceArrow>>,
    /// Search text.
    pub(super) text: RwSignal<String>,
    pub(super) viewport: Viewport,
    /// Request number. Responses to older requests are discarded.
    request_number: StoredValue<u64>,
    timer: StoredValue<Option<TimeoutHandle>>,
    due: StoredValue<Due>,
}

impl TraceChart {
    /// Creates a chart with the full time range.
    pub(super) fn new(detail: Arc<TraceDetail>) -> Self {
        let folded = RwSignal::new(BTreeSet::new());
        let window = RwSignal::new(TimeWindow::fit(detail.trace.span_ns));
        let stored_detail = StoredValue::new(detail);
        let layout = Memo::new(move |_| {
            stored_detail.with_value(|detail| Arc::new(folded.with(|folded| Layout::from_lanes(&detail.lanes, folded))))
        });
        let chart = Self {
            detail: stored_detail,
            folded,
            layout,
            window,
            view: RwSignal::new(None),
            last_error: RwSignal::new(None),
            hover: RwSignal::new(None),
            selected: RwSignal::new(None),
            arrows: RwSignal::new(Vec::new()),
            text: RwSignal::new(String::new()),
            viewport: Viewport::new(),
            request_number: StoredValue::new(0),
            timer: StoredValue::new(None),
            due: StoredValue::new(Due::default()),
        };
        chart.subscribe();
        chart.sync_with_address();
        chart
    }

    /// Collapses all processes, or expands all if any is collapsed.
    pub(super) fn fold_all(self) {
        let all = self.detail.with_value(|detail| 0..detail.processes.len() as u32);
        self.folded.update(|folded| if folded.is_empty() { folded.extend(all) } else { folded.clear() });
    }

    /// Returns the time from the first start to the last end in ns.
    pub(super) fn extent_ns(self) -> u64 {
        self.detail.with_value(|detail| detail.trace.span_ns)
    }

    /// Zooms so that the selection covers a third of the window.
    pub(super) fn zoom_to_selection(self) {
        if let Some(mark) = self.selected.get_untracked() {
            let end = mark.start_ns.saturating_add(mark.extent_ns) as f64;
            self.change(|_, extent| TimeWindow::around(mark.start_ns as f64, end, extent));
        }
    }

    /// Returns the span at a canvas position.
    pub(super) fn at(self, x: f64, y: f64) -> Option<Mark> {
        let (_, height) = self.viewport.size.get_untracked();
        if x < HEADER || y >= height - AXIS {
            return None;
        }
        let view = self.view.get_untracked()?;
        let y = y + self.viewport.scrolled.get_untracked();
        let band = self.layout.with_untracked(|layout| layout.at(y))?;
        let Content::Lane(lane) = band.content else { return None };
        let row = ((y - band.top) / ROW) as u16;
        let reach_ns = REACH * self.visible().width_ns() / self.plot_px();
        let span = hit::nearest(&view, lane, row, self.ns_at(x), reach_ns)?;
        Some(Mark::from_view(&view, lane, span))
    }

    /// Selects a span and scrolls to it.
    pub(super) fn show(self, mark: Mark) {
        let (start, end) = (mark.start_ns as f64, mark.start_ns.saturating_add(mark.extent_ns) as f64);
        self.reveal(&mark);
        self.selected.set(Some(mark));
        self.change(|window, extent| window.revealing(start, end, extent));
    }

    /// Expands the process and scrolls to the row of the span.
    pub(super) fn reveal(self, mark: &Mark) {
        let process = self.detail.with_value(|detail| detail.lanes.get(mark.lane as usize).map(|lane| lane.process));
        if let Some(process) = process
            && self.folded.with_untracked(|folded| folded.contains(&process))
        {
            self.folded.update(|folded| {
                folded.remove(&process);
            });
        }
        if let Some(band) = self.layout.with_untracked(|layout| layout.lane_band(mark.lane)) {
            let top = band.top + f64::from(mark.row) * ROW;
            self.viewport.scroll_to(AXIS, |from, height| {
                let is_visible = top >= from && top + ROW <= from + height;
                if is_visible { from } else { (top - height / 2.0).max(0.0) }
            });
        }
    }

    /// Paints and fetches after each change.
    fn subscribe(self) {
        let theme = theme_version();
        Effect::new(move |_| {
            self.window.track();
            self.viewport.size.track();
            self.viewport.scrolled.track();
            self.layout.track();
            self.fetch_soon();
        });
        Effect::new(move |_| {
            self.window.track();
            self.viewport.size.track();
            self.viewport.scrolled.track();
            self.layout.track();
            self.view.track();
            self.hover.track();
            self.selected.track();
            self.arrows.track();
            self.text.track();
            theme.track();
            self.request();
        });
        on_cleanup(move || {
            if let Some(Some(timer)) = self.timer.try_update_value(Option::take) {
                timer.clear();
            }
        });
    }

    fn fetch_soon(self) {
        let timer = set_timeout_with_handle(move || self.fetch(), PAUSE).ok();
        self.timer.update_value(|slot| {
            if let Some(before) = std::mem::replace(slot, timer) {
                before.clear();
            }
        });
    }

    /// Fetches the visible range plus the same width on both sides, so that panning shows data
    /// immediately.
    fn fetch(self) {
        let (Some(window), Some((width, height))) =
            (self.window.try_get_untracked(), self.viewport.size.try_get_untracked())
        else {
            return;
        };
        let lanes = self
            .layout
            .with_untracked(|layout| layout.lanes(self.viewport.scrolled.get_untracked() - height, height * 3.0));
        if width <= HEADER || lanes.is_empty() {
            return;
        }
        let margin = window.width_ns() / 2.0;
        let from = (window.start_ns - margin).max(0.0);
        let to = (window.end_ns + margin).min(self.extent_ns() as f64 + 1.0).max(from + 1.0);
        let pixels = ((to - from) / window.width_ns() * plot_px(width, HEADER)).clamp(1.0, 8192.0);
        let id = self.detail.with_value(|detail| detail.trace.id.clone());
        let url = path::trace_view(&id, from as u64, (to.ceil() as u64).max(from as u64 + 1), pixels as u32, &lanes);
        let number = self.request_number.try_update_value(|latest| {
            *latest += 1;
            *latest
        });
        spawn_local(async move {
            let result = client::get_bytes(&url, VIEW_MEDIA_TYPE).await;
            if self.request_number.try_get_value() != number {
                return;
            }
            let response =
                result.and_then(|bytes| decode(&bytes).map_err(|error| RequestError::Unreadable(error.to_string())));
            match response {
                Ok(view) => {
                    self.last_error.set(None);
                    self.view.set(Some(Arc::new(view)));
                }
                Err(error) => self.last_error.set(Some(error)),
            }
        });
    }

    /// Requests a paint in the next frame. Several changes share a paint.
    fn request(self) {
        request_paint(self.due, Due::ALL, move || {
            // `None` if the component was removed or has no size. Then there is nothing to paint.
            let _painted = self.frame();
        });
    }

    fn frame(self) -> Option<()> {
        self.due.try_set_value(Due::default());
        let canvas = self.viewport.canvas.try_get_untracked()??;
        let (width, height) = self.viewport.size.try_get_untracked()?;
        if width < HEADER || height < AXIS {
            return None;
        }
        let view = self.view.try_get_untracked()?;
        let text = self.text.try_get_untracked()?.to_lowercase();
        let found: Vec<bool> = match &view {
            Some(view) if !text.is_empty() => {
                view.names.iter().map(|name| name.to_lowercase().contains(&text)).collect()
            }
            _ => Vec::new(),
        };
        let mark_position =
            |mark: RwSignal<Option<Mark>>| mark.with_untracked(|mark| mark.as_ref().map(Mark::position));
        let (detail, layout) = (self.detail.try_get_value()?, self.layout.try_get_untracked()?);
        let scene = Scene {
            detail: &detail,
            layout: &layout,
            view: view.as_deref(),
            found: &found,
            window: self.window.try_get_untracked()?,
            size: Size { width, height, ratio: pixel_ratio() },
            scrolled: self.viewport.scrolled.try_get_untracked()?,
            marked: [mark_position(self.selected), mark_position(self.hover)],
            folded: &self.folded.try_get_untracked()?,
            arrows: &self.arrows.try_get_untracked()?,
        };
        let painted = paint::paint(&canvas, &scene)?;
        write_attributes(
            &canvas,
            [
                ("data-start-ns", format!("{:.0}", scene.window.start_ns)),
                ("data-end-ns", format!("{:.0}", scene.window.end_ns)),
                ("data-painted-slices", painted.slices.to_string()),
                ("data-painted-arrows", painted.arrows.to_string()),
                ("data-level", view.as_ref().map_or_else(String::new, |view| view.level.to_string())),
            ],
        );
        Some(())
    }
}

impl Surface for TraceChart {
    const HEADER_PX: f64 = HEADER;

    fn viewport(self) -> Viewport {
        self.viewport
    }

    fn visible(self) -> TimeWindow {
        self.window.get_untracked()
    }

    fn change(self, to: impl FnOnce(TimeWindow, u64) -> TimeWindow) {
        let before = self.visible();
        let after = to(before, self.extent_ns());
        if after != before {
            self.window.set(after);
        }
    }
}
