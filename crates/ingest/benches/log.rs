//! Benchmark: parses a 100 MB log that repeats a Megatron-LM step, timer lines and memory lines for
//! two ranks.

use std::fmt::Write;

use divan::Bencher;
use divan::counter::BytesCount;
use ingest::log::LogParser;

const BYTES: usize = 100_000_000;

fn main() {
    divan::main();
}

fn log() -> Vec<u8> {
    let mut log = String::with_capacity(BYTES + 1000);
    let mut step = 0;
    while log.len() < BYTES {
        step += 1;
        let _ = write!(
            log,
            " iteration {step:8}/ 1000000 | consumed samples: {:12} | elapsed time per iteration (ms): 2012.4 | throughput per \
             GPU (TFLOP/s/GPU): 181.3 | learning rate: 1.500E-04 | global batch size:   256 | lm loss: 2.345678E+00 | loss \
             scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 | number of nan iterations:   0 |\n\
             time (ms) | forward-compute: 650.20 | backward-compute: 1201.71 | optimizer: 88.05\n\
             [Rank 0] (after {step} iterations) memory (MB) | allocated: 20480.0 | max allocated: 31232.0 | reserved: 40000.0 | \
             max reserved: 41000.0\n",
            step * 256
        );
    }
    log.into_bytes()
}

#[divan::bench(sample_count = 5)]
fn megatron_100_mb(bencher: Bencher<'_, '_>) {
    let log = log();
    bencher.counter(BytesCount::new(log.len())).bench(|| {
        let mut parser = LogParser::new();
        let mut points = 0;
        for piece in log.chunks(256 << 10) {
            points += parser.push(piece).len();
        }
        points + parser.finish().0.len()
    });
}
