//! Tests backup, restore and verification of databases.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::process::{Server, is_at_hand, lengths, planscope, said, step};

/// Starts a server and stores a scenario, a dataset and a run. Returns the paths that must exist
/// after a restore.
fn filled(folder: &Path) -> (Server, Vec<String>) {
    let server = Server::start(folder, &[]);
    let client = server.client();
    let scenario = client.stores(1, 1);
    let dataset = client.send("POST", api::path::DATASETS, &lengths(1, 50)).field("/dataset/id");
    let opened = client.send("POST", api::path::RUNS, "{}");
    let run = opened.field("/run");
    let log = format!("{}?offset=0", api::path::run_log(&run));
    let sent = client.asks("PATCH", &log, Some(&opened.field("/ingest_token")), &(step(1) + &step(2))).unwrap();
    assert_eq!(sent.status, 204, "{sent:?}");
    let paths = vec![api::path::scenario(&scenario), api::path::dataset(&dataset), api::path::run(&run)];
    (server, paths)
}

#[test]
fn backup_during_operation_is_restored_completely() {
    let folder = tempfile::tempdir().unwrap();
    let (server, paths) = filled(folder.path());
    let before: Vec<_> = paths.iter().map(|path| server.client().get(path).json()).collect();
    let created = planscope(&["backup", "copy.db"], folder.path());
    assert!(created.status.success(), "{}", said(&created));
    let bytes = fs::read(folder.path().join("copy.db")).unwrap();

    // Existing files are not overwritten, and no temporary files remain.
    let again = planscope(&["backup", "copy.db"], folder.path());
    assert!(!again.status.success() && said(&again).contains("not overwritten"), "{}", said(&again));
    assert_eq!(fs::read(folder.path().join("copy.db")).unwrap(), bytes);
    let names = || -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert!(!names().iter().any(|name| name.starts_with(".planscope-copy-")), "{:?}", names());

    // Created after the backup, so it must not exist after the restore.
    let later = api::path::scenario(&server.client().stores(2, 1));
    let used = planscope(&["restore", "copy.db", "--replace"], folder.path());
    assert!(!used.status.success() && said(&used).contains("in use"), "{}", said(&used));
    assert_eq!(server.client().get(&later).status, 200);
    assert!(server.stop().0.success());

    let rejected = planscope(&["restore", "copy.db"], folder.path());
    assert!(!rejected.status.success() && said(&rejected).contains("not overwritten"), "{}", said(&rejected));
    let restored = planscope(&["restore", "copy.db", "--replace"], folder.path());
    assert!(restored.status.success(), "{}", said(&restored));
    let old = names().into_iter().find(|name| name.starts_with("planscope.db.replaced-")).expect("the one before");

    let server = Server::start(folder.path(), &[]);
    let after: Vec<_> = paths.iter().map(|path| server.client().get(path).json()).collect();
    assert_eq!(after[..2], before[..2]);
    let bytes = (step(1) + &step(2)).len();
    assert_eq!(before[2]["summary"]["bytes"], bytes);
    assert_eq!(after[2]["summary"]["bytes"], bytes);
    assert_eq!(server.client().get(&later).status, 404);
    assert!(server.stop().0.success());

    // The replaced database can be restored as well.
    assert!(planscope(&["restore", &old, "--replace"], folder.path()).status.success());
    assert_eq!(Server::start(folder.path(), &[]).client().get(&later).status, 200);
}

#[test]
fn a_second_server_does_not_take_the_same_database() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Server::start(folder.path(), &[]);
    let second = planscope(&["serve", "--address", "127.0.0.1:0"], folder.path());
    assert!(!second.status.success() && said(&second).contains("in use"), "{}", said(&second));
}

