//! Tests sweeps with other work: importing shards into a server, and priority of interactive
//! requests over a sweep.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Server, planscope, said, scenario};

const TOKEN: &str = "open-sesame-0123456789";

/// Plans both shards of a sweep over five seeds. Returns the output files.
fn shares(folder: &Path) -> [String; 2] {
    let scenario: Value = serde_json::from_str(&scenario(0, 1)).unwrap();
    let sweep =
        json!({"schema": "sweep/1", "scenario": scenario, "axes": [{"pointer": "/seed", "values": [1, 2, 3, 4, 5]}]});
    fs::write(folder.join("sweep.json"), sweep.to_string()).unwrap();
    ["1", "2"].map(|share| {
        let out = format!("points-{share}.jsonl");
        let planned = planscope(&["sweep", "sweep.json", "--shard", &format!("{share}/2"), "--out", &out], folder);
        assert!(planned.status.success(), "{}", said(&planned));
        out
    })
}

/// Points 0, 2 and 4 belong to the first shard, 1 and 3 to the second.
#[test]
fn shares_are_sent_to_a_server_that_has_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [first, second] = shares(folder);
    let server = Server::start(folder, &["--token", TOKEN]);
    let import =
        |file: &str, token: &str| planscope(&["import", file, "--server", &server.origin, "--token", token], folder);
    for added in ["3 new", "0 new"] {
        let sent = import(&first, TOKEN);
        assert_eq!(sent.status.code(), Some(3), "{}", said(&sent));
        for expected in [added, "missing points: 1, 3\n", "missing shards of 2: 2\n"] {
            assert!(said(&sent).contains(expected), "{expected}: {}", said(&sent));
        }
    }
    let sent = import(&second, TOKEN);
    assert!(sent.status.success() && said(&sent).contains("all 5 points are there"), "{}", said(&sent));

    let ask = |path: &str| server.client().asks("GET", path, Some(TOKEN), "").expect("an answer");
    let id = ask(api::path::SWEEPS).field("/sweeps/0/id");
    let file = ask(&api::path::sweep_file(&id)).text;
    let sent: Vec<String> = [&first, &second].map(|name| fs::read_to_string(folder.join(name)).unwrap()).into();
    for line in sent.iter().flat_map(|text| text.lines().skip(1)) {
        assert!(file.lines().any(|other| other == line), "{line} is not in {file}");
    }
    assert_eq!(file.lines().count(), 6, "a heading and five rows");

    // A direct import into the server's database is refused, because a different version could
    // migrate it while it is in use.
    let past = planscope(&["import", &first, "--database", "planscope.db"], folder);
    assert_eq!(past.status.code(), Some(1), "{}", said(&past));
    assert!(said(&past).contains("in use") && said(&past).contains("--server"), "{}", said(&past));

    // The command fails for an invalid token, an unreachable server, and a row from a different
    // engine.
    let unauthorised = import(&first, "open-sesame-9876543210");
    assert!(unauthorised.status.code() == Some(1) && said(&unauthorised).contains("401"), "{}", said(&unauthorised));
    let mut lines: Vec<String> = sent[0].lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("planscope 0", "planscope 9");
    fs::write(folder.join("foreign.jsonl"), lines.join("\n") + "\n").unwrap();
    let foreign = import("foreign.jsonl", TOKEN);
    assert_eq!(foreign.status.code(), Some(1), "{}", said(&foreign));
    assert!(said(&foreign).contains("foreign.jsonl: line 3: was made by planscope 9"), "{}", said(&foreign));
    let away = planscope(&["import", &first, "--server", "http://127.0.0.1:9"], folder);
    assert!(away.status.code() == Some(1) && said(&away).contains("does not answer"), "{}", said(&away));
}

/// An interactive request gets the only worker after the current point, before the remaining
/// points.
#[test]
fn people_are_answered_while_a_sweep_has_points_left() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--workers", "1"]);
    let client = server.client();
    let base: Value = serde_json::from_str(&scenario(0, 1)).unwrap();
    let seeds: Vec<u32> = (0..50_000).collect();
    let sweep = json!({"schema": "sweep/1", "scenario": base, "axes": [{"pointer": "/seed", "values": seeds}]});
    let id = client.send("POST", api::path::SWEEPS, &sweep.to_string()).field("/id");
    assert_eq!(client.send("POST", &api::path::sweep_start(&id), "").status, 200);
    for seed in 100_000..100_003 {
        let url = format!("{}{}", server.origin, api::path::plan_preview(0));
        let response = ureq::post(url).header("Content-Type", "application/json").send(scenario(seed, 1));
        assert_eq!(response.unwrap().status(), 200);
        let stored = client.stores(seed + 10, 1);
        let job = client.send("POST", &api::path::plan(&stored), "").field("/id");
        while client.get(&api::path::job(&job)).field("/state/state") != "done" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let progress = &client.get(&api::path::sweep(&id)).json()["progress"];
    assert_eq!(progress["state"]["state"], "running", "{progress}");
    assert!(progress["done"].as_u64().unwrap() < 50_000, "{progress}");
}
