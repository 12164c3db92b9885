//! Chart rows: pinned ranks, followed by scrolling rows. Rank groups can be folded into a single
//! row.

use std::collections::BTreeSet;
use std::ops::Range;

use api::planner::timeline::Timeline;

use super::rows::{self, Lane, RowNames};

/// Ranks per fold group in a timeline with a single pipeline. Smaller timelines have no groups.
const GROUP: u32 = 8;

/// Chart row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    Rank(u32),
    /// Folded adjacent ranks.
    Fold(Range<u32>),
}

impl Row {
    /// Ranks in the row.
    pub(crate) fn ranks(&self) -> Range<usize> {
        match self {
            Self::Rank(rank) => *rank as usize..*rank as usize + 1,
            Self::Fold(ranks) => ranks.start as usize..ranks.end as usize,
        }
    }
}

/// Folded groups and pinned ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// First rank of the folded groups.
    pub(crate) folded: BTreeSet<u32>,
    pub(crate) pinned: BTreeSet<u32>,
}

/// Fold groups: one per pipeline if the timeline contains several pipelines, otherwise blocks with
/// eight ranks.
pub(crate) fn groups(timeline: &Timeline) -> Vec<Range<u32>> {
    let pipelines = if timeline.is_grouped() { Vec::new() } else { timeline.pipelines() };
    if pipelines.len() > 1 {
        return pipelines.iter().map(|ranks| ranks.start as u32..ranks.end as u32).collect();
    }
    by_eight(timeline.ranks)
}

/// Blocks of eight ranks. Empty for a single block.
pub(crate) fn by_eight(ranks: u32) -> Vec<Range<u32>> {
    if ranks <= GROUP {
        return Vec::new();
    }
    (0..ranks.div_ceil(GROUP)).map(|group| group * GROUP..((group + 1) * GROUP).min(ranks)).collect()
}

/// Chart rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) names: RowNames,
    rows: Vec<Row>,
    pinned: usize,
    rank_rows: Vec<u32>,
}

impl Layout {
    /// Computes the rows for `ranks` ranks.
    pub(crate) fn new(ranks: u32, groups: &[Range<u32>], arrangement: &Arrangement) -> Self {
        let mut rows: Vec<Row> =
            arrangement.pinned.iter().copied().filter(|&rank| rank < ranks).map(Row::Rank).collect();
        let pinned = rows.len();
        let mut rank = 0;
        while rank < ranks {
            let fold = groups.iter().find(|group| group.start == rank && group.len() > 1);
            if let Some(group) = fold.filter(|group| arrangement.folded.contains(&group.start)) {
                rows.push(Row::Fold(group.clone()));
                rank = group.end;
                continue;
            }
            if !arrangement.pinned.contains(&rank) {
                rows.push(Row::Rank(rank));
            }
            rank += 1;
        }
        let mut rank_rows = vec![0; ranks as usize];
        // Reverse order, so that a pinned row overrides the folded group with the same rank.
        for (index, row) in rows.iter().enumerate().rev() {
            for rank in row.ranks() {
                rank_rows[rank] = index as u32;
            }
        }
        Self { names: RowNames::default(), rows, pinned, rank_rows }
    }

    /// Returns the rows with other names.
    pub(crate) fn named(self, names: RowNames) -> Self {
        Self { names, ..self }
    }

    /// Row count.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Total height in px.
    pub(crate) fn height(&self) -> f64 {
        self.rows.len() as f64 * rows::ROW
    }

    /// Total pinned height in px.
    pub(crate) fn pinned_height(&self) -> f64 {
        self.pinned as f64 * rows::ROW
    }

    pub(crate) fn row(&self, index: usize) -> Option<&Row> {
        self.rows.get(index)
    }

    /// Row index for a rank.
    pub(crate) fn row_index(&self, rank: usize) -> usize {
        self.rank_rows.get(rank).map_or(0, |&row| row as usize)
    }

    /// Returns true if the row does not scroll.
    pub(crate) const fn is_pinned(&self, index: usize) -> bool {
        index < self.pinned
    }

    /// Top of a row on the canvas, in px.
    pub(crate) fn top(&self, index: usize, scrolled: f64) -> f64 {
        let top = index as f64 * rows::ROW;
        if self.is_pinned(index) { top } else { top - scrolled }
    }

    /// Row index and lane at the canvas position `y`.
    pub(crate) fn at(&self, y: f64, scrolled: f64) -> Option<(usize, Lane)> {
        let inside = if y < self.pinned_height() { y } else { y + scrolled };
        if y < 0.0 || inside >= self.height() {
            return None;
        }
        let lane = if inside % rows::ROW < rows::BAR { Lane::Compute } else { Lane::Communication };
        Some(((inside / rows::ROW) as usize, lane))
    }

