//! Synchronizes time range and selection with the address bar.

use std::time::Duration;

use api::path;
use api::trace::SliceDetail;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsValue;

use super::chart::{Mark, TraceChart};
use super::link::{SlicePosition, TraceLink};
use crate::client;
use crate::gantt::TimeWindow;

/// Minimum interval between address bar updates. Browsers reject hundreds of updates within a few
/// seconds.
const PAUSE: Duration = Duration::from_millis(250);

impl TraceChart {
    /// Applies the view from the address bar, then writes changes back.
    pub(super) fn sync_with_address(self) {
        self.read_address();
        let timer = StoredValue::new(None::<TimeoutHandle>);
        let write_soon = move || {
            let next = set_timeout_with_handle(move || self.write_address(), PAUSE).ok();
            timer.update_value(|slot| {
                if let Some(before) = std::mem::replace(slot, next) {
                    before.clear();
                }
            });
        };
        Effect::new(move |before: Option<()>| {
            self.window.track();
            self.selected.track();
            // Do not write the initial state, because it comes from the address bar.
            if before.is_some() {
                write_soon();
            }
        });
        // The user typed another fragment or navigated back.
        let typed = window_event_listener(leptos::ev::hashchange, move |_| self.read_address());
        on_cleanup(move || {
            typed.remove();
            if let Some(Some(timer)) = timer.try_update_value(Option::take) {
                timer.clear();
            }
        });
    }

    fn read_address(self) {
        let link = TraceLink::parse(&window().location().hash().unwrap_or_default());
        let extent = self.extent_ns();
        self.window.set(match link.window_ns {
            Some((start, end)) => {
                let requested = TimeWindow { start_ns: start as f64, end_ns: end as f64 };
                // Limit the time range from the link to the extent of the trace.
                requested.clamped(extent)
            }
            None => TimeWindow::fit(extent),
        });
        match link.selected {
            Some(position) => self.select_at(position, false),
            None => self.selected.set(None),
        }
    }

    /// Selects the slice at a position if it exists. If `moves` is true, scrolls to it.
    pub(super) fn select_at(self, (lane, row, start_ns): SlicePosition, moves: bool) {
        let id = self.detail.with_value(|detail| detail.trace.id.clone());
        let before = self.selected.get_untracked();
        spawn_local(async move {
            // If the slice does not exist, nothing is selected.
            let Ok(slice) = client::get::<SliceDetail>(&path::trace_slice(&id, lane, u32::from(row), start_ns)).await
            else {
                return;
            };
            // The user may have left the page or selected another slice.
            if self.selected.try_get_untracked() != Some(before) {
                return;
            }
            let mark = Mark::from_slice(&slice);
            if moves {
                self.show(mark);
            } else {
                self.reveal(&mark);
                self.selected.set(Some(mark));
            }
        });
    }

    fn link(self) -> TraceLink {
        let (window, extent) = (self.window.get_untracked(), self.extent_ns());
        let is_full = window.start_ns <= 0.0 && window.end_ns >= extent as f64;
        let window_ns = (!is_full && window.end_ns > window.start_ns)
            .then(|| (window.start_ns.max(0.0).round() as u64, window.end_ns.round() as u64))
            .filter(|(start, end)| start < end);
        // Write only single slices, because merged spans depend on the zoom level.
        let selected = self.selected.get_untracked().filter(|mark| mark.count == 1);
        TraceLink { window_ns, selected: selected.map(|mark| (mark.lane, mark.row, mark.start_ns)) }
    }

    fn write_address(self) {
        if self.selected.try_get_untracked().is_none() {
            return;
        }
        let page = path::trace_page(&self.detail.with_value(|detail| detail.trace.id.clone()));
        let fragment = self.link().write();
        let mark = if fragment.is_empty() { "" } else { "#" };
        // The user may have left the page.
        if window().location().pathname().is_ok_and(|here| here == page)
            && let Ok(history) = window().history()
        {
            // If the browser refuses, the old URL stays. The next change writes again.
            drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("{page}{mark}{fragment}"))));
        }
    }
}
