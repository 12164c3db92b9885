//! Injects file system errors. Acknowledged data must persist, errors must be reported, and the
//! server must recover.

use std::path::Path;
use std::process::Command;

use super::process::{Client, Server, TestResponse, is_at_hand, lengths, planscope, said, scenario, step};

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
    fn stores(&mut self, client: &Client, number: u32) -> Vec<TestResponse> {
        let mut rejected = Vec::new();
        let scenario = client.send("PUT", api::path::SCENARIOS, &scenario(number, 1));
        let dataset = client.send("POST", api::path::DATASETS, &lengths(number, 20_000));
        let kinds: [(TestResponse, &str, Address); 2] =
            [(scenario, "/id", api::path::scenario), (dataset, "/dataset/id", api::path::dataset)];
        for (response, pointer, path) in kinds {
            if [200, 201].contains(&response.status) {
                self.paths.push(path(&response.field(pointer)));
            } else {
                rejected.push(response);
            }
        }
        let piece: String = (0..200).map(|line| step(number * 200 + line)).collect();
        let path = format!("{}?offset={}", api::path::run_log(&self.run), self.log.len());
        let upload_response = client.asks("PATCH", &path, Some(&self.token), &piece).expect("an answer");
        if upload_response.status == 204 {
            self.log += &piece;
        } else {
            rejected.push(upload_response);
            // Bytes before the fault may be stored. The log offset acknowledges them.
            let stored = client.get(&api::path::run_log(&self.run)).text;
            let sent = format!("{}{piece}", self.log);
            assert!(stored.len() >= self.log.len() && sent.starts_with(&stored), "the log is another one");
            self.log = stored;
        }
        rejected
    }

    fn is_there(&self, client: &Client) {
        for path in &self.paths {
            assert_eq!(client.get(path).status, 200, "{path}");
        }
        assert_eq!(client.get(&api::path::run_log(&self.run)).text, self.log);
    }
}

/// Checks that a refusal is a readable problem document that reports an environment error.
fn is_plain(response: &TestResponse) {
    assert!([503, 507].contains(&response.status), "{response:?}");
    assert!(response.field("/type").starts_with("/problems/"), "{response:?}");
    let detail = response.field("/detail");
    assert!(detail.contains(' ') && !detail.contains("SqliteError") && !detail.contains("Os {"), "{detail}");
}

/// Stores items up to a refusal, removes the cause, and checks that new items can be stored.
fn survives(server: &Server, mut cause: impl FnMut(bool)) -> Acknowledged {
    let client = server.client();
    let mut acknowledged = Acknowledged::begin(&client);
    cause(true);
    let mut rejected = Vec::new();
    for number in 0..200 {
        rejected = acknowledged.stores(&client, number);
        if !rejected.is_empty() {
            break;
        }
    }
    assert!(!rejected.is_empty(), "nothing failed");
    rejected.iter().for_each(is_plain);
    acknowledged.is_there(&client);
    assert_eq!(client.get(api::path::HEALTH).status, 200);
    cause(false);
    for number in 1000..1003 {
        let errors = acknowledged.stores(&client, number);
        assert!(errors.is_empty(), "{errors:?}");
    }
    acknowledged.is_there(&client);
    assert_eq!(client.get(api::path::READY).status, 200);
    acknowledged
}

/// Kills the server and checks that a new server has all data.
fn assert_persisted(server: Server, folder: &Path, acknowledged: &Acknowledged) {
    server.kill();
    let report = planscope(&["verify"], folder);
    assert!(report.status.success(), "{}", said(&report));
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
    assert_persisted(server, folder.path(), &acknowledged);
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
    assert_persisted(server, &folder, &acknowledged);
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
    let rejected = acknowledged.stores(&client, 1);
    assert!(rejected.is_empty(), "{rejected:?}");
    let trace = r#"[{"name": "a", "ph": "X", "ts": 0, "dur": 5, "pid": 1, "tid": 1}]"#;
    let response = client.send("POST", api::path::TRACES, trace);
    assert_eq!(response.status, 201, "{response:?}");
    assert_persisted(server, folder.path(), &acknowledged);
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
    assert_persisted(server, &folder, &acknowledged);
    drop(mounted);
}
