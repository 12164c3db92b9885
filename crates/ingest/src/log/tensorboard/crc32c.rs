//! CRC-32C checksum, masked as in TensorFlow record files.

/// Castagnoli polynomial, bit-reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// Constant added after the rotation. Masking avoids problems with checksums over data that
/// contains checksums.
const MASK: u32 = 0xa282_ead8;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

pub(super) fn masked(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize];
    let crc = !bytes.iter().fold(!0, step);
    crc.rotate_right(15).wrapping_add(MASK)
}

#[cfg(test)]
mod tests {
    /// Known test vectors: a TensorBoard record, and CRC-32C("123456789") = e3069283.
    #[test]
    fn known_vectors() {
        assert_eq!(super::masked(b"\x1a\x11CRC test, one two"), 0x5794_d08a);
        assert_eq!(super::masked(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(super::MASK));
    }
}
