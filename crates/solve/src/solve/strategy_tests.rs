//! Valid and invalid requests for the strategy problems.

use super::{dispatch, pack, propose};
use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_plan::scenario::FieldError;

fn pointers(errors: Vec<FieldError>) -> Vec<String> {
    errors.into_iter().map(|error| error.pointer).collect()
}

/// 1 s per token, c = 0. {6}, {4, 2} in two stages cost 6 (2 - 1 + 2) = 18. A single microbatch
/// with 12 tokens costs 24, three cost 6 * 4.
#[test]
fn three_sequences_are_packed_into_two_microbatches() {
    let request = r#"{"lengths": [2, 6, 4], "max_len": 12, "pp": 2, "a": 0, "b": 1, "c": 0}"#;
    let response = pack::respond(&serde_json::from_str(request).unwrap(), &SequentialWorkers, &NeverCancelled).unwrap();
    assert!((response.cost_s - 18.0).abs() < 1e-12 && response.status == "optimal", "{response:?}");
    assert_eq!(response.microbatches, [vec![0, 2], vec![1]]);
}

#[test]
fn wrong_fields_are_pointed_at() {
    let error_pointers = |lengths: &str, rest: &str| {
        let request = format!("{{\"lengths\": {lengths}, \"a\": 0, \"c\": 0{rest}}}");
        pointers(
            pack::respond(&serde_json::from_str(&request).unwrap(), &SequentialWorkers, &NeverCancelled).unwrap_err(),
        )
    };
    let fine = ", \"max_len\": 9, \"pp\": 1, \"b\": 1";
    assert_eq!(error_pointers("[]", fine), ["/lengths"]);
    assert_eq!(error_pointers("[1, 10]", fine), ["/lengths/1"]);
    assert_eq!(error_pointers("[1]", ", \"max_len\": -3, \"pp\": 1, \"b\": 1"), ["/lengths/0"]);
    assert_eq!(error_pointers("[1]", ", \"max_len\": 9, \"pp\": 0, \"b\": -1"), ["/pp", "/b"]);
    assert_eq!(error_pointers("[1]", &format!("{fine}, \"time_limit_s\": -1")), ["/time_limit_s"]);
    let dispatch_request = r#"{"lengths": [5, 20], "schemes": [{"pp": 1, "max_len": 10, "a": 0, "b": 1, "c": 0}]}"#;
    let errors =
        dispatch::respond(&serde_json::from_str(dispatch_request).unwrap(), &SequentialWorkers, &NeverCancelled)
            .unwrap_err();
    assert_eq!(pointers(errors), ["/lengths/1"]);
    for (devices, scheme, expected) in [
        (8, r#"{"devices": 3, "pp": 2, "max_len": 10, "a": 0, "b": 1, "c": 0}"#, "/schemes/0/devices"),
        (8, r#"{"devices": 4, "pp": 2, "max_len": -10, "a": 0, "b": 1, "c": 0}"#, "/schemes"),
        (3, r#"{"devices": 4, "pp": 2, "max_len": 10, "a": 0, "b": 1, "c": 0}"#, "/devices"),
        (8, r#"{"devices": 4, "pp": 2, "max_len": 4, "a": 0, "b": 1, "c": 0}"#, "/histogram"),
    ] {
        let propose_request = format!("{{\"histogram\": [[5, 2.0]], \"devices\": {devices}, \"schemes\": [{scheme}]}}");
        let errors =
            propose::respond(&serde_json::from_str(&propose_request).unwrap(), &SequentialWorkers, &NeverCancelled)
                .unwrap_err();
        assert_eq!(pointers(errors), [expected]);
    }
}

/// Two equal pipelines, 1 s per token: {6} and {4, 2}.
#[test]
fn equal_pipelines_share_equally() {
    let scheme = r#"{"pp": 1, "max_len": 10, "a": 0, "b": 1, "c": 0}"#;
    let request = format!("{{\"lengths\": [2, 6, 4], \"schemes\": [{scheme}, {scheme}]}}");
    let response =
        dispatch::respond(&serde_json::from_str(&request).unwrap(), &SequentialWorkers, &NeverCancelled).unwrap();
    assert!((response.dispatch_s - 6.0).abs() < 1e-12 && response.status == "optimal", "{response:?}");
    assert_eq!(response.pipelines[0].sequences, [1]);
}

/// Small pipelines process short sequences, a large pipeline processes long sequences; some
/// strategy combines both.
#[test]
fn mixed_lengths_get_mixed_strategies() {
    let request = r#"{"histogram": [[100, 80.0], [1000, 5.0]], "devices": 8, "schemes": [
        {"devices": 1, "pp": 1, "max_len": 200, "a": 0, "b": 1e-3, "c": 0},
        {"devices": 4, "pp": 1, "max_len": 2000, "a": 0, "b": 4e-4, "c": 0}]}"#;
    let response =
        propose::respond(&serde_json::from_str(request).unwrap(), &SequentialWorkers, &NeverCancelled).unwrap();
    assert!(response.strategies.iter().any(|strategy| strategy.copies == [4, 1]), "{:?}", response.strategies);
    assert!(response.strategies.iter().all(|strategy| strategy.devices <= 8));
}
