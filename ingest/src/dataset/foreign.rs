//! Detects unsupported formats and suggests a conversion.

use super::ImportError;

/// First bytes, name, and remedy.
const MAGIC: [(&[u8], &str, &str); 7] = [
    (
        b"ORC",
        "an ORC file",
        "write it as Parquet: pyarrow.parquet.write_table(pyarrow.orc.read_table('in.orc'), 'out.parquet')",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file",
        "write the lengths as an array: numpy.save('lengths.npy', h5py.File('in.h5')['lengths'][:])",
    ),
    (b"Obj\x01", "an Avro file", "write it as Parquet: polars.read_avro('in.avro').write_parquet('out.parquet')"),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "write one column: sqlite3 -csv -header in.db 'select num_tokens from samples' > lengths.csv",
    ),
    (
        b"FEA1",
        "a Feather file of version 1",
        "write it as Parquet: pandas.read_feather('in.feather').to_parquet('out.parquet')",
    ),
    (
        b"TDXIDX\0\0",
        "an index of fairseq",
        "write the lengths as an array: numpy.save('lengths.npy', MMapIndexedDataset('prefix').sizes)",
    ),
    (
        b"TNTIDX\0\0",
        "an index of fairseq",
        "write the lengths as an array: numpy.save('lengths.npy', IndexedDataset('prefix').sizes)",
    ),
];

/// Returns the error for an unsupported format; `None` for other files.
pub(super) fn refuse(bytes: &[u8]) -> Option<ImportError> {
    let binary = |looks_like, remedy| Some(ImportError::Binary { looks_like, remedy });
    if let Some((_, looks_like, remedy)) = MAGIC.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return binary(looks_like, remedy);
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return binary(
            "a tar archive (or WebDataset)",
            "unpack it, and write the length of each sample into a text or CSV file",
        );
    }
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u64::from_le_bytes(*length);
    if (2..100 << 20).contains(&length) && rest.starts_with(b"{\"") {
        return binary("a safetensors file", "it holds weights; upload the lengths of a dataset");
    }
    // A record is its length, a checksum, and a tf.train.Example message, whose first field has tag
    // 0x0a.
    if (2..1 << 32).contains(&length) && rest.get(4) == Some(&0x0a) && bytes.contains(&0) {
        return binary("a TFRecord file", "write the length of each record into a text or CSV file");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_formats_have_names() {
        let tar = [&[b'x'; 257][..], b"ustar\0"].concat();
        let record = [&20_u64.to_le_bytes()[..], b"abcd\x0a\x12"].concat();
        let tensors = [&9_u64.to_le_bytes()[..], b"{\"a\": {}}"].concat();
        for (bytes, name) in [
            (&b"ORC\x01"[..], "ORC"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"Obj\x01", "Avro"),
            (b"SQLite format 3\0", "SQLite"),
            (b"FEA1\0", "Feather"),
            (b"TNTIDX\0\0", "fairseq"),
            (&tar, "tar"),
            (&record, "TFRecord"),
            (&tensors, "safetensors"),
        ] {
            assert!(refuse(bytes).is_some_and(|error| error.to_string().contains(name)), "{name}");
        }
        for bytes in [&b"length\n512\n300\n"[..], b"{\"num_tokens\": 3}\n", b"", b"12345678", b"[1, 2, 3, 4, 5, 6, 7]"]
        {
            assert_eq!(refuse(bytes), None);
        }
    }
}
