//! Configurations of training jobs, of every format.

use ingest::job_config;

/// Reads one input.
pub fn read(bytes: &[u8]) {
    match job_config::read("job.toml", bytes) {
        // Scenarios are written as JSON and validated; neither may panic.
        Ok(config) => {
            let written = serde_json::to_string(&config.scenario).expect("a scenario is JSON");
            drop(planner::scenario::parse(&written));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
