//! Chart over training steps: measured lines, predicted values with error bands, and outliers as
//! rings.

use leptos::prelude::*;
use plotly::common::{DashType, Fill, HoverInfo, Line, Marker, MarkerSymbol, Mode, Title};
use plotly::layout::{AxisRange, HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::curves::Dash;
use super::figure::Figure;
use super::{Colours, colour, configuration};
use crate::format;
use crate::gantt::Theme;
use crate::gantt::observers::{theme, theme_version};

/// Lines up to this point count show a marker at each point.
const MARKED: usize = 60;
/// Values above this multiple of the usual maximum are drawn at the top edge, so that the other
/// values stay readable.
const BEYOND: f64 = 1.5;
/// Smallest number of values with a usual maximum.
const MIN_VALUES: usize = 8;

/// Maximum of sorted values without the largest 5 %, at least without the largest one: a warm-up step is not usual.
fn usual_maximum(sorted: &[f64]) -> Option<f64> {
    let left_out = (sorted.len() / 20).max(1);
    (sorted.len() >= MIN_VALUES).then(|| sorted[sorted.len() - 1 - left_out])
}

/// Colours for the light and the dark theme, "#rrggbb".
pub(crate) type Shade = (&'static str, &'static str);

/// Measured line. NaN values interrupt it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// Name in the legend and the hover text.
    pub(crate) name: String,
    pub(crate) shade: Shade,
    /// Points sorted by step.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Predicted value with its error band.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) shade: Shade,
    pub(crate) dash: Dash,
    pub(crate) value: f64,
    /// Lower and upper limit of the band.
    pub(crate) band: (f64, f64),
}

/// Data of a step chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StepPlot {
    pub(crate) tracks: Vec<Measured>,
    pub(crate) levels: Vec<Level>,
    /// Outliers: step, value and hover text.
    pub(crate) exceptional_points: Vec<(f64, f64, String)>,
    /// Total outlier count, including outliers that are not drawn.
    pub(crate) left_out: usize,
    /// Steps at which the run restarted.
    pub(crate) restarts: Vec<f64>,
    /// First and last step of the axis, shared by adjacent charts. `None` uses the range of the
    /// points.
    pub(crate) steps: Option<(f64, f64)>,
    /// Unit suffix of a value; empty for none.
    pub(crate) unit: &'static str,
    /// True if very large values are drawn at the top edge.
    pub(crate) is_clipped: bool,
}

impl StepPlot {
    /// Number of drawn points.
    pub(crate) fn count(&self) -> usize {
        let finite = |track: &Measured| track.points.iter().filter(|point| point.1.is_finite()).count();
        self.tracks.iter().map(finite).sum::<usize>() + self.exceptional_points.len()
    }

    /// First and last step. For a single step, the range is one step wider.
    fn extent(&self) -> (f64, f64) {
        if let Some((first, last)) = self.steps.filter(|(first, last)| first < last) {
            return (first, last);
        }
        let steps = || {
            let drawn = self.tracks.iter().flat_map(|track| track.points.iter().map(|point| point.0));
            drawn.chain(self.exceptional_points.iter().map(|point| point.0))
        };
        let (first, last) = (steps().fold(f64::INFINITY, f64::min), steps().fold(f64::NEG_INFINITY, f64::max));
        if first > last {
            (0.0, 1.0)
        } else if first.total_cmp(&last).is_eq() {
            (first - 1.0, last + 1.0)
        } else {
            (first, last)
        }
    }

