//! Number of layers per stage of a plan with one module.

use planscope_core::model::{Model, ModuleRole};
use planscope_core::timeline::StageLayers;

use super::{Planned, StageSummary};

/// Returns the layers per stage, in stage order. `layers` is their sum. `None` if the stages do not divide the
/// layers of one module in order.
pub fn layer_counts(planned: &Planned, layers: u32) -> Option<Vec<u32>> {
    if planned.stages.iter().any(|stage| !stage.ranges.is_empty()) {
        let stages: Vec<&[StageLayers]> = planned.stages.iter().map(|stage| stage.ranges.as_slice()).collect();
        return range_counts(&stages, layers);
    }
    // Outcomes of earlier versions have the description only.
    let descriptions: Vec<&str> = planned.stages.iter().map(|stage| stage.layers.as_str()).collect();
    counts(&descriptions, layers)
}

/// Names a range of layers, for example "0-4" or "16". Models with several modules have the name of the module before it.
fn range_name(model: &Model, range: StageLayers) -> String {
    let last = range.end.saturating_sub(1);
    let layers = if range.first == last { last.to_string() } else { format!("{}-{last}", range.first) };
    match model.modules.as_slice() {
        [_] => layers,
        modules => format!("{} {layers}", modules[range.module as usize].name),
    }
}

/// Describes a range of layers with the embedding (`begins`) and the output head (`ends`) of its stage: "0-4 with the
/// embedding". Empty for a range without any of them.
pub fn range_description(model: &Model, range: StageLayers, (begins, ends): (bool, bool)) -> String {
    let module = &model.modules[range.module as usize];
    let has_vocabulary = module.role == ModuleRole::Backbone && module.vocab > 0;
    let blocks = match (has_vocabulary && begins, module.predicted() > 0 && ends) {
        (true, true) => "embedding and output head",
        (true, false) => "the embedding",
        (false, true) => "the output head",
        (false, false) => "",
    };
    match (range.end <= range.first, blocks.is_empty()) {
        (true, _) => blocks.to_owned(),
        (false, true) => range_name(model, range),
        (false, false) => format!("{} with {blocks}", range_name(model, range)),
    }
}

/// Describes the layers of a rank of a plan, as [`range_description`] does. "none" for stages without layers, empty without
/// stages.
pub fn rank_description(model: &Model, stages: &[StageSummary], rank: u32) -> String {
    let count = |range: &StageLayers| model.modules[range.module as usize].layers;
    let has = |stages: &[StageSummary], is_end: &dyn Fn(&StageLayers) -> bool| {
        stages.iter().any(|stage| stage.ranges.iter().any(is_end))
    };
    if stages.iter().all(|stage| stage.rank != rank) {
        return String::new();
    }
    let mut parts = Vec::new();
    for (index, stage) in stages.iter().enumerate().filter(|(_, stage)| stage.rank == rank) {
        for range in &stage.ranges {
            let is_first = |other: &StageLayers| other.module == range.module && other.first == 0;
            let is_last = |other: &StageLayers| other.module == range.module && other.end == count(other);
            let begins = is_first(range) && !has(&stages[..index], &is_first);
            let ends = is_last(range) && !has(&stages[index + 1..], &is_last);
            parts.push(range_description(model, *range, (begins, ends)));
        }
    }
    joined(parts)
}

/// Joins descriptions of ranges.
pub fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// Returns true if all stages have equally many layers.
pub fn is_even(counts: &[u32]) -> bool {
    counts.iter().all(|&count| count == counts[0])
}

/// Counts the layers of stages that have at most one range each.
fn range_counts(stages: &[&[StageLayers]], layers: u32) -> Option<Vec<u32>> {
    let mut next = 0;
    let mut counts = Vec::with_capacity(stages.len());
    for ranges in stages {
        let count = match ranges {
            [] => 0,
            // The first layer of an empty stage has no meaning.
            [range] if range.end <= range.first => 0,
            [range] if range.module == 0 && range.first == next => range.end - range.first,
            _ => return None,
        };
        next += count;
        counts.push(count);
    }
    (next == layers).then_some(counts)
}

/// Reads stages described as "Llama-3 8B 0-3". The number of layers follows from the first layer of the next stage,
/// because an empty stage has the description of one layer.
fn counts(descriptions: &[&str], layers: u32) -> Option<Vec<u32>> {
    let mut end = layers;
    let mut counts = Vec::with_capacity(descriptions.len());
    for description in descriptions.iter().rev() {
        // A stage without description has no layers.
        let first = if description.is_empty() { end } else { first_layer(description)? };
        counts.push(end.checked_sub(first)?);
        end = first;
    }
    counts.reverse();
    (end == 0).then_some(counts)
}

fn first_layer(description: &str) -> Option<u32> {
    description.rsplit(' ').next()?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_in_order() {
        let range = |first, end| vec![StageLayers { module: 0, first, end }];
        let count =
            |stages: &[Vec<StageLayers>]| range_counts(&stages.iter().map(Vec::as_slice).collect::<Vec<_>>(), 8);
        assert_eq!(count(&[range(0, 3), range(3, 8)]), Some(vec![3, 5]));
        // The first stage has the embedding only, the last the head only.
        assert_eq!(count(&[vec![], range(0, 8), range(8, 8)]), Some(vec![0, 8, 0]));
        assert_eq!(count(&[range(3, 8), range(0, 3)]), None, "not in order");
        assert_eq!(count(&[range(0, 3), range(4, 8)]), None, "a layer is left out");
        assert_eq!(count(&[range(0, 3), range(3, 7)]), None, "the last layer is left out");
        assert_eq!(count(&[[range(0, 3), range(3, 8)].concat()]), None, "two ranges");
    }

    #[test]
    fn layers_are_counted_up_to_the_next_stage() {
        assert_eq!(counts(&["Llama-3 8B 0-8", "Llama-3 8B 9-23", "Llama-3 8B 24-31"], 32), Some(vec![9, 15, 8]));
        // The first stage has the embedding only, the last the head only.
        assert_eq!(counts(&["M 0-0", "M 0-3", "M 4-7", "M 8-7"], 8), Some(vec![0, 4, 4, 0]));
        assert_eq!(counts(&["", "M 0-7"], 8), Some(vec![0, 8]));
        assert_eq!(counts(&["M 0-7", ""], 8), Some(vec![8, 0]));
        // Stages that skip layers, or are not in order.
        assert_eq!(counts(&["M 1-3", "M 4-7"], 8), None);
        assert_eq!(counts(&["M 4-7", "M 0-3"], 8), None);
        assert_eq!(counts(&["M", "M 4-7"], 8), None);
    }
}
