//! Reads NumPy arrays (`.npy`): one dimension with numbers, or with named records.
//!
//! `0x93 "NUMPY" | major | minor | header length, u16 or from version 2 u32 | header | data`. The
//! header is a Python dict such as `{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }`.

use super::number::Number;
use super::numbers::IDENTIFIERS;
use super::profile::Column;
use super::reader::Reader;
use super::value::{Location, Row, Value};
use super::{Candidate, ImportError, Imported, MAX_ROWS, Options};

mod element;

use element::{Field, fields};

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Name of the only column of an array without records.
pub(super) const ONLY: &str = "1";
/// Maximum header size, in bytes.
const MAX_HEADER: usize = 64 << 10;

const FORMAT: &str = "NumPy array";

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// A one-dimensional array.
#[derive(Debug, Clone)]
pub(super) struct Array<'a> {
    /// Record fields; one unnamed field if the elements are numbers.
    fields: Vec<Field>,
    /// Record size in bytes.
    stride: usize,
    data: &'a [u8],
}

impl<'a> Array<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ImportError> {
        let (header, data) = parts(bytes)?;
        let (fields, stride) = fields(value(header, "descr").ok_or_else(|| broken("its header has no descr"))?)?;
        let count = shape(value(header, "shape").ok_or_else(|| broken("its header has no shape"))?)?;
        if count > MAX_ROWS as u64 {
            return Err(ImportError::TooManyRows);
        }
        let expected = count as usize * stride;
        if data.len() != expected {
            let found = data.len();
            return Err(broken(format!("its header promises {expected} bytes of numbers, but {found} follow")));
        }
        Ok(Self { fields, stride, data })
    }

    /// Returns whether the elements are named records.
    pub(super) fn has_names(&self) -> bool {
        self.fields.iter().any(|field| !field.name.is_empty())
    }

    /// Returns the numbers of an array without records.
    pub(super) fn only(&self) -> Result<Vec<Value<'static>>, ImportError> {
        match self.fields.as_slice() {
            [field] if field.name.is_empty() => Ok(self.records().map(|record| field.value(record)).collect()),
            _ => Err(broken("it holds records; save their numbers as arrays of their own")),
        }
    }

    /// Returns whether the elements may be token IDs. That holds for many single bytes, or if the
    /// majority are 16-bit numbers in a range that is more typical of token IDs than of lengths.
    fn may_be_identifiers(&self) -> bool {
        const LARGE: f64 = 8192.0;
        const MANY: usize = 100;
        let [field] = self.fields.as_slice() else { return false };
        let is_large = |record: &[u8]| matches!(field.value(record), Value::Number(number) if number.value() > LARGE);
        let all = self.records().count();
        let are_large = || self.records().filter(|record| is_large(record)).count() * 2 > all;
        field.name.is_empty() && ((field.is_byte() && all > MANY) || (field.is_short() && are_large()))
    }

    fn records(&self) -> impl Iterator<Item = &'a [u8]> {
        self.data.chunks_exact(self.stride)
    }
}

/// Reads the numbers, or the records as rows.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    let array = Array::read(bytes)?;
    let has_names = array.has_names();
    if options.column.is_none() && array.may_be_identifiers() {
        return Err(ImportError::Unclear { candidates: vec![Candidate::noted(ONLY, IDENTIFIERS)] });
    }
    let mut reader = if has_names {
        let column = |field: &Field| Column { name: field.name.clone(), kind: None };
        Reader::typed(options, array.fields.iter().map(column).collect())
    } else {
        Reader::new(options)
    };
    for (number, record) in (1..).zip(array.records()) {
        let mut values = array.fields.iter().map(|field| field.value(record));
        let row =
            if has_names { Row::Cells(values.collect()) } else { Row::Single(values.next().unwrap_or(Value::Missing)) };
        reader.push(Location { item: "element", number }, row)?;
    }
    reader.finish(FORMAT)
}

