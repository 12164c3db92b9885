//! Kernel, layer and scheme profiles. All readers read every file.

use ingest::profile::{self, Hints, layers, schemes};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let hints = match bytes.len() % 3 {
        0 => Hints::default(),
        1 => Hints { name: "AR_GPU8_1M_H100.csv".to_owned(), ..Hints::default() },
        _ => Hints { name: "sp_time_2nodes_8gpus_per_node.json".to_owned(), ranks: Some(4), ranks_per_node: Some(8) },
    };
    match profile::read(bytes, &hints) {
        Ok(read) => assert!(read.report.used <= read.report.rows),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(read) = layers::read(bytes, &hints) {
        drop(layers::tables(&[read], Some(1)));
    }
    let _ = schemes::is(bytes);
    if let Ok(read) = schemes::read(bytes) {
        drop(schemes::schemes(&read.timings));
    }
}
