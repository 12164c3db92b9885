//! Gantt chart on a canvas with one row per rank.
//!
//! Code that does not need a browser compiles natively and has unit tests: [`camera`] (time to
//! pixels), [`lod`] (level of detail), [`layout`] (rows, folds, pins), [`colours`] (colours),
//! [`raster`] (pixels), [`hit`], [`ticks`], [`rows`], [`label`], [`traversal`], [`query`] (search),
//! [`area`] (sums), [`differences`], [`describe`], [`palette`], [`gesture`], [`keys`]. [`paint`]
//! and [`overlay`] draw a [`scene`] on the canvas. [`chart`] schedules the redraws, [`navigation`]
//! implements the chart actions, [`input`] maps events to them, and [`view`] is the component.
//! Charts of traces share [`surface`] (navigation), [`hit`], [`axis_paint`] and [`frame`] (redraws).

mod area;
mod area_panel;
pub(crate) mod axis_paint;
mod camera;
mod chart;
mod colours;
mod compare_bar;
pub(crate) mod describe;
mod differences;
mod exposed;
pub(crate) mod frame;
pub(crate) mod gesture;
mod glyphs;
pub(crate) mod hit;
mod input;
pub(crate) mod keys;
mod label;
mod layout;
mod legend;
mod lod;
mod minimap;
mod navigation;
pub(crate) mod observers;
mod overlay;
mod paint;
mod palette;
pub(crate) mod picture;
mod query;
mod rank_devices;
mod raster;
pub(crate) mod rows;
#[cfg(test)]
pub(crate) mod sample;
mod scene;
mod shared;
mod style;
pub(crate) mod surface;
mod table;
mod ticks;
pub(crate) mod time_text;
mod tools;
mod tooltip;
mod traversal;
mod view;

pub(crate) use compare_bar::CompareBar;
pub(crate) use differences::Differences;
pub(crate) use keys::help_rows;
pub(crate) use legend::Legend;
pub(crate) use palette::Theme;
#[cfg(test)]
pub(crate) use palette::fill;
pub(crate) use rank_devices::{ComparedDevices, RankDevices};
pub(crate) use scene::Size;
pub(crate) use shared::cursor_ns;
pub(crate) use shared::selection_difference;
pub(crate) use surface::RIGHT as RIGHT_MARGIN_PX;
pub(crate) use ticks::axis;
pub(crate) use time_text::{Measure, set_measure};
pub(crate) use traversal::Step;
pub(crate) use view::Gantt;

/// Visible time range of all charts on a page, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeWindow {
    pub(crate) start_ns: f64,
    pub(crate) end_ns: f64,
}

/// Span in one of the page's charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Index of the chart.
    pub(crate) chart: usize,
    /// Span index in the timeline columns.
    pub(crate) span: usize,
}
