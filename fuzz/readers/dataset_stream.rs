//! Length files that come in pieces, Arrow files from a source, and the footer of a Parquet file by itself.

use ingest::dataset::parquet::{self, Footer};
use ingest::dataset::{Options, Stream, arrow, merge};

/// Most bytes that an input unpacks to.
const UNPACKED: u64 = 8 << 20;

/// Reads one input.
pub fn read(bytes: &[u8]) {
    let options = Options::default();
    let _ = Stream::is_packed(bytes);
    let mut stream = Stream::new(&options, UNPACKED);
    if bytes.chunks(61).all(|piece| stream.push(piece).is_ok())
        && let Ok(imported) = stream.finish()
    {
        let shards = ["a", "b"].map(|name| (name.to_owned(), imported.clone()));
        drop(merge(shards.into()));
    }
    if arrow::is(bytes) {
        drop(arrow::import_from(bytes, &options));
    }
    let _ = parquet::is(bytes);
    let length = bytes.len() as u64;
    let _ = Footer::bytes(bytes, length);
    if let Ok(footer) = Footer::read(bytes, length) {
        let _ = footer.rows();
        let plan = footer.plan(&options, 1 << 20);
        assert!(plan.ranges.iter().all(|range| range.start <= range.end && range.end <= length), "{plan:?}");
    }
}
