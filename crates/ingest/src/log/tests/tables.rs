//! Tests for user-defined pattern tables.

use super::*;

const TABLE: &str = r#"
schema = "log-table/1"
[[line]]
name = "Our trainer"
pattern = '^STEP (?P<step>\d+) dt (?P<dt>[\d.]+)(?P<pairs>.*)'
flops = "6 x parameters x tokens"
[line.fields]
dt = "step_time ms"
tf = "flops_per_device GFLOP/s"
"#;

fn with(table: &str, text: &str) -> Result<Log, String> {
    let table = LogTable::parse(table).map_err(|error| error.to_string())?;
    import_with(text.as_bytes(), &Limits::default(), Some(&table)).map_err(|error| error.to_string())
}

#[test]
fn a_table_describes_lines() {
    let text = "hello\nSTEP 7 dt 1500 loss=2.5 tf=412500\nSTEP 8 dt 1400 loss=2.25 tf=412500\n";
    let Log { points, report, .. } = with(TABLE, text).unwrap();
    assert_eq!(
        points.iter().map(|p| (p.step, p.step_time_s, p.loss)).collect::<Vec<_>>(),
        [(7, Some(1.5), Some(2.5)), (8, Some(1.4), Some(2.25))]
    );
    assert_eq!((points[0].tflops_per_device, report.ignored), (Some(412.5), 1));
    assert_eq!(
        (report.tables.as_slice(), report.flop_formula.as_deref()),
        (&["Our trainer".to_owned()][..], Some("6 x parameters x tokens"))
    );
    let json = r#"{"schema": "log-table/1", "line": [{"name": "Our trainer", "pattern": "^STEP (?P<step>\\d+) dt (?P<dt>[\\d.]+)", "fields": {"dt": "step_time ms"}}]}"#;
    assert_eq!(with(json, text).unwrap().points[1].step_time_s, Some(1.4));
    // User patterns have priority over built-in patterns.
    let custom_table = TABLE.replace("^STEP ", "^step: ").replace(" dt ", "  loss: ");
    assert_eq!(with(&custom_table, "step: 7  loss: 1500\n").unwrap().points[0].step_time_s, Some(1.5));
}

#[test]
fn invalid_table_is_rejected_with_its_line() {
    for (table, expected) in [
        (TABLE.replace("log-table/1", "log-table/2"), "line 2 of the log table: schema must be"),
        (
            TABLE.replace("step_time ms", "step_time kg"),
            "line 8 of the log table: \"kg\" is no unit of step_time; use s, ms, us, ns, min or h",
        ),
        (TABLE.replace("step_time ms", "speed"), "line 8 of the log table: there is no metric \"speed\""),
        (TABLE.replace("(?P<step>", "(?P<step"), "line 5 of the log table: regex parse error"),
        (TABLE.replace("name = \"Our trainer\"", "nam = 1"), "line 4 of the log table: unknown field"),
        (TABLE.replace("name = \"Our trainer\"\n", ""), "of the log table: missing field `name`"),
        ("schema = \"log-table/1\"".to_owned(), "a table has 1 to 64 entries"),
        ("hello".to_owned(), "line 1 of the log table"),
        ("{\n\"schema\": 5}".to_owned(), "line 2 of the log table: invalid type"),
        (TABLE.replace("(?P<step>", "(").replace("(?P<dt>", "(").replace("(?P<pairs>", "("), "has no named group"),
        ("#".repeat(70 << 10), "more than 65536 bytes"),
    ] {
        let error = LogTable::parse(&table).map(|_| ()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Nested repetitions are rejected by compiled size. Accepted patterns match in time linear in the
/// line length.
#[test]
fn hostile_patterns_are_rejected_or_cheap() {
    let table = |pattern: &str| format!("schema = \"log-table/1\"\n[[line]]\nname = \"x\"\npattern = '{pattern}'\n");
    for pattern in
        ["(?P<step>(a{1000}){1000})", "(?P<step>((a{100}){100}){100})", r"(?P<step>[\d]{9000})", &"(".repeat(60)]
    {
        let error = LogTable::parse(&table(pattern)).map(|_| ()).expect_err(pattern);
        assert_eq!(error.line, 4, "{error}");
    }
    let line = format!("{}!\n", "a".repeat(60_000));
    for pattern in [r"^(?P<step>(a+)+)$", r"(?P<step>(a|aa)+)$", r"(.*a){20}(?P<step>\d)", r"(?P<step>(a?){40}a{40}b)"]
    {
        let table = LogTable::parse(&table(pattern)).expect(pattern);
        let start = std::time::Instant::now();
        let _ = import_with(line.as_bytes(), &Limits::default(), Some(&table));
        assert!(start.elapsed().as_secs() < 20, "{pattern}: {:?}", start.elapsed());
    }
}

#[test]
fn trainer_table_is_sound() {
    let text = include_str!("../trainers.toml");
    LogTable::parse(text).unwrap_or_else(|error| panic!("{error}"));
}
