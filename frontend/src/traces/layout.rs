//! Vertical layout: collapsible processes, their lanes, and a row per nesting depth.

use std::collections::BTreeSet;

use api::trace::{TraceLane, TraceProcess};

/// Row height including the gap below, in px.
pub(super) const ROW: f64 = 16.0;
/// Process heading height in px.
pub(super) const HEADING: f64 = 20.0;
/// Gap between lanes in px.
pub(super) const GAP: f64 = 3.0;

/// Content of a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Process(u32),
    Lane(u32),
}

/// Horizontal band over the full chart width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Band {
    /// Distance from the first band in px.
    pub(super) top: f64,
    /// Height in px.
    pub(super) height: f64,
    pub(super) content: Content,
}

/// All bands from top to bottom.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layout {
    pub(super) bands: Vec<Band>,
}

impl Layout {
    /// Computes the bands. `folded` contains the collapsed processes.
    pub(super) fn from_lanes(lanes: &[TraceLane], folded: &BTreeSet<u32>) -> Self {
        let mut bands = Vec::new();
        let mut top = 0.0;
        let mut process = None;
        let mut push = |height: f64, content: Content| {
            bands.push(Band { top, height, content });
            top += height;
        };
        for (index, lane) in lanes.iter().enumerate() {
            if process != Some(lane.process) {
                process = Some(lane.process);
                push(HEADING, Content::Process(lane.process));
            }
            if !folded.contains(&lane.process) {
                push(f64::from(lane.rows.max(1)) * ROW + GAP, Content::Lane(index as u32));
            }
        }
        Self { bands }
    }

    /// Total height in px.
    pub(super) fn height(&self) -> f64 {
        self.bands.last().map_or(0.0, |band| band.top + band.height)
    }

    /// Returns the bands visible between two heights.
    pub(super) fn visible(&self, top: f64, height: f64) -> &[Band] {
        let first = self.bands.partition_point(|band| band.top + band.height <= top);
        let last = self.bands.partition_point(|band| band.top < top + height);
        &self.bands[first..last.max(first)]
    }

    /// Returns the band at a height.
    pub(super) fn at(&self, y: f64) -> Option<Band> {
        let after = self.bands.partition_point(|band| band.top <= y);
        let band = *self.bands.get(after.checked_sub(1)?)?;
        (y < band.top + band.height).then_some(band)
    }

    /// Returns the band of a lane.
    pub(super) fn lane_band(&self, lane: u32) -> Option<Band> {
        self.bands.iter().find(|band| band.content == Content::Lane(lane)).copied()
    }

    /// Returns the lanes between two heights in API format, such as "3-7,12". Empty if there are
    /// none.
    pub(super) fn lanes(&self, top: f64, height: f64) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for band in self.visible(top, height) {
            let Content::Lane(lane) = band.content else { continue };
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == lane => *last = lane,
                _ => ranges.push((lane, lane)),
            }
        }
        let text: Vec<String> = ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        text.join(",")
    }
}

/// Process label.
pub(super) fn process_name(process: &TraceProcess) -> String {
    let mut label = match &process.name {
        Some(name) => format!("{name} {}", process.id),
        None => format!("process {}", process.id),
    };
    if let Some(labels) = &process.labels {
        label.push_str(" · ");
        label.push_str(labels);
    }
    if let Some(rank) = process.rank {
        label.push_str(" · rank ");
        label.push_str(&rank.to_string());
    }
    label
}

/// Lane label.
pub(super) fn lane_name(lane: &TraceLane) -> String {
    let mut label = lane.name.clone().unwrap_or_else(|| format!("thread {}", lane.thread));
    if lane.overflow > 0 {
        label.push_str(" +");
        label.push_str(&lane.overflow.to_string());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(process: u32, rows: u32) -> TraceLane {
        TraceLane { process, thread: "7".to_owned(), name: None, overflow: 1, rows, slices: 1 }
    }

    /// Headings are 20 px high, lanes 16 px per row plus 3 px: heading at 0, lane 0 at 20 (35 px),
    /// lane 1 at 55 (19 px), heading at 74, lane 2 at 94 (19 px).
    #[test]
    fn lanes_stand_below_their_process() {
        let lanes = [lane(0, 2), lane(0, 1), lane(4, 1)];
        let layout = Layout::from_lanes(&lanes, &BTreeSet::new());
        let tops: Vec<f64> = layout.bands.iter().map(|band| band.top).collect();
        assert_eq!(tops, [0.0, 20.0, 55.0, 74.0, 94.0]);
        assert!((layout.height() - 113.0).abs() < f64::EPSILON);
        assert_eq!(layout.at(54.9).map(|band| band.content), Some(Content::Lane(0)));
        assert_eq!(layout.at(80.0).map(|band| band.content), Some(Content::Process(4)));
        assert_eq!((layout.at(113.0), layout.at(-1.0)), (None, None));
        assert_eq!(layout.lanes(0.0, 200.0), "0-2");
        assert_eq!(layout.lanes(60.0, 10.0), "1-1");
        assert_eq!(layout.lanes(0.0, 20.0), "");
        let folded = Layout::from_lanes(&lanes, &BTreeSet::from([0]));
        assert_eq!((folded.lanes(0.0, 500.0).as_str(), folded.lane_band(0)), ("2-2", None));
        assert!((folded.height() - 59.0).abs() < f64::EPSILON);
        assert_eq!(lane_name(&lanes[0]), "thread 7 +1");
    }
}
