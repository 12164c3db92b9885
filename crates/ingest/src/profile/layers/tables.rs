//! Derives the time per layer as a function of microbatch size.
//!
//! Files contain times for several layers together, which include surrounding modules if these
//! cannot be timed separately. If the same microbatch is measured with two layer counts, the time
//! per layer is the time difference divided by the layer difference. Otherwise it is the time
//! divided by the layer count.

use std::collections::BTreeMap;

use super::{LayerProfile, Part, Shape, Timing};

/// Minimum number of sizes in a table: interpolation needs two points.
const MIN: usize = 2;

/// Time per layer by microbatch size.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerTable {
    /// Model part.
    pub part: Part,
    /// True for the backward pass, false for the forward pass.
    pub backward: bool,
    /// Size in increasing order, and time in microseconds. The size is in tokens; for vision
    /// encoders, whose files contain no token counts, in images.
    pub points: Vec<[f64; 2]>,
    /// Measurements used for the points: size, and seconds per layer.
    pub measured: Vec<[f64; 2]>,
}

/// Tables derived from layer measurements, with notes about skipped data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerTables {
    /// One table per model part and pass.
    pub tables: Vec<LayerTable>,
    /// Common tensor-parallel degree, if the files contain it.
    pub tensor: Option<u32>,
    /// Notes about selected and skipped data.
    pub notes: Vec<String>,
}

/// Builds layer tables from all profiles for a single tensor-parallel degree: `tensor`, or the
/// degree with the most timings.
pub fn tables(profiles: &[LayerProfile], tensor: Option<u32>) -> LayerTables {
    let mut result = LayerTables::default();
    let all: Vec<&Timing> = profiles.iter().flat_map(|profile| &profile.timings).collect();
    let without = all.iter().filter(|timing| !timing.with_attention).count();
    if without > 0 {
        result.notes.push(format!("{without} timings without attention are left out: a layer has it"));
    }
    let ends = |part: Part| matches!(part, Part::Embedding | Part::Postprocess | Part::Decoder);
    let others = all.iter().filter(|timing| ends(timing.shape.part)).count();
    if others > 0 {
        result
            .notes
            .push(format!("{others} timings of embeddings, heads and decoders of an encoder-decoder are left out"));
    }
    let layers: Vec<&Timing> =
        all.into_iter().filter(|timing| timing.with_attention && !ends(timing.shape.part)).collect();
    let footprints: usize = profiles.iter().map(|profile| profile.footprints.len()).sum();
    if footprints > 0 {
        result
            .notes
            .push(format!("{footprints} values of memory are kept and change nothing: memory follows from tensors"));
    }
    result.tensor = tensor.or_else(|| dominant_degree(&layers));
    let fits =
        |timing: &&&Timing| timing.shape.tensor_parallel.is_none_or(|timed_degree| Some(timed_degree) == result.tensor);
    let selected: Vec<&Timing> = layers.iter().filter(fits).copied().collect();
    if let Some(degree) = result.tensor
        && selected.len() < layers.len()
    {
        let left = layers.len() - selected.len();
        result.notes.push(format!("TP {degree} is taken; {left} timings of other degrees are left out"));
    }
    for (part, backward) in
        [Part::Vision, Part::Language, Part::Encoder].map(|part| [(part, false), (part, true)]).concat()
    {
        match table(&selected, part, backward) {
            None => {}
            Some(Ok(table)) => result.tables.push(table),
            Some(Err(note)) => result.notes.push(note),
        }
    }
    result
}

/// Returns the degree with the most timings. The smaller degree wins a tie.
fn dominant_degree(timings: &[&Timing]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for degree in timings.iter().filter_map(|timing| timing.shape.tensor_parallel) {
        *counts.entry(degree).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|&(degree, count)| (count, std::cmp::Reverse(degree))).map(|(degree, _)| degree)
}

