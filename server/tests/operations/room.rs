//! Tests a full disk that later has free space again.

use std::process::Command;

use super::process::{Server, is_at_hand, lengths, planscope, said};

#[test]
fn a_full_disk_is_told_reads_go_on_and_room_is_used_again() {
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
    let refused = loop {
        let answer = client.send("POST", api::path::DATASETS, &lengths(stored.len() as u32, 40_000));
        if answer.status != 201 {
            break answer;
        }
        stored.push(answer.field("/dataset/id"));
        assert!(stored.len() < 100, "the disk is never full");
    };
    assert!([503, 507].contains(&refused.status), "{refused:?}");
    assert!(refused.field("/detail").contains("Nothing was stored"), "{refused:?}");
    assert!(!stored.is_empty());
    for id in &stored {
        assert_eq!(client.get(&api::path::dataset(id)).status, 200);
    }
    assert_eq!(client.get(api::path::HEALTH).status, 200);

    let more = Command::new("prlimit").args(["--pid", &server.pid(), "--fsize=unlimited:unlimited"]).status().unwrap();
    assert!(more.success());
    let answer = client.send("POST", api::path::DATASETS, &lengths(stored.len() as u32, 40_000));
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(client.get(api::path::READY).status, 200);
    assert!(server.stop().0.success());
    let verdict = planscope(&["verify"], folder.path());
    assert!(verdict.status.success(), "{}", said(&verdict));
}
