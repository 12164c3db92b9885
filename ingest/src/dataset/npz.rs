//! NumPy archives (`.npz`): a zip archive of `.npy` arrays. Arrays of one length are the columns of a table.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::npy::{self, Array};
use super::profile::Column;
use super::reader::Reader;
use super::value::{Place, Row, Value};
use super::{ImportError, Imported, Kind, MAX_BINS, MAX_ROWS, Meaning, Options, histogram, names};

/// First bytes of a zip archive.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";
/// Name of the format.
const FORMAT: &str = "NumPy archive";
/// Most arrays of an archive.
const MAX_ARRAYS: usize = 100;
/// Most unpacked bytes of all arrays.
const MAX_BYTES: u64 = 256 << 20;

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// Reads an archive; `None` if it holds no array, as spreadsheets and checkpoints do.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let is_array = archive.file_names().any(|name| name.is_ok_and(|name| name.ends_with(".npy")));
    is_array.then(|| unpack(&mut archive).and_then(|arrays| read(&arrays, options)))
}

/// The arrays by name.
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

fn read(arrays: &[(String, Vec<u8>)], options: &Options<'_>) -> Result<Imported, ImportError> {
    // An array without a name is the whole file.
    if let [(name, bytes)] = arrays
        && name == "arr_0"
        && options.column.is_none_or(|column| column == name)
    {
        return npy::import(bytes);
    }
    let mut first_error = None;
    let mut columns: Vec<(&str, Vec<Value<'static>>)> = Vec::new();
    for (name, bytes) in arrays {
        match Array::read(bytes) {
            Ok(array) => {
                let value = |number: Option<_>| number.map_or(Value::Other("NaN or an infinity"), Value::Number);
                columns.push((name, array.numbers().map(value).collect()));
            }
            // Tables of tokens and texts stand beside the lengths.
            Err(error) if options.column == Some(name) => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    if let (true, Some(error)) = (columns.is_empty(), first_error) {
        return Err(error);
    }
    if options.column.is_none()
        && let Some(histogram) = of_edges(&columns)
    {
        return histogram;
    }
    let wanted = columns.iter().find(|(name, _)| match options.column {
        Some(column) => names::is_same(name, column),
        None => matches!(names::meaning(name).0, Meaning::Length(_) | Meaning::Prompt),
    });
    let longest = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let rows = wanted.map_or(longest, |(_, values)| values.len());
    columns.retain(|(_, values)| values.len() == rows);
    let named = columns.iter().map(|(name, _)| Column { name: (*name).to_owned(), kind: Some(Kind::Number) });
    let mut reader = Reader::typed(options, named.collect());
    for row in 0..rows.min(MAX_ROWS + 1) {
        let cells = columns.iter().map(|(_, values)| values[row].clone());
        reader.push(Place { what: "element", number: row as u64 + 1 }, Row::Cells(cells.collect()))?;
    }
    reader.finish(FORMAT)
}

/// Arrays of counts and edges, as `numpy.histogram` returns them.
fn of_edges(columns: &[(&str, Vec<Value<'static>>)]) -> Option<Result<Imported, ImportError>> {
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
    let mut read = histogram::json::read(&serde_json::Value::Object(lists))?;
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

    /// Little-endian 32-bit numbers of a shape, as numpy.save writes them.
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
    fn wrong_archives_are_refused() {
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
