//! Files from Apache's writer, and files that the crate writes with all codecs, encodings and
//! logical types.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DurationNanosecondArray, Float32Array, Float64Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
    TimestampSecondArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use planner::workload::Dataset;
use proptest::prelude::*;

use super::super::{Imported, Kind};
use super::*;

mod apache;
mod lists;

use apache::{PLAIN, SNAPPY, bytes};

/// Returns a Parquet file with the given columns.
fn file(columns: Vec<(&str, ArrayRef)>, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).expect("a writer");
    writer.write(&batch).expect("memory takes rows");
    writer.close().expect("memory takes a footer");
    bytes
}

fn plain(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    file(columns, WriterProperties::builder())
}

fn array(values: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(values)
}

fn by(column: Option<&str>) -> Options<'_> {
    Options { column, ..Options::default() }
}

fn read(bytes: &[u8], column: Option<&str>) -> (Vec<u32>, Vec<u32>, super::super::Report) {
    match super::super::import(bytes, &by(column)) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, images, .. }, report }) => (text_tokens, images, report),
        other => panic!("{other:?}"),
    }
}

fn refusal(bytes: &[u8], column: Option<&str>) -> String {
    super::super::import(bytes, &by(column)).expect_err("a refusal").to_string()
}

#[test]
fn apache_writer_files_are_read() {
    for file in [SNAPPY, PLAIN] {
        let file = bytes(file);
        let (lengths, images, report) = read(&file, None);
        assert_eq!((lengths, images), (vec![5, 3, 7, 5], vec![0, 2, 1, 0]));
        assert_eq!(read(&file, Some("input_ids")).0, [2, 1, 3, 1]);
        assert_eq!(
            (report.format.as_str(), report.source.as_str(), report.parsed),
            ("Parquet file", "column num_tokens", 4)
        );
    }
}

#[test]
fn every_codec_and_encoding_is_read() {
    let lengths: Vec<i64> = (0..3000).map(|row| 1 + row * row % 4099).collect();
    let expected: Vec<u32> = lengths.iter().map(|&length| length as u32).collect();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::BROTLI(parquet::basic::BrotliLevel::default()),
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ];
    let encodings =
        [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_BINARY_PACKED), Some(Encoding::BYTE_STREAM_SPLIT)];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in codecs {
            for encoding in encodings {
                let mut properties = WriterProperties::builder()
                    .set_compression(codec)
                    .set_writer_version(version)
                    .set_data_page_row_count_limit(700)
                    .set_max_row_group_row_count(Some(1100));
                if let Some(encoding) = encoding {
                    properties = properties.set_dictionary_enabled(false).set_encoding(encoding);
                }
                let file = file(vec![("num_tokens", array(Int64Array::from(lengths.clone())))], properties);
                assert_eq!(read(&file, None).0, expected, "{codec:?} {encoding:?} {version:?}");
            }
        }
    }
}

#[test]
fn logical_types_are_respected() {
    let decimal = Decimal128Array::from(vec![51_200, 102_400]).with_precision_and_scale(10, 2).expect("a decimal");
    let stamps = || array(TimestampMillisecondArray::from(vec![1_700_000_000_000, 1_700_000_001_000]));
    for (name, column, expected) in [
        ("length", array(decimal), [512, 1024]),
        ("length", array(UInt8Array::from(vec![200, 3])), [200, 3]),
        ("length", array(Float64Array::from(vec![512.0, 3.0])), [512, 3]),
        ("length", array(Float32Array::from(vec![512.0, 3.0])), [512, 3]),
        ("num_tokens", array(StringArray::from(vec!["512", "3"])), [512, 3]),
        ("text", array(StringArray::from(vec!["twelve chars", "four"])), [3, 1]),
    ] {
        let file = plain(vec![("when", stamps()), (name, column)]);
        assert_eq!(read(&file, None).0, expected, "{name}");
    }
    let other: [(&str, ArrayRef); 4] = [
        ("created", stamps()),
        ("day", array(Date32Array::from(vec![19_000, 19_001]))),
        ("ok", array(BooleanArray::from(vec![true, false]))),
        ("page_id", array(Int64Array::from(vec![4, 5]))),
    ];
    for (name, column) in other {
        let error = refusal(&plain(vec![(name, column)]), None);
        assert!(error.contains("choose one of"), "{name}: {error}");
    }
    let error = refusal(&plain(vec![("length", stamps())]), Some("length"));
    assert!(error.contains("timestamps"), "{error}");
}

/// pandas' timedelta: integer nanoseconds. Only the writer's Arrow schema marks them as durations.
#[test]
fn durations_are_no_lengths() {
    let durations = || array(DurationNanosecondArray::from(vec![1_500_000_000, 2_000_000_000]));
    for name in ["length", "num_tokens"] {
        let file = plain(vec![(name, durations())]);
        assert!(refusal(&file, None).contains("choose one of"), "{name}");
        assert!(refusal(&file, Some(name)).contains("durations"), "{name}");
        let columns = Rows::open(Bytes::from(file)).expect("a file").footer.columns();
        assert_eq!(columns[0].kind, Kind::Duration);
    }
    let seconds = array(TimestampSecondArray::from(vec![1_700_000_000, 1_700_000_001]));
    assert!(refusal(&plain(vec![("length", seconds)]), Some("length")).contains("timestamps"));
    let texts = array(StringArray::from(vec!["twelve chars", "four"]));
    assert_eq!(read(&plain(vec![("length", durations()), ("text", texts)]), None).0, [3, 1]);
}

