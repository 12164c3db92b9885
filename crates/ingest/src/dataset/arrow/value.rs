//! Reads values from Arrow arrays.
//!
//! Decimals are scaled. NaN and infinities are not numbers. Lists of numbers are counted and not
//! copied.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions as temporal;
use arrow_array::types::{self, ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, MapArray, RunArray};
use arrow_schema::{DataType, Fields, TimeUnit};

use super::super::number::Number;
use super::super::value::{Ends, List, MAX_ITEMS, Value};
use super::super::{Kind, names, token_ids};
use super::schema;

/// Maximum count of numbers of a list that are read.
const MAX_NUMBERS: usize = 1 << 20;

/// Function that reads a value of an array.
pub(in super::super) type Reading = for<'a> fn(&'a ArrayRef, usize) -> Value<'a>;

/// Returns the function that reads the values of a column. `has_ids` is true if token IDs are
/// needed.
pub(in super::super) fn reading(name: &str, has_ids: bool) -> Reading {
    if names::reads_numbers(name) {
        whole
    } else if has_ids && token_ids::are_listed(name) {
        with_ids
    } else {
        value
    }
}

/// Returns the value of a row, including all numbers of a list and of the lists inside it.
fn whole(array: &ArrayRef, row: usize) -> Value<'_> {
    if row >= array.len() || array.is_null(row) {
        return Value::Missing;
    }
    match elements(array, row).map(|(elements, range)| (schema::kind(elements.data_type()), elements, range)) {
        Some((Kind::Number | Kind::Boolean, elements, range)) => Value::List(List {
            count: range.len(),
            ends: ends(elements, &range),
            items: range.take(MAX_NUMBERS).map(|row| value(elements, row)).collect(),
            ids: Vec::new(),
        }),
        Some((Kind::NumberList, elements, range)) => Value::List(List {
            count: range.len(),
            items: range.take(MAX_ITEMS).map(|row| whole(elements, row)).collect(),
            ..List::default()
        }),
        _ => value(array, row),
    }
}

/// Returns the value of a row, including the token IDs of a list.
fn with_ids(array: &ArrayRef, row: usize) -> Value<'_> {
    let mut value = value(array, row);
    if let (Value::List(list), Some((elements, range))) = (&mut value, elements(array, row)) {
        let id = |row| match self::value(elements, row) {
            Value::Number(Number::Integer(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        list.ids = range.take(MAX_NUMBERS).map_while(id).collect();
    }
    value
}

pub(in super::super) fn value(array: &ArrayRef, row: usize) -> Value<'_> {
    if row >= array.len() || array.is_null(row) {
        return Value::Missing;
    }
    macro_rules! integer {
        ($kind:ty) => {
            Value::Number(Number::Integer(array.as_primitive::<$kind>().value(row).into()))
        };
    }
    match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => integer!(types::Int8Type),
        DataType::Int16 => integer!(types::Int16Type),
        DataType::Int32 => integer!(types::Int32Type),
        DataType::Int64 => integer!(types::Int64Type),
        DataType::UInt8 => integer!(types::UInt8Type),
        DataType::UInt16 => integer!(types::UInt16Type),
        DataType::UInt32 => integer!(types::UInt32Type),
        DataType::UInt64 => integer!(types::UInt64Type),
        DataType::Float16 => float(array.as_primitive::<types::Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(array.as_primitive::<types::Float32Type>().value(row).into()),
        DataType::Float64 => float(array.as_primitive::<types::Float64Type>().value(row)),
        DataType::Decimal32(_, scale) => {
            decimal(array.as_primitive::<types::Decimal32Type>().value(row).into(), *scale)
        }
        DataType::Decimal64(_, scale) => {
            decimal(array.as_primitive::<types::Decimal64Type>().value(row).into(), *scale)
        }
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<types::Decimal128Type>().value(row), *scale),
        DataType::Decimal256(_, scale) => array
            .as_primitive::<types::Decimal256Type>()
            .value(row)
            .to_i128()
            .map_or(Value::Other("a number of more than 38 digits"), |unscaled| decimal(unscaled, *scale)),
        DataType::Duration(unit) => float(seconds(array, row, *unit)),
        DataType::Utf8 => text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array.as_string_view().value(row)),
        DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(array.as_binary_view().value(row)),
        DataType::Struct(fields) => object(fields, array.as_struct().columns(), row),
        DataType::Dictionary(keys, _) => match (key(array, row, keys), array.as_any_dictionary_opt()) {
            (Some(key), Some(dictionary)) => value(dictionary.values(), key),
            _ => Value::Missing,
        },
        DataType::Map(..) => map(array.as_map(), row),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run::<types::Int16Type>(array, row),
            DataType::Int32 => run::<types::Int32Type>(array, row),
            _ => run::<types::Int64Type>(array, row),
        },
        _ => elements(array, row).map_or_else(|| instant(array, row), |(elements, range)| list(elements, range)),
    }
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

