//! Distribution tables, samples with an additional number, and numbers with separators.

use super::*;

fn unclear(file: &str) -> Vec<String> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => candidates.into_iter().map(|candidate| candidate.name).collect(),
        other => panic!("{file:?}: {other:?}"),
    }
}

/// In all formats, a count column is used or the user must confirm it.
#[test]
fn counts_are_used_or_need_confirmation() {
    let expected = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![3.0, 0.0, 1.0] };
    for name in
        ["num_sequences", "quantity", "number_of_samples", "n_samples", "occurrences", "sequences", "num_examples"]
    {
        for file in [
            format!("length,{name}\n512,3\n1024,1\n"),
            format!("length,{name},percentage\n512,3,75\n1024,1,25\n"),
            format!("{{\"length\": 512, \"{name}\": 3}}\n{{\"length\": 1024, \"{name}\": 1}}\n"),
        ] {
            let imported = import(file.as_bytes(), None).expect(&file);
            assert_eq!(imported.dataset, expected, "{file}");
        }
    }
    for file in [
        "length,train,val\n1024,30,3\n512,12,2\n",
        "length,train\n1024,30\n512,12\n",
        "length,train_count,test_count\n512,30,3\n1024,12,2\n",
        "length,count,samples\n512,30,3\n1024,12,2\n",
        "{\"length\": 1024, \"share\": 0.25}\n{\"length\": 512, \"share\": 0.75}\n",
    ] {
        assert_eq!(unclear(file)[0], "length", "{file}");
    }
    // The user's choice resolves the ambiguity.
    let file = b"length,train,val\n1024,30,3\n512,12,2\n";
    let options = Options { column: Some("length"), weight: Some("train"), ..Options::default() };
    let selected = super::super::import(file, &options).expect("a weight");
    let train = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![12.0, 0.0, 30.0] };
    assert_eq!(selected.dataset, train);
}

/// Rows with repeated lengths are samples; `weight` and `n` may be properties of each sample.
#[test]
fn sample_numbers_are_not_counts() {
    for file in [
        "length,weight\n512,0.5\n300,1.5\n512,1.0\n",
        "length,n\n512,3\n300,1\n512,2\n",
        "{\"length\": 512, \"weight\": 0.5}\n{\"length\": 300, \"weight\": 1.5}\n",
    ] {
        assert_eq!(
            unclear(file),
            ["length", file.split(['"', ',', '\n']).find(|word| ["weight", "n"].contains(word)).unwrap()]
        );
    }
    let options = Options { column: Some("length"), weight: Some(""), ..Options::default() };
    let rows = super::super::import(b"length,n\n512,3\n300,1\n512,2\n", &options).expect("rows");
    assert_eq!(rows.dataset, Dataset::Rows { text_tokens: vec![512, 300, 512], images: vec![], shaped: None });
}

/// A name with another unit does not denote a length in tokens.
#[test]
fn units_in_names_need_confirmation() {
    for name in
        ["Length (s)", "length_s", "length_sec", "length_ms", "length_mb", "tokens (%)", "tokens_pct", "Length [px]"]
    {
        let file = format!("id,{name}\na,512\nb,1024\n");
        assert_eq!(unclear(&file), ["id", name]);
    }
    assert_eq!(rows("id,Length (tokens)\na,512\nb,1024\n").0, [512, 1024]);
    assert_eq!(rows("id,Length (chars)\na,400\nb,401\n").0, [100, 101]);
}

#[test]
fn single_numbers_may_have_thousands_separators() {
    for file in ["1,234\n512\n2,345\n", "812\n1,234\n", "1,024\n2,345\n"] {
        let (lengths, _, report) = rows(file);
        assert!(lengths.len() == file.lines().count() && lengths.iter().any(|length| *length > 1000), "{file}");
        assert!(
            report.warnings.iter().any(|warning| warning.contains("thousands separators")),
            "{:?}",
            report.warnings
        );
    }
    // Two columns of numbers, and a list.
    assert_eq!(unclear("512,733\n600,128\n"), ["1", "2"]);
    assert_eq!(rows("512,77\n600\n").0, [512, 77, 600]);
}