    /// Minimum and maximum of the value axis.
    fn values(&self) -> (f64, f64) {
        let mut measured: Vec<f64> =
            self.tracks.iter().flat_map(|track| track.points.iter().map(|point| point.1)).collect();
        measured.retain(|value| value.is_finite());
        if !self.is_clipped {
            measured.extend(self.exceptional_points.iter().map(|point| point.1));
        }
        if measured.is_empty() {
            measured.extend(self.exceptional_points.iter().map(|point| point.1));
        }
        measured.sort_by(f64::total_cmp);
        let predicted = || self.levels.iter().flat_map(|level| [level.value, level.band.0, level.band.1]);
        let mut lower = measured.first().copied().unwrap_or(f64::INFINITY);
        let mut upper = measured.last().copied().unwrap_or(f64::NEG_INFINITY);
        if self.is_clipped {
            // Each track has a usual maximum: a second run can be slower.
            let usual =
                self.tracks.iter().map(|track| usual_or_maximum(&track.points)).fold(f64::NEG_INFINITY, f64::max);
            if usual.is_finite() && upper > BEYOND * usual {
                upper = 1.3 * usual;
            }
        }
        lower = predicted().fold(lower, f64::min);
        upper = predicted().fold(upper, f64::max);
        if self.is_clipped {
            // Outliers close to the normal range extend the axis.
            upper = self
                .exceptional_points
                .iter()
                .map(|point| point.1)
                .filter(|value| *value <= 1.5 * upper)
                .fold(upper, f64::max);
            lower = self.exceptional_points.iter().map(|point| point.1).fold(lower, f64::min);
        }
        if lower > upper {
            return (0.0, 1.0);
        }
        let margin = (0.06 * (upper - lower)).max(0.002 * upper.abs()).max(f64::MIN_POSITIVE);
        (lower - margin, upper + margin)
    }
}

/// Usual maximum of a track; the maximum if it has few values.
fn usual_or_maximum(points: &[(f64, f64)]) -> f64 {
    let mut values: Vec<f64> = points.iter().map(|point| point.1).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    usual_maximum(&values).or(values.last().copied()).unwrap_or(f64::NEG_INFINITY)
}

fn shade(shade: Shade) -> &'static str {
    if theme() == Theme::Dark { shade.1 } else { shade.0 }
}

/// Step chart with a legend.
#[component]
pub(crate) fn StepChart(
    #[prop(into)] plot: Signal<StepPlot>,
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// Identifier for tests.
    test_id: String,
    /// Receives the chart width in px.
    width: RwSignal<f64>,
) -> impl IntoView {
    let version = theme_version();
    let drawn = Memo::new(move |_| {
        version.track();
        plot.with(|plot| (plot.count() > 0 || !plot.levels.is_empty()).then(|| json(plot, &Colours::read())))
    });
    let entries = Memo::new(move |_| plot.with(legend));
    let theme_changes = theme_version();
    let list = move || {
        theme_changes.track();
        entries.get().into_iter().map(|entry| view! { <LegendEntry entry=entry /> }).collect_view()
    };
    view! {
        <div
            class="step-chart"
            data-testid=test_id
            data-points=move || plot.with(StepPlot::count)
            data-apart=move || plot.with(|plot| plot.exceptional_points.len())
            data-levels=move || plot.with(|plot| plot.levels.len())
        >
            <ul class="chart-legend">{list}</ul>
            <Figure plot=drawn label=label class="chart-steps" width=width />
        </div>
    }
}

/// Symbol of a legend entry.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Line(String, Shade, Dash),
    Ring(String),
    Edge(String),
    Restart(String),
}

fn legend(plot: &StepPlot) -> Vec<Entry> {
    let mut entries: Vec<Entry> =
        plot.tracks.iter().map(|track| Entry::Line(track.name.clone(), track.shade, Dash::Solid)).collect();
    entries.extend(plot.levels.iter().map(|level| Entry::Line(level.name.clone(), level.shade, level.dash)));
    if plot.left_out > 0 {
        entries.push(Entry::Ring(format::counted(plot.left_out as u64, "outlier", "outliers")));
    }
    let top = plot.values().1;
    let beyond = beyond(plot, top).len();
    if beyond > 0 {
        entries.push(Entry::Edge(format!("{beyond} beyond the scale")));
    }
    if !plot.restarts.is_empty() {
        entries.push(Entry::Restart(if plot.restarts.len() == 1 {
            "restart".to_owned()
        } else {
            "restarts".to_owned()
        }));
    }
    entries
}

