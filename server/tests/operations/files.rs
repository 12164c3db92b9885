//! Tests databases with deleted, moved, linked or leftover files.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::process::{Server, planscope, said, scenario};

/// Creates a folder with the database of a stopped server.
fn stopped() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    server.client().stores(1, 1);
    assert!(server.stop().0.success());
    folder
}

/// Runs all commands that open a database on the given file.
fn every_command(folder: &Path, name: &str) -> Vec<(&'static str, Output)> {
    fs::write(folder.join("points.jsonl"), "").unwrap();
    vec![
        ("serve", planscope(&["serve", "--address", "127.0.0.1:0", "--database", name], folder)),
        ("import", planscope(&["import", "points.jsonl", "--database", name], folder)),
        ("backup", planscope(&["backup", "new-copy.db", "--database", name], folder)),
        ("verify", planscope(&["verify", "--database", name], folder)),
        ("restore", planscope(&["restore", "copy.db", "--database", name], folder)),
    ]
}

/// Regression test for attack finding 8: `serve` created an empty database next to the journal and
/// overwrote the journal.
#[test]
fn orphaned_journal_is_rejected_by_every_command_and_preserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(folder.path(), &[]);
    server.client().stores(1, 1);
    assert!(planscope(&["backup", "copy.db"], folder.path()).status.success());
    let later = api::path::scenario(&server.client().stores(2, 1));
    server.kill();
    fs::rename(path("planscope.db"), path("moved.db")).unwrap();
    let journal = fs::read(path("planscope.db-wal")).unwrap();
    for (command, output) in every_command(folder.path(), "planscope.db") {
        assert_eq!(output.status.code(), Some(1), "{command}: {}", said(&output));
        assert!(said(&output).contains("Move the database back"), "{command}: {}", said(&output));
        assert!(!path("planscope.db").exists(), "{command}");
        assert_eq!(fs::read(path("planscope.db-wal")).unwrap(), journal, "{command}");
    }
    assert!(!path("new-copy.db").exists());

    // Restore a backup while the journal is present, then undo the restore.
    let restored = planscope(&["restore", "copy.db", "--replace"], folder.path());
    assert!(restored.status.success(), "{}", said(&restored));
    let entries = fs::read_dir(folder.path()).unwrap();
    let names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let is_journal = |name: &&String| name.starts_with("planscope.db.replaced-") && name.ends_with("-wal");
    let renamed = names.iter().find(is_journal).expect("the journal");
    assert_eq!(fs::read(path(renamed)).unwrap(), journal);
    fs::rename(path("moved.db"), path("planscope.db")).unwrap();
    fs::rename(path(renamed), path("planscope.db-wal")).unwrap();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(server.client().get(&later).status, 200);
}

/// Regression test for attack finding 9: two servers corrupted a file that they opened under
/// different names.
#[cfg(unix)]
#[test]
fn database_with_several_names_is_rejected_by_every_command() {
    let folder = stopped();
    let path = |name: &str| folder.path().join(name);
    assert!(planscope(&["backup", "copy.db"], folder.path()).status.success());
    let server = Server::start(folder.path(), &[]);
    fs::hard_link(path("planscope.db"), path("other.db")).unwrap();
    for name in ["other.db", "planscope.db"] {
        let outputs = every_command(folder.path(), name);
        for (command, output) in outputs {
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {}", said(&output));
            let in_use = name == "planscope.db" && said(&output).contains("in use");
            assert!(in_use || said(&output).contains("2 names (hard links)"), "{command} {name}: {}", said(&output));
        }
    }
    // This also applies to a backup source: under a different name, the content of the live journal
    // is missing.
    let linked = planscope(&["restore", "other.db", "--database", "elsewhere.db"], folder.path());
    assert!(!linked.status.success() && said(&linked).contains("hard links"), "{}", said(&linked));
    assert!(!path("other.db-wal").exists() && !path("elsewhere.db").exists());

    fs::remove_file(path("other.db")).unwrap();
    std::os::unix::fs::symlink(path("planscope.db"), path("link.db")).unwrap();
    for arguments in [
        ["serve", "--address=127.0.0.1:0", "--database", "link.db"].as_slice(),
        &["import", "points.jsonl", "--database", "link.db"],
        &["restore", "copy.db", "--replace", "--database", "link.db"],
    ] {
        let output = planscope(arguments, folder.path());
        assert!(!output.status.success() && said(&output).contains("in use"), "{arguments:?}: {}", said(&output));
    }
    assert!(planscope(&["verify", "--database", "link.db"], folder.path()).status.success());
    assert!(server.stop().0.success());

    // A restore replaces the file, not the link.
    let restored = planscope(&["restore", "copy.db", "--replace", "--database", "link.db"], folder.path());
    assert!(restored.status.success(), "{}", said(&restored));
    assert!(path("link.db").is_symlink() && !path("link.db-lock").exists());
    assert!(planscope(&["verify"], folder.path()).status.success());
}

