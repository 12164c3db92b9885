//! Summaries of several columns, in every layout that programs print, and histograms of characters.

use planner::workload::Dataset;

use super::super::Options;
use super::*;

/// Edges, counts and report of a histogram.
fn histogram(file: &str, options: &Options<'_>) -> (Vec<f64>, Vec<f64>, super::super::Report) {
    match super::super::import(file.as_bytes(), options) {
        Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report }) => (edges, counts, report),
        other => panic!("{file}: {other:?}"),
    }
}

fn automatic(file: &str) -> (Vec<f64>, Vec<f64>, super::super::Report) {
    histogram(file, &Options::default())
}

/// Columns that an import asks about.
fn asked(file: &str) -> Vec<String> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => {
            assert!(candidates.iter().any(|candidate| candidate.preview.is_some()), "{file}: no preview");
            candidates.into_iter().map(|candidate| candidate.name).collect()
        }
        other => panic!("{file}: {other:?}"),
    }
}

/// A summary of two columns as CSV, as a print, as Markdown and as JSON. The second column has half of
/// the first.
fn layouts(first: &str, second: &str) -> [String; 5] {
    let rows = [
        ("count", 8, 8),
        ("mean", 300, 150),
        ("min", 20, 10),
        ("25%", 100, 50),
        ("50%", 300, 150),
        ("75%", 500, 250),
        ("max", 900, 450),
    ];
    let all = |row: &dyn Fn(&str, i32, i32) -> String| -> String {
        rows.iter().map(|(name, first, second)| row(name, *first, *second)).collect()
    };
    let entries = |pick: &dyn Fn((i32, i32)) -> i32| -> String {
        let entries: Vec<String> =
            rows.iter().map(|(name, first, second)| format!("\"{name}\": {}", pick((*first, *second)))).collect();
        entries.join(", ")
    };
    let values = |pick: &dyn Fn((i32, i32)) -> i32, separator: &str| -> String {
        let cells: Vec<String> = rows.iter().map(|(_, first, second)| pick((*first, *second)).to_string()).collect();
        cells.join(separator)
    };
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    [
        format!(",{first},{second}\n{}", all(&|name, one, two| format!("{name},{one}.0,{two}.0\n"))),
        format!("       {first}  {second}\n{}", all(&|name, one, two| format!("{name}  {one}.0  {two}.0\n"))),
        format!(
            "|  | {first} | {second} |\n|:--|--:|--:|\n{}",
            all(&|name, one, two| format!("| {name} | {one} | {two} |\n"))
        ),
        format!("{{\"{first}\": {{{}}}, \"{second}\": {{{}}}}}", entries(&|pair| pair.0), entries(&|pair| pair.1)),
        // describe().T
        format!(
            ",{}\n{first},{}\n{second},{}\n",
            names.join(","),
            values(&|pair| pair.0, ","),
            values(&|pair| pair.1, ",")
        ),
    ]
}

#[test]
fn percentiles_of_two_columns_are_not_added() {
    for (first, second) in
        [("prompt_tokens", "completion_tokens"), ("text_tokens", "image_tokens"), ("input_len", "output_len")]
    {
        for file in layouts(first, second) {
            let (edges, counts, report) = automatic(&file);
            assert_eq!((edges, counts), (vec![20.0, 100.0, 300.0, 500.0, 900.0], vec![2.0; 4]), "{file}");
            assert_eq!(report.source, format!("column {first}"), "{file}");
            let sentence = format!(
                "Only {first} is counted. {second} belong to the same samples, but statistics of columns cannot be added. Upload a shard for their sum."
            );
            assert!(report.warnings.contains(&sentence), "{file}: {:?}", report.warnings);
        }
    }
    // The larger column is counted, wherever it is.
    let (edges, _, report) = automatic(&layouts("completion_tokens", "prompt_tokens")[1]);
    assert_eq!((edges[1], report.source.as_str()), (100.0, "column completion_tokens"));
}

#[test]
fn unknown_columns_of_a_summary_are_asked_for() {
    for (first, second) in
        [("chosen_tokens", "rejected_tokens"), ("a", "b"), ("train", "val"), ("chosen_len", "prompt_len")]
    {
        for file in layouts(first, second) {
            assert_eq!(asked(&file), [first, second], "{file}");
            let (edges, _, report) = histogram(&file, &Options { column: Some(second), ..Options::default() });
            assert_eq!(
                (edges, report.source),
                (vec![10.0, 50.0, 150.0, 250.0, 450.0], format!("column {second}")),
                "{file}"
            );
        }
    }
}

