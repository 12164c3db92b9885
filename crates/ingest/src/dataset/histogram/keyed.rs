//! Reads objects and dictionaries with numeric keys: lengths with counts, percentiles, or
//! identifiers with lengths.

use super::super::{ImportError, Imported};
use super::bins::{self, Form};
use super::{known, number, percentiles, refuse};

/// Commonly reported percentiles.
const USUAL: [f64; 22] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 97.0, 97.5, 98.0, 99.0,
    99.5, 99.9, 100.0,
];
/// Keys from this value on are identifiers, not lengths.
const IDENTIFIER: f64 = 1e6;

/// Reads keys and values; returns `None` if a key is not a number. `format` is the format name in
/// the report, for example "JSON".
pub(super) fn read(format: &str, entries: &[(&str, f64)]) -> Option<Result<Imported, ImportError>> {
    let (totals, others): (Vec<_>, Vec<_>) = entries.iter().copied().partition(|(key, _)| known::is_total(key));
    let mut points: Vec<(f64, f64)> =
        others.iter().map(|&(key, value)| Some((number(key)?, value))).collect::<Option<_>>()?;
    if points.is_empty() {
        return None;
    }
    points.sort_by(|previous, next| previous.0.total_cmp(&next.0));
    if let Some(percentiles) = as_percentiles(format, &points) {
        return Some(percentiles);
    }
    let mut form = Form::new(format!("{format}, lengths with counts"), "keys and values");
    if let Some(refusal) = not_lengths(&others, &points) {
        return Some(Err(refuse(refusal)));
    }
    form.warn("the keys are read as lengths in tokens, and the values as numbers of samples");
    for (key, _) in &totals {
        form.warn(format!("the key {key} is left out: it is the sum of the values"));
    }
    Some(bins::points(form, points))
}

/// Reads the points of a `Counter`, whose keys are always lengths.
pub(super) fn counted(form: Form, entries: &[(&str, f64)]) -> Option<Result<Imported, ImportError>> {
    let points = entries.iter().map(|&(key, value)| Some((number(key)?, value))).collect::<Option<_>>()?;
    Some(bins::points(form, points))
}

/// Reads keys that are common percentiles, or quantiles below 1, with increasing values: `{"50":
/// 512, "90": 2048, "99": 8192}`.
fn as_percentiles(format: &str, points: &[(f64, f64)]) -> Option<Result<Imported, ImportError>> {
    let are_quantiles =
        points.iter().all(|(key, _)| (0.0..=1.0).contains(key)) && points.iter().any(|(key, _)| key.fract() != 0.0);
    let percent = |key: f64| if are_quantiles { (key * 1e8).round() / 1e6 } else { key };
    let is_usual = |key: f64| USUAL.iter().any(|usual| (usual - key).abs() < 1e-6);
    let rises = points.array_windows().all(|[previous, next]| previous.1 <= next.1);
    if points.len() < 2 || !rises || !(are_quantiles || points.iter().all(|(key, _)| is_usual(*key))) {
        return None;
    }
    let keys = || points.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(", ");
    let max_value = points.last().map_or(0.0, |(_, value)| *value);
    // Lengths up to 100 with low counts look the same.
    if !are_quantiles && max_value <= 100.0 {
        return Some(Err(refuse(format!(
            "the keys {} are either percentiles or lengths with counts. Write {{\"length\": [..], \"count\": [..]}}, or percentiles as p50, p90",
            keys()
        ))));
    }
    let mut form = Form::new(format!("{format}, percentiles"), "keys and values");
    form.warn(format!(
        "the keys {} are read as percentiles, and the values as lengths. If the keys are lengths, write {{\"length\": [..], \"count\": [..]}}",
        keys()
    ));
    let names: Vec<(String, f64)> = points.iter().map(|&(key, value)| (format!("p{}", percent(key)), value)).collect();
    Some(percentiles::read(form, names.iter().map(|(name, value)| (name.as_str(), *value))))
}

