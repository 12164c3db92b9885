//! Reads NumPy archives (`.npz`): a zip archive of `.npy` arrays. Arrays of equal length become the
//! columns of a table.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::npy::{self, Array};
use super::number::Number;
use super::profile::{Column, Profile};
use super::reader::{HEAD_ROWS, Reader};
use super::value::{Location, Row, Value};
use super::{
    Candidate, ImportError, Imported, Kind, MAX_BINS, MAX_ROWS, Meaning, Options, candidate, histogram, names, stated,
    token_ids,
};

mod offsets;

use offsets::Offsets;

pub(super) const MAGIC: &[u8] = b"PK\x03\x04";
const FORMAT: &str = "NumPy archive";
/// Maximum number of arrays in an archive.
const MAX_ARRAYS: usize = 100;
/// Maximum decompressed size of all arrays, in bytes.
const MAX_BYTES: u64 = 256 << 20;

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// Reads an archive; returns `None` if it contains no array, as in spreadsheets and checkpoints.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let is_array = archive.file_names().any(|name| name.is_ok_and(|name| name.ends_with(".npy")));
    is_array.then(|| unpack(&mut archive).and_then(|arrays| read(&arrays, options)))
}

/// Decompresses the arrays by name.
fn unpack(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Result<Vec<(String, Vec<u8>)>, ImportError> {
    if archive.len() > MAX_ARRAYS {
        return Err(broken(format!("{} arrays; at most {MAX_ARRAYS} are read", archive.len())));
    }
    let mut left = MAX_BYTES;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let name = entry.name().map(|name| name.strip_suffix(".npy").map(str::to_owned));
        let Some(name) = name.map_err(|error| broken(error.to_string()))? else { continue };
        let mut bytes = Vec::new();
        entry.take(left + 1).read_to_end(&mut bytes).map_err(|error| broken(format!("array {name}: {error}")))?;
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            broken(format!("its arrays unpack to more than {} MiB; save the lengths by themselves", MAX_BYTES >> 20))
        })?;
        arrays.push((name, bytes));
    }
    Ok(arrays)
}

/// Name and values of an array.
type Named<'n> = (&'n str, Vec<Value<'static>>);

