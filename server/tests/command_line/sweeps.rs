//! Tests sweeps without a server: shards, killed processes, and merging.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

fn planscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_planscope")).args(arguments).env_clear().output().unwrap()
}

/// Writes a sweep over a number of seeds to a file.
fn sweep(folder: &Path, seeds: u32) -> String {
    let sweep = json!({
        "schema": "sweep/1",
        "scenario": {
            "schema": "scenario/1",
            "model": {"preset": "llama-2-7b"},
            "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {
                "samples": {
                    "kind": "drawn",
                    "text_tokens": {"kind": "uniform", "min": 100, "max": 2000},
                    "images": {"kind": "constant", "value": 0}
                },
                "global_batch": 8, "context_length": 2048, "packing": "single"
            },
            "layout": {"tensor": 2, "pipeline": 2},
            "planners": ["1f1b"],
            "iterations": 1
        },
        "axes": [{"pointer": "/cluster/nodes", "values": [0, 1]}],
        "seeds": (0..seeds).collect::<Vec<u32>>(),
    });
    let path = folder.join(format!("sweep-{seeds}.json"));
    fs::write(&path, sweep.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

fn lines(path: &str) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn merged_shards_equal_the_unsharded_output() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = sweep(folder, 5);
    let full = path(folder, "whole.jsonl");
    let written = planscope(&["sweep", &sweep, "--out", &full, "--threads", "3"]);
    assert!(written.status.success(), "{}", output_text(&written));
    let mut united = Vec::new();
    for share in ["1/3", "2/3", "3/3"] {
        let output = planscope(&["sweep", &sweep, "--shard", share, "--threads", "1"]);
        assert!(output.status.success(), "{}", output_text(&output));
        united.extend(String::from_utf8(output.stdout).unwrap().lines().skip(1).map(str::to_owned));
    }
    let index = |line: &String| serde_json::from_str::<Value>(line).unwrap()["index"].as_u64();
    united.sort_by_key(index);
    assert_eq!(united, lines(&full)[1..]);
    assert_eq!(united.len(), 10);
    assert!(united[0].contains("\"invalid\"") && united[9].contains("iteration_s"), "{united:?}");
    let again = planscope(&["sweep", &sweep, "--out", &full]);
    assert_eq!(again.status.code(), Some(1), "a file that is there is not written over");
}

#[test]
fn a_killed_process_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = sweep(folder, 300);
    let (full, cut) = (path(folder, "whole.jsonl"), path(folder, "cut.jsonl"));
    assert!(planscope(&["sweep", &sweep, "--out", &full]).status.success());
    let all = lines(&full);
    for kill in 0..3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_planscope"))
            .args(["sweep", &sweep, "--out", &cut, "--resume", "--threads", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Kill the process as soon as it has written new data.
        let before = fs::read(&cut).map_or(0, |bytes| bytes.len());
        while fs::read(&cut).map_or(0, |bytes| bytes.len()) <= before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Simulate a machine crash with an incomplete line.
        let half = &all[1].as_bytes()[..20 + kill];
        OpenOptions::new().append(true).open(&cut).unwrap().write_all(half).unwrap();
    }
    let done = planscope(&["sweep", &sweep, "--out", &cut, "--resume"]);
    assert!(done.status.success(), "{}", output_text(&done));
    assert_eq!(fs::read(&cut).unwrap(), fs::read(&full).unwrap());
    // A repeated run has no work to do, and a different sweep is not appended to the file.
    assert!(planscope(&["sweep", &sweep, "--out", &cut, "--resume"]).status.success());
    assert_eq!(fs::read(&cut).unwrap(), fs::read(&full).unwrap());
    let other = planscope(&["sweep", &self::sweep(folder, 2), "--out", &cut, "--resume"]);
    assert!(other.status.code() == Some(1) && output_text(&other).contains("line 1"), "{}", output_text(&other));
}

#[test]
fn shares_are_gathered_once_and_missing_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = sweep(folder, 5);
    let database = path(folder, "planscope.db");
    let share = |number: u32| {
        let out = path(folder, &format!("points-{number}.jsonl"));
        let output = planscope(&["sweep", &sweep, "--shard", &format!("{number}/4"), "--out", &out]);
        assert!(output.status.success(), "{}", output_text(&output));
        out
    };
    let (first, second, fourth) = (share(1), share(2), share(4));
    for added in ["8 new", "0 new"] {
        let output = planscope(&["import", &first, &second, &fourth, "--database", &database]);
        assert_eq!(output.status.code(), Some(3), "{}", output_text(&output));
        // Ten points in four shards: the third shard contains points 2 and 6.
        for expected in [added, "missing points: 2, 6\n", "missing shards of 4: 3\n"] {
            assert!(output_text(&output).contains(expected), "{expected}: {}", output_text(&output));
        }
    }
    let output = planscope(&["import", &share(3), "--database", &database]);
    assert!(
        output.status.success() && output_text(&output).contains("all 10 points are there"),
        "{}",
        output_text(&output)
    );

    let foreign = path(folder, "foreign.jsonl");
    let mut text = lines(&first);
    text[2] = text[2].replace("planscope 0", "planscope 9");
    fs::write(&foreign, text.join("\n") + "\n").unwrap();
    let rejected = planscope(&["import", &foreign, "--database", &database]);
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        output_text(&rejected).contains("foreign.jsonl: line 3: was made by planscope 9"),
        "{}",
        output_text(&rejected)
    );
    let two = planscope(&["sweep", &self::sweep(folder, 2), "--out", &path(folder, "two.jsonl")]);
    assert!(two.status.success());
    let mismatched = planscope(&["import", &first, &path(folder, "two.jsonl"), "--database", &database]);
    assert!(
        output_text(&mismatched).contains("two.jsonl: line 1 belongs to the sweep"),
        "{}",
        output_text(&mismatched)
    );
}

#[test]
fn a_wrong_sweep_exits_with_two() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path(), "wrong.json");
    fs::write(&path, r#"{"schema": "sweep/1", "scenario": {}, "axes": []}"#).unwrap();
    let output = planscope(&["sweep", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output_text(&output).contains("axes"), "{}", output_text(&output));
    assert_eq!(planscope(&["sweep", &path, "--shard", "3/2"]).status.code(), Some(2));
}
