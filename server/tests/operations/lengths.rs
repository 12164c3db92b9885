//! Tests `planscope lengths`: shards in any compression are merged into a histogram, in a file or
//! on a server.

use std::io::Write;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::process::{Server, planscope, said};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Two shards: 5, 3 and 5 tokens, and 9 tokens. The histogram has a zero-width bin per length.
#[test]
fn shards_are_merged_into_a_histogram() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.jsonl.gz"), gzip("{\"num_tokens\": 5}\n{\"num_tokens\": 3}\n{\"num_tokens\": 5}\n"))
        .unwrap();
    std::fs::write(path("b.jsonl"), "{\"num_tokens\": 9}\n").unwrap();
    let output = planscope(&["lengths", "a.jsonl.gz", "b.jsonl", "--out", "lengths.json"], folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let printed = said(&output);
    assert!(printed.contains("reading 2 of 2: b.jsonl") && printed.contains("4 rows read"), "{printed}");
    let document: Value = serde_json::from_slice(&std::fs::read(path("lengths.json")).unwrap()).unwrap();
    let expected = json!({
        "schema": "hist/1", "unit": "tokens",
        "edges": [3.0, 3.0, 5.0, 5.0, 9.0, 9.0], "counts": [1.0, 0.0, 2.0, 0.0, 1.0]
    });
    assert_eq!(document, expected);

    let server = Server::start(folder.path(), &[]);
    let arguments = ["lengths", "a.jsonl.gz", "b.jsonl", "--server", &server.origin, "--name", "web pages"];
    let output = planscope(&arguments, folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let list = server.client().asks("GET", "/api/v1/datasets", None, "").unwrap().json();
    assert_eq!(
        (&list["datasets"][0]["name"], &list["datasets"][0]["samples"]),
        (&json!("web pages"), &json!(4)),
        "{list}"
    );
}

/// Shards without rows: an empty file, a header, an empty list. The report lists them.
#[test]
fn empty_shards_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [("a.csv", "num_tokens\n5\n7\n"), ("b.csv", ""), ("c.csv", "num_tokens\n"), ("d.json", "[]")] {
        std::fs::write(path(name), text).unwrap();
    }
    let output = planscope(&["lengths", "a.csv", "b.csv", "c.csv", "d.json", "--out", "x.json"], folder.path());
    let printed = said(&output);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("2 rows read") && printed.contains("3 of 4 files hold no rows: b.csv, c.csv, d.json"),
        "{printed}"
    );
    let output = planscope(&["lengths", "b.csv", "c.csv"], folder.path());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("file is empty"), "{}", said(&output));
}

/// `planscope lengths FILE | head` exits without an error.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "num_tokens\n5\n7\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_planscope"))
        .args(["lengths", "a.csv"])
        .current_dir(folder.path())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && !said(&output).contains("panicked"), "{}", said(&output));
}

#[test]
fn rejected_shard_stops_the_import() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.csv"), "num_tokens\n5\n").unwrap();
    std::fs::write(path("b.csv"), "year\n2020\n2021\n").unwrap();
    std::fs::write(path("c.csv"), "prompt_tokens\n5\n").unwrap();
    std::fs::write(path("d.jsonl.gz"), &gzip(&"{\"num_tokens\": 5}\n".repeat(1000))[..40]).unwrap();
    for (arguments, problem) in [
        (&["lengths", "a.csv", "b.csv", "--out", "x.json"][..], "not clear which column"),
        (&["lengths", "a.csv", "c.csv", "--out", "x.json"], "cannot be merged"),
        (&["lengths", "d.jsonl.gz", "--out", "x.json"], "cut or broken"),
        (&["lengths", "missing.csv", "--out", "x.json"], "missing.csv"),
        (&["lengths", "a.csv", "--column", "nope", "--out", "x.json"], "\"nope\""),
        (&["lengths", "a.csv", "--unit", "words", "--out", "x.json"], "tokens, characters or bytes"),
        (&["lengths", "a.csv", "--tokenizer", "a.csv", "--out", "x.json"], "tokenizer"),
        (&["lengths", "a.csv", "--server", "http://127.0.0.1:1", "--out", "x.json"], "does not answer"),
    ] {
        let output = planscope(arguments, folder.path());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(problem), "{problem}: {}", said(&output));
        assert!(!path("x.json").exists(), "{arguments:?}");
    }
}
