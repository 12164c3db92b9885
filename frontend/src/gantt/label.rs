//! Labels that fit inside a bar, and row headers.

use std::fmt::Write as _;

use api::planner::timeline::SpanKind;

use super::layout::Row;
use super::rows::RowNames;

/// Minimum bar width for a label, in px.
pub(crate) const NARROWEST: f64 = 14.0;
/// Total horizontal padding of a label, in px.
const PADDING: f64 = 4.0;

/// Letter in bars.
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

/// Writes a label for a bar with `width_limit` device pixels to `text`: "F12" if it fits, else "F", else
/// an empty string.
pub(crate) fn fit(
    kind: SpanKind,
    microbatch: u32,
    width_limit: f64,
    ratio: f64,
    width: impl Fn(&str) -> f64,
    text: &mut String,
) {
    text.clear();
    let letter = letter(kind);
    if letter.is_empty() || width_limit < NARROWEST * ratio {
        return;
    }
    text.push_str(letter);
    if !matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer) {
        write!(text, "{microbatch}").expect("a String takes any text");
        if width(text) + PADDING * ratio <= width_limit {
            return;
        }
        text.truncate(letter.len());
    }
    if width(text) + PADDING * ratio > width_limit {
        text.clear();
    }
}

/// Writes an action's relative difference to `text`, for example "+12%", if it fits into `width_limit`
/// device pixels. Differences are relative to the duration or to the iteration time.
pub(crate) fn difference(
    difference: Option<(f64, f64)>,
    width_limit: f64,
    ratio: f64,
    width: impl Fn(&str) -> f64,
    text: &mut String,
) {
    text.clear();
    let Some((_, share)) = difference else { return };
    let percent = (share * 100.0).round();
    let sign = if percent < 0.0 { "-" } else { "+" };
    write!(text, "{sign}{:.0}%", percent.abs()).expect("a String takes any text");
    if percent.abs() < 1.0 || width(text) + PADDING * ratio > width_limit {
        text.clear();
    }
}

/// Row header: "rank 3" or "P2·S1", "▸ 0–7" for a folded group, "▾ 8" for a group that can be
/// folded.
pub(crate) fn header(row: &Row, names: &RowNames, folds: bool) -> String {
    match row {
        Row::Fold(ranks) => match names.stage(ranks.start as usize) {
            Some((pipeline, _)) => format!("▸ P{pipeline}"),
            None => format!("▸ {}–{}", ranks.start, ranks.end - 1),
        },
        Row::Rank(rank) => match (names.stage(*rank as usize), folds) {
            (Some((_, 0)), true) => format!("▾{}", names.header(*rank as usize)),
            (None, true) => format!("▾ {rank}"),
            _ => names.header(*rank as usize),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters are 7 px wide, all other characters 6 px.
    fn width(text: &str) -> f64 {
        text.chars().map(|sign| if sign.is_ascii_alphabetic() { 7.0 } else { 6.0 }).sum()
    }

    fn fitted(kind: SpanKind, microbatch: u32, fitted_label: f64) -> String {
        let mut text = String::from("left over");
        fit(kind, microbatch, fitted_label, 1.0, width, &mut text);
        assert!(width(&text) <= fitted_label);
        text
    }

    #[test]
    fn a_label_never_leaves_its_bar() {
        // "F12" needs 7 + 12 px and 4 px padding.
        for (available_px, expected) in [(30.0, "F12"), (23.0, "F12"), (22.9, "F"), (14.0, "F"), (13.9, ""), (0.0, "")]
        {
            assert_eq!(fitted(SpanKind::Forward, 12, available_px), expected, "{available_px} px");
        }
        assert_eq!(fitted(SpanKind::Backward, 0, 17.0), "B0");
        assert_eq!(fitted(SpanKind::Backward, 1_234, 30.0), "B");
    }

    #[test]
    fn kinds_without_a_microbatch_show_only_a_letter() {
        assert_eq!(fitted(SpanKind::Optimizer, 0, 100.0), "O");
        assert_eq!(fitted(SpanKind::SendForward, 3, 100.0), "");
    }

    #[test]
    fn differences_have_a_sign_and_small_ones_are_left_out() {
        let written = |share: f64, width_limit: f64| {
            let mut text = String::new();
            difference(Some((0.0, share)), width_limit, 1.0, width, &mut text);
            text
        };
        assert_eq!(written(0.123, 40.0), "+12%");
        assert_eq!(written(-0.5, 40.0), "-50%");
        assert_eq!(written(0.004, 40.0), "");
        assert_eq!(written(0.5, 20.0), "");
    }

    #[test]
    fn headers_describe_folded_rows() {
        let ranks = RowNames::default();
        assert_eq!(header(&Row::Rank(3), &ranks, false), "rank 3");
        assert_eq!(header(&Row::Rank(8), &ranks, true), "▾ 8");
        assert_eq!(header(&Row::Fold(8..16), &ranks, true), "▸ 8–15");
        // No microbatch changes its rank, so there are two single-stage pipelines.
        let mut timeline = super::super::sample::one_f_one_b(2, 3);
        let second = timeline.compute_lane(1);
        for span in 0..timeline.len() {
            timeline.microbatch[span] = u32::from(second.contains(&span));
        }
        let pipelines = RowNames::from_timeline(&timeline);
        assert_eq!(header(&Row::Rank(1), &pipelines, true), "▾P1·S0");
        assert_eq!(header(&Row::Fold(1..2), &pipelines, true), "▸ P1");
    }
}