#[test]
fn semicolons_leave_commas_with_two_readings() {
    for file in ["length;x\n754,000;a\n512,000;b\n", "length;x\n754,125;a\n2048;b\n"] {
        let error = refusal(file);
        assert!(error.contains("has two readings: 754,"), "{error}");
    }
    assert_eq!(rows("length;x\n754,000;a\n1261,000;b\n").0, [754, 1261]);
    assert_eq!(rows("length;x\n1,234;a\n512;b\n").0, [1234, 512]);
    assert_eq!(rows("length\n2,571e+03\n1,024e+03\n").0, [2571, 1024]);
    // The other column is not read.
    assert_eq!(rows("length;price\n512;754,000\n300;512,000\n").0, [512, 300]);
}

/// Bins with edge columns are a histogram in all formats.
#[test]
fn bins_are_read_in_every_format() {
    let expected = Dataset::Histogram { edges: vec![0.0, 512.0, 1024.0], counts: vec![3.0, 2.0] };
    for file in [
        "bin_start,bin_end,n\n0,512,3\n512,1024,2\n",
        "bin_start;bin_end;n\n0;512;3\n512;1024;2\n",
        "{\"bin_start\": 0, \"bin_end\": 512, \"n\": 3}\n{\"bin_start\": 512, \"bin_end\": 1024, \"n\": 2}\n",
        "bin_start  bin_end  n\n0  512  3\n512  1024  2\n",
        "{\"min\": 0, \"max\": 512, \"count\": 3}\n{\"min\": 512, \"max\": 1024, \"count\": 2}\n",
        "{\"bin_center\": 256, \"count\": 3}\n{\"bin_center\": 768, \"count\": 2}\n",
        "{\"bin\": \"0-512\", \"count\": 3}\n{\"bin\": \"512-1024\", \"count\": 2}\n",
    ] {
        assert_eq!(import(file.as_bytes(), None).expect(file).dataset, expected, "{file}");
    }
}

/// Count names in other languages, and table decorations.
#[test]
fn tables_in_other_languages_and_dressings_are_read() {
    for file in [
        "sep=;\nLänge;Anzahl\n512;3\n1024;2\n",
        "长度,数量\n512,3\n1024,2\n",
        "longitud\tcantidad\n512\t3\n1024\t2\n",
        " length | count \n--------+-------\n    512 |     3\n   1024 |     2\n(2 rows)\n",
        "+------+-----+\n|length|count|\n+------+-----+\n|   512|    3|\n|  1024|    2|\n+------+-----+\n",
        "│ length │ count │\n│ int64  │ int64 │\n├────────┼───────┤\n│    512 │     3 │\n│   1024 │     2 │\n",
    ] {
        let imported = import(file.as_bytes(), None).unwrap_or_else(|error| panic!("{file}: {error}"));
        let expected = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![3.0, 0.0, 2.0] };
        assert_eq!(imported.dataset, expected, "{file}");
    }
    let file =
        "+------+-----+\n|length|count|\n+------+-----+\n|512|3|\n|1024|2|\n+------+-----+\nonly showing top 2 rows\n";
    let warnings = import(file.as_bytes(), None).expect("a table").report.warnings;
    assert!(warnings.iter().any(|warning| warning.starts_with("The printed table is shortened")), "{warnings:?}");
}

/// Python output with type names around the values.
#[test]
fn printed_python_values_are_read() {
    let counted = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![3.0, 0.0, 5.0] };
    for file in [
        "Counter({np.int64(512): 3, np.int64(1024): 5})",
        "OrderedDict([(512, 3), (1024, 5)])",
        "(array([ 512, 1024]), array([3, 5]))",
    ] {
        assert_eq!(import(file.as_bytes(), None).map(|imported| imported.dataset), Ok(counted.clone()), "{file}");
    }
    for file in ["[np.int64(512), np.int64(1024)]", "tensor([512, 1024])", "[512, 1024,]"] {
        let rows = Dataset::Rows { text_tokens: vec![512, 1024], images: vec![], shaped: None };
        assert_eq!(import(file.as_bytes(), None).map(|imported| imported.dataset), Ok(rows), "{file}");
    }
}

/// Databases generate a name for an unnamed count column.
#[test]
fn unnamed_counts_need_confirmation() {
    for name in ["f0_", "_col1", "_c1", "?column?", "EXPR$1"] {
        assert_eq!(unclear(&format!("length,{name}\n512,3\n1024,5\n")), ["length", name], "{name}");
    }
}