#[component]
fn LegendEntry(entry: Entry) -> impl IntoView {
    match entry {
        Entry::Line(name, colour, dash) => view! {
            <li>
                <svg viewBox="0 0 22 4" aria-hidden="true">
                    <line x1="0" y1="2" x2="22" y2="2" stroke=shade(colour) stroke-dasharray=dash.strokes() />
                </svg>
                {name}
            </li>
        }
        .into_any(),
        Entry::Ring(name) => view! {
            <li>
                <svg class="ring" viewBox="0 0 12 12" aria-hidden="true">
                    <circle cx="6" cy="6" r="4.5" stroke="var(--slower)" fill="none" />
                </svg>
                {name}
            </li>
        }
        .into_any(),
        Entry::Edge(name) => view! { <li><span class="edge-mark" aria-hidden="true">"△"</span>{name}</li> }.into_any(),
        Entry::Restart(name) => view! {
            <li>
                <svg class="upright" viewBox="0 0 4 12" aria-hidden="true">
                    <line x1="2" y1="0" x2="2" y2="12" stroke="var(--mute)" stroke-dasharray="2 2" />
                </svg>
                {name}
            </li>
        }
        .into_any(),
    }
}

/// Points above the axis limit, drawn at their step; the hover text shows the true value.
fn beyond(plot: &StepPlot, top: f64) -> Vec<(f64, f64)> {
    let measured = plot.tracks.iter().flat_map(|track| track.points.iter().copied());
    let exceptional_points = plot.exceptional_points.iter().map(|(step, value, _)| (*step, *value));
    measured.chain(exceptional_points).filter(|(_, value)| *value > top).collect()
}

/// Points between two gaps. A line without markers does not show them.
fn isolated(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_gap = |index: Option<usize>| index.and_then(|index| points.get(index)).is_none_or(|point| point.1.is_nan());
    let is_isolated = |index: usize| is_gap(index.checked_sub(1)) && is_gap(Some(index + 1));
    let isolated = points.iter().enumerate().filter(|(index, point)| point.1.is_finite() && is_isolated(*index));
    isolated.map(|(_, point)| *point).collect()
}

fn add_isolated(plot: &mut Plot, tracks: &[Measured]) {
    for track in tracks.iter().filter(|track| track.points.len() > MARKED) {
        let (x, y): (Vec<f64>, Vec<f64>) = isolated(&track.points).into_iter().unzip();
        let marker = Marker::new().size(4).color(colour(shade(track.shade)));
        plot.add_trace(Scatter::new(x, y).mode(Mode::Markers).marker(marker).hover_info(HoverInfo::Skip));
    }
}

