//! The table "Proof" in docs/operators.md refers to existing tests.

use super::known::{tests, text};

#[test]
fn every_finding_has_its_tests() {
    let document = text("docs/operators.md");
    let section = document.split("\n## Proof\n").nth(1).expect("a section Proof");
    let section = section.split("\n## ").next().unwrap_or_default();
    let known = tests();
    let mut rows = 0;
    let mut missing = Vec::new();
    for line in section.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, finding, named, _] = cells[..] else { continue };
        let Ok(number) = number.parse::<u32>() else { continue };
        rows += 1;
        assert_eq!(number, rows, "rows stand in their order");
        let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{number}: {finding} has no test");
        let absent = named.into_iter().filter(|name| !known.contains(*name));
        missing.extend(absent.map(|name| format!("{number}, {finding}: {name}")));
    }
    assert_eq!(rows, 11, "findings of the attack");
    assert!(missing.is_empty(), "tests that are not there:\n{}", missing.join("\n"));
}
