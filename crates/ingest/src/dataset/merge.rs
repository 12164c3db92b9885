//! Merges the shards of a dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use planner::workload::Dataset;

use super::histogram::shares;
use super::{ImportError, Imported, MAX_BINS, MAX_ROWS, Report};

/// Merges named shards in the given order. All shards must have the same length source.
pub fn merge(shards: Vec<(String, Imported)>) -> Result<Imported, ImportError> {
    let mut shards = shards.into_iter();
    let (first, mut merged) = shards.next().ok_or(ImportError::Empty)?;
    let mut known = vec![(digest(&merged.dataset), first.clone())];
    for (other, shard) in shards {
        let shard_digest = digest(&shard.dataset);
        if let Some((_, same)) = known.iter().find(|(digest, _)| *digest == shard_digest) {
            merged
                .report
                .warnings
                .push(format!("{same} and {other} hold the same lengths. If it is one shard, remove one of them."));
        }
        known.push((shard_digest, other.clone()));
        let refuse = |detail: String| ImportError::Merge { first: first.clone(), other: other.clone(), detail };
        if columns(&merged.report.source) != columns(&shard.report.source) {
            return Err(refuse(format!("the lengths are {} and {}", merged.report.source, shard.report.source)));
        }
        match (&mut merged.dataset, shard.dataset) {
            (
                Dataset::Rows { text_tokens, images, shaped },
                Dataset::Rows { text_tokens: more, images: more_images, shaped: more_shaped },
            ) => {
                if text_tokens.len() + more.len() > MAX_ROWS {
                    return Err(ImportError::TooManyRows);
                }
                if images.is_empty() != more_images.is_empty() {
                    let without = if images.is_empty() { &first } else { &other };
                    let sentence = format!(
                        "{without} has no images, unlike other shards. Its samples count as samples without images."
                    );
                    if !merged.report.warnings.contains(&sentence) {
                        merged.report.warnings.push(sentence);
                    }
                }
                if !images.is_empty() || !more_images.is_empty() {
                    images.resize(text_tokens.len(), 0);
                    images.extend_from_slice(&more_images);
                    images.resize(text_tokens.len() + more.len(), 0);
                }
                text_tokens.extend_from_slice(&more);
                match (shaped, more_shaped) {
                    (Some(existing), Some(more)) if existing.preprocessing == more.preprocessing => {
                        existing.encoder_tokens.extend_from_slice(&more.encoder_tokens);
                        existing.encoder_squared.extend_from_slice(&more.encoder_squared);
                        existing.backbone_tokens.extend_from_slice(&more.backbone_tokens);
                    }
                    (None, None) => {}
                    _ => return Err(refuse("their media were read by different rules".to_owned())),
                }
            }
            (Dataset::Histogram { edges, counts }, Dataset::Histogram { edges: more_edges, counts: more_counts }) => {
                if are_shares(counts, &merged.report) || are_shares(&more_counts, &shard.report) {
                    return Err(refuse(
                        "their counts are shares, which do not state how large each shard is. Write counts, or merge the files before the upload"
                            .to_owned(),
                    ));
                }
                (*edges, *counts) = sum((edges, counts), (&more_edges, &more_counts));
                if counts.len() > MAX_BINS {
                    let detail = format!("together they have {} bins; at most {MAX_BINS} are accepted", counts.len());
                    return Err(refuse(detail));
                }
            }
            _ => return Err(refuse("one is a histogram, the other a list of lengths".to_owned())),
        }
        add(&mut merged.report, &other, shard.report);
    }
    Ok(merged)
}

/// Returns a source without the word for its columns: tables have columns, JSON has keys.
fn columns(source: &str) -> String {
    const TERMS: [&str; 4] = ["columns", "column", "keys", "key"];
    let mut terms: Vec<&str> = source.split(' ').collect();
    if let Some(at) = terms.iter().position(|word| TERMS.contains(word)) {
        terms.remove(at);
    }
    terms.join(" ")
}

