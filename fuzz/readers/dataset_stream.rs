//! Length files in chunks, Arrow files from a source, and a Parquet footer alone.

use ingest::dataset::parquet::{self, Footer};
use ingest::dataset::{Options, Stream, arrow, merge};

/// Maximum unpacked size of an input in bytes.
const UNPACKED: u64 = 8 << 20;

/// Runs the target on an input.
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
