//! Rows of token IDs that contain several samples or padding.

use super::*;

fn warns(report: &super::super::Report, terms: &[&str]) -> bool {
    report.warnings.iter().any(|warning| terms.iter().all(|word| warning.contains(word)))
}

/// Returns `[1, 2, ...]` with `count` elements.
fn ids(count: usize) -> String {
    format!("{:?}", (1..=count).collect::<Vec<_>>())
}

/// Rows with different totals.
#[test]
fn packed_rows_are_split_by_every_name() {
    for (name, first, second) in [
        ("sub_seq_lens", "[2, 3]", "[1, 3]"),
        ("length", "[2, 3]", "[1, 3]"),
        ("cumulative_len", "[0, 2, 5]", "[0, 1, 4]"),
        ("attention_mask", "[1, 1, 2, 2, 2]", "[1, 2, 2, 2]"),
        ("document_ids", "[0, 0, 1, 1, 1]", "[0, 1, 1, 1]"),
        ("segment_ids", "[1, 1, 2, 2, 2]", "[1, 2, 2, 2]"),
        ("seq_idx", "[0, 0, 1, 1, 1]", "[0, 1, 1, 1]"),
        ("doc_lengths", "[2, 3]", "[1, 3]"),
        ("boundaries", "[0, 2, 5]", "[0, 1, 4]"),
        ("boundaries", "[2, 5]", "[1, 4]"),
        ("boundaries", "[0, 2]", "[0, 1]"),
        ("boundaries", "[[0, 2], [2, 5]]", "[[0, 1], [1, 4]]"),
        ("sample_ranges", "[[0, 2], [2, 5]]", "[[0, 1], [1, 4]]"),
        ("sample_ranges", "[[0, 1], [2, 4]]", "[[0, 0], [1, 3]]"),
        (
            "sample_ranges",
            r#"[{"start": 0, "end": 2}, {"start": 2, "end": 5}]"#,
            r#"[{"start": 0, "end": 1}, {"start": 1, "end": 4}]"#,
        ),
    ] {
        let file = format!(
            "{{\"input_ids\": {}, \"{name}\": {first}}}\n{{\"input_ids\": {}, \"{name}\": {second}}}\n",
            ids(5),
            ids(4)
        );
        let (lengths, _, report) = rows(&file);
        assert_eq!(lengths, [2, 3, 1, 3], "{name}");
        assert!(warns(&report, &["several samples", name]), "{:?}", report.warnings);
        // If the user chooses the column, complete rows are counted, with a warning.
        let (unsplit, _, report) = import_rows(&file, Some("input_ids"));
        assert_eq!(unsplit, [5, 4], "{name}");
        assert!(warns(&report, &[name, "is not read"]), "{:?}", report.warnings);
    }
    // A row with more tokens than the storage limit for other lists.
    let long = format!("{{\"input_ids\": {}, \"document_ids\": [{}1]}}\n", ids(30_001), "0, ".repeat(30_000));
    assert_eq!(rows(&long.repeat(2)).0, [30_000, 1, 30_000, 1]);
}

#[test]
fn padding_is_left_out_by_the_mask() {
    let file = "{\"input_ids\": [7, 8, 0, 0, 0], \"attention_mask\": [1, 1, 0, 0, 0]}\n{\"input_ids\": [0, 8, 9, 7], \"attention_mask\": [0, 1, 1, 1]}\n{\"input_ids\": [7], \"attention_mask\": [1]}\n";
    for column in [None, Some("input_ids")] {
        let (lengths, _, report) = import_rows(file, column);
        assert_eq!(lengths, [2, 3, 1]);
        assert!(warns(&report, &["padded", "attention_mask"]), "{:?}", report.warnings);
    }
    let some = "{\"input_ids\": [7, 8, 0], \"attention_mask\": [1, 1, 0]}\n{\"input_ids\": [7, 8, 9]}\n";
    assert_eq!(rows(some).0, [2, 3]);
    let images = "{\"input_ids\": [7, 0], \"attention_mask\": [1, 0], \"num_images\": 2}\n{\"input_ids\": [7, 8], \"attention_mask\": [1, 1], \"num_images\": 0}\n";
    let (lengths, found, _) = rows(images);
    assert_eq!((lengths, found), (vec![1, 2], vec![2, 0]));
    // The first rows have no padding.
    let row = |mask: &str| format!("{{\"input_ids\": [7, 8], \"attention_mask\": {mask}}}\n");
    let late = row("[1, 1]").repeat(12_000) + &row("[1, 0]");
    assert_eq!(rows(&late).0.last(), Some(&1));
    // No row has padding.
    let plain = "{\"input_ids\": [7, 8], \"attention_mask\": [1, 1]}\n{\"input_ids\": [7], \"attention_mask\": [1]}\n";
    let (lengths, _, report) = rows(plain);
    assert_eq!((lengths, report.warnings.len()), (vec![2, 1], 0));
}