/// Returns a hash that is equal for equal datasets.
fn digest(dataset: &Dataset) -> u64 {
    let mut hasher = DefaultHasher::new();
    match dataset {
        Dataset::Rows { text_tokens, images, .. } => (text_tokens, images).hash(&mut hasher),
        Dataset::Histogram { edges, counts } => {
            edges.iter().chain(counts).for_each(|number| number.to_bits().hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// Returns whether the counts are shares with an unknown sample count.
fn are_shares(counts: &[f64], report: &Report) -> bool {
    shares::are(counts) || report.warnings.iter().any(|warning| warning.contains("number of samples is not known"))
}

fn add(merged: &mut Report, name: &str, shard: Report) {
    merged.parsed += shard.parsed;
    merged.repaired += shard.repaired;
    merged.skipped += shard.skipped;
    if merged.first_problem.is_none() {
        merged.first_problem = shard.first_problem.map(|problem| format!("{name}, {problem}"));
    }
    for warning in shard.warnings {
        if !merged.warnings.contains(&warning) {
            merged.warnings.push(warning);
        }
    }
    if let (Some(media), Some(more)) = (&mut merged.media, &shard.media) {
        media.without_items += more.without_items;
        media.unread_images += more.unread_images;
        media.unread_frames += more.unread_frames;
        media.unread_clips += more.unread_clips;
    }
    if merged.media.is_none() {
        merged.media = shard.media;
    }
}

/// Adds two histograms over the union of their edges. A bin is uniform between its edges; a
/// zero-width bin is a point mass.
fn sum(first: (&[f64], &[f64]), other: (&[f64], &[f64])) -> (Vec<f64>, Vec<f64>) {
    // The keys are the bits of the edges: positive floats have the same order as their bits.
    let mut points: BTreeMap<u64, f64> = BTreeMap::new();
    let mut breaks: BTreeSet<u64> = BTreeSet::new();
    for (edges, counts) in [first, other] {
        for (pair, &count) in edges.windows(2).zip(counts) {
            if pair[1] - pair[0] <= 0.0 {
                *points.entry(pair[0].to_bits()).or_default() += count;
            }
            breaks.extend([pair[0].to_bits(), pair[1].to_bits()]);
        }
    }
    let breaks: Vec<f64> = breaks.into_iter().map(f64::from_bits).collect();
    let mut density = vec![0.0; breaks.len().saturating_sub(1)];
    for (edges, counts) in [first, other] {
        for (pair, &count) in edges.windows(2).zip(counts) {
            let width = pair[1] - pair[0];
            if width <= 0.0 || count == 0.0 {
                continue;
            }
            let start = breaks.partition_point(|edge| *edge < pair[0]);
            for (index, bin) in breaks.windows(2).enumerate().skip(start).take_while(|(_, bin)| bin[1] <= pair[1]) {
                density[index] += count * (bin[1] - bin[0]) / width;
            }
        }
    }
    let (mut edges, mut counts) = (Vec::new(), Vec::new());
    for (index, &edge) in breaks.iter().enumerate() {
        if index > 0 {
            counts.push(density[index - 1]);
        }
        edges.push(edge);
        if let Some(&mass) = points.get(&edge.to_bits()) {
            edges.push(edge);
            counts.push(mass);
        }
    }
    (edges, counts)
}

#[cfg(test)]
mod tests {
    use super::super::tests::import;
    use super::*;

    fn shard(name: &str, text: &str) -> (String, Imported) {
        (name.to_owned(), import(text.as_bytes(), None).expect(text))
    }

    #[test]
    fn rows_follow_each_other() {
        let merged = merge(vec![shard("a", "num_tokens\n3\n5\n"), shard("b", "num_tokens,images\n7,2\n9.0,1\n")])
            .expect("shards");
        let expected = Dataset::Rows { text_tokens: vec![3, 5, 7, 9], images: vec![0, 0, 2, 1], shaped: None };
        assert_eq!(merged.dataset, expected);
        assert_eq!((merged.report.parsed, merged.report.repaired), (3, 1));
        assert_eq!(merged.report.first_problem.as_deref(), Some("b, line 3: read as 9"));
    }

    #[test]
    fn tables_and_json_lines_of_one_column_are_merged() {
        let merged = merge(vec![
            shard("a", "num_tokens\n3\n5\n"),
            shard("b", "{\"num_tokens\": 7}\n{\"num_tokens\": 9}\n"),
            shard("c", "[{\"num_tokens\": 2}]"),
        ])
        .expect("shards");
        let expected = Dataset::Rows { text_tokens: vec![3, 5, 7, 9, 2], images: vec![], shaped: None };
        assert_eq!(merged.dataset, expected);
        let both = "{\"prompt_tokens\": 7, \"completion_tokens\": 1}\n";
        let merged = merge(vec![shard("a", "prompt_tokens,completion_tokens\n3,1\n"), shard("b", &both.repeat(2))]);
        assert!(merged.is_ok(), "{merged:?}");
        let other = merge(vec![shard("a", "num_tokens\n3\n"), shard("b", "{\"input_ids\": [7, 8]}\n")]);
        assert!(other.is_err_and(|error| error.to_string().contains("cannot be merged")));
    }

    #[test]
    fn shares_are_not_merged() {
        for (first, other) in [
            ("length,share\n128,0.5\n256,0.5\n", "length,share\n512,0.25\n1024,0.75\n"),
            ("length,percentage\n128,50\n256,50\n", "length,percentage\n512,25\n1024,75\n"),
            ("p50,p90,p99\n512,2048,4096\n", "p50,p90,p99\n256,1024,4096\n"),
        ] {
            let error = merge(vec![shard("a", first), shard("b", other)]).unwrap_err().to_string();
            assert!(error.contains("counts are shares"), "{error}");
        }
        let counts = "length,count\n128,5\n256,7\n";
        assert!(merge(vec![shard("a", counts), shard("b", "length,count\n512,9\n")]).is_ok());
    }

    #[test]
    fn equal_shards_and_shards_without_images_are_named() {
        let merged = merge(vec![shard("a", "num_tokens\n3\n5\n"), shard("b", "num_tokens\n3\n5\n")]).expect("shards");
        assert!(merged.report.warnings[0].starts_with("a and b hold the same lengths"), "{:?}", merged.report.warnings);
        let merged =
            merge(vec![shard("a", "num_tokens\n3\n5\n"), shard("b", "num_tokens,images\n7,2\n9,1\n")]).expect("shards");
        assert!(merged.report.warnings[0].starts_with("a has no images"), "{:?}", merged.report.warnings);
    }

    #[test]
    fn different_quantities_are_rejected_by_name() {
        let error =
            merge(vec![shard("a", "num_tokens\n3\n"), shard("b", "prompt_tokens\n3\n")]).unwrap_err().to_string();
        assert!(error.starts_with("a and b cannot be merged") && error.contains("prompt_tokens"), "{error}");
        assert_eq!(merge(Vec::new()), Err(ImportError::Empty));
    }

    /// Adds [0, 10) with count 10 and [5, 15) with count 20: 5, 5 + 10, 10; plus a point with count
    /// 3 at 5.
    #[test]
    fn histograms_are_added_over_all_edges() {
        let (edges, counts) = sum((&[0.0, 10.0], &[10.0]), (&[5.0, 5.0, 15.0], &[3.0, 20.0]));
        assert_eq!((edges, counts), (vec![0.0, 5.0, 5.0, 10.0, 15.0], vec![5.0, 3.0, 15.0, 10.0]));
    }
}