/// Converts bytes to a value. Writers of older files store text as bytes.
fn bytes(bytes: &[u8]) -> Value<'_> {
    std::str::from_utf8(bytes).map_or(Value::Other("bytes"), text)
}

fn object<'a>(fields: &'a Fields, columns: &'a [ArrayRef], row: usize) -> Value<'a> {
    let entries = fields.iter().zip(columns);
    Value::Object(entries.map(|(field, column)| (Cow::Borrowed(field.name().as_str()), value(column, row))).collect())
}

/// Converts map entries to object members.
fn map(map: &MapArray, row: usize) -> Value<'_> {
    let offsets = map.value_offsets();
    let range = offsets[row] as usize..offsets[row + 1] as usize;
    let member = |entry| (Cow::Owned(value(map.keys(), entry).display_text()), value(map.values(), entry));
    Value::Object(range.take(MAX_ITEMS).map(member).collect())
}

/// Returns the value of a row of a run-end encoded array.
fn run<R: RunEndIndexType>(array: &ArrayRef, row: usize) -> Value<'_> {
    let runs = array.as_any().downcast_ref::<RunArray<R>>();
    runs.map_or(Value::Missing, |runs| value(runs.values(), runs.get_physical_index(row)))
}

/// Returns the array with the list elements, and the index range of the row.
fn elements(array: &ArrayRef, row: usize) -> Option<(&ArrayRef, Range<usize>)> {
    fn fixed(array: &FixedSizeListArray, row: usize) -> Range<usize> {
        let length = usize::try_from(array.value_length()).unwrap_or_default();
        row * length..(row + 1) * length
    }
    macro_rules! between {
        ($list:expr) => {{
            let list = $list;
            let offsets = list.value_offsets();
            (list.values(), offsets[row] as usize..offsets[row + 1] as usize)
        }};
    }
    Some(match array.data_type() {
        DataType::List(_) => between!(array.as_list::<i32>()),
        DataType::LargeList(_) => between!(array.as_list::<i64>()),
        DataType::FixedSizeList(..) => (array.as_fixed_size_list().values(), fixed(array.as_fixed_size_list(), row)),
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let start = list.value_offset(row) as usize;
            (list.values(), start..start + list.value_size(row) as usize)
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let start = list.value_offset(row) as usize;
            (list.values(), start..start + list.value_size(row) as usize)
        }
        _ => return None,
    })
}

fn list(elements: &ArrayRef, range: Range<usize>) -> Value<'_> {
    let count = range.len();
    match schema::kind(elements.data_type()) {
        Kind::Number => Value::List(List { count, ends: ends(elements, &range), ..List::default() }),
        Kind::Boolean | Kind::Binary | Kind::Empty => Value::count(count),
        _ => Value::List(List {
            count,
            items: range.take(MAX_ITEMS).map(|row| value(elements, row)).collect(),
            ..List::default()
        }),
    }
}

/// Runs of equal numbers at both ends of a list. Only a few numbers at each end are compared.
fn ends(elements: &ArrayRef, range: &Range<usize>) -> Ends {
    const COMPARED: usize = 4;
    let seen = |rows: Range<usize>| {
        let mut ends = Ends::default();
        for row in rows {
            if let Value::Number(Number::Integer(number)) = value(elements, row) {
                ends.see(number);
            }
        }
        ends
    };
    let start = seen(range.start..range.end.min(range.start + COMPARED));
    let mut end = seen(range.start.max(range.end.saturating_sub(COMPARED))..range.end);
    end.first = start.first;
    end
}

