//! Sweeps, and result files from external planners.

use planner::scenario::validate::NoDatasets;
use planner::sweep::{Sheet, Sweep};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(sweep) = Sweep::parse(text) {
        let again = Sweep::parse(&sweep.to_json()).expect("what is written is read");
        assert_eq!(again.id(), sweep.id());
        for index in [0, 1, sweep.points() / 2, sweep.points() - 1, sweep.points()] {
            if let Some(point) = sweep.point(index) {
                assert_eq!(sweep.index(&sweep.places(index)), Some(index));
                drop(point.valid(&NoDatasets));
            }
        }
    }
    let mut lines = text.lines();
    if let Some(Ok(sheet)) = lines.next().map(Sheet::open) {
        for line in lines {
            drop(sheet.row(line));
        }
    }
}
