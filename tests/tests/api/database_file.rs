//! Deleted, moved and replaced database files, and files with several names.

use std::fs;
use std::path::Path;

use harness::{Settings, TestServer, test_server};
use server::store::{FileFault, Store, StoreError, verify};

async fn refusal(path: &Path) -> FileFault {
    match Store::open_within(path, None).await {
        Err(StoreError::File(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// Finding 8: acknowledged data was lost, and the server reported that it was ready.
#[tokio::test]
async fn nothing_is_stored_in_a_database_that_was_deleted_or_replaced() {
    let server = TestServer::open().await;
    let stored = api::path::scenario(&server.store(&test_server::scenario()).await);
    let (database, aside) = (server.path("planscope.db"), server.path("aside.db"));
    assert_eq!(server.get("/api/v1/ready").await.status, 200);
    let mut other = test_server::scenario();
    other["seed"] = 7.into();

    fs::rename(&database, &aside).unwrap();
    for replacing in [false, true] {
        if replacing {
            fs::copy(&aside, &database).unwrap();
        }
        let word = if replacing { "another file" } else { "was deleted or moved" };
        let ready = server.get("/api/v1/ready").await.problem();
        assert_eq!((ready.status, ready.errors.len()), (503, 1), "{ready:?}");
        assert_eq!(ready.errors[0].pointer, "/database/file");
        assert!(ready.errors[0].detail.contains(word), "{ready:?}");
        let rejection = server.request("PUT", api::path::SCENARIOS, other.to_string()).await.problem();
        assert_eq!((rejection.status, rejection.kind.as_str()), (503, "/problems/database-gone"), "{rejection:?}");
        assert!(rejection.detail.contains(word), "{rejection:?}");
        // A restart would lose the remaining data.
        assert_eq!(server.get("/api/v1/health").await.status, 200);
        let readers = (0..16).map(|_| server.get(&stored));
        assert!(futures::future::join_all(readers).await.iter().all(|reply| reply.status == 200));
    }

    fs::rename(&aside, &database).unwrap();
    assert_eq!(server.get("/api/v1/ready").await.status, 200);
    let again = server.store(&other).await;
    let server = server.restarted(Settings::default()).await;
    for path in [stored, api::path::scenario(&again)] {
        assert_eq!(server.get(&path).await.status, 200);
    }
}

/// A transaction that is open when the file disappears is not acknowledged.
#[tokio::test]
async fn transaction_is_rejected_when_its_file_disappears() {
    let server = TestServer::open().await;
    let insert = "INSERT INTO scenario (id, kept, created_at_ms, used_at_ms, scenario_json) VALUES (?, 0, 0, 0, '{}')";
    for (name, expected) in [("planscope.db", "was deleted or moved"), ("planscope.db-wal", "the journal")] {
        let (path, aside) = (server.path(name), server.path("aside"));
        let mut write = server.store.writer().begin().await.unwrap();
        sqlx::query(insert).bind("a".repeat(52)).execute(&mut *write).await.unwrap();
        fs::rename(&path, &aside).unwrap();
        let error = write.commit().await.unwrap_err();
        assert!(matches!(error, StoreError::File(_)) && error.to_string().contains(expected), "{error}");
        let probed = server.store.writer().probe().await.unwrap_err();
        assert!(matches!(probed, StoreError::File(_)), "{probed}");
        fs::rename(&aside, &path).unwrap();
        server.store.writer().probe().await.unwrap();
    }
    let mut write = server.store.writer().begin().await.unwrap();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM scenario").fetch_one(&mut *write).await.unwrap();
    assert_eq!(rows, 0);
}

/// A dropped write closes its connection. The journal stays the same file.
#[tokio::test]
async fn the_journal_stays_when_a_write_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("planscope.db")).await.unwrap();
    for _ in 0..3 {
        drop(store.writer().begin().await.unwrap());
        store.writer().probe().await.unwrap();
        store.check_file().unwrap();
    }
    store.close().await;
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["planscope.db"], "closed, it is one file");
}

/// Finding 8: at start, an empty database overwrote the journal, the only copy of the data.
#[tokio::test]
async fn a_journal_without_its_database_is_not_written_over() {
    let server = TestServer::open().await;
    server.store(&test_server::scenario()).await;
    let folder = tempfile::tempdir().unwrap();
    let (database, journal) = (folder.path().join("planscope.db"), folder.path().join("planscope.db-wal"));
    // State after kill -9, with the main file moved away.
    fs::copy(server.path("planscope.db-wal"), &journal).unwrap();
    let before = fs::read(&journal).unwrap();
    assert!(!before.is_empty());
    assert!(matches!(refusal(&database).await, FileFault::Orphan { .. }));
    assert!(matches!(verify(&database).await, Err(StoreError::File(FileFault::Orphan { .. }))));
    assert!(!database.exists());
    // SQLite deletes the journal of an empty database.
    fs::write(&database, "").unwrap();
    assert!(matches!(refusal(&database).await, FileFault::Emptied { .. }));
    assert_eq!(fs::read(&journal).unwrap(), before);

    // Restored, the data is complete.
    fs::copy(server.path("planscope.db"), &database).unwrap();
    let store = Store::open(&database).await.unwrap();
    let mut write = store.writer().begin().await.unwrap();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM scenario").fetch_one(&mut *write).await.unwrap();
    assert_eq!(rows, 1);
    drop(write);
    store.close().await;
}

#[tokio::test]
async fn the_file_itself_has_its_tables_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (database, copy) = (folder.path().join("planscope.db"), folder.path().join("copy.db"));
    let store = Store::open(&database).await.unwrap();
    fs::copy(&database, &copy).unwrap();
    store.close().await;
    let report = verify(&copy).await.unwrap();
    assert_eq!((report.faults, report.is_older), (vec![], false));
}

