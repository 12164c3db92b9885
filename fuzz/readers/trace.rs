//! Traces in all formats, compressed or not, and their levels of detail.

use ingest::trace::{self, Limits, TimeUnit, levels::Levels};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let limits = Limits { bytes: 8 << 20, events: 10_000, names_bytes: 1 << 20, threads: 1000, ..Limits::default() };
    let unit = match bytes.len() % 3 {
        0 => TimeUnit::Microseconds,
        1 => TimeUnit::Milliseconds,
        _ => TimeUnit::Nanoseconds,
    };
    match trace::read(bytes, unit, &limits) {
        Ok(trace) => {
            let lanes = trace.lanes.len() as u32;
            assert!(trace.slices.lane.iter().all(|&lane| lane < lanes));
            assert!(trace.slices.name.iter().all(|&name| (name as usize) < trace.names.len()));
            drop(Levels::from_trace(&trace));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(name) = std::str::from_utf8(bytes) {
        drop(trace::actions(name));
    }
}