/// Returns the text of an array with a single text element, such as `numpy.array("seconds")`.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    const MAX_BYTES: usize = 4096;
    let (header, data) = parts(bytes).ok()?;
    let is_single = matches!(value(header, "shape")?.replace(' ', "").as_str(), "()" | "(1,)");
    let descr = value(header, "descr")?.trim_matches('\'');
    let data = data.get(..data.len().min(MAX_BYTES))?;
    let text: String = match descr.trim_start_matches(['<', '|', '=']).chars().next()? {
        'U' => data
            .as_chunks()
            .0
            .iter()
            .map(|&four| char::from_u32(u32::from_le_bytes(four)).unwrap_or_default())
            .collect(),
        'S' => String::from_utf8_lossy(data).into_owned(),
        _ => return None,
    };
    is_single.then(|| text.trim_end_matches('\0').to_owned())
}

/// Splits the file into header and data.
fn parts(bytes: &[u8]) -> Result<(&str, &[u8]), ImportError> {
    let cut = || broken("it ends inside its header");
    let &major = bytes.get(MAGIC.len()).ok_or_else(cut)?;
    let rest = bytes.get(MAGIC.len() + 2..).ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(&two, rest)| (u16::from_le_bytes(two) as usize, rest)),
        2 | 3 => rest.split_first_chunk().map(|(&four, rest)| (u32::from_le_bytes(four) as usize, rest)),
        _ => return Err(broken(format!("its version is {major}; 1 to 3 are known"))),
    }
    .ok_or_else(cut)?;
    if length > MAX_HEADER {
        return Err(broken(format!("its header has {length} bytes; at most {MAX_HEADER} are read")));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| broken("its header is not text"))?;
    Ok((header, data))
}

/// Returns the value of a header key.
fn value<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.chars().next()? {
        '(' => rest.find(')')? + 1,
        '\'' => rest[1..].find('\'')? + 2,
        '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
        _ => rest.find([',', '}'])?,
    };
    rest.get(..end)
}

