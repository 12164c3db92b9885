//! Token ID lists with masks and lengths, and texts inside structures.

use arrow_array::builder::Int32Builder;
use arrow_array::types::Int32Type;
use arrow_array::{ListArray, StringArray, StructArray};
use arrow_schema::{DataType, Field};

use super::*;

fn lists(rows: &[&[i32]]) -> ArrayRef {
    let rows = rows.iter().map(|row| Some(row.iter().copied().map(Some).collect::<Vec<_>>()));
    array(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
}

#[test]
fn masks_lengths_and_labels_are_read() {
    let ids = || lists(&[&[7, 8, 9, 4, 0], &[7, 8, 9, 0]]);
    for (name, column, expected) in [
        ("attention_mask", lists(&[&[1, 1, 1, 1, 0], &[1, 1, 1, 0]]), vec![4, 3]),
        ("attention_mask", lists(&[&[1, 1, 2, 2, 0], &[1, 2, 2, 0]]), vec![2, 2, 1, 2]),
        ("seq_lens", lists(&[&[2, 3], &[1, 3]]), vec![2, 3, 1, 3]),
        ("position_ids", lists(&[&[0, 1, 0, 1, 2], &[0, 0, 1, 2]]), vec![2, 3, 1, 3]),
        ("labels", lists(&[&[1, 2], &[1]]), vec![7, 5]),
    ] {
        let file = plain(vec![("input_ids", ids()), (name, column)]);
        assert_eq!(read(&file, None).0, expected, "{name}");
        let footer = Footer::read(&file, file.len() as u64).expect("a footer");
        let plan = footer.plan(&Options::default(), u64::MAX);
        // Labels are usually a copy of the token IDs.
        let expected = ["input_ids", name];
        assert_eq!(plan.columns, if name == "labels" { &expected[..1] } else { &expected });
    }
    let isolated = plain(vec![("seq_lens", lists(&[&[512, 733], &[1024]]))]);
    assert_eq!(read(&isolated, None).0, [512, 733, 1024]);
    let padded = plain(vec![("input_ids", lists(&[&[7, 0, 0, 0], &[7, 8, 0, 0, 0], &[7, 8, 9]]))]);
    let warnings = read(&padded, None).2.warnings;
    assert!(warnings.iter().any(|warning| warning.contains("repeat 0 at one end")), "{warnings:?}");
}

/// More rows than those that determine the separator.
#[test]
fn identifiers_separate_samples() {
    let rows: Vec<&[i32]> = [&[1, 7, 2, 1, 8, 9, 2][..], &[1, 7, 8, 9, 2, 1, 4, 2]].repeat(1500);
    let file = plain(vec![("input_ids", lists(&rows))]);
    let (lengths, _, report) = read(&file, None);
    assert_eq!(lengths, [3, 4, 5, 3].repeat(1500));
    assert!(report.warnings.iter().any(|warning| warning.contains("several samples")), "{:?}", report.warnings);
    assert_eq!(read(&file, Some("input_ids")).0, [7, 8].repeat(1500));
}

#[test]
fn ranges_are_read() {
    let mut ranges = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    for row in [&[[0, 2], [2, 5]], &[[0, 1], [1, 4]]] {
        for range in row {
            ranges.values().append_value(range.map(Some));
        }
        ranges.append(true);
    }
    let ids = lists(&[&[7, 8, 9, 4, 5], &[7, 8, 9, 4]]);
    let file = plain(vec![("input_ids", ids), ("sample_ranges", array(ranges.finish()))]);
    assert_eq!(read(&file, None).0, [2, 3, 1, 3]);
    let footer = Footer::read(&file, file.len() as u64).expect("a footer");
    assert_eq!(footer.plan(&Options::default(), u64::MAX).columns, ["input_ids", "sample_ranges"]);
}

#[test]
fn texts_inside_structures_are_read() {
    let text = |text: &str| array(StringArray::from(vec![text]));
    let field = |name: &str| Arc::new(Field::new(name, DataType::Utf8, true));
    let long = "A long paragraph of evidence, of fifty characters.";
    let context = StructArray::from(vec![(field("title"), text("ab")), (field("text"), text(long))]);
    let file = plain(vec![("question", text("abcd")), ("answer", text("ef")), ("context", array(context))]);
    let (lengths, _, report) = read(&file, None);
    // 4 + 2 + 2 + 50 characters are 15 tokens.
    assert_eq!(lengths, [15]);
    assert!(report.warnings.iter().any(|warning| warning.contains("inside context")), "{:?}", report.warnings);
}
