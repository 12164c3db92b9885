//! Rows: a header with the types of all values, then the values.

use super::schema::Columns;

/// A stored value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'r> {
    /// Absent, or a column that the row does not have.
    Null,
    Integer(i64),
    Real(f64),
    /// Text as stored, usually UTF-8.
    Text(&'r [u8]),
    Blob,
}

impl<'r> Value<'r> {
    pub(crate) fn integer(self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(number) } else { None }
    }

    /// Returns a text with invalid UTF-8 replaced.
    pub(crate) fn text(self) -> Option<std::borrow::Cow<'r, str>> {
        if let Self::Text(bytes) = self { Some(String::from_utf8_lossy(bytes)) } else { None }
    }
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Row<'r> {
    values: Vec<Value<'r>>,
}

impl<'r> Row<'r> {
    /// Decodes at most as many values as the table has columns; `None` if the record is malformed.
    pub(super) fn read(payload: &'r [u8], rowid: i64, columns: &Columns) -> Option<Self> {
        let (header_bytes, used) = varint(payload)?;
        let header_bytes = usize::try_from(header_bytes).ok()?;
        let mut types = payload.get(used..header_bytes)?;
        let mut body = &payload[header_bytes..];
        let mut values = Vec::with_capacity(columns.names.len());
        while values.len() < columns.names.len() && !types.is_empty() {
            let (code, used) = varint(types)?;
            types = &types[used..];
            let (value, length) = value(code, body)?;
            body = &body[length..];
            values.push(value);
        }
        // The key column of a table is stored as NULL.
        if let Some(key) = columns.key.and_then(|key| values.get_mut(key)) {
            *key = Value::Integer(rowid);
        }
        Some(Self { values })
    }

    /// Returns the value in a column. Rows written before a column was added do not have it.
    pub(crate) fn get(&self, column: usize) -> Value<'r> {
        self.values.get(column).copied().unwrap_or(Value::Null)
    }
}

/// Decodes a value and returns its length.
fn value(code: u64, body: &[u8]) -> Option<(Value<'_>, usize)> {
    let length = match code {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(code).ok()?,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => usize::try_from((code - 12) / 2).ok()?,
    };
    let bytes = body.get(..length)?;
    let value = match code {
        0 => Value::Null,
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        7 => Value::Real(f64::from_be_bytes(*bytes.first_chunk()?)),
        1..=6 => {
            let first = i64::from(bytes[0].cast_signed());
            Value::Integer(bytes[1..].iter().fold(first, |number, &byte| number << 8 | i64::from(byte)))
        }
        _ if code % 2 == 1 => Value::Text(bytes),
        _ => Value::Blob,
    };
    Some((value, length))
}

/// Decodes a big-endian variable-length integer and returns its length, one to nine bytes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(8).enumerate() {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    Some((number << 8 | u64::from(*bytes.get(8)?), 9))
}