/// Nested numbers, in more rows than are used to select columns.
#[test]
fn nested_columns_can_be_selected() {
    let numbers = |from: i64| array(Int64Array::from_iter_values(from..from + 3000));
    let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    let usage = StructArray::from(vec![
        (field("prompt_tokens"), numbers(1)),
        (field("completion_tokens"), numbers(2)),
        (field("cost"), numbers(7)),
    ]);
    let bytes = plain(vec![("id", numbers(0)), ("usage", array(usage))]);
    for (column, expected) in
        [(None, [3, 6001]), (Some("usage.prompt_tokens"), [1, 3000]), (Some("usage.cost"), [7, 3006])]
    {
        let (lengths, _, report) = read(&bytes, column);
        assert_eq!((lengths.len(), [lengths[0], lengths[2999]]), (3000, expected), "{column:?}");
        assert!(report.source.contains("usage."), "{}", report.source);
        let plan = Footer::from_source(&Bytes::from(bytes.clone())).expect("a footer").plan(&by(column), u64::MAX);
        assert_eq!(plan.columns, ["usage"], "{column:?}");
    }
    assert!(refusal(&bytes, Some("usage.nope")).contains("usage.prompt_tokens"));
}

#[test]
fn missing_values_are_left_out() {
    let mut values: Vec<Option<i32>> = (1..=30).map(Some).collect();
    values[3] = None;
    let (lengths, _, report) = read(&plain(vec![("length", array(Int32Array::from(values)))]), None);
    assert_eq!((lengths.len(), report.skipped), (29, 1));
    assert_eq!(report.first_problem.as_deref(), Some("row 4: there is no value"));
}

fn chat() -> ArrayRef {
    let fields =
        Fields::from(vec![Field::new("role", DataType::Utf8, true), Field::new("content", DataType::Utf8, true)]);
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, 4));
    for messages in [vec![("user", "abcdefgh"), ("assistant", "abcd")], vec![("user", "abcd")]] {
        for (role, content) in messages {
            for (index, text) in [role, content].into_iter().enumerate() {
                list.values().field_builder::<StringBuilder>(index).expect("a column of text").append_value(text);
            }
            list.values().append(true);
        }
        list.append(true);
    }
    array(list.finish())
}

/// Twelve and four characters of messages are three tokens and one.
#[test]
fn chats_are_measured_and_lists_counted() {
    assert_eq!(read(&plain(vec![("messages", chat())]), None).0, [3, 1]);
    let ids =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(7), None, Some(9)]), Some(vec![Some(1)])]);
    assert_eq!(read(&plain(vec![("input_ids", array(ids)), ("messages", chat())]), None).0, [3, 1]);
    let columns = Rows::open(Bytes::from(plain(vec![("messages", chat())]))).expect("a file").footer.columns();
    assert_eq!((columns[0].name.as_str(), columns[0].kind), ("messages", Kind::Chat));
}

/// A file with 40 row groups and a large column, of which the web page sends only some row groups.
#[test]
fn file_parts_are_a_sample() {
    let texts: Vec<String> =
        (0..4000_u32).map(|row| format!("t{:07}", row.wrapping_mul(2_654_435_761) % 10_000_000)).collect();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).set_dictionary_enabled(false);
    let columns = vec![("id", array(Int64Array::from_iter_values(0..4000))), ("text", array(StringArray::from(texts)))];
    let bytes = Bytes::from(file(columns, properties));
    let length = bytes.len() as u64;
    let tail = Footer::bytes(&bytes[bytes.len() - 8..], length).expect("a footer");
    let footer = Footer::read(&bytes[bytes.len() - tail as usize..], length).expect("a footer");
    assert_eq!((footer.rows(), footer.columns().len()), (4000, 2));
    let all = footer.plan(&by(None), u64::MAX);
    assert_eq!((all.groups, all.all_groups, all.columns.as_slice()), (40, 40, &["text".to_owned()][..]));
    let plan = footer.plan(&by(None), footer.columns()[1].bytes / 4 + 1);
    assert_eq!(plan.groups, 10);
    let parts = |plan: &Plan| {
        let cut = |range: &std::ops::Range<u64>| (range.start, bytes.slice(range.start as usize..range.end as usize));
        let tail = (length - tail, bytes.slice((length - tail) as usize..));
        Sparse::new(length, plan.ranges.iter().map(cut).chain([tail]).collect())
    };
    let imported = import_from(parts(&plan), &by(None)).expect("a sample");
    assert_eq!(imported.dataset, Dataset::Rows { text_tokens: vec![2; 1000], images: vec![], shaped: None });
    assert_eq!(
        imported.report.warnings.last().map(String::as_str),
        Some("a sample: 1000 of 4000 rows were read, from 10 of 40 row groups")
    );
    let full = import_from(parts(&all), &by(None)).expect("the whole");
    assert_eq!(
        (full.report.parsed, &full.dataset),
        (4000, &super::super::import(&bytes, &by(None)).expect("a file").dataset)
    );
    // The first values of the other column are available, but not all rows.
    let error =
        import_from(Sparse::new(length, vec![(length - tail, bytes.slice((length - tail) as usize..))]), &by(None));
    assert!(error.is_err_and(|error| error.to_string().contains("no row was sent")));
}

