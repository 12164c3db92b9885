//! Reads histograms from JSON: numpy, Weights & Biases, counters, percentiles, and named lists.

use serde_json::{Map, Value};

use super::super::stated::{self, Stated};
use super::super::{ImportError, Imported, Meaning, Options, Unit, names};
use super::bins::{self, Bin, Form};
use super::samples::Numbering;
use super::summary::Summary;
use super::{edges, keyed, known, number, percentiles, refuse, samples, scale, shares, table};

/// Maximum number of objects around a histogram.
const MAX_DEPTH: usize = 4;
/// Names of edge lists.
const EDGES: [&str; 4] = ["bin_edges", "edges", "bins", "binedges"];
/// Names of count lists.
const COUNTS: [&str; 10] =
    ["hist", "counts", "count", "freq", "frequency", "weights", "weight", "values", "density", "pdf"];
/// Names of length lists.
const LENGTHS: [&str; 8] = ["lengths", "length", "values", "value", "unique", "num_tokens", "tokens", "seq_len"];
/// Names of cumulative count lists.
const CUMULATIVE: [&str; 5] = ["cdf", "ecdf", "cumulative", "cumsum", "cum_count"];

/// Reads a JSON document; returns `None` if it is not a histogram. With a column that the user
/// chooses, only a summary is read.
pub(in super::super) fn read(document: &Value, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    match document {
        Value::Array(items) => list(items, options),
        Value::Object(fields) => summary_or_object(fields, options).or_else(|| deeper(fields, MAX_DEPTH, options)),
        _ => None,
    }
}

fn summary_or_object(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    summary(fields, options).or_else(|| object(fields, options))
}

/// Reads the histogram or summary below single objects, such as `{"splits": {"train": {"length": {"p50": 512, ..}}}}`. Names on
/// the way must not denote another quantity.
fn deeper(fields: &Map<String, Value>, depth: usize, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut objects = fields.iter().filter_map(|(name, value)| Some((name, value.as_object()?)));
    let (name, inner) = objects.next()?;
    let is_only = objects.next().is_none() && !fields.values().any(Value::is_array);
    if !is_only || !matches!(stated::parse(name), Stated::Unknown | Stated::Lengths) {
        return None;
    }
    let found = if inner.values().any(Value::is_object) { summary_or_object(inner, options) } else { None };
    match found {
        Some(Ok(mut imported)) => {
            let name: String = name.chars().take(80).collect();
            imported.report.warnings.push(format!("Only {name:?} of the file is read."));
            Some(Ok(imported))
        }
        Some(error) => Some(error),
        None if depth > 0 => deeper(inner, depth - 1, options),
        None => None,
    }
}

/// Reads a summary per column: `{"prompt_tokens": {"count": 3, "50%": 512, ..}, ..}`.
fn summary(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let columns: Vec<(&String, Vec<(String, f64)>)> = match fields.get("variables").and_then(Value::as_object) {
        // A report of ydata-profiling has further figures of each column.
        Some(variables) => {
            let known = |inner: &Map<String, Value>| {
                inner
                    .iter()
                    .filter(|(name, _)| percentiles::is_known(name))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            };
            let column = |(name, value): (_, &Value)| Some((name, statistics(&known(value.as_object()?))?));
            variables.iter().filter_map(column).collect()
        }
        None => {
            fields.iter().map(|(name, value)| Some((name, statistics(value.as_object()?)?))).collect::<Option<_>>()?
        }
    };
    let is_column = |name: &str| stated::parse(name) != Stated::Unknown;
    // A single object under a general name is no column.
    if columns.len() < 2 && !columns.iter().any(|(name, _)| is_column(name)) {
        return None;
    }
    let mut summary =
        Summary { columns: columns.iter().map(|(name, _)| (*name).clone()).collect(), entries: Vec::new() };
    for (index, (_, entries)) in columns.iter().enumerate() {
        for (name, value) in entries {
            let at = summary.entries.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                summary.entries.push((name.clone(), vec![None; columns.len()]));
                summary.entries.len() - 1
            });
            summary.entries[at].1[index] = Some(*value);
        }
    }
    Some(summary.read("JSON, percentiles", "percentiles", options))
}

