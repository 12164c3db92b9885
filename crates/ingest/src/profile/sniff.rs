//! Detects the profile format from content.

use super::json::Keys;
use super::table::Table;
use super::{Format, ProfileError, aiconfigurator, all_reduce_bench, galvatron, nccl_tests, schemes, vidur_compute};

/// Detected content.
pub(super) enum Content<'a> {
    /// A table and its format.
    Table(Format, Table<'a>),
    SimuMax,
    Galvatron,
    NcclTests,
    NcclTestsJson,
    Measurements,
    AllReduceBench,
}

/// Detects the format of a non-empty text.
pub(super) fn content(text: &str) -> Result<Content<'_>, ProfileError> {
    if text.trim_start().starts_with('{') {
        json(text)
    } else if nccl_tests::is(text) {
        Ok(Content::NcclTests)
    } else if all_reduce_bench::is(text) {
        Ok(Content::AllReduceBench)
    } else if text.trim_start().starts_with('[') {
        json(text)
    } else {
        table(text)
    }
}

fn json<'a>(text: &str) -> Result<Content<'a>, ProfileError> {
    let Keys(keys) = serde_json::from_str(text).map_err(|error| ProfileError::Json { detail: error.to_string() })?;
    let any = |test: &dyn Fn(&str) -> bool| keys.iter().any(|key| test(key));
    if any(&|key| key == "format") && any(&|key| key == "sections") {
        return Ok(Content::Measurements);
    }
    if any(&|key| key == "accelerator") {
        return Ok(Content::SimuMax);
    }
    if any(&|key| key == "results") && any(&|key| key == "average_bus_bandwidth" || key == "config") {
        return Ok(Content::NcclTestsJson);
    }
    if any(&|key| galvatron::Key::read(key).is_some()) {
        return Ok(Content::Galvatron);
    }
    if any(&|key| key.starts_with("layernum[") || key.starts_with("layertype_")) {
        return Err(ProfileError::NotMeasurements {
            format: "a Galvatron profile of whole layers",
            why: "the time of a layer is not the time of an operator, so that no rate follows from it",
        });
    }
    if any(&|key| key == "overlap_coe") {
        return Err(ProfileError::NotMeasurements {
            format: "a Galvatron overlap coefficient",
            why: "Planscope has no such coefficient: it plans with measured or modelled exposed times",
        });
    }
    Err(ProfileError::Unknown { found: format!("JSON with {}", listed("keys", &keys)) })
}

fn table(text: &str) -> Result<Content<'_>, ProfileError> {
    let table = Table::new(text)?;
    let header = table.header();
    let any = |test: &dyn Fn(&str) -> bool| header.iter().any(|name| test(name));
    let format = if any(&vidur_compute::is_time) {
        Format::VidurCompute
    } else if any(&|name| name.starts_with("time_stats.")) && any(&|name| ["collective", "num_workers"].contains(&name))
    {
        Format::VidurNetwork
    } else if any(&|name| name.starts_with("time_stats.attn")) {
        return Err(ProfileError::NotMeasurements {
            format: "a Vidur attention profile",
            why: "it measures the attention of serving, with a cache of keys and values, which training does not run",
        });
    } else if any(&|name| name == "fwd_times") || any(&|name| name == "model_state_peak") {
        return Err(ProfileError::NotMeasurements {
            format: "a DFLOP profile of a whole module",
            why: "the time of a module is not the time of an operator, so that no rate follows from it",
        });
    } else if aiconfigurator::is(header) {
        Format::Aiconfigurator
    } else if any(&|name| name == "size(b)") {
        Format::VtrainAllReduce
    } else if header[0] == "size" && any(&|name| name.contains("node") && name.contains("gpu")) {
        return Err(ProfileError::NotMeasurements {
            format: "a SimAI table of ratios",
            why: "a ratio of achieved to peak bandwidth holds no time, and the peak is not in the file",
        });
    } else if schemes::is_header(header) {
        return Err(ProfileError::NotMeasurements {
            format: "a Planscope table of scheme times",
            why: "the time of a layer is not the time of an operator, so that no rate follows from it",
        });
    } else if any(&|name| name == "kernel" || name.starts_with("time_")) {
        Format::Planscope
    } else {
        return Err(ProfileError::Unknown { found: format!("a table with {}", listed("columns", header)) });
    };
    Ok(Content::Table(format, table))
}

/// Lists the first few names for an error message.
fn listed(noun: &str, found: &[String]) -> String {
    const MAX_LISTED: usize = 6;
    let clip = |name: &String| name.chars().take(40).collect::<String>();
    let names: Vec<String> = found.iter().take(MAX_LISTED).map(clip).collect();
    let more = if found.len() > MAX_LISTED { ", ..." } else { "" };
    if names.is_empty() { format!("no {noun}") } else { format!("the {noun} {}{more}", names.join(", ")) }
}