#[test]
fn the_length_is_found_beside_other_columns() {
    for (first, second) in [("num_tokens", "num_turns"), ("num_tokens", "id"), ("num_tokens", "num_chars")] {
        for file in layouts(first, second) {
            let (edges, _, report) = automatic(&file);
            assert_eq!((edges[0], report.source.as_str()), (20.0, "column num_tokens"), "{file}");
            assert!(!report.warnings.iter().any(|warning| warning.contains("Only")), "{:?}", report.warnings);
            assert_eq!(names(&report.candidates), [second], "{file}");
        }
    }
    let (_, _, report) = automatic(&layouts("num_tokens", "num_images")[0]);
    assert!(report.warnings.iter().any(|warning| warning.contains("num_images is not counted")));
}

#[test]
fn programs_print_summaries_of_one_column() {
    let polars = "shape: (6, 2)\n┌────────────┬────────────┐\n│ statistic  ┆ num_tokens │\n│ ---        ┆ ---        │\n│ str        ┆ f64        │\n╞════════════╪════════════╡\n│ count      ┆ 8.0        │\n│ null_count ┆ 0.0        │\n│ min        ┆ 20.0       │\n│ 25%        ┆ 100.0      │\n│ 50%        ┆ 300.0      │\n│ 75%        ┆ 500.0      │\n│ max        ┆ 900.0      │\n└────────────┴────────────┘";
    let spark = "+-------+----------+\n|summary|num_tokens|\n+-------+----------+\n|  count|         8|\n|   mean|     333.3|\n| stddev|     170.4|\n|    min|        20|\n|    25%|       100|\n|    50%|       300|\n|    75%|       500|\n|    max|       900|\n+-------+----------+\n\n";
    let transposed = "            count   mean   std   min    25%    50%    75%    max\nnum_tokens    8.0  333.3  86.1  20.0  100.0  300.0  500.0  900.0\n";
    let python = "{'count': 8.0, 'mean': 333.3, 'std': 86.1, 'min': 20.0, '25%': 100.0, '50%': 300.0, '75%': 500.0, 'max': 900.0}";
    let nested = r#"{"length": {"count": 8, "min": 20, "max": 900, "percentiles": {"25": 100, "50": 300, "75": 500}}}"#;
    let quantiles =
        r#"{"num_tokens": {"count": 8, "min": 20, "max": 900, "quantiles": {"0.25": 100, "0.5": 300, "0.75": 500}}}"#;
    let duckdb = "┌─────────────┬─────────────┬─────┬─────┬───────┬─────┬─────┬─────┬───────┐\n│ column_name │ column_type │ min │ max │ avg   │ q25 │ q50 │ q75 │ count │\n│   varchar   │   varchar   │ var │ var │ var   │ var │ var │ var │ int64 │\n├─────────────┼─────────────┼─────┼─────┼───────┼─────┼─────┼─────┼───────┤\n│ num_tokens  │ BIGINT      │ 20  │ 900 │ 333.3 │ 100 │ 300 │ 500 │     8 │\n│ source      │ VARCHAR     │ a   │ z   │       │     │     │     │     8 │\n└─────────────┴─────────────┴─────┴─────┴───────┴─────┴─────┴─────┴───────┘\n";
    for file in [polars, spark, transposed, python, nested, quantiles, duckdb] {
        let (edges, counts, report) = automatic(file);
        assert_eq!((edges, counts), (vec![20.0, 100.0, 300.0, 500.0, 900.0], vec![2.0; 4]), "{file}");
        assert_eq!(report.parsed, 8, "{file}");
    }
    for quantiles in [
        "0.00     20.0\n0.25    100.0\n0.50    300.0\n0.75    500.0\n1.00    900.0\nName: num_tokens, dtype: float64\n",
        "0.00     20.0\n0.25    100.0\n0.50    300.0\n0.75    500.0\n1.00    900.0\ndtype: float64\n",
        ",num_tokens\n0.0,20.0\n0.25,100.0\n0.5,300.0\n0.75,500.0\n1.0,900.0\n",
    ] {
        let (edges, counts, report) = automatic(quantiles);
        assert_eq!((edges, counts), (vec![20.0, 100.0, 300.0, 500.0, 900.0], vec![25.0; 4]), "{quantiles}");
        assert!(report.warnings.iter().any(|warning| warning.contains("number of samples is not known")));
    }
    let beside = r#"{"num_samples": 8, "token_stats": {"mean": 300, "min": 20, "p25": 100, "p50": 300, "p75": 500, "max": 900}}"#;
    assert_eq!(automatic(beside).2.parsed, 8);
    let profile = r#"{"analysis": {"title": "x"}, "variables": {"num_tokens": {"type": "Numeric", "n": 8, "n_distinct": 7, "min": 20, "25%": 100, "50%": 300, "75%": 500, "max": 900, "histogram": {"counts": [8], "bin_edges": [20, 900]}}, "text": {"type": "Text", "n": 8}}}"#;
    assert_eq!(automatic(profile).0, [20.0, 100.0, 300.0, 500.0, 900.0]);
    let percentiles = "| percentile | tokens |\n|---|---|\n| p50 | 300 |\n| p90 | 700 |\n| max | 900 |\n";
    let (edges, _, report) = automatic(percentiles);
    assert_eq!((edges, report.source.as_str()), (vec![1.0, 300.0, 700.0, 900.0], "column tokens"));
    // Without percentiles, the message says what is missing.
    let few = "+-------+----------+\n|summary|num_tokens|\n+-------+----------+\n|  count|         8|\n|   mean|     333.3|\n|    min|        20|\n|    max|       900|\n+-------+----------+\n";
    assert!(refusal(few).contains("Add percentiles"), "{}", refusal(few));
}

