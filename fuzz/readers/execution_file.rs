//! Execution plan files, which the checker simulates.

use planner::check::check_execution_file;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Ok(file) = ingest::execution_file::read(bytes) else { return };
    if let Ok(replay) = check_execution_file(&file) {
        assert_eq!(replay.iteration_ns, file.iteration_ns);
        assert_eq!(replay.peak_bytes, file.peak_bytes);
    }
}