/// Returns the entries of a summary; `None` if the object is none. Percentiles may be in an object
/// inside: `{"count": 3, "percentiles": {"50": 512, "90": 2048}}`.
fn statistics(fields: &Map<String, Value>) -> Option<Vec<(String, f64)>> {
    const PERCENTILES: [&str; 4] = ["percentiles", "percentile", "quantiles", "quantile"];
    let mut entries = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(inner) if PERCENTILES.contains(&super::normal(name).as_str()) => {
                let are_quantiles = inner.keys().all(|key| number(key).is_some_and(|key| key <= 1.0));
                for (key, value) in inner {
                    let name = match number(key) {
                        Some(key) if are_quantiles => format!("p{}", (key * 1e8).round() / 1e6),
                        Some(key) => format!("p{key}"),
                        None => key.clone(),
                    };
                    entries.push((name, value.as_f64()?));
                }
            }
            Value::Null => {}
            value => entries.push((name.clone(), value.as_f64()?)),
        }
    }
    percentiles::are(entries.iter().map(|(name, _)| name.as_str())).then_some(entries)
}

fn list(items: &[Value], options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    if options.column.is_none()
        && let [first, second] = items
        && let (Some(first), Some(second)) = (numbers(first), numbers(second))
    {
        return pair(&first, &second);
    }
    rows(items, options)
}

/// Reads two number lists as numpy's counts and edges. Other pairs of lists are not lengths.
fn pair(first: &[f64], second: &[f64]) -> Option<Result<Imported, ImportError>> {
    let form = || Form::new("JSON, numpy histogram", "counts and edges");
    if first.len() + 1 == second.len() && first.len() > 1 && rises(second) {
        return Some(from_edges(form(), second, first));
    }
    if second.len() + 1 == first.len() && second.len() > 1 && rises(first) {
        return Some(from_edges(form(), first, second));
    }
    None
}

/// Reads a list of objects as table rows.
fn rows(items: &[Value], options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let first = items.first()?.as_object()?;
    // Wide rows are samples.
    if first.len() < 2 || first.len() > 6 || items.len() > super::super::MAX_BINS {
        return None;
    }
    let header: Vec<String> = first.keys().cloned().collect();
    let cell = |value: Option<&Value>| match value {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Null) | None => Some(String::new()),
        Some(_) => None,
    };
    let cells = |row: &Value| -> Option<Vec<String>> { header.iter().map(|name| cell(row.get(name))).collect() };
    cells(items.first()?)?;
    let mut rows = items.iter().filter_map(cells);
    table::read_rows("JSON", &header, &mut rows, options)
}

/// Reads an object that is a histogram or contains one. Texts of the object must not name another
/// quantity.
fn object(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    if options.column.is_some() {
        return None;
    }
    let read = form(fields, options).or_else(|| inside(fields, options))?;
    let texts = fields.iter().flat_map(|(name, value)| match value {
        Value::String(text) => vec![(name.as_str(), text.as_str())],
        Value::Object(inner) => {
            inner.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
        }
        Value::Array(items) if items.len() < 4 => {
            items.iter().filter_map(|item| Some((name.as_str(), item.as_str()?))).collect()
        }
        _ => Vec::new(),
    });
    let texts: Vec<(&str, &str)> = texts.collect();
    let counts_characters = |(name, text): &(&str, &str)| stated::names_characters(name, text);
    let unit = if texts.iter().any(counts_characters) { Unit::Characters } else { Unit::Tokens };
    Some(read.and_then(|mut imported| {
        let others = texts.iter().copied().filter(|text| !counts_characters(text));
        let sentence = stated::check(others).map_err(refuse)?;
        imported.report.warnings.extend(sentence);
        scale::by_unit(imported, "The file", unit, options)
    }))
}

/// Reads the histogram inside a single nested object, such as `{"num_tokens": {"512": 3}}` or
/// `{"stats": {"hist": [..], "bin_edges": [..]}}`.
fn inside(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut objects = fields.iter().filter_map(|(name, value)| Some((name, value.as_object()?)));
    let (name, inner) = objects.next()?;
    if objects.next().is_some() || fields.values().any(Value::is_array) {
        return None;
    }
    // The number of samples may stand beside the percentiles.
    let samples = fields.iter().find(|(name, _)| names::meaning(name).0 == Meaning::Weight);
    let counted =
        samples.filter(|_| statistics(inner).is_some() && !inner.contains_key("count")).map(|(_, samples)| {
            let count = [("count".to_owned(), samples.clone())];
            inner.clone().into_iter().chain(count).collect::<Map<String, Value>>()
        });
    let inner = counted.as_ref().unwrap_or(inner);
    let has_lists = inner.values().any(Value::is_array);
    let is_known = stated::parse(name) == Stated::Lengths || is_general(name);
    if stated::parse(name) == Stated::Unit(Unit::Characters) {
        let read = form(inner, options)?;
        return Some(read.and_then(|imported| scale::by_unit(imported, name, Unit::Characters, options)));
    }
    match form(inner, options)? {
        read if has_lists && is_known => Some(read),
        Ok(imported) if is_known => Some(Ok(imported)),
        Ok(mut imported) if has_lists && stated::parse(name) == Stated::Unknown => {
            let name: String = name.chars().take(80).collect();
            imported.report.warnings.push(format!("The histogram under {name:?} is read as one of lengths in tokens."));
            Some(Ok(imported))
        }
        // The name denotes another quantity, or the keys are row numbers.
        _ => None,
    }
}

