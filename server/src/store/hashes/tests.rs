//! Tests for content hashes and for rows from earlier versions.

use super::*;

#[test]
fn hash_depends_on_contents_and_their_boundaries() {
    let hash = data_encoding::HEXLOWER.encode(&hash_content("abc"));
    // SHA-256 of 03 00 00 00 00 00 00 00 61 62 63.
    assert_eq!(hash, "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
    let (ab, c, nothing) = (Some(b"ab".as_slice()), Some(b"c".as_slice()), Some(b"".as_slice()));
    let all = [
        hash_contents(&[ab, c]),
        hash_contents(&[c, ab]),
        hash_contents(&[Some(b"a"), Some(b"bc")]),
        hash_contents(&[ab, c, nothing]),
        hash_contents(&[ab, c, None]),
    ];
    for (index, current) in all.iter().enumerate() {
        assert_eq!(current.len(), 32);
        assert!(all.iter().skip(index + 1).all(|other| other != current), "{index}");
    }
}

#[test]
fn a_row_is_named_by_its_key() {
    let key = ["run-a".to_owned(), "0".to_owned(), "16384".to_owned()];
    assert_eq!(HASHED[0].describe(&key), "log of run run-a, file 0, start 16384");
    assert_eq!(
        HASHED[3].select(),
        "SELECT CAST(scenario_id AS TEXT), CAST(engine AS TEXT), sha256, CAST(outcome_json AS BLOB), \
         CAST(planning_ms_json AS BLOB) FROM outcome"
    );
}

/// A scenario with outcome and timelines, and a purged trace, in the format of an earlier version.
const EARLIER: &str = "
    INSERT INTO scenario (id, kept, created_at_ms, used_at_ms, scenario_json)
    VALUES ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 1, 0, 0, '{}');
    INSERT INTO outcome (scenario_id, engine, created_at_ms, planning_ms_json, outcome_json)
    VALUES ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'e', 0, '[]', '{}');
    WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 299)
    INSERT INTO timeline (scenario_id, engine, planner, iteration, encoded)
    SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'e', 'p', n, zeroblob(20000) FROM number;
    INSERT INTO trace (id, name, tags_json, format, created_at_ms, deleted_at_ms, raw_bytes, stored_bytes, slices, span_ns, actions)
    VALUES ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 't', '[]', 'f', 0, 1, 0, 0, 0, 0, 0);";

#[tokio::test]
async fn earlier_rows_are_hashed_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planscope.db");
    let store = Store::open(&path).await.unwrap();
    let mut write = store.writer.begin().await.unwrap();
    sqlx::raw_sql(EARLIER).execute(&mut *write).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(crate::store::verify(&path).await.unwrap().unhashed, 301);

    let mut lots = Vec::new();
    loop {
        match store.fill_hashes().await.unwrap() {
            0 => break,
            filled => lots.push(filled),
        }
    }
    // Batches: the outcome; timelines of 20,000 bytes up to 4 MiB; the remaining timelines. The
    // purged trace is empty.
    assert_eq!(lots, [1, 210, 90]);
    let report = crate::store::verify(&path).await.unwrap();
    assert_eq!(report.unhashed, 0);
    assert!(report.checked.contains(&("hashes", 301)), "{:?}", report.checked);
    let about_hashes = |location: &str| location.starts_with("outcome of") || location.contains("timeline of");
    assert!(!report.faults.iter().any(|fault| about_hashes(&fault.location) && fault.detail.contains("bytes are not")));

    let mut write = store.writer.begin().await.unwrap();
    sqlx::raw_sql("UPDATE timeline SET encoded = zeroblob(20001) WHERE iteration = 7")
        .execute(&mut *write)
        .await
        .unwrap();
    write.commit().await.unwrap();
    let report = crate::store::verify(&path).await.unwrap();
    let expected = format!("timeline of scenario {}, engine e, planner p, iteration 7", "a".repeat(52));
    let found = report.faults.iter().any(|fault| fault.location == expected && fault.detail.contains("bytes are not"));
    assert!(found, "{:?}", report.faults);
    store.close().await;
}
