//! Element types of arrays.

use super::{ImportError, Number, Value, broken};

/// A number field of a record, or bytes without a number.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Empty if the elements are numbers.
    pub(super) name: String,
    /// Byte offset in a record.
    at: usize,
    /// Size in bytes.
    bytes: usize,
    /// `None` for texts and other types, whose bytes are skipped.
    element: Option<Element>,
}

impl Field {
    /// Returns whether the numbers are single bytes, as in raw text.
    pub(super) fn is_byte(&self) -> bool {
        matches!(self.element, Some(Element { kind: Kind::Unsigned, bytes: 1, .. }))
    }

    /// Returns whether the numbers are unsigned 16-bit integers.
    pub(super) fn is_short(&self) -> bool {
        matches!(self.element, Some(Element { kind: Kind::Unsigned, bytes: 2, .. }))
    }

    /// Returns the field's value in a record.
    pub(super) fn value(&self, record: &[u8]) -> Value<'static> {
        let bytes = record.get(self.at..self.at + self.bytes);
        match (self.element, bytes) {
            (Some(element), Some(bytes)) => {
                element.read(bytes).map_or(Value::Other("NaN or an infinity"), Value::Number)
            }
            _ => Value::Missing,
        }
    }
}

/// Parses a type into its fields and the record size in bytes.
pub(super) fn fields(descr: &str) -> Result<(Vec<Field>, usize), ImportError> {
    let Some(list) = descr.strip_prefix('[') else {
        let element = element(descr)?;
        let field = Field { name: String::new(), at: 0, bytes: element.bytes, element: Some(element) };
        return Ok((vec![field], element.bytes));
    };
    let list = list.strip_suffix(']').ok_or_else(|| unknown(descr))?;
    let (mut fields, mut at): (Vec<Field>, usize) = (Vec::new(), 0);
    for tuple in list.split("),") {
        let tuple = tuple.trim().trim_end_matches(')');
        let inner = tuple.strip_prefix('(').ok_or_else(|| unknown(descr))?;
        let mut terms = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
        let (Some(name), Some(kind), None) = (terms.next(), terms.next(), terms.next()) else {
            return Err(unknown(descr));
        };
        let name = quoted(name).filter(|name| !name.is_empty()).ok_or_else(|| unknown(descr))?.to_owned();
        let (bytes, element) = match opaque(kind) {
            Some(bytes) => (bytes, None),
            None => element(kind).map(|element| (element.bytes, Some(element)))?,
        };
        fields.push(Field { name, at, bytes, element });
        at = at.checked_add(bytes).ok_or_else(|| unknown(descr))?;
    }
    // A zero-size record has no rows.
    if at == 0 || at > MAX_RECORD { Err(unknown(descr)) } else { Ok((fields, at)) }
}

/// Maximum record size, in bytes.
const MAX_RECORD: usize = 1 << 20;

/// Returns the byte size of a type without a number: text, booleans, timestamps.
fn opaque(kind: &str) -> Option<usize> {
    let text = quoted(kind)?.trim_start_matches(['<', '>', '|', '=']);
    let (letter, digits) = text.split_at_checked(1)?;
    let size: usize = digits.parse().ok()?;
    match letter {
        "S" | "V" | "b" | "a" => Some(size),
        "U" => size.checked_mul(4),
        _ => None,
    }
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))
}

/// A number type.
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

fn unknown(descr: &str) -> ImportError {
    broken(format!(
        "its numbers are of type {}; whole and floating-point numbers are read",
        descr.chars().take(40).collect::<String>()
    ))
}

fn element(descr: &str) -> Result<Element, ImportError> {
    let unknown = || unknown(descr);
    let text = quoted(descr).ok_or_else(unknown)?;
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

impl Element {
    /// Reads a number; returns `None` if it is not finite.
    fn read(self, bytes: &[u8]) -> Option<Number> {
        let mut eight = [0; 8];
        let slot = &mut eight[..self.bytes];
        slot.copy_from_slice(bytes);
        if self.big_endian {
            slot.reverse();
        }
        let raw = u64::from_le_bytes(eight);
        Some(match self.kind {
            Kind::Unsigned => Number::Integer(raw.into()),
            Kind::Signed => {
                let unused = 64 - 8 * self.bytes as u32;
                Number::Integer(((raw << unused).cast_signed() >> unused).into())
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
