//! Charts based on plotly.js: workload histograms, memory and time per rank, and predictions
//! against measurements.
//!
//! [`bins`] and [`staircase`] compile natively and have unit tests. [`script`] loads plotly.js
//! once. [`figure`] updates one chart and displays an error message if plotly.js fails.

mod agreement;
mod bins;
mod curves;
mod error_axis;
mod figure;
mod histogram;
mod memory;
mod phases;
mod point_names;
mod residuals;
mod scatter;
mod script;
mod small_histogram;
mod stacked;
mod staircase;
mod steps;
mod stroke;

pub(crate) use agreement::AgreementChart;
pub(crate) use curves::{Curve, CurveChart, Dash, Form, tick_text};
pub(crate) use error_axis::ErrorChart;
pub(crate) use histogram::Histogram;
pub(crate) use memory::{MemoryChart, MemoryLine};
pub(crate) use phases::{PhaseBar, PhaseBars};
pub(crate) use residuals::FitChart;
pub(crate) use scatter::{Cloud, Mark, ScatterChart};
pub(crate) use small_histogram::SmallHistogram;
pub(crate) use stacked::{Fill, Limit, Measure, Part, StackedBars, StackedRow};
pub(crate) use steps::{Level, Measured, Shade, StepChart, StepPlot};
pub(crate) use stroke::Stroke;

use plotly::color::Color;
use plotly::common::{Font, Label};
use plotly::configuration::DisplayModeBar;
use plotly::layout::{Axis, Margin};
use plotly::{Configuration, Layout};

use crate::gantt::observers::css_variables;

/// Maximum points per line.
pub(crate) const MAX_POINTS: usize = 5_000;

/// CSS colours used by charts.
struct Colours {
    ink: String,
    mute: String,
    line: String,
    accent: String,
    bad: String,
    slower: String,
    panel: String,
}

impl Colours {
    fn read() -> Self {
        let variable = css_variables();
        Self {
            ink: variable("--ink", "#1a1d21"),
            mute: variable("--mute", "#667080"),
            line: variable("--line", "#d8dce2"),
            accent: variable("--accent", "#0b62d6"),
            bad: variable("--bad", "#c0392b"),
            slower: variable("--slower", "#9a4700"),
            panel: variable("--panel", "#ffffff"),
        }
    }

    fn font(&self) -> Font {
        Font::new().family("system-ui, sans-serif").size(11).color(self.mute.clone())
    }

    fn hover_label(&self) -> Label {
        Label::new()
            .background_color(self.panel.clone())
            .border_color(self.line.clone())
            .font(self.font().color(self.ink.clone()))
    }

    /// Plotly layout shared by all charts.
    fn layout(&self, margin: Margin) -> Layout {
        Layout::new()
            .font(self.font())
            .margin(margin.auto_expand(false))
            .paper_background_color(CLEAR)
            .plot_background_color(CLEAR)
            .auto_size(true)
            .hover_label(self.hover_label())
    }

    fn axis(&self) -> Axis {
        Axis::new()
            .color(self.mute.clone())
            .grid_color(self.line.clone())
            .line_color(self.line.clone())
            .zero_line(false)
            .fixed_range(true)
    }
}

/// Format of tick labels: thousands separators and no SI prefixes, so that all ticks of a metric have one form.
const NUMBERS: &str = ",.6~r";

const CLEAR: &str = "rgba(0,0,0,0)";

/// Plotly configuration without a tool bar. Zooming is a function of the Gantt charts; the other
/// charts follow their window.
fn configuration() -> Configuration {
    Configuration::new().display_mode_bar(DisplayModeBar::False).display_logo(false).show_tips(false)
}

/// Accepts any CSS colour text, because CSS variables contain arbitrary text.
fn colour(text: &str) -> impl Color + use<> {
    text.to_owned()
}