#[test]
fn invalid_backups_are_rejected_without_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let nothing = planscope(&["backup", "copy.db"], folder.path());
    assert!(!nothing.status.success() && said(&nothing).contains("there is no database"), "{}", said(&nothing));
    assert!(!path("planscope.db").exists(), "asking for a backup makes no database");

    let (server, _) = filled(folder.path());
    assert!(planscope(&["backup", "copy.db"], folder.path()).status.success());
    assert!(server.stop().0.success());
    let intact = fs::read(path("copy.db")).unwrap();
    let database = fs::read(path("planscope.db")).unwrap();
    let mut torn = intact.clone();
    // Overwrite the third page, like a disk error.
    torn[8192..12288].fill(0);
    fs::write(path("torn.db"), torn).unwrap();
    fs::write(path("short.db"), &intact[..intact.len() / 2]).unwrap();
    fs::write(path("words.db"), "a text that is no database at all, although it is long enough for a header of one\n")
        .unwrap();
    for name in ["torn.db", "short.db", "words.db", "absent.db"] {
        let rejected = planscope(&["restore", name, "--replace"], folder.path());
        assert_eq!(rejected.status.code(), Some(1), "{name}: {}", said(&rejected));
        assert_eq!(fs::read(path("planscope.db")).unwrap(), database, "{name}");
        assert_eq!(planscope(&["verify", "--database", name], folder.path()).status.code(), Some(1), "{name}");
    }
}

/// Modifies a database directly with SQL.
fn sql(folder: &Path, statements: &str) {
    let done = Command::new("sqlite3").arg("planscope.db").arg(statements).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
}

#[test]
fn external_changes_are_reported_with_their_location() {
    if !is_at_hand("sqlite3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, paths) = filled(folder.path());
    let sound = planscope(&["verify"], folder.path());
    assert!(sound.status.success(), "a server at work is looked through: {}", said(&sound));
    assert!(said(&sound).contains("1 scenarios, 1 datasets") && said(&sound).contains("is sound"), "{}", said(&sound));
    assert!(server.stop().0.success());
    let database = fs::read(folder.path().join("planscope.db")).unwrap();
    for (change, path) in [
        ("UPDATE scenario SET scenario_json = replace(scenario_json, '4096', '4095')", &paths[0]),
        ("UPDATE scenario SET scenario_json = '{}'", &paths[0]),
        ("UPDATE dataset SET content_json = CAST(replace(content_json, '1', '2') AS BLOB)", &paths[1]),
        ("UPDATE dataset SET bytes = bytes + 1", &paths[1]),
        ("UPDATE run SET bytes = bytes + 1", &paths[2]),
        ("UPDATE run_file SET bytes = bytes + 1; UPDATE run SET bytes = bytes + 1", &paths[2]),
        ("UPDATE run_chunk SET start = start + 1", &paths[2]),
        ("DELETE FROM run_point WHERE row = 1", &paths[2]),
        ("UPDATE run_point SET point_json = '{}' WHERE row = 1", &paths[2]),
    ] {
        sql(folder.path(), change);
        let report = planscope(&["verify"], folder.path());
        let id = path.rsplit('/').next().unwrap();
        assert_eq!(report.status.code(), Some(1), "{change}: {}", said(&report));
        assert!(said(&report).lines().any(|line| line.contains(id)), "{change}: {}", said(&report));
        fs::write(folder.path().join("planscope.db"), &database).unwrap();
    }
    for (change, expected) in [
        ("PRAGMA foreign_keys = OFF; DELETE FROM run_file", "belongs to a run_file"),
        ("INSERT INTO _sqlx_migrations VALUES (9999, 'later', 0, 1, x'00', 0)", "newer Planscope"),
        ("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1", "migration 1"),
    ] {
        sql(folder.path(), change);
        let report = planscope(&["verify"], folder.path());
        assert!(report.status.code() == Some(1) && said(&report).contains(expected), "{change}: {}", said(&report));
        fs::write(folder.path().join("planscope.db"), &database).unwrap();
    }
    assert!(planscope(&["verify"], folder.path()).status.success());
}
