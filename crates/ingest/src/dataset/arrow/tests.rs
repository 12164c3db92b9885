//! Streams and files written by the `arrow` crate, uncompressed and compressed.

use arrow_array::builder::{Int64Builder, MapBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, Int32Array, Int64Array, ListArray, RunArray, StringArray, StructArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use planner::workload::Dataset;
use proptest::prelude::*;

use super::super::import;
use super::*;

/// Two batches of two rows: 5, 3, 7 and 5 tokens, lists of 2, 1, 3 and 1 numbers, texts of four characters.
fn batches() -> Vec<RecordBatch> {
    let lists = [vec![vec![1, 2], vec![3]], vec![vec![4, 5, 6], vec![7]]];
    let lengths = [[5, 3], [7, 5]];
    let batch = |(lengths, lists): ([i64; 2], &Vec<Vec<i32>>)| {
        let lists = lists.iter().map(|list| Some(list.iter().copied().map(Some).collect::<Vec<_>>()));
        let names: DictionaryArray<Int32Type> = ["a", "b"].into_iter().collect();
        RecordBatch::try_from_iter([
            ("num_tokens", Arc::new(Int64Array::from(lengths.to_vec())) as ArrayRef),
            ("input_ids", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)) as ArrayRef),
            ("text", Arc::new(StringArray::from(vec!["abcd", "abcd"])) as ArrayRef),
            ("source", Arc::new(names) as ArrayRef),
        ])
        .expect("columns of one length")
    };
    lengths.into_iter().zip(&lists).map(batch).collect()
}

fn stream(packing: Option<CompressionType>) -> Vec<u8> {
    let batches = batches();
    let options = IpcWriteOptions::default().try_with_compression(packing).expect("a codec");
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).expect("a writer");
    for batch in &batches {
        writer.write(batch).expect("memory takes rows");
    }
    writer.into_inner().expect("memory takes the end")
}

fn file(packing: Option<CompressionType>) -> Vec<u8> {
    let batches = batches();
    let options = IpcWriteOptions::default().try_with_compression(packing).expect("a codec");
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).expect("a writer");
    for batch in &batches {
        writer.write(batch).expect("memory takes rows");
    }
    writer.into_inner().expect("memory takes a footer")
}

#[test]
fn streams_and_files_are_read() {
    for packing in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for bytes in [stream(packing), file(packing)] {
            for (column, expected) in [(None, [5, 3, 7, 5]), (Some("input_ids"), [2, 1, 3, 1]), (Some("text"), [1; 4])]
            {
                let imported = import(&bytes, &Options { column, ..Options::default() }).expect("a file");
                let rows = Dataset::Rows { text_tokens: expected.to_vec(), images: vec![], shaped: None };
                assert_eq!(
                    (imported.dataset, imported.report.format.as_str()),
                    (rows, FORMAT),
                    "{packing:?} {column:?}"
                );
            }
        }
    }
}

/// The nested numbers appear in a batch after the rows that determine the columns.
#[test]
fn nested_columns_can_be_selected() {
    let batch = |from: i64| {
        let numbers = Arc::new(Int64Array::from_iter_values(from..from + 12_000)) as ArrayRef;
        let usage = StructArray::from(vec![(Arc::new(Field::new("total_tokens", DataType::Int64, false)), numbers)]);
        RecordBatch::try_from_iter([("usage", Arc::new(usage) as ArrayRef)]).expect("a column")
    };
    let batches = [batch(1), batch(12_001)];
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("a writer");
    for batch in &batches {
        writer.write(batch).expect("memory takes rows");
    }
    let bytes = writer.into_inner().expect("memory takes the end");
    for column in [None, Some("usage.total_tokens")] {
        let imported = import(&bytes, &Options { column, ..Options::default() }).expect("a stream");
        let Dataset::Rows { text_tokens, .. } = imported.dataset else { panic!("rows") };
        assert_eq!((text_tokens.len(), text_tokens[0], text_tokens[23_999]), (24_000, 1, 24_000));
    }
}

#[test]
fn packed_rows_and_runs_are_read() {
    let lists = |rows: [Vec<i32>; 2]| {
        let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows)) as ArrayRef
    };
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 2]), &Int64Array::from(vec![512, 300]));
    let runs = Arc::new(runs.expect("runs")) as ArrayRef;
    for (columns, expected) in [
        (
            vec![("input_ids", lists([vec![7; 6], vec![7; 5]])), ("cu_seqlens", lists([vec![0, 2, 6], vec![0, 5]]))],
            vec![2, 4, 5],
        ),
        (vec![("num_tokens", runs)], vec![512, 300]),
    ] {
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
        writer.write(&batch).expect("memory takes rows");
        let bytes = writer.into_inner().expect("memory takes the end");
        let imported = import(&bytes, &Options::default()).expect("a stream");
        assert_eq!(imported.dataset, Dataset::Rows { text_tokens: expected, images: vec![], shaped: None });
    }
}

#[test]
fn length_maps_are_histograms() {
    let mut map = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    map.keys().append_slice(&[128, 256]);
    map.values().append_slice(&[40, 90]);
    map.append(true).expect("an entry");
    let batch = RecordBatch::try_from_iter([("length_counts", Arc::new(map.finish()) as ArrayRef)]).expect("a column");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("memory takes rows");
    let imported = import(&writer.into_inner().expect("memory takes the end"), &Options::default()).expect("a stream");
    let expected = Dataset::Histogram { edges: vec![128.0, 128.0, 256.0, 256.0], counts: vec![40.0, 0.0, 90.0] };
    assert_eq!((imported.dataset, imported.report.parsed), (expected, 130));
}

#[test]
fn invalid_files_are_rejected() {
    let full = stream(None);
    let error = |bytes: &[u8]| import(bytes, &Options::default()).expect_err("a refusal").to_string();
    assert!(error(&full[..full.len() - 100]).contains("the file is cut"));
    // The header declares a body of 2^60 bytes; no memory is reserved for it.
    let mut source = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..];
    assert!(read(&mut source, None).is_err_and(|error| error.to_string().contains("at most")));
    assert!(bytes(&mut &b"abc"[..], 1 << 60).is_err_and(|error| error.to_string().contains("cut")));
}

proptest! {
    #[test]
    fn any_change_is_read_or_rejected(
        packed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = stream(packed.then_some(CompressionType::ZSTD));
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let _ = import(&file, &Options::default());
        let _ = import(&file[..cut.index(file.len())], &Options { column: Some("input_ids"), ..Options::default() });
    }
}