#[test]
fn histograms_of_characters_are_divided() {
    for file in [
        "num_chars,count\n400,7\n800,3\n1598,1\n",
        "char_length,count\n400,7\n800,3\n1598,1\n",
        "n_chars\n400     7\n800     3\n1598    1\nName: count, dtype: int64\n",
        r#"{"num_chars": [400, 800, 1598], "counts": [7, 3, 1]}"#,
        r#"{"unit": "characters", "lengths": [400, 800, 1598], "counts": [7, 3, 1]}"#,
        r#"{"num_chars": {"400": 7, "800": 3, "1598": 1}}"#,
        r#"{"char_lengths": {"400": 7, "800": 3, "1598": 1}}"#,
    ] {
        let (edges, counts, report) = automatic(file);
        // 1598 characters are 399.5 tokens, which are rounded up as in rows.
        assert_eq!(
            (edges, counts),
            (vec![100.0, 100.0, 200.0, 200.0, 400.0, 400.0], vec![7.0, 0.0, 3.0, 0.0, 1.0]),
            "{file}"
        );
        assert!(
            report.warnings.iter().any(|warning| warning.contains("divided by 4 characters per token")),
            "{file}: {:?}",
            report.warnings
        );
        assert_eq!((report.parsed, report.repaired), (0, 11), "{file}");
    }
    for file in [
        "left,right,count,unit\n0,400,7,chars\n400,800,3,chars\n",
        "char_bucket,count\n0-400,7\n400-800,3\n",
        "num_chars,count\n\"[0, 400)\",7\n\"[400, 800)\",3\n",
        r#"{"schema": "hist/1", "unit": "characters", "edges": [0, 400, 800], "counts": [7, 3]}"#,
        r#"{"column": "n_chars", "hist": [7, 3], "bin_edges": [0, 400, 800]}"#,
    ] {
        let (edges, counts, _) = automatic(file);
        assert_eq!((edges, counts), (vec![0.0, 100.0, 200.0], vec![7.0, 3.0]), "{file}");
    }
    let (edges, _, _) =
        histogram("num_chars,count\n400,7\n800,3\n", &Options { characters_per_token: 2.0, ..Options::default() });
    assert_eq!(edges, [200.0, 200.0, 400.0, 400.0]);
    for file in [
        &layouts("num_chars", "num_words")[0],
        r#"{"num_chars": {"min": 20, "p25": 100, "p50": 300, "p75": 500, "max": 900}}"#,
    ] {
        let (edges, _, report) = automatic(file);
        assert_eq!(edges, [5.0, 25.0, 75.0, 125.0, 225.0], "{file}");
        assert!(report.warnings.iter().any(|warning| warning.starts_with("num_chars counts characters")), "{file}");
    }
}

/// A message must not call numbers of another unit `num_tokens`.
#[test]
fn messages_name_no_wrong_unit() {
    let counts = |name: &str| format!("{name}\n400     7\n800     3\n1598    1\nName: count, dtype: int64\n");
    for (name, expected) in [
        ("size_bytes", "counts bytes, not tokens"),
        ("num_words", "states another quantity"),
        ("duration", "states another quantity"),
    ] {
        let message = refusal(&counts(name));
        assert!(message.contains(expected) && !message.contains("num_tokens"), "{name}: {message}");
    }
    let unknown = refusal(&counts("text_size"));
    assert!(unknown.contains("name it num_tokens") && unknown.contains("name it num_chars"), "{unknown}");
}

#[test]
fn a_few_samples_of_length_zero_are_left_out() {
    for file in [
        "num_tokens\n512     9\n256     4\n0       1\nName: count, dtype: int64\n",
        "num_tokens,count\n512,9\n0,1\n256,4\n",
        r#"{"lengths": [0, 256, 512], "counts": [1, 4, 9]}"#,
    ] {
        let (edges, counts, report) = automatic(file);
        assert_eq!((edges, counts), (vec![256.0, 256.0, 512.0, 512.0], vec![4.0, 0.0, 9.0]), "{file}");
        assert_eq!((report.parsed, report.skipped), (13, 1), "{file}");
        assert!(
            report.warnings.contains(&"1 of 14 samples have length 0 and are left out.".to_owned()),
            "{:?}",
            report.warnings
        );
    }
    let most = refusal("num_tokens,count\n512,7\n0,3\n256,4\n");
    assert!(most.contains("3 of 14 samples have length 0"), "{most}");
}