#[test]
fn padding_without_a_mask_warns() {
    for file in [
        "{\"input_ids\": [7, 8, 0, 0]}\n{\"input_ids\": [7, 8, 9, 0, 0]}\n",
        "{\"input_ids\": [3, 3, 3, 7, 8]}\n{\"input_ids\": [3, 3, 3, 3, 8, 9]}\n",
    ] {
        assert!(warns(&rows(file).2, &["input_ids repeat", "at one end"]), "{file}");
    }
    let plain = "{\"input_ids\": [7, 8, 2, 2]}\n{\"input_ids\": [7, 8, 9]}\n{\"input_ids\": [7, 8, 9, 4]}\n";
    assert!(rows(plain).2.warnings.is_empty(), "{:?}", rows(plain).2.warnings);
}

#[test]
fn decoder_tokens_are_added() {
    for name in ["labels", "decoder_input_ids"] {
        let file = format!(
            "{{\"input_ids\": {}, \"{name}\": {}}}\n{{\"input_ids\": {}, \"{name}\": {}}}\n",
            ids(6),
            ids(2),
            ids(3),
            ids(5)
        );
        let (lengths, _, report) = rows(&file);
        assert_eq!(lengths, [8, 8], "{name}");
        assert!(warns(&report, &["input_ids + ", name]), "{:?}", report.warnings);
    }
    for (prompt, completion) in [("prompt_ids", "response_ids"), ("prompt_input_ids", "chosen_input_ids")] {
        let file = format!("{{\"{prompt}\": {}, \"{completion}\": {}, \"rejected_input_ids\": [1]}}\n", ids(6), ids(2));
        let (lengths, _, report) = rows(&file.repeat(2));
        assert_eq!(lengths, [8, 8], "{prompt}");
        assert!(warns(&report, &["Prompt and completion are added"]), "{:?}", report.warnings);
    }
    let copies = "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2, 3]}\n{\"input_ids\": [1, 2], \"labels\": [1, 2]}\n";
    assert_eq!(rows(copies).0, [3, 2]);
}

/// Token IDs separated by blanks in a table cell.
#[test]
fn identifiers_without_brackets_are_counted() {
    assert_eq!(rows("id,input_ids\n1,101 2009 102\n2,101 102\n").0, [3, 2]);
    assert_eq!(rows("id,input_ids\n1,\"101,2009,102\"\n2,\"101,2009\"\n").0, [3, 2]);
}

#[test]
fn nested_identifier_lists_are_samples() {
    let file = "{\"input_ids\": [[1, 2, 3], [4, 5]]}\n{\"input_ids\": [[6]]}\n";
    for column in [None, Some("input_ids")] {
        let (lengths, _, report) = import_rows(file, column);
        assert_eq!(lengths, [3, 2, 1]);
        assert!(warns(&report, &["inner list", "input_ids"]), "{:?}", report.warnings);
    }
    let padded = "{\"input_ids\": [[1, 2, 0, 0], [4, 5, 6, 0, 0]]}\n{\"input_ids\": [[6]]}\n";
    assert!(warns(&rows(padded).2, &["repeat 0 at one end"]), "{:?}", rows(padded).2.warnings);
    let masked = "{\"input_ids\": [[1, 2, 0]], \"attention_mask\": [[1, 1, 0]]}\n".repeat(2);
    assert!(warns(&rows(&masked).2, &["attention_mask is not read"]), "{:?}", rows(&masked).2.warnings);
}

#[test]
fn multi_sample_lists_next_to_a_length_have_a_warning() {
    for file in [
        "{\"num_tokens\": 5, \"input_ids\": [1, 2, 3, 4, 5], \"position_ids\": [0, 1, 0, 1, 2]}\n{\"num_tokens\": 2, \"input_ids\": [1, 2], \"position_ids\": [0, 1]}\n",
        "{\"num_tokens\": 5, \"seq_lens\": [2, 3]}\n{\"num_tokens\": 2, \"seq_lens\": [2]}\n",
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!(lengths, [5, 2]);
        assert!(warns(&report, &["is not read", "several samples"]), "{:?}", report.warnings);
    }
    let single = "{\"num_tokens\": 2, \"position_ids\": [0, 1]}\n{\"num_tokens\": 3, \"position_ids\": [0, 1, 2]}\n";
    assert!(rows(single).2.warnings.is_empty(), "{:?}", rows(single).2.warnings);
}

