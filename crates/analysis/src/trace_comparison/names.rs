//! Kernel names that are equal in two traces of the same program.

use std::borrow::Cow;

/// Minimum number of hexadecimal digits of an address. Shorter numbers are template arguments.
const ADDRESS_DIGITS: usize = 6;

/// Replaces addresses (`0x7f3a5c00`) by `0x…`. Template arguments and numbers of generated kernels
/// remain, because they distinguish kernels.
pub fn normalised(name: &str) -> Cow<'_, str> {
    let mut text = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("0x") {
        let digits = &rest[at + 2..];
        let length = digits.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(digits.len());
        text.push_str(&rest[..at + 2]);
        if length >= ADDRESS_DIGITS {
            text.push('…');
        } else {
            text.push_str(&digits[..length]);
        }
        rest = &digits[length..];
    }
    if text.is_empty() {
        return Cow::Borrowed(name);
    }
    text.push_str(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn addresses_are_removed_and_arguments_remain() {
        for (name, expected) in [
            ("gemm<128, 64>", "gemm<128, 64>"),
            ("triton_poi_fused_add_17", "triton_poi_fused_add_17"),
            ("call at 0x7f3a5c001020, 0x7f3a5c001021", "call at 0x…, 0x…"),
            ("flags<0x10>(0xABCDEF)", "flags<0x10>(0x…)"),
            ("0x", "0x"),
        ] {
            assert_eq!(normalised(name), expected, "{name}");
        }
    }
}
