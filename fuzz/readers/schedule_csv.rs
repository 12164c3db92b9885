//! Schedules in the torch action grammar.

use planner::schedule::csv;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match csv::read(text) {
        Ok(imported) => assert!(!imported.schedule.orders.is_empty()),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}