#[test]
fn sample_count_in_a_pack_warns() {
    let file = "{\"input_ids\": [1, 2, 3], \"num_samples\": 2}\n{\"input_ids\": [1, 2], \"num_samples\": 2}\n";
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [3, 2]);
    assert!(warns(&report, &["num_samples is not read"]), "{:?}", report.warnings);
}

#[test]
fn part_numbers_are_samples_if_there_are_more_than_two() {
    let row = |types: &str| format!("{{\"input_ids\": {}, \"token_type_ids\": {types}}}\n", ids(5));
    let packs = row("[0, 0, 1, 1, 2]") + &row("[0, 1, 1, 1, 1]");
    assert_eq!(rows(&packs).0, [2, 2, 1, 1, 4]);
    let pairs = row("[0, 0, 1, 1, 1]").repeat(3);
    let (lengths, _, report) = rows(&pairs);
    assert_eq!(lengths, [5, 5, 5]);
    assert!(warns(&report, &["token_type_ids is not read"]), "{:?}", report.warnings);
    let single = row("[0, 0, 0, 0, 0]") + "{\"input_ids\": [1, 2], \"token_type_ids\": [0, 0]}\n";
    assert!(rows(&single).2.warnings.is_empty(), "{:?}", rows(&single).2.warnings);
}

#[test]
fn a_number_of_packed_samples_warns_or_asks() {
    let file = "{\"input_ids\": [4, 5, 6], \"num_packed\": 2}\n{\"input_ids\": [7, 5], \"num_packed\": 1}\n";
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [3, 2]);
    assert!(warns(&report, &["num_packed is not read"]), "{:?}", report.warnings);
    assert!(refusal("num_tokens,num_packed\n2048,5\n2040,7\n").contains("it is not clear"));
    let one = "{\"input_ids\": [4, 5, 6], \"num_packed\": 1}\n{\"input_ids\": [7, 5], \"num_packed\": 1}\n";
    assert!(rows(one).2.warnings.is_empty(), "{:?}", rows(one).2.warnings);
}

/// Lists of token IDs as JSONL.
fn lists(rows: &[&[u32]]) -> String {
    rows.iter().fold(String::new(), |file, ids| file + &format!("{{\"input_ids\": {ids:?}}}\n"))
}

/// Identifiers of the start and the end of a document in common tokenizers.
#[test]
fn separators_inside_rows_separate_samples() {
    for (file, expected) in [
        (lists(&[&[7, 8, 2, 9, 2], &[5, 2, 6, 7, 8, 2]]), vec![3, 2, 2, 4]),
        (lists(&[&[1, 7, 8, 1, 9], &[1, 5, 1, 6, 7]]), vec![3, 2, 2, 3]),
        (lists(&[&[1, 7, 2, 1, 9, 2], &[1, 5, 6, 2, 1, 8, 2]]), vec![3, 3, 4, 3]),
        (lists(&[&[50_256, 7, 50_256, 9, 8, 50_256], &[50_256, 5, 6, 50_256, 8, 50_256]]), vec![2, 3, 3, 2]),
        // Padding at the end.
        (lists(&[&[1, 7, 2, 1, 9, 2, 0, 0], &[1, 5, 6, 2, 1, 8, 2, 0, 0, 0]]), vec![3, 3, 4, 3]),
        (lists(&[&[7, 8, 2, 9, 2, 2, 2], &[5, 2, 6, 7, 8, 2, 2]]), vec![3, 2, 2, 4]),
        ("id,input_ids\n1,7 8 2 9 2\n2,5 2 6 7 2\n".to_owned(), vec![3, 2, 2, 3]),
    ] {
        let (lengths, _, report) = rows(&file);
        assert_eq!(lengths, expected, "{file}");
        assert!(warns(&report, &["Each row holds several samples", "input_ids"]), "{:?}", report.warnings);
        let (whole, _, report) = import_rows(&file, Some("input_ids"));
        assert_eq!(whole.len(), 2, "{file}");
        assert!(warns(&report, &["Each row is counted as one sample"]), "{:?}", report.warnings);
    }
    // Rows after the first ones, with an attention mask.
    let row = "{\"input_ids\": [1, 7, 2, 1, 9, 2], \"attention_mask\": [1, 1, 1, 1, 1, 1]}\n";
    assert_eq!(rows("{\"input_ids\": [[7, 8, 2, 9, 2], [5, 2, 6, 7, 2]], \"id\": [1, 2]}").0, [3, 2, 2, 3]);
    assert_eq!(rows(&row.repeat(12_000)).0, vec![3; 24_000]);
}

