//! SVG export of the visible timeline range, with a size independent of the span count.
//!
//! Consecutive spans of the same kind within a pixel are merged into a bar, so the pixel width
//! limits the bar count per lane.

use std::fmt::Write as _;

use api::planner::timeline::{SpanKind, Timeline};

use super::exposed::ExposedSpans;
use super::palette::{LEGEND, Theme, fill, ink, outline};
use super::rows::{AXIS, HEADER, Lane, ROW, RowNames, lane_box};
use super::{TimeWindow, label, ticks};

/// Image width in px.
const WIDTH: f64 = 1200.0;
/// Margin to the right of the last bar, in px.
const RIGHT: f64 = 12.0;
/// Height of the title in px.
const TITLE: f64 = 28.0;
const LEGEND_HEIGHT: f64 = 24.0;
/// Maximum number of exported ranks. A note states the total rank count.
const MAX_RANKS: usize = 256;
/// Approximate character width in px.
const LETTER: f64 = 7.0;
const DIGIT: f64 = 6.5;

/// Single-colour bar.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    kind: SpanKind,
    from: f64,
    to: f64,
    /// Span index if the bar contains a single span.
    span: Option<usize>,
}

/// Renders a time range as SVG. Escapes the title.
pub(crate) fn svg(timeline: &Timeline, window: TimeWindow, title: &str, theme: Theme) -> String {
    let ranks = (timeline.ranks as usize).min(MAX_RANKS);
    let plot = WIDTH - HEADER - RIGHT;
    let (paper, pen, line) = match theme {
        Theme::Light => ("#ffffff", "#1a2028", "#c6ccd3"),
        Theme::Dark => ("#191d22", "#e6e9ed", "#434b55"),
    };
    let rows_end = TITLE + ranks as f64 * ROW;
    let names = RowNames::from_timeline(timeline);
    let total = rows_end + AXIS + LEGEND_HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{total}\" viewBox=\"0 0 {WIDTH} {total}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n\
         <text x=\"8\" y=\"18\" font-size=\"13\" font-weight=\"600\" fill=\"{pen}\">{}</text>\n",
        escaped(title)
    );
    let inside = ExposedSpans::from_timeline(timeline);
    for rank in 0..ranks {
        let y = TITLE + rank as f64 * ROW;
        push(
            &mut out,
            format_args!("<text x=\"8\" y=\"{:.1}\" fill=\"{pen}\">{}</text>\n", y + 12.0, names.header(rank)),
        );
        for (lane, kind) in [(rank * 2, Lane::Compute), (rank * 2 + 1, Lane::Communication)] {
            let (offset, tall) = lane_box(kind);
            for bar in bars(timeline, lane, window, plot) {
                draw(&mut out, timeline, bar, (y + offset, tall), theme);
            }
            if let (Lane::Compute, Some(inside)) = (kind, &inside) {
                let (offset, tall) = lane_box(Lane::Exposed);
                for bar in bars(&inside.spans, lane, window, plot) {
                    draw(&mut out, &inside.spans, Bar { span: None, ..bar }, (y + offset, tall), theme);
                }
            }
        }
        let edge = y + ROW - 0.5;
        push(
            &mut out,
            format_args!("<path d=\"M{HEADER} {edge}H{:.1}\" stroke=\"{line}\" stroke-width=\".5\"/>\n", HEADER + plot),
        );
    }
    let axis = ticks::axis(window, plot);
    for tick in &axis.ticks {
        let x = HEADER + tick.x;
        push(
            &mut out,
            format_args!(
                "<path d=\"M{x:.1} {rows_end:.1}v4\" stroke=\"{pen}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 fill=\"{pen}\">{}</text>\n",
                rows_end + 15.0,
                escaped(&tick.label)
            ),
        );
    }
    if let Some(origin) = &axis.origin {
        push(
            &mut out,
            format_args!("<text x=\"8\" y=\"{:.1}\" fill=\"{pen}\">{}</text>\n", rows_end + 15.0, escaped(origin)),
        );
    }
    let mut x = HEADER;
    let below = rows_end + AXIS + 6.0;
    for (kind, name) in LEGEND {
        push(
            &mut out,
            format_args!(
                "<rect x=\"{x:.1}\" y=\"{below:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 fill=\"{pen}\">{name}</text>\n",
                fill(kind, theme),
                x + 14.0,
                below + 9.0
            ),
        );
        x += 26.0 + name.len() as f64 * DIGIT;
    }
    if timeline.ranks as usize > ranks {
        push(
            &mut out,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{pen}\">first {ranks} of {} ranks</text>\n",
                below + 9.0,
                timeline.ranks
            ),
        );
    }
    out.push_str("</svg>\n");
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes any text");
}

