//! Paints arrows of the selected slice, from slice start to slice start.

use web_sys::CanvasRenderingContext2d;

use super::{HEADER, Scene};
use crate::traces::layout::{Content, HEADING, Layout, ROW};

/// Arrowhead length in px.
const HEAD: f64 = 7.0;
/// Maximum length in px of the straight section before a bend.
const BEND: f64 = 60.0;

/// Paints the arrows. Returns the number of arrows that cross the visible time range.
pub(super) fn paint(context: &CanvasRenderingContext2d, scene: &Scene<'_>, colour: &str) -> usize {
    let Some((lane, row, start_ns, _)) = scene.marked[0] else { return 0 };
    context.save();
    context.begin_path();
    context.rect(HEADER, 0.0, (scene.size.width - HEADER).max(0.0), scene.rows_height());
    context.clip();
    context.set_stroke_style_str(colour);
    context.set_fill_style_str(colour);
    context.set_line_width(1.5);
    let selected_end = (lane, u32::from(row), start_ns as f64);
    let mut painted = 0;
    for arrow in scene.arrows {
        let other = (arrow.lane, arrow.row, arrow.start_ns as f64);
        let (from, to) = if arrow.is_incoming { (other, selected_end) } else { (selected_end, other) };
        let (first, last) = (from.2.min(to.2), from.2.max(to.2));
        if last < scene.window.start_ns || first > scene.window.end_ns {
            continue;
        }
        let (Some(y0), Some(y1)) = (height(scene, from.0, from.1), height(scene, to.0, to.1)) else { continue };
        curve(context, (scene.x(from.2), y0), (scene.x(to.2), y1));
        painted += 1;
    }
    context.restore();
    painted
}

/// Returns the vertical centre of a row in px. For a collapsed process, the centre of its heading.
fn height(scene: &Scene<'_>, lane: u32, row: u32) -> Option<f64> {
    let process = scene.detail.lanes.get(lane as usize)?.process;
    middle(scene.layout, lane, row, process).map(|y| y - scene.scrolled)
}

fn middle(layout: &Layout, lane: u32, row: u32, process: u32) -> Option<f64> {
    if let Some(band) = layout.lane_band(lane) {
        return Some(band.top + (f64::from(row) + 0.5) * ROW);
    }
    let heading = layout.bands.iter().find(|band| band.content == Content::Process(process))?;
    Some(heading.top + HEADING / 2.0)
}

fn curve(context: &CanvasRenderingContext2d, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) {
    let bend = ((x1 - x0).abs() / 2.0).clamp(12.0, BEND);
    let end = x1 - HEAD;
    context.begin_path();
    context.move_to(x0, y0);
    context.bezier_curve_to(x0 + bend, y0, end - bend, y1, end, y1);
    context.stroke();
    context.begin_path();
    context.move_to(x1, y1);
    context.line_to(end, y1 - HEAD / 2.0);
    context.line_to(end, y1 + HEAD / 2.0);
    context.close_path();
    context.fill();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::trace::TraceLane;

    use super::*;

    #[test]
    fn arrows_end_at_row_centres_or_folded_headings() {
        let lane = |process| TraceLane { process, thread: String::new(), name: None, overflow: 0, rows: 2, slices: 1 };
        let lanes = [lane(0), lane(1)];
        // Heading 0 to 20, lane with two rows of 16 px plus a gap of 3 px to 55, heading to 75,
        // lane.
        let layout = Layout::from_lanes(&lanes, &BTreeSet::new());
        assert_eq!(middle(&layout, 0, 1, 0), Some(44.0));
        assert_eq!(middle(&layout, 1, 0, 1), Some(83.0));
        let folded = Layout::from_lanes(&lanes, &BTreeSet::from([1]));
        assert_eq!((middle(&folded, 1, 0, 1), middle(&folded, 1, 0, 9)), (Some(65.0), None));
    }
}
