//! Colours of the spans in a chart: by kind, faded if a search does not match, or by difference
//! from the counterpart in another chart.

use std::sync::Arc;

use api::planner::timeline::levels::{INKS, Level};
use api::planner::timeline::{SpanKind, Timeline};

use super::differences::{Aspect, Differences};
use super::exposed::ExposedSpans;
use super::palette::{self, Theme};
use super::raster::Rgb;

const KINDS: u8 = SpanKind::ALL.len() as u8;
/// First ink of the comparison tones.
const TONES: u8 = 2 * KINDS;

/// Span count from which wide windows are drawn from levels.
pub(crate) const MANY: usize = 30_000;

/// Difference category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Less by at least 10 %.
    MuchLess,
    Less,
    /// Difference below 0.5 %.
    Same,
    More,
    /// More by at least 10 %.
    MuchMore,
    /// No counterpart.
    SequentialWorkers,
}

impl Tone {
    /// All tones in order.
    pub(crate) const ALL: [Self; 6] =
        [Self::MuchLess, Self::Less, Self::Same, Self::More, Self::MuchMore, Self::SequentialWorkers];

    /// Category for a relative difference.
    pub(crate) fn from_share(share: f64) -> Self {
        match share {
            s if s <= -0.1 => Self::MuchLess,
            s if s <= -0.005 => Self::Less,
            s if s < 0.005 => Self::Same,
            s if s < 0.1 => Self::More,
            _ => Self::MuchMore,
        }
    }

    /// Legend text.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::MuchLess => "faster or earlier by 10 % or more",
            Self::Less => "faster or earlier",
            Self::Same => "same",
            Self::More => "slower or later",
            Self::MuchMore => "slower or later by 10 % or more",
            Self::SequentialWorkers => "not in the baseline",
        }
    }

    /// Fill as a CSS colour: blue is faster, orange slower.
    pub(crate) const fn fill(self, theme: Theme) -> &'static str {
        match (self, theme) {
            (Self::MuchLess, _) => "#0072b2",
            (Self::Less, Theme::Light) => "#7fb9d9",
            (Self::Less, Theme::Dark) => "#3f86ae",
            (Self::Same, Theme::Light) => "#c3c8d0",
            (Self::Same, Theme::Dark) => "#59616d",
            (Self::More, Theme::Light) => "#f0b27f",
            (Self::More, Theme::Dark) => "#b9793f",
            (Self::MuchMore, Theme::Light) => "#d55e00",
            (Self::MuchMore, Theme::Dark) => "#e8782a",
            (Self::SequentialWorkers, Theme::Light) => "#e6e8ec",
            (Self::SequentialWorkers, Theme::Dark) => "#363c46",
        }
    }

    const fn ink(self) -> u8 {
        TONES + self as u8
    }
}

/// Chart colour scheme.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Colouring {
    /// By kind.
    Kinds,
    /// By kind, with faded colours for spans that do not match the search. Contains the matching
    /// spans in ascending order.
    Search(Arc<Vec<usize>>),
    /// By difference from another timeline.
    Differences { against: Arc<Timeline>, pairs: Arc<Differences>, aspect: Aspect },
    /// By kind, because too few spans have a counterpart in the other timeline.
    NotComparable { reason: String },
}

/// Ink index per span, plus levels for large timelines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanColours {
    /// `None` if inks equal kinds.
    by_span: Option<Vec<u8>>,
    /// Levels, finest first.
    pub(crate) levels: Vec<Level>,
    pub(crate) colouring: Colouring,
    /// Communication inside actions. `None` if there is none, or if differences are shown.
    pub(crate) inside: Option<ExposedSpans>,
}

impl SpanColours {
    /// Computes the inks.
    pub(crate) fn new(timeline: &Timeline, colouring: Colouring) -> Self {
        let by_span = match &colouring {
            Colouring::Kinds | Colouring::NotComparable { .. } => None,
            Colouring::Search(found) => {
                let mut inks: Vec<u8> = timeline.kind.iter().map(|kind| kind + KINDS).collect();
                for &span in found.iter() {
                    inks[span] = timeline.kind[span];
                }
                Some(inks)
            }
            Colouring::Differences { against, pairs, aspect } => {
                let ink = |span: usize| {
                    let share = pairs.at(timeline, against, span, *aspect).map(|(_, share)| share);
                    share.map_or(Tone::SequentialWorkers, Tone::from_share).ink()
                };
                Some((0..timeline.len()).map(ink).collect())
            }
        };
        let levels = Level::all(timeline, by_span.as_deref().unwrap_or(&timeline.kind), MANY);
        let inside = match &colouring {
            Colouring::Differences { .. } => None,
            Colouring::Kinds | Colouring::Search(_) | Colouring::NotComparable { .. } => {
                ExposedSpans::from_timeline(timeline)
            }
        };
        Self { by_span, levels, colouring, inside }
    }