fn draw(out: &mut String, timeline: &Timeline, bar: Bar, (y, tall): (f64, f64), theme: Theme) {
    let (x, width) = (HEADER + bar.from, (bar.to - bar.from).max(0.5));
    let edge =
        outline(bar.kind, theme).map(|edge| format!(" stroke=\"{edge}\" stroke-width=\".5\"")).unwrap_or_default();
    let fill = fill(bar.kind, theme);
    push(
        out,
        format_args!(
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{tall:.1}\" fill=\"{fill}\"{edge}/>"
        ),
    );
    if let Some(span) = bar.span {
        let mut text = String::new();
        let wide = |text: &str| text.chars().map(|sign| if sign.is_ascii_digit() { DIGIT } else { LETTER }).sum();
        label::fit(bar.kind, timeline.microbatch[span], width, 1.0, wide, &mut text);
        if !text.is_empty() {
            let middle = x + width / 2.0;
            push(
                out,
                format_args!(
                    "<text x=\"{middle:.2}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\" fill=\"{}\">{text}</text>",
                    y + 11.0,
                    ink(bar.kind, theme)
                ),
            );
        }
    }
    out.push('\n');
}

/// Bars of a lane, in px of the plot.
fn bars(timeline: &Timeline, lane: usize, window: TimeWindow, plot: f64) -> Vec<Bar> {
    let offset = |lane: usize| timeline.lane_offsets.get(lane).map_or(0, |offset| *offset as usize);
    let mut bars: Vec<Bar> = Vec::new();
    for span in offset(lane)..offset(lane + 1) {
        let (start, end) =
            (timeline.start_ns[span] as f64, (timeline.start_ns[span] + timeline.duration_ns[span]) as f64);
        let Some(kind) = SpanKind::from_index(timeline.kind[span]) else { continue };
        if end < window.start_ns || start > window.end_ns {
            continue;
        }
        let from = window.x_at(start, plot).clamp(0.0, plot);
        let to = window.x_at(end, plot).clamp(0.0, plot);
        match bars.last_mut() {
            // Both bars are narrower than a pixel and start in the same pixel, so they are merged
            // into the first bar's kind.
            Some(last) if to - last.from < 1.0 => {
                last.to = to;
                last.span = None;
            }
            _ => bars.push(Bar { kind, from, to, span: Some(span) }),
        }
    }
    bars
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter if letter.is_control() => {}
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gantt::sample::{lane, one_f_one_b};

    fn full_window(timeline: &Timeline) -> TimeWindow {
        TimeWindow { start_ns: 0.0, end_ns: timeline.makespan_ns as f64 }
    }

    #[test]
    fn small_plan_draws_labelled_bar_per_span() {
        let timeline = one_f_one_b(4, 8);
        let picture = svg(&timeline, full_window(&timeline), "1F1B", Theme::Light);
        // 4 x 8 forwards and 4 x 8 backwards, with letters on the widest bars. The legend adds six
        // bars of ten pixels.
        for kind in [SpanKind::Forward, SpanKind::Backward] {
            let bars = picture.matches(&format!("fill=\"{}\"", fill(kind, Theme::Light))).count();
            assert_eq!(bars, 33, "{kind:?}");
        }
        assert!(picture.contains(">F0</text>") && picture.contains(">B7</text>") && picture.contains(">rank 3</text>"));
        assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"));
    }

    #[test]
    fn names_stand_as_text() {
        let timeline = one_f_one_b(1, 1);
        let picture = svg(&timeline, full_window(&timeline), "<img src=x onerror=\"alert(1)\">&\u{0}", Theme::Dark);
        assert!(picture.contains("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;</text>"), "{picture:.400}");
    }

    #[test]
    fn a_picture_stays_small_however_many_spans_there_are() {
        let spans: Vec<(u8, u64, u64)> = (0..200_000).map(|at| ((at % 2) as u8, at * 10, at * 10 + 10)).collect();
        let timeline = lane(&spans);
        let bars = bars(&timeline, 0, full_window(&timeline), WIDTH - HEADER - RIGHT);
        // At most two bars per pixel.
        assert!(bars.len() <= 2_300 && bars.len() > 500, "{}", bars.len());
        assert!(svg(&timeline, full_window(&timeline), "many", Theme::Light).len() < 400_000);
    }

    #[test]
    fn only_visible_range_is_drawn() {
        let timeline = one_f_one_b(2, 4);
        let narrow = TimeWindow { start_ns: 0.0, end_ns: 900.0 };
        let all: usize = (0..4).map(|lane| bars(&timeline, lane, narrow, 1000.0).len()).sum();
        assert_eq!(all, 1, "only the first forward runs in the first 900 ns");
    }
}
