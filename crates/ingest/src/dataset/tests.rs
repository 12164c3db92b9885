//! Typical files of users, and invalid files.

use planner::workload::Dataset;
use proptest::prelude::*;

use planner::workload::preprocessing::Preprocessing;

use super::{ImportError, Imported, Meaning, Options, Unit};

/// Imports with a chosen column.
pub(super) fn import(bytes: &[u8], column: Option<&str>) -> Result<Imported, ImportError> {
    super::import(bytes, &Options { column, ..Options::default() })
}

/// Imports with a chosen column and a rule for media.
pub(super) fn import_by(bytes: &[u8], column: Option<&str>, rule: Preprocessing) -> Result<Imported, ImportError> {
    super::import(bytes, &Options { column, preprocessing: Some(rule), ..Options::default() })
}

/// Names of the candidates of a report or an error.
pub(super) fn names(candidates: &[super::Candidate]) -> Vec<&str> {
    candidates.iter().map(|candidate| candidate.name.as_str()).collect()
}

fn rows(file: &str) -> (Vec<u32>, Vec<u32>, super::Report) {
    import_rows(file, None)
}

fn import_rows(file: &str, requested: Option<&str>) -> (Vec<u32>, Vec<u32>, super::Report) {
    match import(file.as_bytes(), requested) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, images, .. }, report }) => (text_tokens, images, report),
        other => panic!("{file:?}: {other:?}"),
    }
}

fn refusal(file: &str) -> String {
    import(file.as_bytes(), None).expect_err(file).to_string()
}

#[test]
fn plain_numbers_stand_between_anything() {
    for file in
        ["3\n5\n7\n", "3 5 7", "3, 5, 7", "3,5,\n7", "\u{feff}3\r\n5\r\n7\r\n", "# lengths\n3\n5\n7", "3,5,\n7,"]
    {
        let (lengths, images, report) = rows(file);
        assert_eq!((lengths, images), (vec![3, 5, 7], vec![]), "{file:?}");
        assert_eq!((report.format.as_str(), report.parsed, report.skipped), ("plain numbers", 3, 0), "{file:?}");
    }
}

/// Training uses prompt and completion together, so their sum is preferred.
#[test]
fn best_known_column_is_selected_and_others_are_reported() {
    let file =
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n2015,156,2171,12.9\n";
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [3826, 2171]);
    assert_eq!(report.source, "column num_total_tokens");
    assert_eq!(names(&report.candidates), ["num_prefill_tokens", "num_decode_tokens", "pd_ratio"]);
    assert_eq!(report.format, "CSV with header");

    let (lengths, _, report) = import_rows(file, Some("num_decode_tokens"));
    assert_eq!((lengths, report.source.as_str()), (vec![54, 156], "column num_decode_tokens"));
    let error = import(file.as_bytes(), Some("nope")).unwrap_err().to_string();
    assert!(error.contains("\"nope\"") && error.contains("num_total_tokens"), "{error}");
}

#[test]
fn semicolons_tabs_and_quotes_delimit_too() {
    for file in ["tokens;images\n5;1\n7;0\n", "tokens\timages\n5\t1\n7\t0\n", "\"tokens\",\"images\"\n\"5\",1\n7,\n"] {
        let (lengths, images, _) = rows(file);
        assert_eq!((lengths, images), (vec![5, 7], vec![1, 0]), "{file:?}");
    }
}

#[test]
fn columns_without_names_are_selected_by_number() {
    let file = "0.5,4808,10\n0.6,3180,8\n";
    assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Unclear { .. })));
    assert_eq!(import_rows(file, Some("2")).0, [4808, 3180]);
}

