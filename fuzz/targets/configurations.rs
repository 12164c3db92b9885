//! Tables of configurations, estimated as `planscope estimate` does.

#![no_main]

use ingest::configurations;
use libfuzzer_sys::fuzz_target;
use planner::estimate::estimate;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(table) = configurations::read(bytes) {
        let mut answer = Vec::new();
        let summary = configurations::write(&table, estimate, &mut answer).expect("memory takes every byte");
        assert_eq!(summary.rows, table.rows().count() as u64);
    }
});