/// Finding 9: two servers on a file with two names corrupted it.
#[cfg(unix)]
#[tokio::test]
async fn a_database_with_a_second_name_is_not_opened_by_either() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    Store::open(&path("a.db")).await.unwrap().close().await;
    fs::hard_link(path("a.db"), path("b.db")).unwrap();
    for name in ["a.db", "b.db"] {
        assert!(matches!(refusal(&path(name)).await, FileFault::Linked { links: 2, .. }), "{name}");
        assert!(matches!(verify(&path(name)).await, Err(StoreError::File(FileFault::Linked { .. }))), "{name}");
    }
    fs::remove_file(path("b.db")).unwrap();

    symlink("a.db", path("link.db")).unwrap();
    let store = Store::open(&path("link.db")).await.unwrap();
    assert!(path("a.db-wal").exists() && !path("link.db-wal").exists());
    store.close().await;
    symlink("nowhere.db", path("loose.db")).unwrap();
    assert!(matches!(refusal(&path("loose.db")).await, FileFault::Dangling { .. }));
    assert!(!path("nowhere.db").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn new_database_and_journal_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let server = TestServer::open().await;
    server.store(&test_server::scenario()).await;
    for name in ["planscope.db", "planscope.db-wal", "planscope.db-shm"] {
        let mode = server.path(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}: {mode:o}");
    }
}

/// A truncated database must be restored. Health reports it with 503, not 500.
#[tokio::test]
async fn emptied_database_is_reported_by_health() {
    let server = TestServer::open().await;
    server.store(&test_server::scenario()).await;
    assert_eq!(server.get("/api/v1/health").await.status, 200);
    fs::OpenOptions::new().write(true).open(server.path("planscope.db")).unwrap().set_len(0).unwrap();
    let problem = server.get("/api/v1/health").await.problem();
    assert_eq!((problem.status, &*problem.kind), (503, "/problems/database-gone"), "{problem:?}");
    assert!(problem.detail.contains("was emptied") && problem.detail.contains("restore a backup"), "{problem:?}");
}