    /// Visible row indices: pinned rows, then scrolling rows.
    pub(crate) fn visible(&self, scrolled: f64, height_px: f64) -> impl Iterator<Item = usize> + use<> {
        let pinned = self.pinned.min((height_px / rows::ROW).ceil().max(0.0) as usize);
        let under = self.pinned_height();
        let first = ((under + scrolled) / rows::ROW).floor().max(0.0) as usize;
        let last = ((height_px + scrolled) / rows::ROW).ceil().max(0.0) as usize;
        let count = self.rows.len();
        (0..pinned).chain(first.clamp(self.pinned, count)..last.clamp(self.pinned, count))
    }

    /// Returns true if any pixel of the row is visible. Scrolling rows disappear behind the pinned
    /// rows.
    pub(crate) fn is_seen(&self, index: usize, scrolled: f64) -> bool {
        self.is_pinned(index) || (index + 1) as f64 * rows::ROW - scrolled > self.pinned_height()
    }

    /// Scroll offset in px that makes a row visible in a chart with the given row area height.
    pub(crate) fn revealing(&self, index: usize, scrolled: f64, height_px: f64) -> f64 {
        if self.is_pinned(index) {
            return scrolled;
        }
        let top = index as f64 * rows::ROW;
        let upper_scroll = (top - self.pinned_height()).max(0.0);
        scrolled.clamp((top + rows::ROW - height_px).max(0.0).min(upper_scroll), upper_scroll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(folded: &[u32], pinned: &[u32]) -> Layout {
        let arrangement =
            Arrangement { folded: folded.iter().copied().collect(), pinned: pinned.iter().copied().collect() };
        Layout::new(20, &by_eight(20), &arrangement)
    }

    #[test]
    fn few_ranks_have_no_groups_and_the_last_group_may_be_short() {
        assert!(by_eight(8).is_empty());
        assert_eq!(by_eight(20), [0..8, 8..16, 16..20]);
    }

    #[test]
    fn folded_group_is_a_single_row() {
        let layout = arranged(&[8], &[]);
        assert_eq!(layout.len(), 13);
        assert_eq!(layout.row(8), Some(&Row::Fold(8..16)));
        assert_eq!((layout.row_index(3), layout.row_index(12), layout.row_index(16)), (3, 8, 9));
    }

    #[test]
    fn pinned_ranks_stand_first_and_once() {
        let layout = arranged(&[8], &[2, 12]);
        // Rank 12 belongs to the folded group, which still contains it.
        assert_eq!((layout.row(0), layout.row(1)), (Some(&Row::Rank(2)), Some(&Row::Rank(12))));
        assert_eq!(layout.len(), 2 + 7 + 1 + 4);
        assert_eq!(
            (layout.row_index(2), layout.row_index(12), layout.row_index(13), layout.row_index(0)),
            (0, 1, 9, 2)
        );
    }

    #[test]
    fn heights_name_rows_and_pinned_ones_do_not_scroll() {
        let layout = arranged(&[], &[5]);
        assert_eq!(layout.at(10.0, 100.0), Some((0, Lane::Compute)));
        assert_eq!(layout.at(17.0, 100.0), Some((0, Lane::Communication)));
        // 30 px on the canvas correspond to 130 px in the rows: the seventh row.
        assert_eq!(layout.at(30.0, 100.0), Some((6, Lane::Compute)));
        assert!((layout.top(6, 100.0) - 20.0).abs() < 1e-9 && layout.top(0, 100.0).abs() < 1e-9);
        assert_eq!(layout.at(-1.0, 0.0), None);
        assert_eq!(layout.at(400.0, 0.0), None);
    }

    #[test]
    fn only_rows_in_view_are_visible() {
        let rows = |layout: &Layout, scrolled, height| layout.visible(scrolled, height).collect::<Vec<_>>();
        assert_eq!(rows(&arranged(&[], &[]), 30.0, 40.0), [1, 2, 3]);
        assert_eq!(rows(&arranged(&[], &[5]), 100.0, 40.0), [0, 6]);
        assert!(rows(&arranged(&[], &[]), 5_000.0, 40.0).is_empty());
    }

    #[test]
    fn revealing_scrolls_no_further_than_needed() {
        let layout = arranged(&[], &[5]);
        // Row 10 is at 200..220 px. The visible height is 100 px, with 20 px pinned.
        assert!((layout.revealing(10, 0.0, 100.0) - 120.0).abs() < 1e-9);
        assert!((layout.revealing(10, 300.0, 100.0) - 180.0).abs() < 1e-9);
        assert!((layout.revealing(0, 77.0, 100.0) - 77.0).abs() < 1e-9, "it is pinned");
    }
}
