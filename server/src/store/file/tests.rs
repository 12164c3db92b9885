//! Tests for rejected paths.

use super::*;

fn test_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

#[test]
fn journal_without_database_is_rejected_with_instructions() {
    for ending in COMPANIONS {
        let (_guard, folder) = test_folder();
        let database = folder.join("a.db");
        assert!(!inspect(&database).unwrap());
        fs::write(with_suffix(&database, ending), "the only copy").unwrap();
        let fault = inspect(&database).unwrap_err();
        assert!(
            matches!(&fault, FileFault::Orphan { companion, .. } if *companion == with_suffix(&database, ending)),
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
fn empty_database_with_a_journal_is_rejected() {
    let (_guard, folder) = test_folder();
    let database = folder.join("a.db");
    create(&database).unwrap();
    assert!(inspect(&database).unwrap());
    let journal = with_suffix(&database, "-wal");
    fs::write(&journal, "").unwrap();
    assert!(inspect(&database).unwrap());
    fs::write(&journal, "the only copy").unwrap();
    assert!(matches!(inspect(&database), Err(FileFault::Emptied { .. })));
}

#[cfg(unix)]
#[test]
fn database_with_two_names_is_rejected_under_either() {
    let (_guard, folder) = test_folder();
    let (first, other) = (folder.join("a.db"), folder.join("b.db"));
    fs::write(&first, "a database").unwrap();
    fs::hard_link(&first, &other).unwrap();
    for path in [&first, &other] {
        let fault = inspect(path).unwrap_err();
        assert!(matches!(&fault, FileFault::Linked { links: 2, database } if database == path), "{fault}");
        assert!(fault.to_string().contains("-samefile"), "{fault}");
    }
    fs::remove_file(other).unwrap();
    assert!(inspect(&first).unwrap());
}

#[cfg(unix)]
#[test]
fn symbolic_link_resolves_to_its_target() {
    use std::os::unix::fs::symlink;

    let (_guard, folder) = test_folder();
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
fn new_file_is_private() {
    use std::os::unix::fs::PermissionsExt;

    let (_guard, folder) = test_folder();
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
fn deleted_replaced_or_emptied_file_is_detected() {
    let (_guard, folder) = test_folder();
    let (database, aside) = (folder.join("a.db"), folder.join("aside.db"));
    let journal = with_suffix(&database, "-wal");
    fs::write(&database, "a database").unwrap();
    fs::write(&journal, "a journal").unwrap();
    let open = OpenFile::at(&database).unwrap();
    open.check_file_and_journal().unwrap();

    fs::rename(&database, &aside).unwrap();
    assert!(matches!(open.check_file(), Err(FileFault::Deleted(path)) if path == database));
    if cfg!(unix) {
        fs::write(&database, "another one").unwrap();
        assert!(matches!(open.check_file(), Err(FileFault::Replaced(_))));
    }
    fs::rename(&aside, &database).unwrap();
    open.check_file_and_journal().unwrap();

    fs::remove_file(&journal).unwrap();
    open.check_file().unwrap();
    assert!(matches!(open.check_file_and_journal(), Err(FileFault::NoJournal(path)) if path == journal));
    // If SQLite created no journal, a missing journal is not an error.
    OpenFile::at(&database).unwrap().check_file_and_journal().unwrap();

    OpenOptions::new().write(true).truncate(true).open(&database).unwrap();
    assert!(matches!(open.check_file(), Err(FileFault::Truncated(_))));
}
