//! Scatter plot of two quantities, grouped by kind, with the Pareto front.

use leptos::prelude::*;
use plotly::common::{Anchor, DashType, HoverInfo, Line, Marker, MarkerSymbol, Mode, Title};
use plotly::layout::{Annotation, HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::point_names::{Area, shifts};
use super::{Colours, NUMBERS, colour, configuration};
use crate::gantt::Theme;
use crate::gantt::observers::{theme, theme_version};

/// Points of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cloud {
    /// Name in the legend.
    pub(crate) name: String,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
    /// Marker shape. Kinds differ in shape and colour, for readers who cannot distinguish the
    /// colours.
    pub(crate) mark: Mark,
    /// x, y and hover text.
    pub(crate) points: Vec<(f64, f64, String)>,
    /// Labels next to the points; empty if the point count is too high.
    pub(crate) names: Vec<String>,
}

/// Marker shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    Square,
    Diamond,
}

impl Mark {
    const fn plotly(self) -> MarkerSymbol {
        match self {
            Self::Disc => MarkerSymbol::Circle,
            Self::Square => MarkerSymbol::Square,
            Self::Diamond => MarkerSymbol::Diamond,
        }
    }

    const fn symbol(self) -> &'static str {
        match self {
            Self::Disc => "●",
            Self::Square => "■",
            Self::Diamond => "◆",
        }
    }
}

/// Scatter plot component.
#[component]
pub(crate) fn ScatterChart(
    #[prop(into)] clouds: Signal<Vec<Cloud>>,
    /// Pareto front, sorted by x.
    #[prop(into)]
    front: Signal<Vec<(f64, f64)>>,
    /// Titles of the x and y axes with units.
    axes: (&'static str, &'static str),
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// Selected point, drawn as a ring.
    #[prop(optional, into)]
    selected: Signal<Option<(f64, f64)>>,
    /// Called with the kind index and the point index after a click.
    #[prop(optional)]
    on_pick: Option<Callback<(usize, usize)>>,
    /// Identifier for tests.
    test_id: &'static str,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(600.0);
    let drawn = Memo::new(move |_| {
        version.track();
        let (clouds, front, selected) = (clouds.get(), front.get(), selected.get());
        clouds
            .iter()
            .any(|cloud| !cloud.points.is_empty())
            .then(|| plot(&clouds, &front, selected, axes, width.get(), &Colours::read()))
    });
    let kind_count = move || clouds.with_untracked(Vec::len);
    let picked = Callback::new(move |(trace, point): (usize, usize)| {
        // Trace 0 is the front, and the last trace is the ring.
        if let Some(kind) = trace.checked_sub(1).filter(|kind| *kind < kind_count())
            && let Some(on_pick) = on_pick
        {
            on_pick.run((kind, point));
        }
    });
    let count = move || clouds.with(|clouds| clouds.iter().map(|cloud| cloud.points.len()).sum::<usize>());
    let theme_changes = theme_version();
    let legend = move || {
        theme_changes.track();
        let entry = |cloud: Cloud| {
            let shade = if theme() == Theme::Dark { cloud.dark } else { cloud.light };
            view! { <li><span style:color=shade aria-hidden="true">{cloud.mark.symbol()}</span>{cloud.name}</li> }
        };
        clouds.get().into_iter().map(entry).collect_view()
    };
    view! {
        <div data-testid=test_id data-points=count>
            <ul class="chart-legend">{legend}</ul>
            <Figure plot=drawn label=label class="chart-curves" width=width on_pick=Some(picked) />
        </div>
    }
}

/// Chart height as in the style sheet, and plot margins, in px.
const HEIGHT: usize = 240;
const LEFT: usize = 58;
const RIGHT: usize = 14;
const TOP: usize = 8;
const BOTTOM: usize = 44;

/// Labels as plotly annotations.
fn names(clouds: &[Cloud], width_px: f64, colours: &Colours) -> Vec<Annotation> {
    let named = clouds.iter().flat_map(|cloud| cloud.points.iter().zip(&cloud.names));
    let points: Vec<(f64, f64, &str)> = named.map(|((x, y, _), name)| (*x, *y, name.as_str())).collect();
    let area = Area { width: width_px - (LEFT + RIGHT) as f64, height: (HEIGHT - TOP - BOTTOM) as f64 };
    let written = points.iter().zip(shifts(&points, area)).filter_map(|(point, shift)| Some((point, shift?)));
    let annotation = |((x, y, name), (right, up)): (&(f64, f64, &str), (f64, f64))| {
        let text = Annotation::new().x(*x).y(*y).text(*name).show_arrow(false).font(colours.font());
        text.x_anchor(Anchor::Center).y_anchor(Anchor::Middle).x_shift(right).y_shift(up)
    };
    written.map(annotation).collect()
}

/// Returns the plot as JSON.
fn plot(
    clouds: &[Cloud],
    front: &[(f64, f64)],
    selected: Option<(f64, f64)>,
    axes: (&str, &str),
    width_px: f64,
    colours: &Colours,
) -> String {
    let mut plot = Plot::new();
    plot.add_trace(
        Scatter::new(front.iter().map(|point| point.0).collect(), front.iter().map(|point| point.1).collect())
            .mode(Mode::Lines)
            .line(Line::new().width(1.0).color(colour(&colours.ink)).dash(DashType::Dot))
            .hover_info(HoverInfo::Skip),
    );
    for cloud in clouds {
        let shade = if theme() == Theme::Dark { cloud.dark } else { cloud.light };
        plot.add_trace(
            Scatter::new(
                cloud.points.iter().map(|point| point.0).collect(),
                cloud.points.iter().map(|point| point.1).collect(),
            )
            .mode(Mode::Markers)
            .hover_text_array(cloud.points.iter().map(|point| point.2.clone()).collect())
            .hover_info(HoverInfo::Text)
            .marker(Marker::new().color(colour(shade)).symbol(cloud.mark.plotly()).size(7).opacity(0.75)),
        );
    }
    if let Some((x, y)) = selected {
        let ring = Line::new().width(2.0).color(colour(&colours.ink));
        let ring = Marker::new().symbol(MarkerSymbol::CircleOpen).size(15).line(ring).color(colour(&colours.ink));
        plot.add_trace(Scatter::new(vec![x], vec![y]).mode(Mode::Markers).marker(ring).hover_info(HoverInfo::Skip));
    }
    let title = |text: &str| Title::with_text(text).font(colours.font());
    plot.set_layout(
        colours
            .layout(Margin::new().left(LEFT).right(RIGHT).top(TOP).bottom(BOTTOM))
            .x_axis(colours.axis().tick_format(NUMBERS).title(title(axes.0)))
            .y_axis(colours.axis().tick_format(NUMBERS).title(title(axes.1)))
            .annotations(names(clouds, width_px, colours))
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}
