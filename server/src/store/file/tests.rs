//! Tests for rejected paths.

use super::*;

fn folder_of_test() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

#[test]
fn a_journal_without_its_database_is_refused_with_what_to_do() {
    for ending in COMPANIONS {
        let (_guard, folder) = folder_of_test();
        let database = folder.join("a.db");
        assert!(!inspect(&database).unwrap());
        fs::write(beside(&database, ending), "the only copy").unwrap();
        let fault = inspect(&database).unwrap_err();
        assert!(
            matches!(&fault, FileFault::Orphan { companion, .. } if *companion == beside(&database, ending)),
            "{fault}"
        );
        let said = fault.to_string();
        assert!(
            said.contains("(13 bytes)")
                && said.contains("Move the database back")
                && said.contains("planscope restore"),
            "{said}"
        );
        assert!(matches!(existing(&database), Err(FileFault::Orphan { .. })));
        fs::write(&database, "a database").unwrap();
        assert!(inspect(&database).unwrap());
    }
}

#[test]
fn an_empty_database_is_refused_where_its_journal_has_bytes() {
    let (_guard, folder) = folder_of_test();
    let database = folder.join("a.db");
    create(&database).unwrap();
    assert!(inspect(&database).unwrap());
    let journal = beside(&database, "-wal");
    fs::write(&journal, "").unwrap();
    assert!(inspect(&database).unwrap());
    fs::write(&journal, "the only copy").unwrap();
    assert!(matches!(inspect(&database), Err(FileFault::Emptied { .. })));
}

#[cfg(unix)]
#[test]
fn a_database_with_two_names_is_refused_by_either() {
    let (_guard, folder) = folder_of_test();
    let (one, other) = (folder.join("a.db"), folder.join("b.db"));
    fs::write(&one, "a database").unwrap();
    fs::hard_link(&one, &other).unwrap();
    for path in [&one, &other] {
        let fault = inspect(path).unwrap_err();
        assert!(matches!(&fault, FileFault::Linked { links: 2, database } if database == path), "{fault}");
        assert!(fault.to_string().contains("-samefile"), "{fault}");
    }
    fs::remove_file(other).unwrap();
    assert!(inspect(&one).unwrap());
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_stands_for_the_file_that_it_leads_to() {
    use std::os::unix::fs::symlink;

    let (_guard, folder) = folder_of_test();
    let (real, link) = (folder.join("real/a.db"), folder.join("link.db"));
    fs::create_dir(folder.join("real")).unwrap();
    symlink("real/a.db", &link).unwrap();
    let fault = real_path(&link).unwrap_err();
    assert!(matches!(&fault, FileFault::Dangling { target, .. } if *target == real), "{fault}");
    create(&real).unwrap();
    assert_eq!(real_path(&link).unwrap(), real);
    // Links to folders are resolved too, even if the file does not exist yet.
    symlink("real", folder.join("linked")).unwrap();
    assert_eq!(real_path(&folder.join("linked/b.db")).unwrap(), folder.join("real/b.db"));
    assert!(matches!(real_path(&folder.join("nowhere/a.db")), Err(FileFault::Unreachable { .. })));
    assert!(matches!(existing(&folder.join("nowhere/a.db")), Err(FileFault::Missing(_))));
    assert!(matches!(inspect(&folder.join("real")), Err(FileFault::NotAFile(_))));
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let (_guard, folder) = folder_of_test();
    let database = folder.join("a.db");
    create(&database).unwrap();
    assert_eq!(database.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(open_to_others(&database), None);
    fs::set_permissions(&database, fs::Permissions::from_mode(0o644)).unwrap();
    // An existing file is unchanged.
    create(&database).unwrap();
    assert_eq!(open_to_others(&database), Some(0o644));
}

#[test]
fn a_file_that_is_deleted_replaced_or_emptied_is_not_in_its_place() {
    let (_guard, folder) = folder_of_test();
    let (database, aside) = (folder.join("a.db"), folder.join("aside.db"));
    let journal = beside(&database, "-wal");
    fs::write(&database, "a database").unwrap();
    fs::write(&journal, "a journal").unwrap();
    let open = OpenFile::at(&database).unwrap();
    open.in_place_with_journal().unwrap();

    fs::rename(&database, &aside).unwrap();
    assert!(matches!(open.in_place(), Err(FileFault::Deleted(path)) if path == database));
    if cfg!(unix) {
        fs::write(&database, "another one").unwrap();
        assert!(matches!(open.in_place(), Err(FileFault::Replaced(_))));
    }
    fs::rename(&aside, &database).unwrap();
    open.in_place_with_journal().unwrap();

    fs::remove_file(&journal).unwrap();
    open.in_place().unwrap();
    assert!(matches!(open.in_place_with_journal(), Err(FileFault::NoJournal(path)) if path == journal));
    // If SQLite created no journal, a missing journal is not an error.
    OpenFile::at(&database).unwrap().in_place_with_journal().unwrap();

    OpenOptions::new().write(true).truncate(true).open(&database).unwrap();
    assert!(matches!(open.in_place(), Err(FileFault::Truncated(_))));
}