/// Returns the reason why the keys are not lengths: they are row numbers or identifiers.
fn not_lengths(entries: &[(&str, f64)], points: &[(f64, f64)]) -> Option<String> {
    let first = points.first()?.0;
    if first == 0.0 && points.iter().enumerate().all(|(index, (key, _))| key.total_cmp(&(index as f64)).is_eq()) {
        return Some(
            "its keys count from 0, as the row index of a pandas table does; write a list of the values, or lengths above 0 as keys"
                .to_owned(),
        );
    }
    let is_padded = entries.iter().any(|(key, _)| key.len() > 1 && key.starts_with('0') && !key.contains('.'));
    let are_large = points.iter().all(|(key, _)| *key >= IDENTIFIER);
    let last = points.last()?.0;
    let is_dense = points.len() > 1 && points.len() as f64 * 2.0 > last - first + 1.0;
    let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup_by(|current, next| current.total_cmp(next).is_eq());
    let are_distinct = values.len() * 10 >= points.len() * 9;
    (is_padded || are_large || (is_dense && are_distinct)).then(|| {
        let key = entries.first().map_or("", |entry| entry.0);
        format!(
            "its keys, such as {key}, look like identifiers, and its values like lengths. Write a list of the values; if the keys are lengths, \
             write {{\"length\": [..], \"count\": [..]}}"
        )
    })
}

#[cfg(test)]
mod tests {
    use planner::workload::Dataset;

    use super::*;

    fn outcome(entries: &[(&str, f64)]) -> Result<Imported, String> {
        read("JSON", entries).expect("keys are numbers").map_err(|error| error.to_string())
    }

    #[test]
    fn usual_percentiles_with_rising_values_are_percentiles() {
        for entries in
            [[("50", 512.0), ("90", 2048.0), ("99", 8192.0)], [("0.5", 512.0), ("0.9", 2048.0), ("0.99", 8192.0)]]
        {
            let imported = outcome(&entries).expect("percentiles");
            let Dataset::Histogram { edges, counts } = imported.dataset else { panic!("a histogram") };
            assert_eq!(edges, [1.0, 512.0, 2048.0, 8192.0, 8192.0], "{entries:?}");
            assert_eq!(counts.iter().map(|count| count.round()).collect::<Vec<_>>(), [50.0, 40.0, 9.0, 1.0]);
            assert!(imported.report.warnings[0].contains("are read as percentiles"), "{:?}", imported.report.warnings);
        }
        let unclear = outcome(&[("10", 5.0), ("20", 8.0), ("50", 9.0)]).expect_err("unclear");
        assert!(unclear.contains("either percentiles or lengths with counts"), "{unclear}");
        // Decreasing values are counts.
        let falls = outcome(&[("50", 812.0), ("90", 248.0), ("99", 92.0)]).expect("counts");
        assert_eq!((falls.report.parsed, falls.report.format.as_str()), (1152, "JSON, lengths with counts"));
    }

    #[test]
    fn identifiers_are_no_lengths() {
        for entries in [
            &[("101", 512.0), ("102", 733.0), ("103", 1024.0)][..],
            &[("101", 512.0), ("103", 733.0), ("104", 1024.0)],
            &[("1", 512.0), ("2", 300.0)],
            &[("0007", 512.0), ("0431", 733.0)],
            &[("20410067", 512.0), ("73120045", 512.0)],
        ] {
            let refusal = outcome(entries).expect_err("identifiers");
            assert!(refusal.contains("look like identifiers"), "{refusal}");
        }
        assert!(outcome(&[("0", 512.0), ("1", 300.0)]).expect_err("rows").contains("row index"));
        let counts = outcome(&[("101", 7.0), ("102", 5.0), ("103", 5.0), ("104", 1.0), ("105", 1.0)]).expect("counts");
        assert_eq!(counts.report.parsed, 19);
        assert!(counts.report.warnings[0].contains("read as lengths in tokens"), "{:?}", counts.report.warnings);
    }

    #[test]
    fn the_sum_is_left_out() {
        let imported = outcome(&[("512", 3.0), ("1024", 2.0), ("total", 5.0)]).expect("counts");
        assert_eq!(imported.report.parsed, 5);
        assert!(imported.report.warnings[1].contains("key total is left out"), "{:?}", imported.report.warnings);
        assert!(read("JSON", &[("a", 1.0)]).is_none());
        assert!(read("JSON", &[("total", 1.0)]).is_none());
    }
}