#[test]
fn json_in_every_shape() {
    for (file, lengths, images) in [
        ("[3, 5]", vec![3, 5], vec![]),
        (r#"[{"id": "a", "num_tokens": 3}, {"num_tokens": 5, "id": "b"}]"#, vec![3, 5], vec![]),
        (r#"{"text_tokens": [3, 5], "images": [0, 2]}"#, vec![3, 5], vec![0, 2]),
        ("{\"length\": 3, \"n_images\": 1}\n{\"length\": 5, \"n_images\": 0}\n", vec![3, 5], vec![1, 0]),
        ("{\"input_ids\": [9, 9, 9]}\n{\"input_ids\": [1]}\n", vec![3, 1], vec![]),
        (r#"{"num_tokens": 3}"#, vec![3], vec![]),
    ] {
        assert_eq!(
            {
                let (a, b, _) = rows(file);
                (a, b)
            },
            (lengths, images),
            "{file}"
        );
    }
}

#[test]
fn histogram_is_preserved() {
    let file = r#"{"schema":"hist/1","unit":"tokens","edges":[1,10,10,20],"counts":[5,2,0],"exact":false}"#;
    let expected = Dataset::Histogram { edges: vec![1.0, 10.0, 10.0, 20.0], counts: vec![5.0, 2.0, 0.0] };
    let imported = import(file.as_bytes(), None).unwrap();
    assert_eq!((imported.dataset, imported.report.parsed), (expected, 7), "samples are told, not bins");
    let shares = r#"{"schema":"hist/1","unit":"tokens","edges":[1,10],"counts":[0.3]}"#;
    assert_eq!(import(shares.as_bytes(), None).unwrap().report.parsed, 1);
    for (edges, counts, message) in [
        ("[1,5,3]", "[1,1]", "below the edge before"),
        ("[1,2]", "[1,1]", "one edge more than counts"),
        ("[1,2,3]", "[1,-1]", "zero or more"),
        ("[1,2,3]", "[0,0]", "every count is zero"),
        ("[0,0,3]", "[4,1]", "shorter than one token"),
        ("[1,2,1e12]", "[1,1]", "between 0 and"),
        ("[1]", "[]", "no bins"),
        ("[1,\"x\"]", "[1]", "edges 2 is not a number"),
    ] {
        let error = refusal(&format!(r#"{{"schema":"hist/1","unit":"tokens","edges":{edges},"counts":{counts}}}"#));
        assert!(error.contains(message), "{error}");
    }
    let error = refusal(r#"{"schema":"hist/1","unit":"bytes","edges":[1,2],"counts":[1]}"#);
    assert!(error.contains("unit must be \"tokens\""), "{error}");
}

#[test]
fn repairs_and_omissions_are_counted_with_the_first_location() {
    let mut file = "tokens\n\"1,234\"\n512.0\n".to_owned();
    file.push_str(&"9\n".repeat(20));
    file.push_str("total\n");
    let (lengths, _, report) = rows(&file);
    assert_eq!(&lengths[..2], [1234, 512]);
    assert_eq!((report.parsed, report.repaired, report.skipped), (20, 2, 1));
    assert_eq!(report.first_problem.as_deref(), Some("line 2: read as 1234"));
}

/// A comma inside a text gives a row with more values than the table has columns; none of the
/// values is read as the length.
#[test]
fn rows_with_too_many_values_are_omitted() {
    let good = "a,7\n".repeat(20);
    let (lengths, _, report) = rows(&format!("text,length\n{good}hello, world,12\na,8,\n"));
    assert_eq!((lengths.len(), report.skipped), (21, 1), "an empty value at the end is none");
    assert!(
        report.first_problem.is_some_and(|problem| problem.starts_with("line 22: more values than")),
        "the row is named"
    );
    // A table of one column has no delimiter.
    assert_eq!(rows("length\n1,234\n2,345\n8,\n").0, [1234, 2345, 8]);
}

#[test]
fn invalid_length_is_reported_by_location() {
    for (file, message) in [
        ("5\n0\n", "line 2: 0 is not a length"),
        ("tokens,x\n5,1\n-3,1\n", "line 3: -3 is not a length"),
        ("[5, 1000000001]", "row 2: 1000000001 is not a length"),
        ("5\n99999999999999999999999999\n", "line 2: 99999999999999999999999999 is not a length"),
        ("tokens,images\n5,-1\n", "line 2: -1 is not a number of images"),
        ("{\"tokens\": 4}\n{\"tokens\": -4}\n", "line 2: -4 is not a length"),
    ] {
        let error = refusal(file);
        assert!(error.contains(message), "{error}");
    }
}

/// Rows with 0, -1 or an empty list do not reject the file.
#[test]
fn rows_that_are_no_samples_are_left_out() {
    for (good, bad) in [
        ("5\n", "0\n"),
        ("5\n", "-1\n"),
        ("{\"num_tokens\": 5}\n", "{\"num_tokens\": -1}\n"),
        ("{\"input_ids\": [1, 2, 3, 4, 5]}\n", "{\"input_ids\": []}\n"),
    ] {
        let (lengths, _, report) = rows(&format!("{}{bad}", good.repeat(20)));
        assert_eq!((lengths, report.skipped), (vec![5; 20], 1), "{bad}");
        assert!(report.first_problem.is_some_and(|problem| problem.starts_with("line 21: ")), "{bad}");
    }
}

#[test]
fn non_length_files_are_rejected_with_a_reason() {
    for (file, message) in [
        (&b""[..], "file is empty"),
        (b" \n\n ", "file is empty"),
        (b"\xef\xbb\xbf\n", "file is empty"),
        (b"hello\nworld\n", "not clear which column holds the lengths; choose one of: hello"),
        (b"hello", "no length found"),
        (b"a,b\nx,y\n", "not clear which column"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html>\n<html></html>", "an HTML page"),
        (b"5\nx\ny\n", "2 of 3 rows hold no length"),
        (b"\x89PNG\r\n\x1a\n....", "a PNG image"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b"\x01\0\0\x02\x03\0", "binary data"),
        (b"{\"a\": ", "not JSON"),
        (b"[1, 2", "not JSON"),
        (b"{\"schema\": \"plan/9\"}", "schema \"plan/9\""),
        (b"[]", "no length found"),
        (b"{\"text_tokens\": [1, 2], \"images\": [1]}", "2 values under text_tokens and 1 under images"),
    ] {
        let error = import(file, None).expect_err(&String::from_utf8_lossy(file)).to_string();
        assert!(error.contains(message), "{:?}: {error}", String::from_utf8_lossy(file));
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let error = refusal(&"[".repeat(100_000));
    assert!(error.contains("not JSON"), "{error}");
    let error = refusal(&format!("{{\"a\": {}1{}}}", "{\"b\":".repeat(100_000), "}".repeat(100_000)));
    assert!(error.contains("not clear") || error.contains("hold no length") || error.contains("not JSON"), "{error}");
}

#[test]
fn rows_are_limited() {
    let file = "1 ".repeat(super::MAX_ROWS + 1);
    assert_eq!(import(file.as_bytes(), None), Err(ImportError::TooManyRows));
    let file = format!("{{\"tokens\": [{}1]}}", "1,".repeat(super::MAX_ROWS));
    assert_eq!(import(file.as_bytes(), None), Err(ImportError::TooManyRows));
}

mod choices;
mod contents;
mod distributions;
mod documents;
mod doubts;
mod families;
mod groups;
mod images;
mod misread;
mod packs;
mod parts;
mod prints;
mod summaries;
mod texts;
mod tools;
mod totals;

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = import(&bytes, None);
    }

    #[test]
    fn arbitrary_grammar_text_never_panics(text in "[\\[\\]{}\",;:\\t\\n0-9a-e.\\-tokens ]{0,120}", column in proptest::option::of("[a-z0-9]{0,3}")) {
        let _ = import(text.as_bytes(), column.as_deref());
    }

    /// An accepted import is complete: each row is counted once, and all lengths are in range.
    #[test]
    fn accepted_rows_are_counted(lengths in prop::collection::vec(1_u32..=super::MAX_LENGTH, 1..50), invalid_rows in 0_usize..8) {
        let mut file = lengths.iter().map(u32::to_string).collect::<Vec<_>>().join("\n") + "\n";
        file.push_str(&"word\n".repeat(invalid_rows));
        match import(file.as_bytes(), None) {
            Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, report }) => {
                prop_assert_eq!(text_tokens, lengths);
                prop_assert_eq!(report.skipped as usize, invalid_rows);
            }
            Ok(other) => prop_assert!(false, "{:?}", other),
            Err(_) => prop_assert!(invalid_rows * 10 > lengths.len() + invalid_rows),
        }
    }
}
