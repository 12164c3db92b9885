//! Time and memory for importing a trace with a million events through the complete server.
//!
//! `cargo bench --package planscope-tests --bench import_trace`, with `-- EVENTS` for another
//! number. The benchmark first writes the file with the content of a Kineto trace: nested host
//! operators, runtime calls, kernels on streams, arrows, arguments. The time is measured from the
//! first sent byte to the response, after everything is stored. The memory is the process peak
//! (VmHWM), which writing the file does not raise.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use api::trace::{TraceDetail, UploadedTrace};
use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::TestServer;

/// Target: 5 s and 500 MB on two cores.
const EVENTS: u64 = 1_000_000;
const CHUNK: usize = 64 << 10;

fn main() -> std::io::Result<()> {
    let events = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(EVENTS);
    let folder = tempfile::TempDir::new()?;
    let (plain, packed) = (folder.path().join("trace.json"), folder.path().join("trace.json.gz"));
    write_trace(BufWriter::new(File::create(&plain)?), events)?;
    write_trace(BufWriter::new(GzEncoder::new(File::create(&packed)?, Compression::fast())), events)?;
    println!("{events} events; before the first import the process has had at most {:.0} MB", peak_mb());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (name, path) in [("plain", &plain), ("gzip", &packed)] {
        runtime.block_on(import(name, path));
    }
    Ok(())
}

async fn import(name: &str, path: &Path) {
    let server = TestServer::open().await;
    let file_mb = path.metadata().map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
    let began = Instant::now();
    let reply = server.post(api::path::TRACES, streamed(path)).await;
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(reply.status, 201, "{reply:?}");
    let UploadedTrace { trace, report } = reply.json();
    let peak = peak_mb();
    println!(
        "{name}: {file_mb:.0} MB read in {seconds:.2} s, {} slices, {:.1} MB stored, peak of the process {peak:.0} MB; {} events used",
        trace.slices,
        trace.stored_bytes as f64 / 1e6,
        report.used
    );
    println!("measured {name}, time: {:.0} ms", seconds * 1e3);
    println!("measured {name}, memory: {peak:.0} MB");
    let detail: TraceDetail = server.get(&api::path::trace(&trace.id)).await.json();
    println!("  levels beyond the slices: {:?} ns", detail.level_widths_ns);
    for share in [1.0, 0.1, 0.01, 0.001] {
        let (from, to) = (trace.span_ns / 2, trace.span_ns / 2 + (trace.span_ns as f64 * share / 2.0) as u64);
        let began = Instant::now();
        let reply = server.get(&api::path::trace_view(&trace.id, from, to, 1200, "")).await;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        let view = api::trace::decode(&reply.body).expect("a view");
        println!(
            "  view of {:.2} %: {milliseconds:.1} ms, level {}, {} parts, {} spans, {:.0} kB",
            share * 50.0,
            view.level,
            view.chunks,
            view.len(),
            reply.body.len() as f64 / 1e3
        );
    }
}

/// Returns the file as a body in pieces.
fn streamed(path: &Path) -> Body {
    let mut file = File::open(path).expect("the file that was written");
    Body::from_stream(futures::stream::iter(std::iter::from_fn(move || {
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk) {
            Ok(0) => None,
            Ok(read) => {
                chunk.truncate(read);
                Some(Ok(Bytes::from(chunk)))
            }
            Err(error) => Some(Err(error)),
        }
    })))
}

/// Writes events. Per ten events: two nested host operators, two runtime calls, two kernels, a
/// collective, a copy, two arrow ends.
fn write_trace(mut to: impl Write, events: u64) -> std::io::Result<()> {
    write!(to, r#"{{"schemaVersion": 1, "distributedInfo": {{"rank": 0, "world_size": 8}}, "traceEvents": ["#)?;
    let mut line = String::new();
    for number in 0..events {
        let (round, part) = (number / 10, number % 10);
        let host = round as f64 * 37.25 + 1_712_195_495_519_689.0 % 1e9;
        line.clear();
        if number > 0 {
            line.push(',');
        }
        let correlation = number - part;
        let kernel = format!(
            "void at::native::vectorized_elementwise_kernel<4, at::native::Functor{}<float>>(int, float*)",
            round % 700
        );
        let (category, name, pid, tid, ts, dur) = match part {
            0 => ("cpu_op", format!("aten::op{}", round % 300), 4242, 4242 + round % 4, host, 30.5),
            1 => ("cpu_op", "aten::copy_".to_owned(), 4242, 4242 + round % 4, host + 1.0, 12.125),
            2 => ("cuda_runtime", "cudaLaunchKernel".to_owned(), 4242, 4242 + round % 4, host + 2.0, 5.0),
            3 => ("cuda_runtime", "cudaMemcpyAsync".to_owned(), 4242, 4242 + round % 4, host + 8.0, 3.0),
            4 => ("kernel", kernel, 0, 7, host + 10.0, 14.375),
            5 => (
                "kernel",
                "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn".to_owned(),
                0,
                7,
                host + 25.0,
                11.0,
            ),
            6 => (
                "kernel",
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)".to_owned(),
                0,
                20,
                host + 12.0,
                21.5,
            ),
            7 => ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)".to_owned(), 0, 24, host + 14.0, 2.0),
            _ => (
                "ac2g",
                "ac2g".to_owned(),
                if part == 8 { 4242 } else { 0 },
                if part == 8 { 4242 + round % 4 } else { 7 },
                host + if part == 8 { 2.0 } else { 10.0 },
                0.0,
            ),
        };
        let written = if part < 8 {
            write!(
                line,
                r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {ts:.3}, "dur": {dur:.3}, "args": {{"External id": {number}, "device": 0, "stream": {tid}, "correlation": {correlation}, "bytes": {bytes}}}}}"#,
                bytes = number % 65_536
            )
        } else {
            let phase = if part == 8 { "s" } else { "f" };
            write!(
                line,
                r#"{{"ph": "{phase}", "id": {correlation}, "pid": {pid}, "tid": {tid}, "ts": {ts:.3}, "cat": "{category}", "name": "{name}", "bp": "e"}}"#
            )
        };
        written.expect("a string takes every character");
        line.push('\n');
        to.write_all(line.as_bytes())?;
    }
    to.write_all(b"]}")?;
    to.flush()
}

/// Peak memory of the process, in MB.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().unwrap_or_default();
    kib * 1024.0 / 1e6
}