/// Regression test for attack finding 8: `rm planscope.db` was not detected. The test follows the
/// copy instructions in docs/operators.md.
#[cfg(target_os = "linux")]
#[test]
fn deleted_database_is_reported_and_can_be_copied_during_operation() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(folder.path(), &[]);
    let client = server.client();
    let stored = api::path::scenario(&client.stores(1, 1));
    fs::remove_file(path("planscope.db")).unwrap();
    let ready = client.get("/api/v1/ready");
    assert_eq!((ready.status, ready.field("/errors/0/pointer")), (503, "/database/file".to_owned()));
    let rejected = client.send("PUT", api::path::SCENARIOS, &scenario(2, 1));
    assert_eq!((rejected.status, rejected.field("/type")), (503, "/problems/database-gone".to_owned()));
    assert_eq!(client.get("/api/v1/health").status, 200);
    assert_eq!(client.get(&stored).status, 200);

    fs::create_dir(path("rescued")).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().map(|entry| entry.unwrap().path());
    let deleted = path("planscope.db")
        .canonicalize()
        .unwrap_or_else(|_| folder.path().canonicalize().unwrap().join("planscope.db"));
    let deleted = format!("{} (deleted)", deleted.display());
    let is_it =
        |file: &std::path::PathBuf| fs::read_link(file).is_ok_and(|target| target.as_os_str() == deleted.as_str());
    let file = open.into_iter().find(is_it).expect("an open file that was deleted");
    fs::copy(file, path("rescued/planscope.db")).unwrap();
    fs::copy(path("planscope.db-wal"), path("rescued/planscope.db-wal")).unwrap();
    server.kill();
    let report = planscope(&["verify", "--database", "rescued/planscope.db"], folder.path());
    assert!(report.status.success() && said(&report).contains("1 scenarios"), "{}", said(&report));

    // A new server does not create a database next to the leftover files.
    let next = planscope(&["serve", "--address", "127.0.0.1:0"], folder.path());
    assert!(!next.status.success() && said(&next).contains("Move the database back"), "{}", said(&next));
}

#[cfg(unix)]
#[test]
fn created_files_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    server.client().stores(1, 1);
    assert!(planscope(&["backup", "copy.db"], folder.path()).status.success());
    assert!(planscope(&["restore", "copy.db", "--database", "restored.db"], folder.path()).status.success());
    for name in ["planscope.db", "planscope.db-wal", "planscope.db-shm", "planscope.db-lock", "copy.db", "restored.db"]
    {
        let mode = folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}: {mode:o}");
    }
}

/// Regression test for attack finding 11: partial copies from a killed backup were never removed.
#[test]
fn abandoned_copies_are_removed_by_the_next_command() {
    let folder = stopped();
    let left = folder.path().join(".planscope-copy-killed");
    let leave = || {
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        fs::write(left.join("copy"), "half a copy").unwrap();
    };
    leave();
    let created = planscope(&["backup", "copy.db"], folder.path());
    assert!(created.status.success() && said(&created).contains("is removed"), "{}", said(&created));
    assert!(!left.exists());
    leave();
    drop(Server::start(folder.path(), &[]));
    assert!(!left.exists());
    // A failed command leaves no files.
    fs::write(
        folder.path().join("words.db"),
        "a text that is no database, although it is long enough for a header of one, a hundred bytes or so\n",
    )
    .unwrap();
    assert!(!planscope(&["backup", "of-words.db", "--database", "words.db"], folder.path()).status.success());
    let entries = fs::read_dir(folder.path()).unwrap();
    let names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with(".planscope-copy-") || name == "of-words.db"), "{names:?}");
}
