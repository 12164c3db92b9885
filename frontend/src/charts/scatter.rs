//! Points over two quantities, by kind, with the front of those that no other beats in both.

use leptos::prelude::*;
use plotly::common::{Anchor, DashType, HoverInfo, Line, Marker, MarkerSymbol, Mode, Title};
use plotly::layout::{Annotation, HoverMode, Margin};
use plotly::{Plot, Scatter};

use super::figure::Figure;
use super::point_names::{Area, shifts};
use super::{Colours, colour, configuration};
use crate::gantt::Theme;
use crate::gantt::watch::{theme, theme_version};

/// Points of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cloud {
    /// What the legend calls them.
    pub(crate) name: String,
    /// Colour on a light page.
    pub(crate) light: &'static str,
    /// Colour on a dark page.
    pub(crate) dark: &'static str,
    /// Drawn as squares, diamonds or discs, so that kinds differ without colour.
    pub(crate) mark: Mark,
    /// Right, up, and what the pointer says.
    pub(crate) points: Vec<(f64, f64, String)>,
    /// What is written beside the points; empty where they are too many for that.
    pub(crate) names: Vec<String>,
}

/// How a point is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A diamond.
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

    const fn shown(self) -> &'static str {
        match self {
            Self::Disc => "●",
            Self::Square => "■",
            Self::Diamond => "◆",
        }
    }
}

/// The chart.
#[component]
pub(crate) fn ScatterChart(
    /// Kinds of points.
    #[prop(into)]
    clouds: Signal<Vec<Cloud>>,
    /// The front, from left to right.
    #[prop(into)]
    front: Signal<Vec<(f64, f64)>>,
    /// What is right and what is up, with units.
    axes: (&'static str, &'static str),
    /// What is shown, for those who do not see it.
    #[prop(into)]
    label: Signal<String>,
    /// The point that is looked at, as a ring.
    #[prop(optional, into)]
    chosen: Signal<Option<(f64, f64)>>,
    /// Told of the kind and the number of a point that is clicked.
    #[prop(optional)]
    on_pick: Option<Callback<(usize, usize)>>,
    /// Names the chart in tests.
    test_id: &'static str,
) -> impl IntoView {
    let version = theme_version();
    let width = RwSignal::new(600.0);
    let drawn = Memo::new(move |_| {
        version.track();
        let (clouds, front, chosen) = (clouds.get(), front.get(), chosen.get());
        clouds
            .iter()
            .any(|cloud| !cloud.points.is_empty())
            .then(|| plot(&clouds, &front, chosen, axes, width.get(), &Colours::read()))
    });
    let count_of_kinds = move || clouds.with_untracked(Vec::len);
    let picked = Callback::new(move |(trace, point): (usize, usize)| {
        // The front is drawn first, the ring last.
        if let Some(kind) = trace.checked_sub(1).filter(|kind| *kind < count_of_kinds())
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
            view! { <li><span style:color=shade aria-hidden="true">{cloud.mark.shown()}</span>{cloud.name}</li> }
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

/// Height of the chart, as the style sheet has it, and the margins around the plot, in px.
const HEIGHT: usize = 240;
const LEFT: usize = 58;
const RIGHT: usize = 14;
const TOP: usize = 8;
const BOTTOM: usize = 44;

/// The names beside the points.
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

/// The plot as JSON.
fn plot(
    clouds: &[Cloud],
    front: &[(f64, f64)],
    chosen: Option<(f64, f64)>,
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
    if let Some((x, y)) = chosen {
        let ring = Line::new().width(2.0).color(colour(&colours.ink));
        let ring = Marker::new().symbol(MarkerSymbol::CircleOpen).size(15).line(ring).color(colour(&colours.ink));
        plot.add_trace(Scatter::new(vec![x], vec![y]).mode(Mode::Markers).marker(ring).hover_info(HoverInfo::Skip));
    }
    let title = |text: &str| Title::with_text(text).font(colours.font());
    plot.set_layout(
        colours
            .layout(Margin::new().left(LEFT).right(RIGHT).top(TOP).bottom(BOTTOM))
            .x_axis(colours.axis().title(title(axes.0)))
            .y_axis(colours.axis().title(title(axes.1)))
            .annotations(names(clouds, width_px, colours))
            .show_legend(false)
            .hover_mode(HoverMode::Closest),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}
