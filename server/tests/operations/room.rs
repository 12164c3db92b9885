//! Tests a full disk that later has free space again.

use std::process::Command;

use super::process::{Server, is_at_hand, lengths, planscope, said};

#[test]
fn full_disk_is_reported_and_reads_continue() {
    if !is_at_hand("prlimit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A file size limit simulates a full disk without privileges. SIGXFSZ is ignored: a full disk
    // does not send this signal, which terminates the program.
    let limit = "--fsize=2000000:unlimited";
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", "prlimit", limit]);
    command.args([env!("CARGO_BIN_EXE_planscope"), "serve", "--address", "127.0.0.1:0"]);
    let server = Server::run(command, folder.path());
    let client = server.client();

    let mut stored = Vec::new();
    let rejection = loop {
        let response = client.send("POST", api::path::DATASETS, &lengths(stored.len() as u32, 40_000));
        if response.status != 201 {
            break response;
        }
        stored.push(response.field("/dataset/id"));
        assert!(stored.len() < 100, "the disk is never full");
    };
    assert!([503, 507].contains(&rejection.status), "{rejection:?}");
    assert!(rejection.field("/detail").contains("Nothing was stored"), "{rejection:?}");
    assert!(!stored.is_empty());
    for id in &stored {
        assert_eq!(client.get(&api::path::dataset(id)).status, 200);
    }
    assert_eq!(client.get(api::path::HEALTH).status, 200);

    let more = Command::new("prlimit").args(["--pid", &server.pid(), "--fsize=unlimited:unlimited"]).status().unwrap();
    assert!(more.success());
    let later_response = client.send("POST", api::path::DATASETS, &lengths(stored.len() as u32, 40_000));
    assert_eq!(later_response.status, 201, "{later_response:?}");
    assert_eq!(client.get(api::path::READY).status, 200);
    assert!(server.stop().0.success());
    let report = planscope(&["verify"], folder.path());
    assert!(report.status.success(), "{}", said(&report));
}
