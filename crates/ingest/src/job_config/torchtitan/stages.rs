//! Stated modules of the pipeline stages.

use super::super::JobConfigError;
use super::super::keys::Keys;

/// Modules of every stage: `[["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]`.
const PARTS: &str = "parallelism.module_fqns_per_model_part";
/// First layer of every stage but the first, in versions until 2025: `["layers.8", "layers.16"]`.
const SPLIT_POINTS: [&str; 2] =
    ["parallelism.pipeline_parallel_split_points", "experimental.pipeline_parallel_split_points"];

/// Stated stages.
pub(super) enum Stated {
    /// Layers of each stage.
    Layers(Vec<u32>),
    /// First layer of each stage but the first.
    Starts(Vec<u32>),
}

impl Stated {
    /// Number of stages.
    pub(super) fn stages(&self) -> u32 {
        match self {
            Self::Layers(stages) => stages.len() as u32,
            Self::Starts(starts) => starts.len() as u32 + 1,
        }
    }

    /// Layers of each stage of a model with `layers` layers. `None` if layers are missing or repeated.
    pub(super) fn layers(&self, layers: u32) -> Option<Vec<u32>> {
        let stages = match self {
            Self::Layers(stages) => stages.clone(),
            Self::Starts(starts) => {
                let ends = starts.iter().copied().chain([layers]);
                let starts = std::iter::once(0).chain(starts.iter().copied());
                starts.zip(ends).map(|(start, end)| end.checked_sub(start)).collect::<Option<Vec<u32>>>()?
            }
        };
        (stages.iter().sum::<u32>() == layers).then_some(stages)
    }
}

/// Reads the stated stages, with the key that states them.
pub(super) fn read(keys: &mut Keys) -> Result<Option<(&'static str, Stated)>, JobConfigError> {
    let setting = "layers of the stages";
    if let Some(text) = keys.text(&[PARTS], setting) {
        let parts: Vec<Vec<String>> = list(PARTS, &text)?;
        let of_part = |part: &Vec<String>| {
            let modules = part.iter().flat_map(|names| names.split(','));
            modules.filter(|name| layer(name).is_some()).count() as u32
        };
        let stages: Vec<u32> = parts.iter().map(of_part).collect();
        if !stages.is_empty() {
            return Ok(Some((PARTS, Stated::Layers(stages))));
        }
    }
    let key = if keys.has(SPLIT_POINTS[0]) { SPLIT_POINTS[0] } else { SPLIT_POINTS[1] };
    let Some(text) = keys.text(&SPLIT_POINTS, setting) else { return Ok(None) };
    // A command line has the points without brackets.
    let points: Vec<String> = if text.trim_start().starts_with('[') {
        list(key, &text)?
    } else {
        text.split(',').map(str::to_owned).collect()
    };
    let starts = points.iter().filter(|point| !point.trim().is_empty()).map(|point| layer(point));
    match starts.collect::<Option<Vec<u32>>>() {
        Some(starts) if starts.is_empty() => Ok(None),
        Some(starts) => Ok(Some((key, Stated::Starts(starts)))),
        None => refuse(key, "the points are not names such as layers.8".to_owned()),
    }
}

fn list<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, JobConfigError> {
    serde_json::from_str(&text.replace('\'', "\""))
        .or_else(|_| refuse(key, "the value is not a list of names".to_owned()))
}

/// Returns the number of the layer in a name such as `layers.8`.
fn layer(name: &str) -> Option<u32> {
    name.trim().strip_prefix("layers.")?.parse().ok()
}

fn refuse<T>(key: &str, detail: String) -> Result<T, JobConfigError> {
    Err(JobConfigError::Value { key: key.to_owned(), detail })
}
