//! Injects file system errors. Acknowledged data must persist, errors must be reported, and the
//! server must recover.

use std::path::Path;
use std::process::Command;

use super::process::{Answer, Client, Server, is_at_hand, lengths, planscope, said, scenario, step};

/// Maps an identifier to a path.
type Address = fn(&str) -> String;

/// Data acknowledged by the server.
#[derive(Default)]
struct Acknowledged {
    paths: Vec<String>,
    run: String,
    token: String,
    log: String,
}

impl Acknowledged {
    fn begin(client: &Client) -> Self {
        let opened = client.send("POST", api::path::RUNS, "{}");
        Self { run: opened.field("/run"), token: opened.field("/ingest_token"), ..Self::default() }
    }

    /// Stores an item of each kind. Returns the refusals.
    fn stores(&mut self, client: &Client, number: u32) -> Vec<Answer> {
        let mut refused = Vec::new();
        let scenario = client.send("PUT", api::path::SCENARIOS, &scenario(number, 1));
        let dataset = client.send("POST", api::path::DATASETS, &lengths(number, 20_000));
        let kinds: [(Answer, &str, Address); 2] =
            [(scenario, "/id", api::path::scenario), (dataset, "/dataset/id", api::path::dataset)];
        for (answer, pointer, path) in kinds {
            if [200, 201].contains(&answer.status) {
                self.paths.push(path(&answer.field(pointer)));
            } else {
                refused.push(answer);
            }
        }
        let piece: String = (0..200).map(|line| step(number * 200 + line)).collect();
        let path = format!("{}?offset={}", api::path::run_log(&self.run), self.log.len());
        let answer = client.asks("PATCH", &path, Some(&self.token), &piece).expect("an answer");
        if answer.status == 204 {
            self.log += &piece;
        } else {
            refused.push(answer);
            // Bytes before the fault may be stored. The log offset acknowledges them.
            let stored = client.get(&api::path::run_log(&self.run)).text;
            let sent = format!("{}{piece}", self.log);
            assert!(stored.len() >= self.log.len() && sent.starts_with(&stored), "the log is another one");
            self.log = stored;
        }
        refused
    }

    fn is_there(&self, client: &Client) {
        for path in &self.paths {
            assert_eq!(client.get(path).status, 200, "{path}");
        }
        assert_eq!(client.get(&api::path::run_log(&self.run)).text, self.log);
    }
}

/// Checks that a refusal is a readable problem document that reports an environment error.
fn is_plain(answer: &Answer) {
    assert!([503, 507].contains(&answer.status), "{answer:?}");
    assert!(answer.field("/type").starts_with("/problems/"), "{answer:?}");
    let detail = answer.field("/detail");
    assert!(detail.contains(' ') && !detail.contains("SqliteError") && !detail.contains("Os {"), "{detail}");
}

/// Stores items up to a refusal, removes the cause, and checks that new items can be stored.
fn survives(server: &Server, mut cause: impl FnMut(bool)) -> Acknowledged {
    let client = server.client();
    let mut acknowledged = Acknowledged::begin(&client);
    cause(true);
    let mut refused = Vec::new();
    for number in 0..200 {
        refused = acknowledged.stores(&client, number);
        if !refused.is_empty() {
            break;
        }
    }
    assert!(!refused.is_empty(), "nothing failed");
    refused.iter().for_each(is_plain);
    acknowledged.is_there(&client);
    assert_eq!(client.get(api::path::HEALTH).status, 200);
    cause(false);
    for number in 1000..1003 {
        let refused = acknowledged.stores(&client, number);
        assert!(refused.is_empty(), "{refused:?}");
    }
    acknowledged.is_there(&client);
    assert_eq!(client.get(api::path::READY).status, 200);
    acknowledged
}

/// Kills the server and checks that a new server has all data.
fn is_kept(server: Server, folder: &Path, acknowledged: &Acknowledged) {
    server.kill();
    let verdict = planscope(&["verify"], folder);
    assert!(verdict.status.success(), "{}", said(&verdict));
    let server = Server::start(folder, &[]);
    acknowledged.is_there(&server.client());
}

#[test]
fn files_that_cannot_grow_lose_nothing() {
    if !is_at_hand("prlimit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // With SIGXFSZ ignored, a write beyond the limit fails with EFBIG.
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_planscope"), "serve", "--address", "127.0.0.1:0"]);
    let server = Server::run(command, folder.path());
    let acknowledged = survives(&server, |begins| {
        let limit = if begins { "--fsize=3000000:unlimited" } else { "--fsize=unlimited:unlimited" };
        assert!(Command::new("prlimit").args(["--pid", &server.pid(), limit]).status().unwrap().success());
    });
    is_kept(server, folder.path(), &acknowledged);
}

#[test]
fn a_folder_that_disappears_loses_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let (folder, away) = (outer.path().join("data"), outer.path().join("away"));
    std::fs::create_dir(&folder).unwrap();
    let server = Server::start(&folder, &["--database", folder.join("planscope.db").to_str().unwrap()]);
    let acknowledged = survives(&server, |begins| {
        let (from, to) = if begins { (&folder, &away) } else { (&away, &folder) };
        std::fs::rename(from, to).unwrap();
    });
    is_kept(server, &folder, &acknowledged);
}

/// Uploads do not use the system's temporary folder.
#[test]
fn a_folder_for_temporary_files_that_is_none_hinders_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
    command
        .args(["serve", "--address", "127.0.0.1:0"])
        .env("TMPDIR", "/dev/null/none")
        .env("SQLITE_TMPDIR", "/dev/null/none");
    let server = Server::run(command, folder.path());
    let client = server.client();
    let mut acknowledged = Acknowledged::begin(&client);
    let refused = acknowledged.stores(&client, 1);
    assert!(refused.is_empty(), "{refused:?}");
    let trace = r#"[{"name": "a", "ph": "X", "ts": 0, "dur": 5, "pid": 1, "tid": 1}]"#;
    let answer = client.send("POST", api::path::TRACES, trace);
    assert_eq!(answer.status, 201, "{answer:?}");
    is_kept(server, folder.path(), &acknowledged);
}

/// A separate in-memory file system, unmounted at the end of the test.
struct Mounted<'f>(&'f Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["--lazy".as_ref(), self.0.as_os_str()]).status());
    }
}

#[test]
fn a_full_file_system_loses_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(&folder).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user cannot mount a file system; files_that_cannot_grow_lose_nothing has run");
        return;
    }
    let mounted = Mounted(&folder);
    let ballast = folder.join("ballast");
    let server = Server::start(&folder, &[]);
    let acknowledged = survives(&server, |begins| {
        if begins {
            std::fs::write(&ballast, vec![0; 8 << 20]).unwrap();
        } else {
            std::fs::remove_file(&ballast).unwrap();
        }
    });
    is_kept(server, &folder, &acknowledged);
    drop(mounted);
}
