//! What can be written inside a bar without leaving it.

use std::fmt::Write as _;

use api::planner::timeline::SpanKind;

/// Bars narrower than this carry no letter, in px.
pub(crate) const NARROWEST: f64 = 14.0;
/// Free room at both ends of a label together, in px.
const PADDING: f64 = 4.0;

/// Widths of the characters of the font that labels are written in, in px.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GlyphWidths {
    /// The letter of each kind.
    pub(crate) letters: [f64; SpanKind::ALL.len()],
    /// Any digit.
    pub(crate) digit: f64,
}

/// The letter of a kind, as it stands in bars.
pub(crate) const fn letter(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Forward => "F",
        SpanKind::Backward => "B",
        SpanKind::InputGrad => "I",
        SpanKind::WeightGrad => "W",
        SpanKind::SendForward | SpanKind::SendBackward => "",
        SpanKind::GradientSync => "S",
        SpanKind::Optimizer => "O",
    }
}

/// Writes into `text` what fits into a bar: "F12", or else "F", or else nothing; gives the width it takes.
pub(crate) fn fit(kind: SpanKind, microbatch: u32, width_px: f64, glyphs: GlyphWidths, text: &mut String) -> f64 {
    text.clear();
    let letter = letter(kind);
    let letter_px = glyphs.letters[kind as usize];
    if width_px < NARROWEST || letter.is_empty() || letter_px + PADDING > width_px {
        return 0.0;
    }
    text.push_str(letter);
    let numbered = !matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer);
    let digits = microbatch.checked_ilog10().unwrap_or(0) + 1;
    let full = f64::from(digits).mul_add(glyphs.digit, letter_px);
    if numbered && full + PADDING <= width_px {
        write!(text, "{microbatch}").expect("a String takes any text");
        return full;
    }
    letter_px
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLYPHS: GlyphWidths = GlyphWidths { letters: [7.0; 8], digit: 6.0 };

    fn fitted(kind: SpanKind, microbatch: u32, width_px: f64) -> String {
        let mut text = String::from("left over");
        let taken = fit(kind, microbatch, width_px, GLYPHS, &mut text);
        assert!(taken <= width_px);
        text
    }

    #[test]
    fn a_label_never_leaves_its_bar() {
        // "F12" takes 7 + 12 px and 4 px of room.
        for (width, expected) in [(30.0, "F12"), (23.0, "F12"), (22.9, "F"), (14.0, "F"), (13.9, ""), (0.0, "")] {
            assert_eq!(fitted(SpanKind::Forward, 12, width), expected, "{width} px");
        }
        assert_eq!(fitted(SpanKind::Backward, 0, 17.0), "B0");
        assert_eq!(fitted(SpanKind::Backward, 1_234, 30.0), "B");
    }

    #[test]
    fn kinds_without_a_microbatch_show_only_a_letter() {
        assert_eq!(fitted(SpanKind::Optimizer, 0, 100.0), "O");
        assert_eq!(fitted(SpanKind::SendForward, 3, 100.0), "");
    }
}