/// Parses the element count of a one-dimensional array; additional dimensions of size 1 are
/// ignored.
fn shape(text: &str) -> Result<u64, ImportError> {
    let wrong = || {
        broken(format!(
            "its shape is {}; a list of numbers has one dimension",
            text.chars().take(40).collect::<String>()
        ))
    };
    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).ok_or_else(wrong)?;
    let sizes: Result<Vec<u64>, _> =
        inside.split(',').map(str::trim).filter(|size| !size.is_empty()).map(str::parse).collect();
    match sizes.map_err(|_| wrong())?.as_slice() {
        [count] | [count, 1] | [1, count] => Ok(*count),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use planner::workload::Dataset;
    use proptest::prelude::*;

    use super::*;

    fn file(major: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{header}\n");
        let length = match major {
            1 => (header.len() as u16).to_le_bytes().to_vec(),
            _ => (header.len() as u32).to_le_bytes().to_vec(),
        };
        [MAGIC, &[major, 0], &length, header.as_bytes(), data].concat()
    }

    fn records(descr: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}")
    }

    fn dict(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    }

    #[test]
    fn numbers_in_every_type() {
        let int32: Vec<u8> = [5_i32, 3, 7].iter().flat_map(|number| number.to_le_bytes()).collect();
        let big: Vec<u8> = [5_i64, 3, 7].iter().flat_map(|number| number.to_be_bytes()).collect();
        let floats: Vec<u8> = [5.0_f32, 3.2, 7.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        for bytes in [
            file(1, &dict("<i4", "(3,)"), &int32),
            file(2, &dict("<i4", "(3, 1)"), &int32),
            file(3, &dict(">i8", "(3,)"), &big),
            file(1, &dict("|u1", "(3,)"), &[5, 3, 7]),
            file(1, &dict("<f4", "(3,)"), &floats),
            // 5, 3 and 7 in half precision.
            file(1, &dict("<f2", "(3,)"), &[0x00, 0x45, 0x00, 0x42, 0x00, 0x47]),
        ] {
            let imported = super::super::tests::import(&bytes, None).expect("an array");
            let expected = Dataset::Rows { text_tokens: vec![5, 3, 7], images: vec![], shaped: None };
            assert_eq!((imported.dataset, imported.report.format.as_str()), (expected, FORMAT));
        }
    }

    /// Three records with an identifier, a name of two characters, and a length.
    #[test]
    fn records_are_rows() {
        let header = records("[('id', '<i8'), ('lang', '<U2'), ('length', '<i4')]");
        let data: Vec<u8> = [(70_i64, 5_i32), (80, 3), (90, 7)]
            .iter()
            .flat_map(|(id, length)| [&id.to_le_bytes()[..], &[0; 8], &length.to_le_bytes()].concat())
            .collect();
        let imported = super::super::tests::import(&file(1, &header, &data), None).expect("records");
        assert_eq!(imported.dataset, Dataset::Rows { text_tokens: vec![5, 3, 7], images: vec![], shaped: None });
        assert_eq!(imported.report.source, "column length");
    }

    /// Seconds are not rounded to tokens, unless the user states that the numbers are lengths.
    #[test]
    fn decimal_numbers_need_confirmation() {
        let data: Vec<u8> = [0.5_f64, 3.25, 7.75, 2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let bytes = file(1, &dict("<f8", "(4,)"), &data);
        let error = super::super::tests::import(&bytes, None);
        let Err(ImportError::Unclear { candidates }) = error else { panic!("{error:?}") };
        assert_eq!(candidates[0].note.as_deref(), Some("the values have decimals; numbers of tokens are whole"));
        let selected = super::super::tests::import(&bytes, Some(&candidates[0].name)).expect("a chosen column");
        assert_eq!(selected.dataset, Dataset::Rows { text_tokens: vec![1, 3, 8, 2], images: vec![], shaped: None });
        assert!(selected.report.warnings.iter().any(|warning| warning.contains("rounded")), "{:?}", selected.report);
    }

    #[test]
    fn invalid_arrays_are_reported() {
        for (bytes, message) in [
            (file(1, &dict("|O", "(3,)"), b""), "pickles"),
            (file(1, &records("[('a', '<i4', (2,))]"), b""), "of type [('a'"),
            (file(1, &records("[('a', '|O')]"), b""), "pickles"),
            (file(1, &records("[('a', '<i4')]"), b""), "promises 12 bytes"),
            (file(1, &dict("<c8", "(3,)"), b""), "of type '<c8'"),
            (file(1, &dict("<i4", "(3, 4)"), &[0; 48]), "shape is (3, 4)"),
            (file(1, &dict("<i4", "()"), &[0; 4]), "shape is ()"),
            (file(1, &dict("<i4", "(3,)"), &[0; 11]), "promises 12 bytes"),
            (file(1, &dict("<i4", "(99999999999999999999,)"), &[]), "shape is"),
            (file(1, &dict("<i8", "(4611686018427387904,)"), &[]), "rows"),
            (file(4, &dict("<i4", "(3,)"), &[]), "version is 4"),
            (file(1, "{}", &[]), "no descr"),
            (b"\x93NUMPY\x01\0\xff\xff".to_vec(), "inside its header"),
            (b"\x93NUMPY\x02\0\xff\xff\xff\xff".to_vec(), "at most 65536"),
            (b"\x93NUMPY".to_vec(), "inside its header"),
            (file(1, &dict("<i2", "(1,)"), &(-4_i16).to_le_bytes()), "element 1: -4 is not a length"),
        ] {
            let error = import(&bytes, &Options::default()).expect_err(message).to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..100), header in "[{}'a-z:<|0-9(), ]{0,60}") {
            let _ = import(&[MAGIC, &bytes].concat(), &Options::default());
            let _ = import(&file(1, &header, &bytes), &Options::default());
            let _ = import(&file(1, &dict("<i2", &header), &bytes), &Options::default());
        }
    }
}
