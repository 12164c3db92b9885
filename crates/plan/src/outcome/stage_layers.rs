//! Number of layers per stage of a plan with one module.

use super::Planned;

/// Returns the layers per stage, in stage order. `layers` is their sum. `None` if the stages do not divide the
/// layers of one module in order.
pub fn layer_counts(planned: &Planned, layers: u32) -> Option<Vec<u32>> {
    let descriptions: Vec<&str> = planned.stages.iter().map(|stage| stage.layers.as_str()).collect();
    counts(&descriptions, layers)
}

/// Returns true if all stages have equally many layers.
pub fn is_even(counts: &[u32]) -> bool {
    counts.iter().all(|&count| count == counts[0])
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
