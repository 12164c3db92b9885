//! Tests that skipped content is reported.

use std::fmt::Write;

use super::*;

const BEYOND: &str = "there are more points than can be stored; the rest of the file is not read";

/// Returns the steps of the points, and the assumptions in the report.
fn within(bytes: &[u8], points: usize) -> (Vec<u64>, Vec<String>) {
    let limits = Limits { points, ..Limits::default() };
    let log = import(bytes, &limits).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(log.report.points, log.points.len() as u64);
    (log.points.iter().map(|point| point.step).collect(), log.report.assumptions)
}

/// Four points in each format, with a limit of three and then four points.
#[test]
fn points_beyond_the_limit_are_reported_in_every_format() {
    let steps = [1, 2, 3, 4];
    let rows = steps.map(|step| format!("{{\"step\": {step}, \"loss\": 2.0}}")).join(",\n");
    let files = [
        ("text", steps.map(|step| format!(" iteration {step}/ 9 | lm loss: 1 |\n")).concat().into_bytes()),
        ("state", format!("{{\n\"log_history\": [{rows}]}}").into_bytes()),
        (
            "scalar",
            format!("Wall time,Step,Value\n{}", steps.map(|step| format!("1.5,{step},2\n")).concat()).into_bytes(),
        ),
        ("events", steps.map(|step| tensorboard::tests::event(step, "loss", 1.0)).concat()),
    ];
    for (format, file) in files {
        let (stored, assumptions) = within(&file, 3);
        assert_eq!(stored, [1, 2, 3], "{format}");
        assert!(assumptions.iter().any(|assumption| assumption == BEYOND), "{format}: {assumptions:?}");
        let (stored, assumptions) = within(&file, 4);
        assert_eq!(stored, [1, 2, 3, 4], "{format}");
        assert!(assumptions.iter().all(|assumption| assumption != BEYOND), "{format}: {assumptions:?}");
    }
}

/// Evaluation rows do not count as points.
#[test]
fn evaluations_do_not_use_step_capacity() {
    let text = r#"{
"log_history": [{"step": 1, "loss": 2.0}, {"step": 1, "eval_loss": 2.0}, {"step": 1, "eval_loss": 1.9}, {"step": 2, "loss": 1.5}]}"#;
    let (stored, assumptions) = within(text.as_bytes(), 2);
    assert_eq!(stored, [1, 2]);
    assert!(assumptions.iter().all(|note| note != BEYOND), "{assumptions:?}");
}

/// Panel rows are kept or dropped as a unit: the second row would add the fourth point, the last
/// row the third.
#[test]
fn panel_rows_beyond_the_limit_are_counted() {
    let limits = Limits { points: 3, ..Limits::default() };
    let text = "Step,a - loss,b - loss\n1,1,1\n2,1,1\n3,1,1\n4,1,\n";
    let Log { points, report, .. } = import(text.as_bytes(), &limits).expect("a panel");
    assert_eq!((points.len(), report.steps, report.skipped), (3, 2, 2));
    assert_eq!(reasons(&report), ["there are more points than can be stored"]);
}

/// 1,003 columns after the step: the last three exceed the limit, one has no run, one is an
/// extreme. Cells are empty, text, not finite, or surplus.
#[test]
fn panel_columns_and_cells_are_reported() {
    let mut header = "Step,loss,a - loss,a - loss__MAX".to_owned();
    for column in 0..1000 {
        write!(header, ",a - c{column}").expect("text grows");
    }
    let Log { points, report, .. } =
        read(&format!("{header}\n1,2,2.5,3\n2,2,,3\n3,2,n/a,3,NaN\n4{}\n", ",1".repeat(1010)));
    assert_eq!(points.len(), 3);
    assert_eq!(
        report.assumptions,
        [
            "columns that are not called \"<run> - <metric>\" are not read: 1",
            "columns behind the first 1000 are not read: 3",
            "a panel's CSV is sampled by Weights & Biases; the history has every step",
            "no step time is read or derived: no known field has it, and the lines have no times of day in a known form",
        ]
    );
    let counted: Vec<_> =
        report.problems.iter().map(|problem| (problem.reason.as_str(), problem.count, problem.line)).collect();
    assert_eq!(
        counted,
        [
            ("a cell is no number", 1, 4),
            ("a value is not a number or not finite, and is missing", 1, 4),
            ("a row has more cells than there are columns", 1, 5),
            ("a step has more values than can be stored", 1, 5),
        ]
    );
}

#[test]
fn values_that_curves_cannot_store_are_reported() {
    let curve = |name: &str| format!("\"{name}\": {{\"step_interval\": 1, \"values\": {{\"1\": 2.5}}}}");
    let text = format!("{{{}, {}, {}}}", curve("a"), curve("b"), curve("c"));
    let limits = Limits { values: 2, ..Limits::default() };
    let Log { points, report, .. } = import(text.as_bytes(), &limits).expect("curves");
    assert_eq!((points[0].others.len(), reasons(&report)), (2, vec!["a step has more values than can be stored"]));
    let far = "{\"a\": {\"step_interval\": 1, \"values\": {\"9007199254740992\": 1, \"1\": 2, \"2\": \"inf\"}}}";
    let Log { points, report, .. } = read(far);
    assert_eq!((points.len(), report.skipped), (2, 1));
    assert_eq!(reasons(&report), ["a step is beyond 2^53", "a value is not a number or not finite, and is missing"]);
}

#[test]
fn non_finite_event_numbers_are_reported() {
    let bytes = [1, 2].map(|step| tensorboard::tests::event(step, "loss", f32::NAN)).concat();
    let report = import(&bytes, &Limits::default()).expect("events").report;
    assert_eq!(report.problems[0].reason, "a value is not a number or not finite, and is missing");
    assert_eq!((report.problems[0].count, report.problems[0].line), (2, 1));
}
