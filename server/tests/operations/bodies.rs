//! Request bodies from the attacks: small bodies that cause large computations, and bodies that
//! expand.

use flate2::{Compress, Compression, FlushCompress};
use serde_json::json;

/// Attack finding 1: a 900-byte scenario with 537,000 spans per iteration.
pub(crate) fn endless(iterations: u32) -> serde_json::Value {
    json!({
        "schema": "scenario/1",
        "model": {"name": "m", "modules": [{
            "name": "b", "role": "backbone", "layers": 1024, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096,
            "gated": true, "mask": "causal", "norm": "rms", "bias": "none", "dropout": false, "vocab": 32000,
            "tied_embeddings": false, "learned_positions": 0
        }]},
        "cluster": {"preset": "a100-80gb", "nodes": 128},
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": {"kind": "uniform", "min": 100, "max": 2048},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 262, "context_length": 2048, "packing": "single"
        },
        "layout": {"tensor": 1, "pipeline": 1024, "microbatch": 1},
        "planners": ["1f1b"], "seed": 1, "iterations": iterations
    })
}

/// Attack finding 3: objects of 7 bytes that occupy several hundred bytes in memory.
pub(crate) fn expanding(schema: &str, bytes: usize) -> Vec<u8> {
    let head = format!("{{\"schema\":\"{schema}\",\"x\":[");
    let values = "{\"\":0},".repeat((bytes - head.len() - 3) / 7);
    format!("{head}{values}0]}}").into_bytes()
}

/// Creates a gzip stream of about 1 MB that decompresses to 1 GiB of a single byte. The stream
/// repeats a byte-aligned block. The checksum is invalid, which is only detected at the end.
pub(crate) fn packed(byte: u8) -> Vec<u8> {
    let piece = vec![byte; 16 << 20];
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut block = Vec::with_capacity(1 << 20);
    deflate.compress_vec(&piece, &mut block, FlushCompress::Full).unwrap();
    assert_eq!(deflate.total_in(), piece.len() as u64);
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for _ in 0..64 {
        file.extend_from_slice(&block);
    }
    // An empty last block, then checksum and length.
    file.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file
}
