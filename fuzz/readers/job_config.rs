//! Training job configurations in all formats.

use ingest::job_config;
use ingest::job_config::{ConfigFormat, Hardware};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let other_hardware = Hardware { preset: Some("a100-40gb"), devices: Some(24) };
    // With a zero byte, the input is two files of one job.
    let files: Vec<(&str, &[u8])> = bytes.splitn(2, |&byte| byte == 0).map(|file| ("job.toml", file)).collect();
    let configs = [
        job_config::read("job.toml", bytes),
        job_config::read_on("job.toml", bytes, other_hardware),
        job_config::read_files(&files, other_hardware),
    ];
    if let (Ok(format), Ok(text)) = (job_config::format(bytes), std::str::from_utf8(bytes)) {
        check_places(text, format);
    }
    for config in configs {
        match config {
            // Writing a scenario as JSON and validating it must not panic.
            Ok(config) => {
                let written = serde_json::to_string(&config.scenario).expect("a scenario is JSON");
                drop(planner::scenario::parse(&written));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Keys and values are parts of the text.
fn check_places(text: &str, format: ConfigFormat) {
    for place in job_config::places(text, format).into_iter().flat_map(|places| places.places) {
        assert!(text.is_char_boundary(place.start), "{place:?}");
        if let Some(value) = place.value {
            assert!(text.get(value.clone()).is_some(), "{value:?} of {}", place.key);
        }
    }
}
