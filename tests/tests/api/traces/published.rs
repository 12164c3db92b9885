//! Traces as their authors published them, in the folder that PLANSCOPE_DATA names.

use std::path::PathBuf;

use api::trace::{TraceDetail, UploadedTrace};
use harness::TestServer;

use super::view;

/// Slices counted with Python's json, as in the tests of the parser.
#[tokio::test]
async fn published_traces_are_stored_completely() {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set");
        return;
    };
    let server = TestServer::open().await;
    for (name, slices, rank) in [
        ("benchmark_result_2869224_1695835535_trace.json.gz", 868, Some(0)),
        ("mi250_minitoy_train_ROCm6_2_kineto.json.gz", 113, None),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 45_420, Some(0)),
        ("sampled_rank-0.json.gz", 4811, Some(0)),
    ] {
        let bytes = std::fs::read(PathBuf::from(&folder).join("data/traces").join(name)).expect("a published trace");
        let reply = server.post(&format!("{}?name={name}", api::path::TRACES), bytes).await;
        assert_eq!(reply.status, 201, "{name}: {reply:?}");
        let UploadedTrace { trace, report } = reply.json();
        assert_eq!((trace.slices, trace.rank, report.cut), (slices, rank, false), "{name}");
        let detail: TraceDetail = server.get(&api::path::trace(&trace.id)).await.json();
        assert_eq!(detail.busy.len(), 1, "{name}");
        for pixels in [50, 1000, 8192] {
            let visible = view(&server, &trace.id, &format!("pixels={pixels}")).await;
            assert_eq!(visible.count.iter().map(|&count| u64::from(count)).sum::<u64>(), slices, "{name} at {pixels}");
        }
        eprintln!(
            "{name}: {} bytes packed by their authors, {} stored, levels {:?}",
            trace.raw_bytes, trace.stored_bytes, detail.level_widths_ns
        );
    }
}