    /// Returns true if differences are shown.
    pub(crate) const fn compares(&self) -> bool {
        matches!(self.colouring, Colouring::Differences { .. })
    }

    /// Describes the difference between an action and its baseline counterpart. Returns `None` if
    /// differences are hidden.
    pub(crate) fn difference_text(&self, timeline: &Timeline, span: usize) -> Option<String> {
        match &self.colouring {
            Colouring::Differences { against, pairs, aspect } if span < timeline.len() => {
                Some(pairs.difference_text(timeline, against, span, *aspect))
            }
            _ => None,
        }
    }

    /// Ink per span.
    pub(crate) fn column<'a>(&'a self, timeline: &'a Timeline) -> &'a [u8] {
        self.by_span.as_deref().unwrap_or(&timeline.kind)
    }
}

/// Fill, outline and label colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Paint {
    pub(crate) fill: Rgb,
    pub(crate) outline: Option<Rgb>,
    pub(crate) letters: Rgb,
}

/// Colours for all inks on a background `panel`.
pub(crate) fn paints(theme: Theme, panel: Rgb) -> [Paint; INKS] {
    let mut paints = [Paint { fill: Rgb(128, 128, 128), outline: None, letters: panel }; INKS];
    for kind in SpanKind::ALL {
        let fill = Rgb::parse(palette::fill(kind, theme));
        let outline = palette::outline(kind, theme).map(Rgb::parse);
        let letters = Rgb::parse(palette::ink(kind, theme));
        paints[kind as usize] = Paint { fill, outline, letters };
        let fade = |colour: Rgb| colour.over(panel, 56);
        let faded = Paint { fill: fade(fill), outline: outline.map(fade), letters: letters.over(fade(fill), 110) };
        paints[kind as usize + usize::from(KINDS)] = faded;
    }
    for tone in Tone::ALL {
        let fill = tone.fill(theme);
        let letters = Rgb::parse(palette::readable_on(fill));
        paints[usize::from(tone.ink())] = Paint { fill: Rgb::parse(fill), outline: None, letters };
    }
    paints
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn search_fades_spans_that_do_not_match() {
        let timeline = sample::one_f_one_b(2, 3);
        let inks = SpanColours::new(&timeline, Colouring::Search(Arc::new(vec![1])));
        let column = inks.column(&timeline);
        assert_eq!(column[1], timeline.kind[1]);
        assert!(column.iter().enumerate().all(|(span, &ink)| span == 1 || ink == timeline.kind[span] + KINDS));
        assert_eq!(SpanColours::new(&timeline, Colouring::Kinds).column(&timeline), timeline.kind);
    }

    #[test]
    fn a_comparison_has_a_tone_for_every_span() {
        let before = Arc::new(sample::one_f_one_b(2, 3));
        let mut after = sample::one_f_one_b(2, 3);
        after.duration_ns[0] = after.duration_ns[0] * 11 / 10;
        after.duration_ns[1] = after.duration_ns[1] * 97 / 100;
        let pairs = Arc::new(Differences::with_equal_devices(&after, &before));
        let colouring = Colouring::Differences { against: before, pairs, aspect: Aspect::Duration };
        let inks = SpanColours::new(&after, colouring);
        assert_eq!(inks.column(&after)[..3], [Tone::MuchMore.ink(), Tone::Less.ink(), Tone::Same.ink()]);
    }

    #[test]
    fn inks_fit_in_levels_and_have_distinct_paints() {
        assert!(usize::from(Tone::SequentialWorkers.ink()) < INKS);
        for theme in [Theme::Light, Theme::Dark] {
            let paints = paints(theme, Rgb(255, 255, 255));
            let tones: Vec<Rgb> = Tone::ALL.iter().map(|tone| paints[usize::from(tone.ink())].fill).collect();
            for (index, fill) in tones.iter().enumerate() {
                assert!(!tones[..index].contains(fill));
            }
        }
    }

    #[test]
    fn small_differences_are_none() {
        for (share, tone) in [
            (0.0, Tone::Same),
            (0.0049, Tone::Same),
            (-0.005, Tone::Less),
            (0.099, Tone::More),
            (0.1, Tone::MuchMore),
            (-0.5, Tone::MuchLess),
        ] {
            assert_eq!(Tone::from_share(share), tone, "{share}");
        }
    }
}
