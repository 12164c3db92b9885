//! Builds histograms from points, bins and cumulative counts.

use super::super::{ImportError, Imported, MAX_BINS};
use super::{import, refuse, samples, shares};

/// Maximum number of lengths with separate bins. Each length needs a bin, plus an empty bin between
/// neighbours.
pub(super) const MAX_POINTS: usize = MAX_BINS / 2;

/// Samples with lengths between two edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bin {
    pub(super) left: f64,
    pub(super) right: f64,
    /// Number of samples, or their share.
    pub(super) count: f64,
}

/// Report data of a detected format.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    /// Format, for example "CSV, lengths with counts".
    pub(super) format: String,
    /// Length source, for example "columns length and count".
    pub(super) source: String,
    pub(super) warnings: Vec<String>,
}

impl Form {
    /// Creates an entry without warnings.
    pub(super) fn new(format: impl Into<String>, source: impl Into<String>) -> Self {
        Self { format: format.into(), source: source.into(), warnings: Vec::new() }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    fn finish(self, edges: Vec<f64>, counts: Vec<f64>) -> Result<Imported, ImportError> {
        let is_noted = self.warnings.iter().any(|warning| warning.contains("number of samples is not known"));
        let is_unknown = !is_noted && shares::are(&counts);
        let mut imported = import(None, edges, counts)?;
        imported.report.format = self.format;
        imported.report.source = self.source;
        imported.report.warnings = self.warnings;
        if is_unknown {
            imported.report.warnings.push(shares::UNKNOWN.to_owned());
        }
        Ok(imported)
    }
}

/// Builds a histogram from unsorted pairs of length and sample count. The report contains the
/// sample count.
pub(super) fn points(mut form: Form, points: Vec<(f64, f64)>) -> Result<Imported, ImportError> {
    let counts: Vec<f64> = points.iter().map(|(_, count)| *count).collect();
    if !form.warnings.iter().any(|warning| warning == shares::UNKNOWN) && !shares::are(&counts) {
        form.warn(samples::weighted(points.len() as u64, counts.iter().sum()));
    }
    exact(form, points)
}

/// Builds a zero-width bin per length, up to [`MAX_POINTS`].
///
/// Samples of length 0 are left out, as in rows: at most one in ten.
pub(super) fn exact(mut form: Form, mut points: Vec<(f64, f64)>) -> Result<Imported, ImportError> {
    for &(length, count) in &points {
        if !(length.is_finite() && length >= 0.0 && length.fract() == 0.0) {
            return Err(refuse(format!("{length} is not a length: a length is a whole number")));
        }
        check_count(count)?;
    }
    points.retain(|&(_, count)| count > 0.0);
    let samples = |points: &[(f64, f64)]| points.iter().map(|(_, count)| count).sum::<f64>();
    let all = samples(&points);
    points.retain(|&(length, _)| length > 0.0);
    // Shares have rounding errors.
    let empty = ((all - samples(&points)) * 1e6).round() / 1e6;
    if empty * 10.0 > all {
        return Err(refuse(format!(
            "{empty} of {all} samples have length 0. At most one in ten may be left out; correct them and upload the file again"
        )));
    }
    if empty > 0.0 {
        form.warn(format!("{empty} of {} samples have length 0 and are left out.", (all * 1e6).round() / 1e6));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|next, point| {
        let is_same = next.0.total_cmp(&point.0).is_eq();
        if is_same {
            point.1 += next.1;
        }
        is_same
    });
    let joined = points.len().div_ceil(MAX_POINTS).max(1);
    if joined > 1 {
        form.warn(format!("{} different lengths: {joined} neighbours share a bin", points.len()));
    }
    let bins = points.chunks(joined).filter_map(|chunk| {
        let (&(left, _), &(right, _)) = (chunk.first()?, chunk.last()?);
        Some(Bin { left, right, count: chunk.iter().map(|(_, count)| count).sum() })
    });
    let mut imported = join(form, bins.collect())?;
    if empty >= 1.0 {
        imported.report.skipped += empty.round() as u64;
        imported.report.first_problem = Some("length 0 is below 1".to_owned());
    }
    Ok(imported)
}

/// Builds bins of equal width between two edges.
pub(super) fn equal(form: Form, left: f64, right: f64, counts: &[f64]) -> Result<Imported, ImportError> {
    let width = (right - left) / counts.len() as f64;
    let edge = |index: usize| if index == counts.len() { right } else { left + width * index as f64 };
    let found =
        counts.iter().enumerate().map(|(index, &count)| Bin { left: edge(index), right: edge(index + 1), count });
    bins(form, found.collect())
}

/// Builds bins from densities, as numpy writes with `density=True`.
pub(super) fn densities(mut form: Form, mut found: Vec<Bin>) -> Result<Imported, ImportError> {
    for bin in &mut found {
        bin.count *= bin.right - bin.left;
    }
    form.warn("the counts are densities: they are multiplied by the widths of their bins");
    sorted(form, found)
}

/// Returns whether the counts are densities: the integral is 1, and the sum is not a valid sum of
/// shares.
fn are_densities(found: &[Bin]) -> bool {
    let area: f64 = found.iter().map(|bin| bin.count * (bin.right - bin.left)).sum();
    let sum: f64 = found.iter().map(|bin| bin.count).sum();
    (area - 1.0).abs() < 1e-3 && sum < 0.98
}

/// Builds a histogram from unsorted bins, with or without gaps.
pub(super) fn bins(form: Form, found: Vec<Bin>) -> Result<Imported, ImportError> {
    if are_densities(&found) { densities(form, found) } else { sorted(form, found) }
}

/// Validates and sorts the bins.
fn sorted(form: Form, mut bins: Vec<Bin>) -> Result<Imported, ImportError> {
    for bin in &bins {
        if !(bin.left.is_finite() && bin.right.is_finite() && bin.left <= bin.right) {
            return Err(refuse(format!("the bin from {} to {} has no width", bin.left, bin.right)));
        }
        check_count(bin.count)?;
    }
    bins.sort_by(|a, b| a.left.total_cmp(&b.left).then(a.right.total_cmp(&b.right)));
    if let Some([a, b]) = bins.array_windows().find(|[a, b]| b.left < a.right) {
        return Err(refuse(format!("the bins {} to {} and {} to {} overlap", a.left, a.right, b.left, b.right)));
    }
    join(form, bins)
}

/// Joins sorted bins to edges and counts; a gap between two bins becomes an empty bin.
fn join(form: Form, bins: Vec<Bin>) -> Result<Imported, ImportError> {
    let Some(first) = bins.first() else { return Err(refuse("every count is zero")) };
    let mut edges = vec![first.left];
    let mut counts = Vec::with_capacity(2 * bins.len());
    for bin in bins {
        if edges.last() != Some(&bin.left) {
            edges.push(bin.left);
            counts.push(0.0);
        }
        edges.push(bin.right);
        counts.push(bin.count);
    }
    form.finish(edges, counts)
}

/// Builds a histogram from pairs of length and cumulative count, or cumulative share.
pub(super) fn cumulative(mut form: Form, mut points: Vec<(f64, f64)>) -> Result<Imported, ImportError> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut before: Option<(f64, f64)> = None;
    let mut found = Vec::with_capacity(points.len());
    for (length, cumulative) in points {
        check_count(cumulative)?;
        let (left, counted) = before.unwrap_or((length, 0.0));
        if cumulative < counted {
            return Err(refuse(format!(
                "the cumulative count falls from {counted} to {cumulative} at length {length}; a cumulative count never falls"
            )));
        }
        found.push(Bin { left, right: length, count: cumulative - counted });
        before = Some((length, cumulative));
    }
    form.warn("approximate: between two lengths of the cumulative counts, samples are spread evenly");
    bins(form, found)
}

fn check_count(count: f64) -> Result<(), ImportError> {
    if count.is_finite() && count >= 0.0 {
        Ok(())
    } else {
        Err(refuse(format!("{count} is not a count; counts are zero or more")))
    }
}