/// Converts a float to an integer value if it has no fraction.
fn float(value: f64) -> Value<'static> {
    if !value.is_finite() {
        Value::Other("NaN or an infinity")
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        Value::Number(Number::Integer(value as i128))
    } else {
        Value::Number(Number::Repaired(value))
    }
}

fn decimal(unscaled: i128, scale: i8) -> Value<'static> {
    let factor = 10_i128.checked_pow(scale.unsigned_abs().into());
    let integer = match factor {
        Some(factor) if scale >= 0 => (unscaled % factor == 0).then(|| unscaled / factor),
        Some(factor) => unscaled.checked_mul(factor),
        None => None,
    };
    Value::Number(match integer {
        Some(value) => Number::Integer(value),
        None => Number::Repaired(unscaled as f64 / 10_f64.powi(scale.into())),
    })
}

fn key(array: &ArrayRef, row: usize, keys: &DataType) -> Option<usize> {
    fn at<K: ArrowDictionaryKeyType>(array: &ArrayRef, row: usize) -> Option<usize> {
        array.as_dictionary::<K>().key(row)
    }
    match keys {
        DataType::Int8 => at::<types::Int8Type>(array, row),
        DataType::Int16 => at::<types::Int16Type>(array, row),
        DataType::Int32 => at::<types::Int32Type>(array, row),
        DataType::Int64 => at::<types::Int64Type>(array, row),
        DataType::UInt8 => at::<types::UInt8Type>(array, row),
        DataType::UInt16 => at::<types::UInt16Type>(array, row),
        DataType::UInt32 => at::<types::UInt32Type>(array, row),
        DataType::UInt64 => at::<types::UInt64Type>(array, row),
        _ => None,
    }
}

fn seconds(array: &ArrayRef, row: usize, unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<types::DurationSecondType>().value(row) as f64,
        TimeUnit::Millisecond => array.as_primitive::<types::DurationMillisecondType>().value(row) as f64 / 1e3,
        TimeUnit::Microsecond => array.as_primitive::<types::DurationMicrosecondType>().value(row) as f64 / 1e6,
        TimeUnit::Nanosecond => array.as_primitive::<types::DurationNanosecondType>().value(row) as f64 / 1e9,
    }
}

/// Returns a date, time or timestamp as text. Values of other types are not read.
fn instant(array: &ArrayRef, row: usize) -> Value<'static> {
    macro_rules! at {
        ($kind:ty, $convert:path) => {
            $convert(array.as_primitive::<$kind>().value(row)).map(|value| value.to_string())
        };
    }
    let text = match array.data_type() {
        DataType::Date32 => at!(types::Date32Type, temporal::date32_to_datetime),
        DataType::Date64 => at!(types::Date64Type, temporal::date64_to_datetime),
        DataType::Time32(TimeUnit::Second) => at!(types::Time32SecondType, temporal::time32s_to_time),
        DataType::Time32(_) => at!(types::Time32MillisecondType, temporal::time32ms_to_time),
        DataType::Time64(TimeUnit::Microsecond) => at!(types::Time64MicrosecondType, temporal::time64us_to_time),
        DataType::Time64(_) => at!(types::Time64NanosecondType, temporal::time64ns_to_time),
        DataType::Timestamp(TimeUnit::Second, _) => at!(types::TimestampSecondType, temporal::timestamp_s_to_datetime),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            at!(types::TimestampMillisecondType, temporal::timestamp_ms_to_datetime)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            at!(types::TimestampMicrosecondType, temporal::timestamp_us_to_datetime)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            at!(types::TimestampNanosecondType, temporal::timestamp_ns_to_datetime)
        }
        _ => return Value::Other("a value of a type that is not read"),
    };
    text.map_or(Value::Other("an instant out of range"), |text| Value::Text(Cow::Owned(text)))
}