#[test]
fn row_group_start_is_read_to_its_last_complete_batch() {
    let texts: Vec<String> = (0..50_000_u32).map(|row| format!("t{:099}", row.wrapping_mul(2_654_435_761))).collect();
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_data_page_size_limit(64 << 10);
    let bytes = Bytes::from(file(vec![("text", array(StringArray::from(texts)))], properties));
    let length = bytes.len() as u64;
    let footer = Footer::from_source(&bytes).expect("a footer");
    let plan = footer.plan(&by(None), footer.columns()[0].bytes / 2);
    let parts = plan.ranges.iter().map(|range| (range.start, bytes.slice(range.start as usize..range.end as usize)));
    let tail = length - Footer::bytes(&bytes[bytes.len() - 8..], length).expect("a footer");
    let sparse = Sparse::new(length, parts.chain([(tail, bytes.slice(tail as usize..))]).collect());
    let imported = import_from(sparse, &by(None)).expect("a sample");
    let Dataset::Rows { text_tokens, .. } = imported.dataset else { panic!("rows") };
    assert!((10_000..25_000).contains(&text_tokens.len()), "{}", text_tokens.len());
    assert!(text_tokens.iter().all(|&length| length == 25));
}

#[test]
fn invalid_files_are_rejected() {
    let sound = bytes(SNAPPY);
    let wide = [b"PAR1\x15\x02\x19\xfc\xc0\x84\x3d".as_slice(), &[0; 64], &71_u32.to_le_bytes(), b"PAR1"].concat();
    for (file, problem) in [
        (sound[..400].to_vec(), "does not end with PAR1"),
        ([&sound[..sound.len() - 8], &[0xff, 0xff, 0, 0], b"PAR1"].concat(), "longer than the file"),
        ([&sound[..sound.len() - 8], &[20, 0, 0, 0], b"PAR1"].concat(), "footer cannot be read"),
        (wide, "more than 20000 columns"),
        ([b"PARE", &[0; 20][..], &12_u32.to_le_bytes(), b"PARE"].concat(), "the file is encrypted"),
        (b"PAR1".to_vec(), "longer than the file"),
        ([&sound[..4], &sound[200..]].concat(), "the file is broken"),
    ] {
        let error = refusal(&file, None);
        assert!(error.contains(problem), "{problem}: {error}");
    }
    assert!(refusal(&sound, Some("nope")).contains("\"nope\""));
}

proptest! {
    #[test]
    fn any_change_is_read_or_rejected(
        second in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = bytes(if second { PLAIN } else { SNAPPY });
        let tail = file[file.len() - 8..].to_vec();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(4 + cut.index(file.len() - 4));
            file.extend(tail);
        }
        for column in ["num_tokens", "input_ids", "score"] {
            let _ = super::super::import(&file, &by(Some(column)));
        }
    }

    #[test]
    fn any_footer_is_read_or_rejected(footer in prop::collection::vec(any::<u8>(), 0..200)) {
        let length = (footer.len() as u32).to_le_bytes();
        let _ = super::super::import(&[b"PAR1", &footer[..], &length, b"PAR1"].concat(), &by(None));
    }
}

#[test]
fn table_bins_are_a_histogram() {
    let numbers = |values: [i64; 2]| array(Int64Array::from(values.to_vec()));
    let bytes =
        plain(vec![("bin_start", numbers([0, 512])), ("bin_end", numbers([512, 1024])), ("n", numbers([3, 2]))]);
    let imported = super::super::import(&bytes, &Options::default()).expect("bins");
    assert_eq!(imported.dataset, Dataset::Histogram { edges: vec![0.0, 512.0, 1024.0], counts: vec![3.0, 2.0] });
    assert_eq!(imported.report.format, "Parquet file, bins");
}

#[test]
fn a_row_with_the_sum_is_no_sample() {
    let names = array(StringArray::from(vec!["a", "b", "c", "Total"]));
    let file = plain(vec![("what", names), ("num_tokens", array(Int64Array::from(vec![512, 1200, 1000, 2712])))]);
    let (lengths, _, report) = read(&file, None);
    assert_eq!((lengths, report.skipped), (vec![512, 1200, 1000], 1));
    assert!(report.warnings.iter().any(|warning| warning.contains("row total is left out")), "{:?}", report.warnings);
}
