//! Configuration tables, as in `planscope estimate`.

use ingest::configurations;
use planner::estimate::estimate;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    if let Ok(table) = configurations::read(bytes) {
        let mut answer = Vec::new();
        let summary = configurations::write(&table, estimate, &mut answer).expect("memory takes every byte");
        assert_eq!(summary.rows, table.rows().count() as u64);
    }
}
