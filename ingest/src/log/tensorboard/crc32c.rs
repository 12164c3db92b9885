//! The checksum of records: CRC-32C, masked as TensorFlow's record files do.

/// Castagnoli's polynomial, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// What is added after the rotation, so that checksums of checksums do not degenerate.
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

/// The masked checksum of bytes.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize];
    let crc = !bytes.iter().fold(!0, step);
    crc.rotate_right(15).wrapping_add(MASK)
}

#[cfg(test)]
mod tests {
    /// Both are known vectors: TensorBoard's own, and CRC-32C of "123456789" is e3069283.
    #[test]
    fn known_vectors() {
        assert_eq!(super::masked(b"\x1a\x11CRC test, one two"), 0x5794_d08a);
        assert_eq!(super::masked(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(super::MASK));
    }
}