/// Returns the table for a model part and pass, or the reason why none can be built. Returns `None`
/// if nothing was measured.
fn table(timings: &[&Timing], part: Part, backward: bool) -> Option<Result<LayerTable, String>> {
    let seconds = |timing: &Timing| if backward { timing.backward_s } else { timing.forward_s };
    // Sorted by size, then by sequence length, then by layer count.
    let mut measured: BTreeMap<(u64, u32), BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for timing in timings.iter().filter(|timing| timing.shape.part == part) {
        let (Some(time), Some((size, length)), Some(layers)) =
            (seconds(timing), size(&timing.shape), timing.shape.layers.filter(|&layers| layers > 0))
        else {
            continue;
        };
        measured.entry((size, length)).or_default().entry(layers).or_default().push(time);
    }
    if measured.is_empty() {
        return None;
    }
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((size, _), by_layers) in &measured {
        by_size.entry(*size).or_default().extend(seconds_per_layer(by_layers));
    }
    let pass = if backward { "backward" } else { "forward" };
    if by_size.len() < MIN {
        return Some(Err(format!("{part:?} {pass}: one size only, a table needs two")));
    }
    let points = by_size.iter().map(|(size, times)| [*size as f64, middle(times) * 1e6]).collect();
    let measured = by_size.iter().flat_map(|(size, times)| times.iter().map(|time| [*size as f64, *time])).collect();
    Some(Ok(LayerTable { part, backward, points, measured }))
}

/// Returns microbatch size (tokens, or images without token counts) and sequence length.
fn size(shape: &Shape) -> Option<(u64, u32)> {
    let batch = u64::from(shape.batch.unwrap_or(1));
    match shape.tokens {
        Some(tokens) => Some((batch * u64::from(tokens), tokens)),
        None => (shape.part == Part::Vision && shape.batch.is_some()).then_some((batch, 0)),
    }
}

/// Returns seconds per layer from times for different layer counts.
pub(in crate::profile) fn seconds_per_layer(by_layers: &BTreeMap<u32, Vec<f64>>) -> Vec<f64> {
    let first_last = by_layers.first_key_value().zip(by_layers.last_key_value());
    if let Some(((few, short), (many, long))) = first_last
        && many > few
    {
        let slope = (middle(long) - middle(short)) / f64::from(many - few);
        if slope > 0.0 {
            return vec![slope];
        }
    }
    by_layers.iter().flat_map(|(layers, times)| times.iter().map(|time| time / f64::from(*layers))).collect()
}

/// Returns the median; for an even count the upper middle value.
fn middle(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use std::fmt::Write;

    use super::*;
    use crate::profile::Hints;

    /// Two and four layers take 15 and 23 ms: 4 ms per layer, and 7 ms for surrounding modules. For
    /// bsz 2, 24 and 42 ms: 9 ms per layer.
    #[test]
    fn surrounding_time_is_subtracted() {
        let file = r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
            "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#;
        let result = tables(&[read(file.as_bytes(), &Hints::default()).unwrap()], None);
        let [table] = &result.tables[..] else { panic!("{result:?}") };
        assert_eq!((table.part, table.backward), (Part::Language, false));
        let expected = [[2048.0, 4000.0], [4096.0, 9000.0]];
        for (point, expected) in table.points.iter().zip(expected) {
            assert!((point[0] - expected[0]).abs() < 1e-9 && (point[1] - expected[1]).abs() < 1e-6, "{point:?}");
        }
    }

    #[test]
    fn tables_have_a_single_degree_and_both_passes() {
        let mut file = "num_layers,tp_size,seq_len,fwd_times,bwd_times\n".to_owned();
        for (tensor, tokens, time) in [(1, 1024, 4.0), (2, 1024, 2.0), (2, 2048, 4.0), (2, 4096, 8.0)] {
            writeln!(file, "2,{tensor},{tokens},{time},{}", 2.0 * time).unwrap();
        }
        let profile = read(file.as_bytes(), &Hints::default()).unwrap();
        let result = tables(std::slice::from_ref(&profile), None);
        assert_eq!((result.tensor, result.tables.len(), result.notes.len()), (Some(2), 2, 1), "{result:?}");
        assert_eq!(result.tables[1].points, [[1024.0, 2000.0], [2048.0, 4000.0], [4096.0, 8000.0]]);
        // A single size does not form a table.
        let single_degree = tables(&[profile], Some(1));
        assert!(single_degree.tables.is_empty() && single_degree.notes.len() == 3, "{single_degree:?}");
    }
}
