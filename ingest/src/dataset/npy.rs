//! NumPy arrays (`.npy`): one dimension of numbers.
//!
//! `0x93 "NUMPY" | major | minor | length of the header, u16 or from version 2 u32 | header | data`; the header is a
//! Python dict such as `{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }`.

use super::cell::Cell;
use super::number::Number;
use super::rows::Rows;
use super::{ImportError, Imported, MAX_ROWS};

/// First bytes.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header; those of structured types are longer and are refused anyway.
const MOST_HEADER: usize = 64 << 10;

const FORMAT: &str = "NumPy array";

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// A type of numbers.
#[derive(Debug, Clone, Copy)]
struct Element {
    kind: Kind,
    bytes: usize,
    big_endian: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Signed,
    Unsigned,
    Float,
}

/// An array of one dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Array<'a> {
    element: Element,
    data: &'a [u8],
}

impl<'a> Array<'a> {
    /// Reads a file.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ImportError> {
        let (header, data) = parts(bytes)?;
        let element = element(value(header, "descr").ok_or_else(|| broken("its header has no descr"))?)?;
        let count = shape(value(header, "shape").ok_or_else(|| broken("its header has no shape"))?)?;
        if count > MAX_ROWS as u64 {
            return Err(ImportError::TooManyRows);
        }
        let expected = count as usize * element.bytes;
        if data.len() != expected {
            let found = data.len();
            return Err(broken(format!("its header promises {expected} bytes of numbers, but {found} follow")));
        }
        Ok(Self { element, data })
    }

    /// The numbers; `None` for NaN and infinities.
    pub(super) fn numbers(self) -> impl ExactSizeIterator<Item = Option<Number>> + 'a {
        self.data.chunks_exact(self.element.bytes).map(move |bytes| self.element.read(bytes))
    }
}

/// Reads the numbers.
pub(super) fn import(bytes: &[u8]) -> Result<Imported, ImportError> {
    let mut rows = Rows::default();
    for (index, number) in Array::read(bytes)?.numbers().enumerate() {
        let place = || format!("element {}", index + 1);
        match number {
            Some(number) => rows.push(place, Cell::Number(number))?,
            None => rows.push(place, Cell::Other("NaN or an infinity"))?,
        }
    }
    rows.finish(FORMAT, "every number of the file".to_owned(), Vec::new(), Vec::new())
}

/// Header and data.
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
    if length > MOST_HEADER {
        return Err(broken(format!("its header has {length} bytes; at most {MOST_HEADER} are read")));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| broken("its header is not text"))?;
    Ok((header, data))
}

/// What stands behind a key of the header, up to the end of the value.
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

fn element(descr: &str) -> Result<Element, ImportError> {
    let unknown = || {
        broken(format!(
            "its numbers are of type {}; whole and floating-point numbers are read",
            descr.chars().take(40).collect::<String>()
        ))
    };
    let text = descr.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).ok_or_else(unknown)?;
    let mut chars = text.chars();
    let (order, kind) = (chars.next(), chars.next());
    if kind == Some('O') || order == Some('O') {
        return Err(broken(
            "it holds Python objects, which are pickles and never opened; write numbers: numpy.save(name, \
             numpy.asarray(lengths, dtype='int64'))",
        ));
    }
    let kind = match kind {
        Some('i') => Kind::Signed,
        Some('u') => Kind::Unsigned,
        Some('f') => Kind::Float,
        _ => return Err(unknown()),
    };
    let big_endian = match order {
        Some('<' | '|' | '=') => false,
        Some('>') => true,
        _ => return Err(unknown()),
    };
    let bytes = chars.as_str().parse().map_err(|_| unknown())?;
    match (kind, bytes) {
        (Kind::Signed | Kind::Unsigned, 1 | 2 | 4 | 8) | (Kind::Float, 2 | 4 | 8) => {
            Ok(Element { kind, bytes, big_endian })
        }
        _ => Err(unknown()),
    }
}

/// Elements of an array of one dimension; further dimensions of one element each are none.
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

impl Element {
    /// The number; none where it is not finite.
    fn read(self, bytes: &[u8]) -> Option<Number> {
        let mut eight = [0; 8];
        let own = &mut eight[..self.bytes];
        own.copy_from_slice(bytes);
        if self.big_endian {
            own.reverse();
        }
        let raw = u64::from_le_bytes(eight);
        Some(match self.kind {
            Kind::Unsigned => Number::Whole(raw.into()),
            Kind::Signed => {
                let unused = 64 - 8 * self.bytes as u32;
                Number::Whole(((raw << unused).cast_signed() >> unused).into())
            }
            Kind::Float => {
                let value = match self.bytes {
                    2 => half::f16::from_bits(raw as u16).to_f64(),
                    4 => f32::from_bits(raw as u32).into(),
                    _ => f64::from_bits(raw),
                };
                return value.is_finite().then_some(Number::Repaired(value));
            }
        })
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

    fn dict(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    }

    #[test]
    fn numbers_of_every_type() {
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

    #[test]
    fn what_is_wrong_is_told() {
        for (bytes, told) in [
            (file(1, &dict("|O", "(3,)"), b""), "pickles"),
            (file(1, "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,), }", b""), "of type [('a'"),
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
            let error = import(&bytes).expect_err(told).to_string();
            assert!(error.contains(told), "{told}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), header in "[{}'a-z:<|0-9(), ]{0,60}") {
            let _ = import(&[MAGIC, &bytes].concat());
            let _ = import(&file(1, &header, &bytes));
            let _ = import(&file(1, &dict("<i2", &header), &bytes));
        }
    }
}
