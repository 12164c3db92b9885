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

/// Returns the error for a text of an unsupported format: a printed array that is shortened, TOML or
/// INI; `None` for other texts.
pub(super) fn refuse_text(text: &str) -> Option<ImportError> {
    let start = text.trim_start();
    if !start.starts_with(['[', 't', 'a']) {
        return None;
    }
    let is_array = start.starts_with('[') || start.starts_with("tensor(") || start.starts_with("array(");
    let is_printed = |c: char| c.is_ascii_digit() || c.is_whitespace() || ".,[]+-e".contains(c);
    let numbers = start.trim_start_matches("tensor(").trim_start_matches("array(").trim_end().trim_end_matches(')');
    if is_array && numbers.contains("...") && numbers.chars().all(is_printed) {
        return Some(ImportError::Broken {
            format: "printed array",
            detail: "it is shortened with \"...\". Write all values, for example numpy.savetxt('lengths.txt', lengths, fmt='%d')"
                .to_owned(),
        });
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).take(100);
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | ' '))
    };
    let is_section = |line: &str| {
        let inner = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        let inner = inner.map(|inner| inner.strip_prefix('[').and_then(|line| line.strip_suffix(']')).unwrap_or(inner));
        inner.is_some_and(|name| is_name(name) && name.contains(char::is_alphabetic))
    };
    let is_setting = |line: &str| line.split_once('=').is_some_and(|(name, _)| is_name(name.trim()));
    let is_toml = lines().next().is_some_and(is_section)
        && lines().any(is_setting)
        && lines().all(|line| is_section(line) || is_setting(line));
    is_toml.then_some(ImportError::Binary {
        looks_like: "a TOML or INI file",
        remedy: "write the lengths as JSON or CSV, one row per sample",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_texts_have_names() {
        for (text, expected) in [
            ("[   0    1    2 ... 4997 4998 4999]\n", "shortened with"),
            ("tensor([  5,   7,  9,  ..., 3, 2, 1])", "shortened with"),
            ("[[sample]]\nnum_tokens = 512\n[[sample]]\nnum_tokens = 300\n", "TOML or INI"),
            ("# lengths\n[train]\nnum_tokens = 512\n", "TOML or INI"),
        ] {
            let error = refuse_text(text.trim_start_matches("# lengths\n")).map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(expected)), "{text}: {error:?}");
        }
        for text in ["[1, 2, 3]", "[{\"a\": \"...\"}]", "a = 5\n", "[512\n300]", "array([1, 2])"] {
            assert_eq!(refuse_text(text), None, "{text}");
        }
    }

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
