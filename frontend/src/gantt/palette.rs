//! Colours of the span kinds, distinguishable for all types of colour vision.

use api::planner::timeline::SpanKind;

/// Page theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// Fill of a span kind as a CSS colour.
pub(crate) const fn fill(kind: SpanKind, theme: Theme) -> &'static str {
    match (kind, theme) {
        (SpanKind::Forward, _) => "#0072b2",
        (SpanKind::Backward, _) => "#ee6677",
        (SpanKind::InputGrad, _) => "#66ccee",
        (SpanKind::WeightGrad, _) => "#ccbb44",
        (SpanKind::SendForward | SpanKind::SendBackward | SpanKind::GradientSync, Theme::Light) => "#882255",
        (SpanKind::SendForward | SpanKind::SendBackward | SpanKind::GradientSync, Theme::Dark) => "#b0568a",
        (SpanKind::Optimizer, Theme::Light) => "#4a4f58",
        (SpanKind::Optimizer, Theme::Dark) => "#7b828e",
    }
}

/// Outline for kinds with low contrast against a light page.
pub(crate) const fn outline(kind: SpanKind, theme: Theme) -> Option<&'static str> {
    match (kind, theme) {
        (SpanKind::InputGrad, Theme::Light) => Some("#2a8fb3"),
        (SpanKind::WeightGrad, Theme::Light) => Some("#8f8223"),
        _ => None,
    }
}

const DARK_INK: &str = "#101418";
const LIGHT_INK: &str = "#ffffff";

/// Text colour with the better contrast on a kind's fill.
pub(crate) fn ink(kind: SpanKind, theme: Theme) -> &'static str {
    readable_on(fill(kind, theme))
}

/// Text colour with the better contrast on a CSS colour "#rrggbb".
pub(crate) fn readable_on(colour: &str) -> &'static str {
    let ground = luminance(colour);
    if contrast(ground, luminance(LIGHT_INK)) >= contrast(ground, luminance(DARK_INK)) { LIGHT_INK } else { DARK_INK }
}

/// Contrast ratio of two luminances as defined in WCAG 2.2, from 1 to 21.
fn contrast(first: f64, other: f64) -> f64 {
    (first.max(other) + 0.05) / (first.min(other) + 0.05)
}

/// Relative luminance of "#rrggbb" as defined in WCAG 2.2, from 0 to 1.
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let byte = colour.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// Legend entries. Kinds with the same appearance share an entry.
pub(crate) const LEGEND: [(SpanKind, &str); 6] = [
    (SpanKind::Forward, "forward"),
    (SpanKind::Backward, "backward"),
    (SpanKind::InputGrad, "input gradient"),
    (SpanKind::WeightGrad, "weight gradient"),
    (SpanKind::SendForward, "communication"),
    (SpanKind::Optimizer, "optimizer"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luminance_and_contrast_follow_wcag() {
        assert!((contrast(luminance("#ffffff"), luminance("#000000")) - 21.0).abs() < 1e-9);
        // Published value: #777777 on white has contrast 4.48.
        assert!((contrast(luminance("#777777"), luminance("#ffffff")) - 4.48).abs() < 0.005);
    }

    #[test]
    fn every_label_can_be_read() {
        for theme in [Theme::Light, Theme::Dark] {
            for kind in SpanKind::ALL {
                let ratio = contrast(luminance(fill(kind, theme)), luminance(ink(kind, theme)));
                assert!(ratio >= 4.5, "{kind:?} in {theme:?}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn fill_or_outline_contrasts_with_page() {
        for (theme, page) in [(Theme::Light, "#ffffff"), (Theme::Dark, "#1b1e23")] {
            for kind in SpanKind::ALL {
                let edge = outline(kind, theme).unwrap_or(fill(kind, theme));
                let ratio = contrast(luminance(edge), luminance(page));
                assert!(ratio >= 3.0, "{kind:?} in {theme:?}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn every_kind_is_in_the_legend_by_its_colour() {
        for kind in SpanKind::ALL {
            assert!(LEGEND.iter().any(|&(legend_kind, _)| fill(legend_kind, Theme::Light) == fill(kind, Theme::Light)));
        }
    }
}