/// Returns whether a name contains only words that fit a histogram of any quantity.
fn is_general(name: &str) -> bool {
    const TERMS: [&str; 14] = [
        "hist",
        "histogram",
        "distribution",
        "dist",
        "stats",
        "statistics",
        "summary",
        "data",
        "result",
        "results",
        "counts",
        "train",
        "val",
        "test",
    ];
    let name = super::normal(name);
    name.split('_').all(|word| TERMS.contains(&word))
}

/// Reads an object that matches one of the formats.
fn form(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let lists: Vec<(String, Vec<f64>)> =
        fields.iter().filter_map(|(name, value)| Some((super::normal(name), numbers(value)?))).collect();
    let find = |known: &[&str], not: &str| {
        known.iter().find_map(|known| lists.iter().find(|(name, _)| name == known && name != not))
    };
    if let Some(packed) = fields.get("packedBins").and_then(Value::as_object) {
        return packed_bins(packed, &lists);
    }
    if let Some(equal) = from_equal_width(fields, find(&COUNTS, "")) {
        return Some(equal);
    }
    // `n, bins, _ = plt.hist(..)`.
    if let Some((edges_name, edges)) = find(&EDGES, "")
        && let Some((counts_name, counts)) = find(&COUNTS, edges_name).or_else(|| find(&["n"], edges_name))
        && edges.len() == counts.len() + 1
    {
        let is_wandb = fields.get("_type").and_then(Value::as_str) == Some("histogram");
        let format = if is_wandb { "JSON, Weights & Biases histogram" } else { "JSON, histogram" };
        let form = Form::new(format, format!("keys {counts_name} and {edges_name}"));
        let is_density = is_density(counts_name) || fields.get("density").and_then(Value::as_bool) == Some(true);
        return Some(if is_density { from_densities(form, edges, counts) } else { from_edges(form, edges, counts) });
    }
    let characters = || lists.iter().find(|(name, _)| known::counts_characters(name));
    if let Some((name, lengths)) = find(&LENGTHS, "").or_else(characters) {
        let in_tokens = |read: Result<Imported, ImportError>| {
            read.and_then(|imported| scale::by_unit(imported, name, known::unit(name), options))
        };
        let same = |list: &&(String, Vec<f64>)| list.1.len() == lengths.len() && list.0 != *name;
        let is_count = |list: &&(String, Vec<f64>)| same(list) && !is_density(&list.0);
        if let Some((counts_name, counts)) = find(&COUNTS, name).filter(is_count) {
            let points: Vec<(f64, f64)> = lengths.iter().copied().zip(counts.iter().copied()).collect();
            if samples::are_totals(name, &points) || samples::numbering(&points) != Numbering::None {
                return None;
            }
            let form = Form::new("JSON, lengths with counts", format!("keys {name} and {counts_name}"));
            return Some(in_tokens(bins::points(form, points)));
        }
        if let Some((cumulative_name, cumulative)) = find(&CUMULATIVE, name).filter(same) {
            let mut form = Form::new("JSON, cumulative counts", format!("keys {name} and {cumulative_name}"));
            let last = cumulative.iter().copied().fold(0.0, f64::max);
            shares::check_end(&mut form, cumulative_name, last);
            let points = lengths.iter().copied().zip(cumulative.iter().copied()).collect();
            return Some(in_tokens(bins::cumulative(form, points)));
        }
    }
    if let Some(entries) = statistics(fields) {
        let entries = entries.iter().map(|(name, value)| (name.as_str(), *value));
        return Some(percentiles::read(Form::new("JSON, percentiles", "percentiles"), entries));
    }
    counter(fields).or_else(|| listed(fields, options))
}

