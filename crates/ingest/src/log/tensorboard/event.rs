//! Record message: `Event {1 wall_time, 2 step, 5 summary}`. Summary values are scalars in one of
//! two encodings.

use crate::protobuf::{Value, fields, varints};

/// A decoded event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Event {
    /// Seconds since 1970, not validated.
    pub(super) wall_time: f64,
    /// Step number, possibly negative.
    pub(super) step: i64,
    /// Scalars by name.
    pub(super) scalars: Vec<(String, f64)>,
    /// Number of values that are not scalars.
    pub(super) others: usize,
    /// True if the encoding is invalid.
    pub(super) broken: bool,
}

pub(super) fn read(data: &[u8]) -> Event {
    let mut event = Event::default();
    for field in fields(data) {
        match field {
            Ok((1, value)) => event.wall_time = value.double().unwrap_or(f64::NAN),
            Ok((2, Value::Varint(step))) => event.step = step.cast_signed(),
            Ok((5, Value::Bytes(summary))) => {
                for field in fields(summary) {
                    match field {
                        Ok((1, Value::Bytes(value))) => match scalar(value) {
                            Some(scalar) => event.scalars.push(scalar),
                            None => event.others += 1,
                        },
                        Ok(_) => {}
                        Err(_) => event.broken = true,
                    }
                }
            }
            Ok(_) => {}
            Err(_) => event.broken = true,
        }
    }
    event
}

/// `Value {1 tag, 2 simple_value, 8 tensor}`.
fn scalar(message: &[u8]) -> Option<(String, f64)> {
    let (mut tag, mut number) = (None, None);
    for field in fields(message) {
        match field.ok()? {
            (1, value) => tag = value.text().map(|tag| tag.chars().take(200).collect()),
            (2, Value::Fixed32(bits)) => number = Some(f64::from(f32::from_bits(bits))),
            (8, Value::Bytes(message)) => number = tensor(message),
            _ => {}
        }
    }
    tag.zip(number)
}

/// Decodes a tensor with one element: `Tensor {1 dtype, 2 shape, 4 content, 5 floats, 6 doubles, 7
/// ints, 10 longs, 13 halves}`.
fn tensor(message: &[u8]) -> Option<f64> {
    let mut dtype = 0;
    let mut content: &[u8] = &[];
    let (mut from_values, mut bits) = (None, None);
    for field in fields(message) {
        match field.ok()? {
            (1, Value::Varint(value)) => dtype = value,
            (2, Value::Bytes(shape)) if !is_single(shape) => return None,
            (4, Value::Bytes(bytes)) => content = bytes,
            (5, Value::Fixed32(value)) => from_values = Some(f64::from(f32::from_bits(value))),
            (5, Value::Bytes(bytes)) => from_values = bytes.first_chunk().map(|&four| f32::from_le_bytes(four).into()),
            (6, Value::Fixed64(value)) => from_values = Some(f64::from_bits(value)),
            (6, Value::Bytes(bytes)) => from_values = bytes.first_chunk().map(|&eight| f64::from_le_bytes(eight)),
            (7 | 10, value) => from_values = varints(value).next().map(|value| value.cast_signed() as f64),
            (13, value) => bits = varints(value).next().and_then(|bits| u16::try_from(bits).ok()),
            _ => {}
        }
    }
    let half_bits = bits.or_else(|| content.first_chunk().map(|&two| u16::from_le_bytes(two)));
    match dtype {
        1 => from_values.or_else(|| content.first_chunk().map(|&four| f32::from_le_bytes(four).into())),
        2 => from_values.or_else(|| content.first_chunk().map(|&eight| f64::from_le_bytes(eight))),
        3 => from_values.or_else(|| content.first_chunk().map(|&four| i32::from_le_bytes(four).into())),
        9 => from_values.or_else(|| content.first_chunk().map(|&eight| i64::from_le_bytes(eight) as f64)),
        14 => half_bits.map(|bits| f32::from_bits(u32::from(bits) << 16).into()),
        19 => half_bits.map(half),
        _ => None,
    }
}

/// True if a shape `{2 dim {1 size}}` has one element.
fn is_single(shape: &[u8]) -> bool {
    fields(shape).all(|field| match field {
        Ok((2, Value::Bytes(dim))) => {
            let size = fields(dim).filter_map(Result::ok).find(|(number, _)| *number == 1);
            size.and_then(|(_, value)| value.varint()) == Some(1)
        }
        Ok(_) => true,
        Err(_) => false,
    })
}

/// Converts half precision: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    /// 0x3c00 is 1, 0xc000 is -2, 0x0001 is the smallest positive value, 2^-24.
    #[test]
    fn halves() {
        for (bits, expected) in
            [(0x3c00, 1.0_f64), (0xc000, -2.0), (0x0001, 5.960_464_477_539_063e-8), (0x7c00, f64::INFINITY)]
        {
            assert_eq!(half(bits).to_bits(), expected.to_bits(), "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
