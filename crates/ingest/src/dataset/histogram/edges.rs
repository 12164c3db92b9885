//! Reads bins from a table: edges in separate columns, or bins as text.

use super::super::{ImportError, Imported};
use super::bins::{self, Bin, Form};
use super::{interval, number, refuse};

/// Returns the cell text. Rows may be shorter than the header.
pub(super) fn at(row: &[String], index: usize) -> &str {
    row.get(index).map_or("", String::as_str)
}

/// Parses the number of a cell.
pub(super) fn parsed(cell: &str) -> Result<f64, ImportError> {
    number(cell).ok_or_else(|| refuse(format!("{cell:?} is not a number")))
}

/// Parses the count of a cell, which may be in percent.
pub(super) fn count(cell: &str) -> Result<f64, ImportError> {
    super::count(cell).ok_or_else(|| refuse(format!("{cell:?} is not a number")))
}

/// Reads bins with edge columns. Without upper edges, the next lower edge ends a bin.
pub(super) fn edges(
    mut form: Form,
    table: &[Vec<String>],
    left: usize,
    right: Option<usize>,
    counts: usize,
) -> Result<Imported, ImportError> {
    let mut found = Vec::with_capacity(table.len());
    for row in table {
        let (left, count) = (parsed(at(row, left))?, count(at(row, counts))?);
        let right = match right {
            Some(right) => parsed(at(row, right)).or_else(|error| match at(row, right) {
                "" | "inf" | "Inf" => Ok(f64::INFINITY),
                _ => Err(error),
            })?,
            None => f64::NAN,
        };
        found.push(Bin { left, right, count });
    }
    if right.is_none() {
        found.sort_by(|a, b| a.left.total_cmp(&b.left));
        let lefts: Vec<f64> = found.iter().map(|bin| bin.left).collect();
        for (bin, &next) in found.iter_mut().zip(lefts.iter().skip(1)) {
            bin.right = next;
        }
        let width = found.iter().rev().nth(1).map(|bin| bin.right - bin.left);
        if let Some(last) = found.last_mut() {
            last.right =
                last.left + width.ok_or_else(|| refuse("a single lower edge does not say how wide its bin is"))?;
            form.warn(format!(
                "there are no upper edges: the last bin is as wide as the one before, to {}",
                last.right
            ));
        }
    }
    close(form, found)
}

/// Reads bins with center columns. Each edge is halfway between two centers.
pub(super) fn centers(
    mut form: Form,
    table: &[Vec<String>],
    centers: usize,
    counts: usize,
) -> Result<Imported, ImportError> {
    let mut points: Vec<(f64, f64)> =
        table.iter().map(|row| Ok((parsed(at(row, centers))?, count(at(row, counts))?))).collect::<Result<_, _>>()?;
    points.sort_by(|previous, next| previous.0.total_cmp(&next.0));
    let halves: Vec<f64> = points.array_windows().map(|[previous, next]| previous.0.midpoint(next.0)).collect();
    let (Some(&first), Some(&last)) = (halves.first(), halves.last()) else {
        return Err(refuse("a single center does not say how wide its bin is"));
    };
    let end = |center: f64, edge: f64| (2.0 * center - edge).max(0.0);
    let lefts = points.first().map(|point| end(point.0, first)).into_iter().chain(halves.iter().copied());
    let rights = halves.iter().copied().chain(points.last().map(|point| end(point.0, last)));
    let found = lefts.zip(rights).zip(&points).map(|((left, right), &(_, count))| Bin { left, right, count });
    form.warn("the file has centers of bins: edges are assumed halfway between them");
    bins::bins(form, found.collect())
}

/// Reads text bins with counts.
pub(super) fn intervals<'a>(
    form: Form,
    rows: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Imported, ImportError> {
    let found: Result<Vec<Bin>, ImportError> = rows
        .map(|(bin, samples)| {
            let read =
                interval::read(bin).ok_or_else(|| refuse(format!("{bin:?} is not a bin such as 0-512 or [0, 512)")))?;
            Ok(Bin { left: read.left, right: read.right.unwrap_or(f64::INFINITY), count: count(samples)? })
        })
        .collect();
    close(form, found?)
}

/// Closes open bins at twice their lower edge.
fn close(mut form: Form, mut found: Vec<Bin>) -> Result<Imported, ImportError> {
    found.retain(|bin| bin.count != 0.0 || bin.right.is_finite());
    for bin in found.iter_mut().filter(|bin| bin.right == f64::INFINITY) {
        bin.right = 2.0 * bin.left;
        form.warn(format!("the bin from {} has no upper edge: {} is assumed", bin.left, bin.right));
    }
    bins::bins(form, found)
}
