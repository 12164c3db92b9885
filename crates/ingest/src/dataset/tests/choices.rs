//! Chosen columns that do not fit the file, and numbers with blanks inside.

use super::*;

fn read(file: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    super::super::import(file.as_bytes(), options)
}

fn lengths(file: &str) -> Vec<u32> {
    match read(file, &Options::default()) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, .. }) => text_tokens,
        other => panic!("{file:?}: {other:?}"),
    }
}

/// Narrow and no-break spaces separate thousands, not numbers.
#[test]
fn narrow_spaces_separate_thousands() {
    for space in ['\u{202f}', '\u{a0}', '\u{2009}'] {
        let numbers = format!("1{space}024\n2{space}048\n700\n");
        assert_eq!(lengths(&numbers), [1024, 2048, 700], "{space:?}");
        assert_eq!(lengths(&format!("num_tokens\n{numbers}")), [1024, 2048, 700], "{space:?}");
        assert_eq!(lengths(&format!("num_tokens id\n1{space}024 1\n2{space}048 2\n")), [1024, 2048], "{space:?}");
    }
}

/// Blanks may separate thousands or numbers: the import asks, unless a header says that there is one column.
#[test]
fn blanks_inside_numbers_are_asked_about() {
    for file in ["1 024\n2 048\n700\n", "900\n12 056\n1 024\n"] {
        let Err(ImportError::Unclear { candidates }) = read(file, &Options::default()) else { panic!("{file:?}") };
        assert!(candidates[0].note.as_deref().is_some_and(|note| note.contains("thousands")), "{candidates:?}");
    }
    assert_eq!(lengths("num_tokens\n1 024\n2 048\n1 512\n"), [1024, 2048, 1512]);
    // Numbers of two columns, and zero-padded numbers.
    assert_eq!(lengths("512 300\n700\n"), [512, 300, 700]);
    assert_eq!(lengths("num_tokens id\n024 1\n512 2\n"), [24, 512]);
}

/// A unit behind each number is not a column.
#[test]
fn units_behind_numbers_are_not_columns() {
    assert_eq!(lengths("length\n512 tokens\n300 tokens\n1000 tokens\n"), [512, 300, 1000]);
    for file in ["length\n1.1 kB\n2.0 kB\n0.5 kB\n", "length\n12 s\n7 s\n30 s\n"] {
        let Err(ImportError::Unclear { candidates }) = read(file, &Options::default()) else { panic!("{file:?}") };
        let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
        assert_eq!(names, ["length"], "{file:?}");
        assert_ne!(candidates[0].meaning, Meaning::Length(Unit::Tokens), "{file:?}");
    }
}

/// A column that is named but does not exist is an error in every format.
#[test]
fn missing_columns_are_errors() {
    let statistics = r#"{"num_examples": 3, "statistics": [{"column_name": "text", "column_type": "string_text", "column_statistics":
        {"nan_count": 0, "min": 5, "max": 9, "histogram": {"hist": [1, 2], "bin_edges": [5, 7, 9]}}}]}"#;
    let files = [
        "5\n7\n9\n5\n",
        "[5, 7, 9, 5]",
        "length,count\n5,2\n7,1\n",
        "num_tokens\n5\n7\n",
        "{\"prompt_tokens\": 5, \"completion_tokens\": 4}\n",
        statistics,
    ];
    for file in files {
        let column = read(file, &Options { column: Some("nope"), ..Options::default() });
        assert!(matches!(column, Err(ImportError::NoSuchColumn { .. })), "{file}: {column:?}");
        let weight = read(file, &Options { weight: Some("nope"), ..Options::default() });
        assert!(weight.is_err(), "{file}: {weight:?}");
        let add = read(file, &Options { add: Some("nope"), ..Options::default() });
        assert!(matches!(&add, Err(ImportError::AddedToNone { column }) if column == "nope"), "{file}: {add:?}");
        // An empty name is no column.
        assert!(read(file, &Options { add: Some(""), ..Options::default() }).is_ok(), "{file}");
    }
}

/// Numbers whose name has another meaning are read if the user chooses them, with a warning.
#[test]
fn chosen_columns_of_another_meaning_are_named() {
    let file = "id,year,stars,num_tokens\n1001,1999,5,300\n1002,2001,4,500\n1007,1998,3,200\n";
    for (name, meaning) in [("id", "identifier"), ("year", "time"), ("stars", "score")] {
        let options = Options { column: Some(name), ..Options::default() };
        let report = read(file, &options).expect("numbers").report;
        let expected = format!("{name} is read as a number of tokens, as chosen. Its name means: {meaning}.");
        assert!(report.warnings.contains(&expected), "{:?}", report.warnings);
        let with_unit = read(file, &Options { unit: Some(Unit::Tokens), ..options }).expect("numbers").report;
        assert!(!with_unit.warnings.contains(&expected), "{:?}", with_unit.warnings);
    }
    let report = read(file, &Options { column: Some("num_tokens"), ..Options::default() }).expect("numbers").report;
    assert!(report.warnings.iter().all(|warning| !warning.contains("means")), "{:?}", report.warnings);
}