fn read(arrays: &[(String, Vec<u8>)], options: &Options<'_>) -> Result<Imported, ImportError> {
    // An unnamed array is read like a complete `.npy` file.
    if let [(name, bytes)] = arrays
        && name == "arr_0"
        && options.column.is_none_or(|column| column == name || column == npy::ONLY)
    {
        return npy::import(bytes, &Options { column: options.column.map(|_| npy::ONLY), ..options.clone() });
    }
    if let [(_, bytes)] = arrays
        && Array::read(bytes).is_ok_and(|array| array.has_names())
    {
        return npy::import(bytes, options);
    }
    let mut first_error = None;
    let mut columns: Vec<Named<'_>> = Vec::new();
    for (name, bytes) in arrays {
        match Array::read(bytes).and_then(|array| array.only()) {
            Ok(values) => columns.push((name, values)),
            // An archive may also contain token tables, and texts.
            Err(error) if options.column == Some(name) => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let texts: Vec<(&str, String)> =
        arrays.iter().filter_map(|(name, bytes)| Some((name.as_str(), npy::text(bytes)?))).collect();
    let stated = match stated::check(texts.iter().map(|(name, text)| (*name, text.as_str()))) {
        Err(detail) if options.column.is_none() => return Err(ImportError::Histogram { detail }),
        stated => stated.unwrap_or_default(),
    };
    let mut imported = from_columns(columns, first_error, options)?;
    imported.report.warnings.extend(stated);
    Ok(imported)
}

/// Reads the number arrays.
fn from_columns(
    mut columns: Vec<Named<'_>>,
    first_error: Option<ImportError>,
    options: &Options<'_>,
) -> Result<Imported, ImportError> {
    if let (true, Some(error)) = (columns.is_empty(), first_error) {
        return Err(error);
    }
    if options.column.is_none()
        && let Some(histogram) = from_edges(&columns, options)
    {
        return histogram;
    }
    let wanted = match options.column {
        Some(column) => columns.iter().find(|(name, _)| names::is_same(name, column)),
        None => lengths(&columns),
    };
    // Offsets are converted to lengths if the selected array contains offsets, or if no array is
    // selected and the user names no column.
    let has_offsets = wanted.map_or(options.column.is_none(), |(name, _)| offsets::are(name));
    let offsets = if has_offsets { offsets::lengths(&columns) } else { None };
    if let Some(offsets) = offsets {
        return from_offsets(&offsets, options);
    }
    if wanted.is_none() && columns.iter().any(|(name, _)| token_ids::are_listed(name)) {
        return Err(ImportError::Unclear { candidates: candidates(&columns, options) });
    }
    let wanted = wanted.map(|(name, values)| (*name, values.len()));
    let max_length = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let rows = wanted.map_or(max_length, |(_, rows)| rows);
    let is_wanted = |name: &str| wanted.is_some_and(|(wanted, _)| wanted == name);
    // Arrays of several lengths, such as one per split, are offered together.
    let is_split = wanted.is_none() && columns.iter().any(|(_, values)| values.len() != rows);
    let all = if is_split { candidates(&columns, options) } else { Vec::new() };
    columns.retain(|(name, values)| values.len() == rows && (!token_ids::are_listed(name) || is_wanted(name)));
    let named = columns.iter().map(|(name, _)| Column { name: (*name).to_owned(), kind: Some(Kind::Number) });
    let mut reader = Reader::typed(options, named.collect());
    for row in 0..rows.min(MAX_ROWS + 1) {
        let cells = columns.iter().map(|(_, values)| values[row].clone());
        reader.push(Location { item: "element", number: row as u64 + 1 }, Row::Cells(cells.collect()))?;
    }
    reader.finish(FORMAT).map_err(|error| match error {
        ImportError::Unclear { .. } if is_split => ImportError::Unclear { candidates: all },
        error => error,
    })
}

/// Returns the array with the best-ranked length name. Token ID arrays are ignored.
fn lengths<'c, 'n>(columns: &'c [Named<'n>]) -> Option<&'c Named<'n>> {
    let priority = |name: &str| match names::meaning(name) {
        (Meaning::Length(_), rank) => Some((0, rank)),
        (Meaning::Prompt, rank) => Some((1, rank)),
        _ => None,
    };
    let known = columns.iter().filter(|(name, _)| !token_ids::are_listed(name));
    known.filter_map(|column| Some((priority(column.0)?, column))).min_by_key(|(key, _)| *key).map(|(_, column)| column)
}

/// Imports the lengths between offsets.
fn from_offsets(offsets: &Offsets<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let options = &Options { column: None, ..options.clone() };
    let mut reader = Reader::new(options);
    for (number, &length) in (1..).zip(&offsets.lengths) {
        reader.push(Location { item: "element", number }, Row::Single(Value::Number(Number::Integer(length))))?;
    }
    let mut imported = reader.finish(FORMAT)?;
    imported.report.source = format!("differences of array {}", offsets.name);
    imported.report.warnings.push(format!("The lengths are the differences of neighbours in {}.", offsets.name));
    if !offsets.is_complete {
        imported.report.warnings.push(format!(
            "No array has as many elements as the last of {} says. If it holds starts only, the last sample is missing.",
            offsets.name
        ));
    }
    Ok(imported)
}

/// Returns the arrays that the user can choose.
fn candidates(columns: &[Named<'_>], options: &Options<'_>) -> Vec<Candidate> {
    let profiles: Vec<Profile> = columns
        .iter()
        .map(|(name, values)| {
            let column = Column { name: (*name).to_owned(), kind: Some(Kind::Number) };
            Profile::new(&column, values.iter().take(HEAD_ROWS))
        })
        .collect();
    let max_length = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let cell = |values: &[Value<'static>], row: usize| values.get(row).cloned().unwrap_or(Value::Missing);
    let rows: Vec<Row<'_>> = (0..max_length.min(HEAD_ROWS))
        .map(|row| Row::Cells(columns.iter().map(|(_, values)| cell(values, row)).collect()))
        .collect();
    candidate::candidates(&profiles, &rows.iter().collect::<Vec<_>>(), options, &[])
}

/// Reads arrays of counts and edges, as `numpy.histogram` returns them.
fn from_edges(columns: &[Named<'_>], options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let numbers = |values: &[Value<'_>]| -> Option<serde_json::Value> {
        values
            .iter()
            .map(|value| match value {
                Value::Number(number) => Some(serde_json::Value::from(number.value())),
                _ => None,
            })
            .collect()
    };
    let small = columns.iter().filter(|(_, values)| values.len() <= MAX_BINS + 1);
    let lists = small.filter_map(|(name, values)| Some(((*name).to_owned(), numbers(values)?))).collect();
    let mut read = histogram::json::read(&serde_json::Value::Object(lists), options)?;
    if let Ok(imported) = &mut read {
        FORMAT.clone_into(&mut imported.report.format);
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use planner::workload::Dataset;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::import;
    use super::*;

    /// Little-endian 32-bit numbers with a shape, as numpy.save writes them.
    fn npy(shape: &str, numbers: &[i32]) -> Vec<u8> {
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        [npy::MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &data].concat()
    }

    fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            writer.start_file(*name, SimpleFileOptions::default()).expect("memory takes a file");
            writer.write_all(bytes).expect("memory takes every byte");
        }
        writer.finish().expect("memory takes a directory").into_inner()
    }

    #[test]
    fn arrays_are_columns() {
        let table = [
            ("tokens.npy", npy("(2, 2)", &[1, 2, 3, 4])),
            ("lengths.npy", npy("(3,)", &[5, 3, 7])),
            ("images.npy", npy("(3,)", &[0, 2, 1])),
        ];
        let imported = import(&npz(&table), &Options::default()).expect("an archive");
        let expected = Dataset::Rows { text_tokens: vec![5, 3, 7], images: vec![0, 2, 1], shaped: None };
        assert_eq!((imported.dataset, imported.report.format.as_str()), (expected, FORMAT));
        let only = npz(&[("arr_0.npy", npy("(3,)", &[5, 3, 7]))]);
        let imported = import(&only, &Options::default()).expect("an archive");
        assert_eq!(imported.dataset, Dataset::Rows { text_tokens: vec![5, 3, 7], images: vec![], shaped: None });
        let histogram = npz(&[("hist.npy", npy("(2,)", &[3, 2])), ("bin_edges.npy", npy("(3,)", &[0, 512, 1024]))]);
        let imported = import(&histogram, &Options::default()).expect("an archive");
        assert_eq!(imported.dataset, Dataset::Histogram { edges: vec![0.0, 512.0, 1024.0], counts: vec![3.0, 2.0] });
    }

    #[test]
    fn arrays_of_every_split_are_offered() {
        let arrays = [("train_lengths.npy", npy("(3,)", &[5, 3, 7])), ("val_lengths.npy", npy("(2,)", &[9, 8]))];
        match import(&npz(&arrays), &Options::default()) {
            Err(ImportError::Unclear { candidates }) => {
                assert_eq!(super::super::tests::names(&candidates), ["train_lengths", "val_lengths"]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(lengths(&arrays, Some("val_lengths")).0, [9, 8]);
    }

    fn lengths(arrays: &[(&str, Vec<u8>)], column: Option<&str>) -> (Vec<u32>, String) {
        let imported = import(&npz(arrays), &Options { column, ..Options::default() }).expect("an archive");
        let Dataset::Rows { text_tokens, .. } = imported.dataset else { panic!("rows") };
        (text_tokens, imported.report.source)
    }

    #[test]
    fn archive_texts_are_checked() {
        let text = |text: &str| {
            let header = format!("{{'descr': '<U{}', 'fortran_order': False, 'shape': (), }}\n", text.len());
            let data: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            [npy::MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &data].concat()
        };
        let archive = |unit: &str| npz(&[("lengths.npy", npy("(3,)", &[5, 3, 7])), ("unit.npy", text(unit))]);
        let message = import(&archive("seconds"), &Options::default()).expect_err("seconds").to_string();
        assert!(message.contains("unit must be \"tokens\", not \"seconds\""), "{message}");
        assert!(
            import(&archive("tokens"), &Options::default())
                .is_ok_and(|imported| { !imported.report.warnings.iter().any(|warning| warning.contains("unit")) })
        );
    }

    /// Fifteen token IDs of three samples with 5, 3 and 7 tokens.
    #[test]
    fn identifiers_are_never_lengths() {
        let ids: Vec<i32> = (100..115).collect();
        let tokens = || ("tokens.npy", npy("(15,)", &ids));
        let triple = || npy("(3,)", &[5, 3, 7]);
        for name in ["lengths.npy", "seq_len.npy", "num_tokens.npy"] {
            assert_eq!(lengths(&[tokens(), (name, triple())], None).0, [5, 3, 7], "{name}");
            // The ID count equals the sample count.
            assert_eq!(lengths(&[("tokens.npy", npy("(3,)", &[9, 8, 4])), (name, triple())], None).0, [5, 3, 7]);
        }
        for (name, offsets) in [
            ("cu_seqlens.npy", npy("(4,)", &[0, 5, 8, 15])),
            ("offsets.npy", npy("(3,)", &[0, 5, 8])),
            ("indptr.npy", npy("(4,)", &[0, 5, 8, 15])),
            ("offsets.npy", npy("(3,)", &[5, 8, 15])),
        ] {
            let (found, source) = lengths(&[tokens(), (name, offsets)], None);
            assert_eq!(found, [5, 3, 7], "{name}");
            assert!(source.starts_with("differences of array"), "{source}");
        }
        for arrays in [
            vec![tokens()],
            vec![("input_ids.npy", npy("(3,)", &[101, 7, 102]))],
            vec![tokens(), ("offsets.npy", npy("(3,)", &[0, 5, 99]))],
            vec![tokens(), ("offsets.npy", npy("(3,)", &[3, 5, 8]))],
        ] {
            let error = import(&npz(&arrays), &Options::default());
            assert!(matches!(error, Err(ImportError::Unclear { .. })), "{error:?}");
        }
        let selected = lengths(&[("input_ids.npy", npy("(3,)", &[101, 7, 102]))], Some("input_ids"));
        assert_eq!(selected.0, [101, 7, 102]);
    }

    /// 0.004 * 100 = 0.4 and 0.0015 * 400 = 0.6.
    #[test]
    fn densities_are_multiplied_by_widths() {
        let doubles = |numbers: &[f64]| {
            let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", numbers.len());
            let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            [npy::MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &data].concat()
        };
        let table = [("hist.npy", doubles(&[0.004, 0.0015])), ("bin_edges.npy", npy("(3,)", &[0, 100, 500]))];
        let imported = import(&npz(&table), &Options::default()).expect("an archive");
        let Dataset::Histogram { counts, .. } = imported.dataset else { panic!("a histogram") };
        assert_eq!(counts.iter().map(|count| (count * 1e6).round()).collect::<Vec<_>>(), [4e5, 6e5]);
        assert!(imported.report.warnings.iter().any(|warning| warning.contains("densities")));
    }

    #[test]
    fn invalid_archives_are_rejected() {
        for (bytes, problem) in [
            (npz(&[("tokens.npy", npy("(2, 2)", &[1, 2, 3, 4]))]), "shape is (2, 2)"),
            (npz(&[("x.npy", npy("(3,)", &[5, 3, 7])), ("y.npy", npy("(3,)", &[5, 3, 7]))]), "choose one of"),
            (npz(&[("xl/workbook.xml", Vec::new())]), "zip archive"),
            (npz(&[("lengths.npy", npy("(3,)", &[5, 3, 7]))])[..60].to_vec(), "zip archive"),
        ] {
            let error = import(&bytes, &Options::default()).expect_err(problem).to_string();
            assert!(error.contains(problem), "{problem}: {error}");
        }
    }
}
