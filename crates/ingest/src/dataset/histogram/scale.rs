//! Converts histograms of characters to tokens, as rows of characters are converted.

use planner::workload::Dataset;

use super::super::{ImportError, Imported, Options, Unit};
use super::refuse;

/// Divides the edges by the characters per token if the numbers count characters or bytes. `subject`
/// names the numbers in the report.
pub(in super::super) fn by_unit(
    imported: Imported,
    subject: &str,
    unit: Unit,
    options: &Options<'_>,
) -> Result<Imported, ImportError> {
    if unit == Unit::Tokens {
        return Ok(imported);
    }
    let Imported { dataset: Dataset::Histogram { edges, counts }, mut report } = imported else {
        return Err(refuse("it is not a histogram"));
    };
    let per_token = options.characters_per_token;
    let are_points = edges.windows(2).zip(&counts).all(|(pair, count)| pair[1] <= pair[0] || *count == 0.0);
    let (edges, counts) =
        if are_points { points(&edges, &counts, per_token) } else { (bins(&edges, per_token), counts) };
    report.repaired += std::mem::take(&mut report.parsed);
    for warning in &mut report.warnings {
        *warning = warning.replace("lengths in tokens", &format!("lengths in {}", unit.id()));
    }
    report
        .warnings
        .push(format!("{subject} counts {}. They are divided by {per_token} characters per token.", unit.id()));
    Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report })
}

/// Divides the edges. An edge below one token becomes one token, as for rows.
fn bins(edges: &[f64], per_token: f64) -> Vec<f64> {
    let scaled = |edge: &f64| if *edge > 0.0 { (edge / per_token).max(1.0) } else { 0.0 };
    edges.iter().map(scaled).collect()
}

/// Divides lengths with zero-width bins and rounds them up, as for rows. Equal lengths are joined.
fn points(edges: &[f64], counts: &[f64], per_token: f64) -> (Vec<f64>, Vec<f64>) {
    let mut found: Vec<(f64, f64)> = Vec::new();
    for (pair, &count) in edges.windows(2).zip(counts).filter(|(_, count)| **count > 0.0) {
        let length = (pair[0] / per_token).ceil();
        match found.last_mut() {
            Some(last) if last.0.total_cmp(&length).is_eq() => last.1 += count,
            _ => found.push((length, count)),
        }
    }
    let (mut edges, mut counts) = (Vec::new(), Vec::new());
    for (length, count) in found {
        if !edges.is_empty() {
            counts.push(0.0);
        }
        edges.extend([length, length]);
        counts.push(count);
    }
    (edges, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_rounded_up_and_joined() {
        // 9 and 12 characters are 3 tokens; 13 characters are 4.
        let (edges, counts) = points(&[9.0, 9.0, 12.0, 12.0, 13.0, 13.0], &[1.0, 0.0, 2.0, 0.0, 5.0], 4.0);
        assert_eq!((edges, counts), (vec![3.0, 3.0, 4.0, 4.0], vec![3.0, 0.0, 5.0]));
    }

    #[test]
    fn an_edge_is_at_least_one_token() {
        assert_eq!(bins(&[0.0, 2.0, 400.0, 402.0], 4.0), [0.0, 1.0, 100.0, 100.5]);
    }
}
