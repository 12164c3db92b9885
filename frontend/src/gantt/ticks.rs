//! Time axis with round tick values and without overlapping labels.

use super::TimeWindow;
use super::time_text::time_unit;

/// Axis tick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Position in px of the plot.
    pub(crate) x: f64,
    /// Time, or time relative to the axis origin if the label starts with "+".
    pub(crate) label: String,
}

/// Axis ticks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Axis {
    /// Ticks from left to right.
    pub(crate) ticks: Vec<Tick>,
    /// Origin of "+" labels. Used if absolute times need too many digits.
    pub(crate) origin: Option<String>,
}

/// Upper estimate of the character width at the label font size, in px.
const CHARACTER_PX: f64 = 6.5;
/// Minimum gap between two labels, in px.
const GAP_PX: f64 = 14.0;
/// Minimum tick distance in px.
const NEAREST_PX: f64 = 70.0;
/// Labels with more decimals are relative to an origin.
const MAX_DECIMALS: usize = 3;

/// Computes the ticks for a plot of width `width_px`.
pub(crate) fn axis(window: TimeWindow, width_px: f64) -> Axis {
    if width_px <= 0.0 || window.width_ns() <= 0.0 {
        return Axis::default();
    }
    let ns_per_px = window.width_ns() / width_px;
    let mut step = round_up(ns_per_px * NEAREST_PX);
    // A wider step never has longer labels, so the loop ends after a small number of rounds.
    for _ in 0..16 {
        let axis = with_step(window, width_px, step);
        let max_length = axis.ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
        if max_length as f64 * CHARACTER_PX + GAP_PX <= step / ns_per_px {
            return axis;
        }
        step = round_up(step * 1.01);
    }
    Axis::default()
}

/// Smallest 1, 2 or 5 times a power of ten that is at least `ns` and at least 1 ns.
fn round_up(ns: f64) -> f64 {
    let power = 10_f64.powf(ns.max(1.0).log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|&step| step >= ns * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

fn with_step(window: TimeWindow, width_px: f64, step_ns: f64) -> Axis {
    let (size, symbol) = time_unit(window.end_ns);
    let decimals = step_decimals(step_ns, size);
    let first = (window.start_ns / step_ns - 1e-9).ceil() as u64;
    let times = (first..).map(|number| number as f64 * step_ns).take_while(|&ns| ns <= window.end_ns * (1.0 + 1e-12));
    let tick_x = |ns: f64| window.x_at(ns, width_px);
    if decimals <= MAX_DECIMALS {
        let ticks =
            times.map(|ns| Tick { x: tick_x(ns), label: format!("{:.decimals$} {symbol}", ns / size) }).collect();
        return Axis { ticks, origin: None };
    }
    let grain = size / 1e3;
    let origin = (window.start_ns / grain).floor() * grain;
    let (offset_unit_ns, offset_symbol) = time_unit(window.end_ns - origin);
    let decimals = step_decimals(step_ns, offset_unit_ns);
    let ticks = times
        .map(|ns| {
            let offset = (ns - origin) / offset_unit_ns;
            Tick { x: tick_x(ns), label: format!("+{offset:.decimals$} {offset_symbol}") }
        })
        .collect();
    Axis { ticks, origin: Some(format!("{:.3} {symbol}", origin / size)) }
}

/// Number of decimals that distinguish multiples of a step.
fn step_decimals(step_ns: f64, unit_ns: f64) -> usize {
    (-(step_ns / unit_ns).log10() - 1e-9).ceil().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(start_ns: f64, end_ns: f64, width_px: f64) -> (Vec<String>, Option<String>) {
        let axis = axis(TimeWindow { start_ns, end_ns }, width_px);
        (axis.ticks.into_iter().map(|tick| tick.label).collect(), axis.origin)
    }

    #[test]
    fn full_iteration_has_ticks_at_round_seconds() {
        // 26 s in 800 px are 32.5 ms per px. 70 px are 2.3 s, so the step is 5 s.
        let (labels, origin) = labels(0.0, 26e9, 800.0);
        assert_eq!(labels[..3], ["0 s", "5 s", "10 s"]);
        assert_eq!(labels.last().map(String::as_str), Some("25 s"));
        assert_eq!(origin, None);
    }

    #[test]
    fn a_close_look_counts_from_an_origin() {
        let (labels, origin) = labels(12.400_1e9, 12.400_2e9, 800.0);
        assert_eq!(origin.as_deref(), Some("12.400 s"));
        assert_eq!(labels.first().map(String::as_str), Some("+100 µs"));
        assert_eq!(labels.last().map(String::as_str), Some("+200 µs"));
    }

    #[test]
    fn labels_never_touch_and_always_differ() {
        let mut start: f64 = 0.0;
        while start < 3e10 {
            let mut width = 100.0;
            while width < 1e11 {
                for px in [120.0, 300.0, 1_000.0, 2_500.0] {
                    let window = TimeWindow { start_ns: start, end_ns: start + width };
                    let axis = axis(window, px);
                    assert!(px < 300.0 || !axis.ticks.is_empty(), "no tick in {window:?} at {px} px");
                    for pair in axis.ticks.windows(2) {
                        let spacing = pair[1].x - pair[0].x;
                        let label = pair[0].label.chars().count().max(pair[1].label.chars().count()) as f64 * 6.5;
                        assert!(spacing > label, "{pair:?} touch");
                        assert_ne!(pair[0].label, pair[1].label);
                    }
                    assert!(axis.ticks.iter().all(|tick| tick.x > -0.01 && tick.x < px + 0.01));
                }
                width *= 7.3;
            }
            start = start * 9.1 + 777.0;
        }
    }
}
