//! Colour-blind safe colours for slice kinds.

use api::trace::SliceKind;

use crate::gantt::Theme;

/// Returns fill and text colour of a kind as CSS colours.
pub(super) const fn colours(kind: SliceKind, theme: Theme) -> (&'static str, &'static str) {
    match (kind, theme) {
        (SliceKind::Compute, _) => ("#0072b2", "#ffffff"),
        (SliceKind::Communication, Theme::Light) => ("#882255", "#ffffff"),
        (SliceKind::Communication, Theme::Dark) => ("#b0568a", "#101418"),
        (SliceKind::Memcpy | SliceKind::Memset, _) => ("#ccbb44", "#101418"),
        (SliceKind::Cpu, _) => ("#66ccee", "#101418"),
        (SliceKind::Runtime, _) => ("#ee6677", "#101418"),
        (SliceKind::Annotation | SliceKind::DeviceAnnotation, _) => ("#5cab7d", "#101418"),
        (SliceKind::Other, Theme::Light) => ("#8b95a1", "#101418"),
        (SliceKind::Other, Theme::Dark) => ("#7b828e", "#101418"),
    }
}

/// Legend entries. Kinds with the same colour share an entry.
pub(super) const LEGEND: [(SliceKind, &str); 7] = [
    (SliceKind::Compute, "kernel"),
    (SliceKind::Communication, "communication"),
    (SliceKind::Memcpy, "copy or fill"),
    (SliceKind::Cpu, "host operator"),
    (SliceKind::Runtime, "runtime call"),
    (SliceKind::Annotation, "annotation"),
    (SliceKind::Other, "other"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_legend_by_its_colour() {
        for theme in [Theme::Light, Theme::Dark] {
            for kind in SliceKind::ALL {
                assert!(
                    LEGEND.iter().any(|&(legend_kind, _)| colours(legend_kind, theme) == colours(kind, theme)),
                    "{kind:?}"
                );
            }
        }
    }
}
