//! Training job configurations in all formats.

use ingest::job_config;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    match job_config::read("job.toml", bytes) {
        // Writing a scenario as JSON and validating it must not panic.
        Ok(config) => {
            let written = serde_json::to_string(&config.scenario).expect("a scenario is JSON");
            drop(planner::scenario::parse(&written));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