/// Turns of a conversation, and pairs of sentences.
#[test]
fn other_numbers_that_repeat_at_an_end_warn() {
    for file in [
        // A start and an end per turn, with a line break.
        lists(&[&[900, 7, 901, 198, 900, 9, 901, 198], &[900, 5, 901, 198, 900, 6, 7, 901, 198]]),
        lists(&[&[901, 7, 902, 901, 9, 902], &[901, 5, 6, 902, 901, 8, 902]]),
        // One start, and an end per turn.
        lists(&[&[1, 7, 2, 9, 2], &[1, 5, 2, 6, 7, 2], &[1, 5, 2]]),
        lists(&[&[7, 8, 901, 9, 901], &[5, 901, 6, 7, 901], &[6, 901]]),
    ] {
        let (lengths, _, report) = rows(&file);
        assert_eq!(lengths.len(), file.lines().count(), "{file}");
        assert!(warns(&report, &["Each row is counted as one sample"]), "{:?}", report.warnings);
    }
    let ids = "{\"num_tokens\": 5, \"input_ids\": [7, 8, 2, 9, 2]}\n{\"num_tokens\": 4, \"input_ids\": [5, 2, 6, 2]}\n";
    assert!(warns(&rows(ids).2, &["Each row is counted as one sample"]), "{:?}", rows(ids).2.warnings);
    let single = lists(&[&[1, 7, 8, 9, 2], &[1, 5, 2], &[1, 7, 2, 2, 2]]);
    assert!(!warns(&rows(&single).2, &["one sample"]), "{:?}", rows(&single).2.warnings);
    assert_eq!(rows(&single).0, [5, 3, 5]);
}

/// Rows as MaxText and grain write them: 0 is padding, and positions of padding are 0.
#[test]
fn inputs_with_segments_are_packed_rows() {
    let row = r#"{"inputs": [11, 12, 13, 14, 15, 0], "inputs_segmentation": [1, 1, 1, 2, 2, 0], "inputs_position": [0, 1, 2, 0, 1, 0], "targets": [12, 13, 0, 15, 0, 0], "targets_segmentation": [1, 1, 1, 2, 2, 0]}"#;
    let (lengths, _, report) = rows(&format!("{row}\n{row}\n"));
    assert_eq!(lengths, [3, 2, 3, 2]);
    assert!(report.warnings.iter().any(|warning| warning.contains("inputs_segmentation")), "{:?}", report.warnings);
    let positions = r#"{"inputs": [11, 12, 13, 14, 15], "inputs_position": [0, 1, 2, 0, 1]}"#;
    assert_eq!(rows(&format!("{positions}\n{positions}\n")).0, [3, 2, 3, 2]);
    // Without these columns, the numbers may be anything.
    assert!(matches!(import(b"{\"inputs\": [11, 12, 13]}\n", None), Err(ImportError::Unclear { .. })));
    let texts = "{\"inputs\": \"what is it?\", \"targets\": \"a fox\"}\n";
    assert_eq!(rows(&texts.repeat(2)).0, [4, 4]);
}

/// Lists in the cells of a table are read as lists of JSON are.
#[test]
fn lists_in_cells_are_lists() {
    for cell in
        ["[200, 100]", "[200 100]", "tensor([200, 100])", "array([200, 100], dtype=int32)", "torch.tensor([200, 100])"]
    {
        let file = format!("id,seq_lens\n0,\"{cell}\"\n1,\"{cell}\"\n");
        assert_eq!(rows(&file).0, [200, 100, 200, 100], "{cell}");
        let file = format!("id,input_ids\n0,\"{cell}\"\n1,\"{cell}\"\n");
        assert_eq!(rows(&file).0, [2, 2], "{cell}");
    }
    let packed = "input_ids,position_ids\n\"[5, 6, 7, 8, 9]\",\"[0, 1, 2, 0, 1]\"\n\"[5, 6, 7]\",\"[0, 0, 1]\"\n";
    assert_eq!(rows(packed).0, [3, 2, 1, 2]);
    let shortened = "id,input_ids\n0,\"tensor([101, 2023, ..., 102])\"\n";
    assert!(import(shortened.as_bytes(), None).is_err());
}