/// Reads rows under a histogram name: `{"buckets": [{"range": "0-256", "count": 3}]}`.
fn listed(fields: &Map<String, Value>, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut lists = fields.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    let (name, list) = lists.next()?;
    let is_histogram = ["buckets", "bins"].contains(&name.as_str()) || is_general(name);
    if lists.next().is_some() || !is_histogram {
        return None;
    }
    rows(list, options)
}

/// Returns whether a list name denotes densities.
fn is_density(name: &str) -> bool {
    ["density", "pdf"].contains(&name)
}

/// Reads densities, whose integral is 1.
fn from_densities(form: Form, edges: &[f64], counts: &[f64]) -> Result<Imported, ImportError> {
    let found: Vec<Bin> =
        edges.array_windows().zip(counts).map(|(&[left, right], &count)| Bin { left, right, count }).collect();
    let area: f64 = found.iter().map(|bin| bin.count * (bin.right - bin.left)).sum();
    if !(0.9..=1.1).contains(&area) {
        return Err(refuse(format!("its counts are densities, but their integral is {area} and not 1; write counts")));
    }
    bins::densities(form, found)
}

/// Reads counts of equal-width bins: `{"counts": [..], "min": 0, "max": 4096, "num_bins": 8}`.
fn from_equal_width(
    fields: &Map<String, Value>,
    counts: Option<&(String, Vec<f64>)>,
) -> Option<Result<Imported, ImportError>> {
    let value = |known: &[&str]| known.iter().find_map(|name| fields.get(*name)?.as_f64());
    let (name, counts) = counts?;
    let (left, right) = (value(&["min", "start", "low"])?, value(&["max", "end", "high"])?);
    let bins = value(&["num_bins", "n_bins", "nbins", "bins", "bin_count"])?;
    (bins.total_cmp(&(counts.len() as f64)).is_eq() && left < right).then(|| {
        let mut form = Form::new("JSON, bins of equal width", format!("key {name}, from {left} to {right}"));
        form.warn(format!("the bins are assumed to be equally wide, from {left} to {right}"));
        bins::equal(form, left, right, counts)
    })
}

/// Reads equal-width bins of Weights & Biases.
fn packed_bins(packed: &Map<String, Value>, lists: &[(String, Vec<f64>)]) -> Option<Result<Imported, ImportError>> {
    let value = |name: &str| packed.get(name).and_then(Value::as_f64);
    let (_, counts) = lists.iter().find(|(name, _)| name == "values" || name == "hist")?;
    let (left, width) = (value("min")?, value("size")?);
    let edges: Vec<f64> = (0..=counts.len()).map(|index| left + width * index as f64).collect();
    Some(from_edges(Form::new("JSON, Weights & Biases histogram", "keys values and packedBins"), &edges, counts))
}

/// Reads an object with lengths or bins as keys, and counts as values.
fn counter(fields: &Map<String, Value>) -> Option<Result<Imported, ImportError>> {
    let mut entries = fields.iter();
    let (name, value) = entries.next()?;
    value.as_f64()?;
    if super::interval::read(name).is_some() {
        let counts: Vec<(&str, String)> = fields
            .iter()
            .map(|(name, value)| Some((name.as_str(), value.as_f64()?.to_string())))
            .collect::<Option<_>>()?;
        let mut form = Form::new("JSON, bins", "keys and values");
        form.warn("the keys are read as bins of lengths in tokens");
        return Some(edges::intervals(form, counts.iter().map(|(bin, count)| (*bin, count.as_str()))));
    }
    let entries: Vec<(&str, f64)> =
        fields.iter().map(|(name, value)| Some((name.as_str(), value.as_f64()?))).collect::<Option<_>>()?;
    keyed::read("JSON", &entries)
}

fn from_edges(form: Form, edges: &[f64], counts: &[f64]) -> Result<Imported, ImportError> {
    if let Some([a, b]) = edges.array_windows().find(|[a, b]| b < a) {
        return Err(refuse(format!("edge {b} is below the edge before it ({a})")));
    }
    let bins = edges.array_windows().zip(counts).map(|(&[left, right], &count)| Bin { left, right, count });
    bins::bins(form, bins.collect())
}

fn rises(edges: &[f64]) -> bool {
    edges.array_windows().all(|[a, b]| a < b)
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}
