//! SVG scatter plot of measured and predicted values: logarithmic axes, identity line, ±10 % band.

use std::fmt::Write;

use crate::set::{MIXED, Set};

const SIZE: f64 = 400.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// Colour with contrast on white and on black.
const ACCENT: &str = "#3b82c4";
/// Half width of the band, relative.
const BAND: f64 = 0.1;
/// Margin around the points, as a factor.
const MARGIN: f64 = 1.15;

/// Plots a set. Returns `None` if the rows have different units.
pub fn scatter(set: &Set) -> Option<String> {
    let points: Vec<(f64, f64)> = set.counted().map(|row| (row.measured, row.predicted)).collect();
    if set.unit == MIXED || points.is_empty() {
        return None;
    }
    let axis = Axis::around(&points)?;
    Some(draw(set, &axis, &points))
}

/// Scale shared by both axes.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Covers all values. Returns `None` for a non-positive value.
    fn around(points: &[(f64, f64)]) -> Option<Self> {
        let values = points.iter().flat_map(|point| [point.0, point.1]);
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        (low > 0.0 && high.is_finite()).then_some(Self { low: low / MARGIN, high: high * MARGIN })
    }

    /// Maps a value to 0..=1 within the plot.
    fn fraction(self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    fn x(self, value: f64) -> f64 {
        LEFT + self.fraction(value).clamp(0.0, 1.0) * (SIZE - LEFT - RIGHT)
    }

    fn y(self, value: f64) -> f64 {
        SIZE - BOTTOM - self.fraction(value).clamp(0.0, 1.0) * (SIZE - TOP - BOTTOM)
    }

    /// Returns 1, 2 and 5 times powers of ten; only powers of ten over more than two decades.
    fn ticks(self) -> Vec<f64> {
        let steps: &[f64] = if self.high / self.low > 100.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10.0_f64.powi(power)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

fn draw(set: &Set, axis: &Axis, points: &[(f64, f64)]) -> String {
    let (left, right, top, bottom) = (LEFT, SIZE - RIGHT, TOP, SIZE - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" width=\"{SIZE}\" height=\"{SIZE}\" \
         role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"11\" fill=\"currentColor\">\n\
         <style>svg{{color:#333}}@media(prefers-color-scheme:dark){{svg{{color:#ccc}}}}</style>\n\
         <title>{}: measured against predicted</title>\n",
        escaped(set.title)
    );
    // `write!` to a string cannot fail.
    let _ = writeln!(svg, "<path d=\"{}\" fill=\"{ACCENT}\" fill-opacity=\"0.15\"/>", band(*axis));
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {bottom}L{right} {top}\" stroke=\"currentColor\" stroke-opacity=\"0.6\" stroke-dasharray=\"4 3\"/>\n\
         <path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.6\"/>"
    );
    for tick in axis.ticks() {
        let (x, y) = (axis.x(tick), axis.y(tick));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {bottom}v4M{left} {y:.1}h-4\" stroke=\"currentColor\" stroke-opacity=\"0.6\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            bottom + 16.0,
            left - 7.0,
            y + 4.0
        );
    }
    let (radius, opacity) = if points.len() > 100 { (3.0, 0.6) } else { (8.0, 0.85) };
    let mut dots = String::new();
    for &(measured, predicted) in points {
        let _ = write!(dots, "M{:.1} {:.1}h0", axis.x(measured), axis.y(predicted));
    }
    let middle = SIZE / 2.0;
    let _ = writeln!(
        svg,
        "<path d=\"{dots}\" stroke=\"{ACCENT}\" stroke-opacity=\"{opacity}\" stroke-width=\"{radius}\" \
         stroke-linecap=\"round\" fill=\"none\"/>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">measured, {unit}</text>\n\
         <text x=\"12\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {middle})\">predicted, {unit}</text>\n\
         </svg>",
        SIZE - 8.0,
        unit = escaped(set.unit)
    );
    svg
}

/// Path of the region between 10 % too fast and 10 % too slow.
fn band(axis: Axis) -> String {
    let (low, high) = (axis.low, axis.high);
    let (slow, fast) = (1.0 + BAND, 1.0 - BAND);
    let corners =
        [(low, low), (low, low * slow), (high / slow, high), (high, high), (high, high * fast), (low / fast, low)];
    let mut path = String::new();
    for (index, (x, y)) in corners.into_iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", axis.x(x), axis.y(y));
    }
    path.push('Z');
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::{Goal, Listing, Row};

    fn set(unit: &'static str, pairs: &[(f64, f64)]) -> Set {
        let row = |&(measured, predicted): &(f64, f64)| Row {
            label: String::new(),
            measured,
            predicted,
            note: String::new(),
            facets: vec![],
            setup: vec![],
            left_out: None,
            step: None,
        };
        Set {
            id: "",
            title: "A < B & C",
            source: "",
            unit,
            goal: Goal { mean: 1.0, largest: None },
            peer: "",
            assumptions: vec![],
            rows: pairs.iter().map(row).collect(),
            variants: vec![],
            findings: vec![],
            listing: Listing::Rows,
        }
    }

    /// True if all elements are closed in order.
    fn is_well_formed(svg: &str) -> bool {
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let Some((inside, text)) = tag.split_once('>') else { return false };
            if text.contains('&') && !["&amp;", "&lt;", "&gt;"].iter().any(|entity| text.contains(entity)) {
                return false;
            }
            if let Some(name) = inside.strip_prefix('/') {
                if open.pop() != Some(name) {
                    return false;
                }
            } else if !inside.ends_with('/') {
                open.push(inside.split(' ').next().unwrap_or_default());
            }
        }
        open.is_empty() && !svg.contains("NaN")
    }

    #[test]
    fn plots_are_well_formed_and_hold_every_point() {
        let svg = scatter(&set("ms", &[(10.0, 9.0), (300.0, 310.0), (2000.0, 2500.0)])).unwrap();
        assert!(is_well_formed(&svg), "{svg}");
        assert_eq!(svg.matches("h0").count(), 3);
        assert!(svg.contains("A &lt; B &amp; C") && svg.contains("currentColor"));
        assert!(is_well_formed(&scatter(&set("s", &[(1.0, 1.0)])).unwrap()));
    }

    #[test]
    fn sets_without_a_common_scale_have_no_plot() {
        assert_eq!(scatter(&set(MIXED, &[(1.0, 1.0)])), None);
        assert_eq!(scatter(&set("s", &[])), None);
        assert_eq!(scatter(&set("s", &[(0.0, 1.0)])), None);
    }

    #[test]
    fn ticks_stand_inside_the_axis() {
        assert_eq!(Axis { low: 0.9, high: 12.0 }.ticks(), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(Axis { low: 0.9, high: 2000.0 }.ticks(), [1.0, 10.0, 100.0, 1000.0]);
    }
}
