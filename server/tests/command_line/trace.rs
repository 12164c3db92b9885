//! `planscope trace`.

use std::path::Path;

use planner::trace_comparison::{Cause, RankReport, TraceDifference};
use serde_json::json;

use crate::planscope;

/// Writes two steps of a rank: a kernel of `compute` µs, then an all-reduce that ends at 90 µs.
fn rank(folder: &Path, name: &str, compute: u32) -> String {
    let mut events = Vec::new();
    for step in 0..2_u32 {
        let at = step * 100;
        events.extend([
            json!({"ph": "X", "cat": "user_annotation", "name": format!("ProfilerStep#{step}"), "pid": 9, "tid": 1, "ts": at, "dur": 95}),
            json!({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 5, "dur": compute}),
            json!({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 8, "ts": at + 5 + compute, "dur": 85 - compute}),
        ]);
    }
    let path = folder.join(name);
    std::fs::write(&path, json!(events).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn output(arguments: &[&str]) -> String {
    let output = planscope(&[&["trace"], arguments].concat(), "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn traces_are_summed_up_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after, slow] = [("rank0.json", 40), ("rank1.json", 45), ("rank-2.json", 70)]
        .map(|(name, compute)| rank(folder.path(), name, compute));
    let text = output(&[&before]);
    assert!(
        text.starts_with("rank0.json, rank 0: 0.185 ms from the first kernel to the end of the last; 2 steps, "),
        "{text}"
    );
    assert!(text.contains("Kernels, longest first") && text.contains("Phases, times in ms"), "{text}");

    let text = output(&["--compare", &before, &after]);
    assert!(text.contains("total over 2 steps: 0.195 ms before, 0.195 ms after, +0.0 %"), "{text}");
    let csv = output(&["--compare", &before, &after, "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "name,activity,before_ns,after_ns,difference_ns,count_before,count_after");
    assert!(lines.contains(&"gemm,compute,80000,90000,10000,2,2"), "{csv}");
    let difference: TraceDifference = serde_json::from_str(&output(&["--compare", &before, &after, "--json"])).unwrap();
    assert_eq!((difference.steps.len(), difference.after.rank), (2, 1));

    let files = [before.as_str(), &after, &slow];
    let text = output(&[&["--ranks"], &files[..]].concat());
    assert!(text.contains("straggler: rank 2 causes 100.0 % of the waiting"), "{text}");
    let report: RankReport = serde_json::from_str(&output(&[&["--ranks", "--json"], &files[..]].concat())).unwrap();
    assert_eq!(report.straggler.unwrap().cause, Cause::SlowerKernels);
    assert!(
        output(&[&["--ranks", "--csv=groups"], &files[..]].concat()).contains(",allreduce,2,110000,30000,2,110000")
    );

    let refusals: [(&[&str], &str); 5] = [
        (&["--compare", &before], "--compare takes two traces, not 1"),
        (&["--ranks", &before], "at least two are needed"),
        (&["--compare", &before, &after, "--csv=ranks"], "there are kernels, phases, steps"),
        (&[&before, "--rank", "7"], "of this rank"),
        (&["/nowhere/rank0.json"], "cannot open"),
    ];
    for (arguments, message) in refusals {
        let output = planscope(&[&["trace"], arguments].concat(), "");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && error.contains(message), "{arguments:?}: {error}");
    }
}
