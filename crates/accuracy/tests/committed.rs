//! Compares current measurements with docs/accuracy.json. Uses the folder in PLANSCOPE_DATA.

use std::collections::BTreeMap;
use std::path::Path;

use accuracy::report::compare;
use accuracy::report::json::Document;
use accuracy::{certainty, fit_host};
use planner::certainty::Coefficients;

#[test]
fn no_set_is_worse_than_committed_and_intervals_are_current() {
    let Some(data) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so nothing is measured");
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/accuracy.json");
    let text = std::fs::read_to_string(&path).expect("docs/accuracy.json is part of the source");
    let committed: Document = serde_json::from_str(&text).expect("docs/accuracy.json is a document");
    let measured = accuracy::measure(Path::new(&data)).expect("every row is predicted");
    let worse = compare::worse(&committed, &Document::from_accuracy(&measured, None, &BTreeMap::new()));
    assert!(worse.is_empty(), "{}", worse.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    // The model of errors, too, is what the program writes.
    let fitted = certainty::fit(&measured).coefficients;
    assert_eq!(&fitted, Coefficients::committed(), "run `cargo xtask accuracy --data DIR --write-intervals`");
}

#[test]
fn committed_overhead_has_the_best_fit() {
    let Some(data) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so nothing is fitted");
        return;
    };
    let best = fit_host::fit_host(Path::new(&data)).expect("every row is predicted");
    let in_force = fit_host::in_force(Path::new(&data)).expect("every row is predicted");
    let near = (best.host_us - in_force.host_us).abs() <= fit_host::HOST_STEP
        && (best.host_microbatch_us - in_force.host_microbatch_us).abs() <= fit_host::MICROBATCH_STEP;
    let as_good = in_force.mean_abs_pct - best.mean_abs_pct <= 0.2;
    assert!(near || as_good, "best {best}; in force {in_force}");
}

#[test]
fn a_folder_without_truth_is_named() {
    let error = accuracy::measure(Path::new("nowhere")).expect_err("there is no such folder").to_string();
    assert!(error.starts_with("nowhere/truth/korthikanti22_table5.csv: "), "{error}");
}