/// Returns the plot as JSON.
fn json(step_plot: &StepPlot, colours: &Colours) -> String {
    let mut plot = Plot::new();
    let (first, last) = step_plot.extent();
    let (lower, top) = step_plot.values();
    let template =
        if step_plot.unit.is_empty() { "%{y:.4~g}".to_owned() } else { format!("%{{y:.4~g}} {}", step_plot.unit) };
    for level in &step_plot.levels {
        let shade = shade(level.shade);
        let (low, high) = level.band;
        plot.add_trace(
            Scatter::new(vec![first, last, last, first], vec![low, low, high, high])
                .mode(Mode::None)
                .fill(Fill::ToSelf)
                .fill_color(colour(&format!("{shade}1f")))
                .hover_info(HoverInfo::Skip),
        );
    }
    for step in &step_plot.restarts {
        plot.add_trace(
            Scatter::new(vec![*step, *step], vec![lower, top])
                .mode(Mode::Lines)
                .line(Line::new().width(1.0).color(colour(&colours.mute)).dash(DashType::Dot))
                .hover_info(HoverInfo::Skip),
        );
    }
    for track in &step_plot.tracks {
        let (x, y): (Vec<f64>, Vec<f64>) = track.points.iter().copied().unzip();
        let few = track.points.len() <= MARKED;
        let line = Line::new().width(1.4).color(colour(shade(track.shade)));
        let marker = Marker::new().size(4).color(colour(shade(track.shade)));
        let mode = if few { Mode::LinesMarkers } else { Mode::Lines };
        let name = format!("{} {template}", track.name);
        plot.add_trace(
            Scatter::new(x, y)
                .name(&track.name)
                .mode(mode)
                .line(line)
                .marker(marker)
                .hover_template(format!("{name}<extra></extra>")),
        );
    }
    add_isolated(&mut plot, &step_plot.tracks);
    for level in &step_plot.levels {
        plot.add_trace(
            Scatter::new(vec![first, last], vec![level.value, level.value])
                .name(&level.name)
                .mode(Mode::Lines)
                .line(Line::new().width(1.6).color(colour(shade(level.shade))).dash(level.dash.plotly()))
                .hover_template(format!("{} {template}<extra></extra>", level.name)),
        );
    }
    let within: Vec<_> = step_plot.exceptional_points.iter().filter(|(_, value, _)| *value <= top).collect();
    if !within.is_empty() {
        let ring = Line::new().width(1.4).color(colour(&colours.slower));
        plot.add_trace(
            Scatter::new(within.iter().map(|point| point.0).collect(), within.iter().map(|point| point.1).collect())
                .mode(Mode::Markers)
                .hover_text_array(within.iter().map(|point| point.2.clone()).collect())
                .hover_info(HoverInfo::Text)
                .marker(
                    Marker::new().symbol(MarkerSymbol::CircleOpen).size(7).line(ring).color(colour(&colours.slower)),
                ),
        );
    }
    let beyond = beyond(step_plot, top);
    if !beyond.is_empty() {
        let text = |value: f64| format!("{} {}, beyond the scale", format::three_digits(value), step_plot.unit);
        plot.add_trace(
            Scatter::new(beyond.iter().map(|point| point.0).collect(), vec![top; beyond.len()])
                .mode(Mode::Markers)
                .hover_text_array(beyond.iter().map(|point| text(point.1)).collect())
                .hover_info(HoverInfo::Text)
                .marker(Marker::new().symbol(MarkerSymbol::TriangleUpOpen).size(8).color(colour(&colours.slower)))
                .clip_on_axis(false),
        );
    }
    let margin = 0.01 * (last - first);
    let x_axis = colours
        .axis()
        .show_grid(false)
        .n_ticks(7)
        .range(AxisRange::new(first - margin, last + margin))
        .title(Title::with_text("step").font(colours.font()));
    // Step numbers are integers, so tick labels have no fractions.
    let x_axis = if last - first < 7.0 { x_axis.dtick(1.0) } else { x_axis };
    let y_axis = colours.axis().range(AxisRange::new(lower, top)).n_ticks(5).show_line(false);
    // Longer units are in the title of the chart.
    let has_short_unit = matches!(step_plot.unit, "s" | "GiB");
    let y_axis = if has_short_unit { y_axis.tick_suffix(format!(" {}", step_plot.unit)) } else { y_axis };
    plot.set_layout(
        colours
            .layout(Margin::new().left(58).right(14).top(8).bottom(36))
            .paper_background_color(colour(&colours.panel))
            .x_axis(x_axis)
            .y_axis(y_axis)
            .show_legend(false)
            .hover_mode(HoverMode::XUnified),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLUE: Shade = ("#0072b2", "#56a5e0");

    fn track(values: impl IntoIterator<Item = f64>) -> Measured {
        let points = values.into_iter().enumerate().map(|(step, value)| (step as f64, value)).collect();
        Measured { name: "measured".into(), shade: BLUE, points }
    }

    #[test]
    fn the_axis_holds_measured_and_predicted_values() {
        let level = Level { name: "p".into(), shade: BLUE, dash: Dash::Dashed, value: 2.0, band: (1.8, 2.2) };
        let plot = StepPlot { tracks: vec![track([1.0, 1.1, f64::NAN])], levels: vec![level], ..StepPlot::default() };
        let (lower, upper) = plot.values();
        assert!(lower < 1.0 && lower > 0.9 && upper > 2.2 && upper < 2.4, "{lower} {upper}");
        assert_eq!(plot.extent(), (0.0, 2.0));
        assert_eq!(StepPlot { steps: Some((0.0, 9.0)), ..plot }.extent(), (0.0, 9.0));
        assert_eq!(StepPlot::default().values(), (0.0, 1.0));
        assert_eq!(StepPlot { tracks: vec![track([1.0])], ..StepPlot::default() }.extent(), (-1.0, 1.0));
    }

    #[test]
    fn a_point_between_gaps_is_marked() {
        let gap = |step: f64| (step, f64::NAN);
        let points = [(1.0, 5.0), gap(1.0), (3.0, 6.0), gap(3.0), (5.0, 7.0), (6.0, 8.0)];
        assert_eq!(isolated(&points), [(1.0, 5.0), (3.0, 6.0)]);
        let track = Measured { name: "measured".into(), shade: BLUE, points: points.to_vec() };
        assert_eq!(StepPlot { tracks: vec![track], ..StepPlot::default() }.count(), 4, "gaps are no points");
    }

    #[test]
    fn a_value_far_above_the_rest_is_named_at_the_edge() {
        let mut values = vec![1.0; 50];
        values[3] = 90.0;
        let plot = StepPlot { tracks: vec![track(values)], is_clipped: true, ..StepPlot::default() };
        let top = plot.values().1;
        assert!(top < 2.0, "{top}");
        assert_eq!(beyond(&plot, top), [(3.0, 90.0)]);
        assert!(legend(&plot).contains(&Entry::Edge("1 beyond the scale".into())));
        let unclipped = StepPlot { is_clipped: false, ..plot };
        assert!(unclipped.values().1 > 90.0, "a loss keeps its beginning");
    }

    /// A warm-up of 35 s and of 5.8 s before steps of 15 s and of 2.7 s.
    #[test]
    fn a_warm_up_of_any_run_is_at_the_edge() {
        let warm = |first: f64, usual: f64, count: usize| {
            track(std::iter::once(first).chain(std::iter::repeat_n(usual, count)))
        };
        let plot = StepPlot {
            tracks: vec![warm(35.0, 15.0, 40), warm(20.0, 15.2, 30)],
            is_clipped: true,
            ..StepPlot::default()
        };
        let (_, top) = plot.values();
        assert!(top > 15.2 && top < 21.0, "{top}");
        let few = StepPlot { tracks: vec![warm(5.8, 2.7, 8)], is_clipped: true, ..StepPlot::default() };
        assert!(few.values().1 < 4.0, "{}", few.values().1);
        let slower =
            StepPlot { tracks: vec![track([1.0; 30]), track([4.0; 30])], is_clipped: true, ..StepPlot::default() };
        assert!(slower.values().1 > 4.0, "a slower run is not an exception");
    }

    #[test]
    fn exceptions_do_not_press_the_rest_flat() {
        let exceptional_points = vec![(0.0, 40.0, "warm-up".to_owned()), (9.0, 1.2, "slow".to_owned())];
        let plot =
            StepPlot { tracks: vec![track([1.0; 30])], exceptional_points, is_clipped: true, ..StepPlot::default() };
        let (_, top) = plot.values();
        assert!(top > 1.2 && top < 1.5, "{top}");
        assert_eq!(plot.count(), 32);
    }
}
