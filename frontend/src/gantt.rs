//! The Gantt chart: one row per rank, drawn on a canvas.
//!
//! What can be decided without a browser is native and tested: [`camera`] (time to pixels), [`lod`] (what is drawn at which
//! zoom), [`layout`] (rows, folds, pins), [`inks`] (what is coloured how), [`raster`] (pixels), [`hit`], [`ticks`], [`rows`],
//! [`label`], [`walk`], [`query`] (search), [`area`] (sums), [`differences`], [`describe`], [`palette`], [`gesture`], [`keys`].
//! [`paint`] and [`overlay`] bring a [`scene`] to the canvas; [`chart`] decides when, [`steering`] is what can be done to a chart,
//! [`input`] by which event, [`view`] is the component.

mod area;
mod area_panel;
mod camera;
mod chart;
mod chrome;
mod compare_bar;
pub(crate) mod describe;
mod differences;
pub(crate) mod gesture;
mod glyphs;
mod hit;
mod inks;
mod input;
mod inside;
pub(crate) mod keys;
mod label;
mod layout;
mod legend;
mod lod;
mod minimap;
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
mod steering;
mod table;
mod ticks;
pub(crate) mod time_text;
mod tools;
mod tooltip;
mod view;
mod walk;
pub(crate) mod watch;

pub(crate) use compare_bar::CompareBar;
pub(crate) use differences::Differences;
pub(crate) use keys::help_rows;
pub(crate) use legend::Legend;
pub(crate) use palette::Theme;
#[cfg(test)]
pub(crate) use palette::fill;
pub(crate) use rank_devices::{ComparedDevices, RankDevices};
pub(crate) use scene::RIGHT as RIGHT_MARGIN_PX;
pub(crate) use scene::Size;
pub(crate) use shared::cursor_ns;
pub(crate) use shared::selection_told;
pub(crate) use ticks::axis;
pub(crate) use time_text::{Measure, set_measure};
pub(crate) use view::Gantt;
pub(crate) use walk::Step;

/// The stretch of time that every chart of a page shows, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeWindow {
    /// Left edge, in ns.
    pub(crate) start_ns: f64,
    /// Right edge, in ns.
    pub(crate) end_ns: f64,
}

/// A span of one of the page's charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Number of the chart.
    pub(crate) chart: usize,
    /// Index into the columns of its timeline.
    pub(crate) span: usize,
}
