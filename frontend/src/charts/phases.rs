//! Horizontal bar chart with two bars per phase: measured and predicted time.

use leptos::prelude::*;
use plotly::common::{HoverInfo, Marker, Orientation, Pattern, PatternShape, Title};
use plotly::layout::{AxisRange, BarMode, Margin};
use plotly::{Bar, Plot};

use super::figure::Figure;
use super::{Colours, colour, configuration};
use crate::format;
use crate::gantt::observers::theme_version;

/// Phase of a training step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PhaseBar {
    pub(crate) name: String,
    /// Measured time in s.
    pub(crate) measured_s: f64,
    /// Predicted time in s; `None` if the plan does not contain this phase.
    pub(crate) predicted_s: Option<f64>,
}

/// Bar chart with the first phase at the top.
#[component]
pub(crate) fn PhaseBars(
    #[prop(into)] phases: Signal<Vec<PhaseBar>>,
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
) -> impl IntoView {
    let version = theme_version();
    let plot = Memo::new(move |_| {
        version.track();
        phases.with(|phases| (!phases.is_empty()).then(|| json(phases, &Colours::read())))
    });
    let height = Signal::derive(move || 44.0 + 40.0 * phases.with(Vec::len) as f64);
    view! {
        <div data-testid="phases" data-phases=move || phases.with(Vec::len)>
            <ul class="chart-legend">
                <li><i class="swatch measured" aria-hidden="true"></i>"measured"</li>
                <li><i class="swatch predicted" aria-hidden="true"></i>"predicted"</li>
            </ul>
            <Figure plot=plot label=label class="chart-phases" height=height />
        </div>
    }
}

/// Left margin in px for the longest name at the axis font size.
fn left_px(phases: &[PhaseBar]) -> usize {
    let max_length = phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or(0);
    (max_length * 6 + 14).clamp(60, 190)
}

/// Returns the plot as JSON.
fn json(phases: &[PhaseBar], colours: &Colours) -> String {
    let names: Vec<String> = phases.iter().rev().map(|phase| phase.name.clone()).collect();
    let max_seconds =
        phases.iter().flat_map(|phase| [phase.measured_s, phase.predicted_s.unwrap_or(0.0)]).fold(0.0, f64::max);
    let texts = |values: &[f64], label: &str| {
        values.iter().map(|value| format!("{label} {}", format::seconds(*value))).collect()
    };
    let measured: Vec<f64> = phases.iter().rev().map(|phase| phase.measured_s).collect();
    let predicted: Vec<f64> = phases.iter().rev().map(|phase| phase.predicted_s.unwrap_or(f64::NAN)).collect();
    let mut plot = Plot::new();
    // Plotly stacks the bars of a group upwards, so the last trace is at the top.
    let hatched = Pattern::new().shape(PatternShape::RightDiagonalLine).solidity(0.35);
    plot.add_trace(
        Bar::new(predicted.clone(), names.clone())
            .orientation(Orientation::Horizontal)
            .marker(Marker::new().color(colour(&colours.mute)).pattern(hatched))
            .hover_text_array(texts(&predicted, "predicted"))
            .hover_info(HoverInfo::Text),
    );
    plot.add_trace(
        Bar::new(measured.clone(), names)
            .orientation(Orientation::Horizontal)
            .marker(Marker::new().color(colour(&colours.accent)))
            .hover_text_array(texts(&measured, "measured"))
            .hover_info(HoverInfo::Text),
    );
    let x_axis = colours
        .axis()
        .range(AxisRange::new(0.0, if max_seconds > 0.0 { 1.05 * max_seconds } else { 1.0 }))
        .n_ticks(6)
        .tick_suffix(" s")
        .title(Title::with_text("time per step").font(colours.font()));
    plot.set_layout(
        colours
            .layout(Margin::new().left(left_px(phases)).right(14).top(4).bottom(38))
            .paper_background_color(colour(&colours.panel))
            .bar_mode(BarMode::Group)
            .bar_gap(0.28)
            .x_axis(x_axis)
            .y_axis(colours.axis().show_grid(false).show_line(false))
            .show_legend(false),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}
