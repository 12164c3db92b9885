use proptest::prelude::*;
use serde_json::json;

use super::*;
use planscope_pipeline::schedule::ScheduleKind;
use planscope_plan::scenario::FieldError;

fn request_json(fields: serde_json::Value) -> serde_json::Value {
    let mut document = json!({
        "schema": "schedule/1", "ranks": 4, "microbatches": 12,
        "times": {"forward": 1, "input_grad": 1, "weight_grad": 1},
        "kinds": ["1f1b"],
    });
    let serde_json::Value::Object(fields) = fields else { panic!("{fields} is no object") };
    for (key, value) in fields {
        document[key] = value;
    }
    document
}

fn answered(fields: serde_json::Value) -> ScheduleResponse {
    let request = parse(&request_json(fields).to_string()).unwrap();
    let response = respond(&ValidRequest::new(request, Limits::SERVED).unwrap());
    // The result must survive a JSON round trip.
    let text = serde_json::to_string(&response).unwrap();
    assert_eq!(serde_json::from_str::<ScheduleResponse>(&text).unwrap(), response);
    response
}

fn reports(fields: serde_json::Value) -> Vec<ScheduleReport> {
    let report = |entry: ScheduleEntry| match entry.outcome {
        EntryOutcome::Run(report) => *report,
        EntryOutcome::Refused(refusal) => panic!("{}: {}", entry.name, refusal.detail),
    };
    answered(fields).entries.into_iter().map(report).collect()
}

fn refusals(fields: serde_json::Value) -> Vec<Refusal> {
    let rejection = |entry: ScheduleEntry| match entry.outcome {
        EntryOutcome::Run(_) => None,
        EntryOutcome::Refused(refusal) => Some(refusal),
    };
    answered(fields).entries.into_iter().filter_map(rejection).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Work per rank is 36. 1F1B: 15 x 3 = 45, idle 9. ZB-H1: 39. ZB-H2: 39, span 36 per rank.
#[test]
fn metrics_and_closed_form_match_the_reference() {
    let reports = reports(json!({"kinds": ["1f1b", "zb_h1", "zb_h2"], "memory_cap": 4}));
    let expected = [(45.0, 45.0, 9.0, 4.0), (39.0, 39.0, 3.0, 4.0), (39.0, 39.0, 3.0, 4.0)];
    for (report, (makespan, span, bubble, peak)) in reports.iter().zip(expected) {
        assert!(close(report.makespan, makespan) && close(report.span, span), "{report:?}");
        assert!(close(report.bubble, bubble) && close(report.peak_activations[0], peak), "{report:?}");
        assert_eq!(report.cap, Some(CapReport { limit: 4.0, broken: None }));
    }
    let uncapped = self::reports(json!({"kinds": ["zb_h2"]})).remove(0);
    assert!(close(uncapped.makespan, 39.0) && close(uncapped.span, 36.0) && close(uncapped.bubble_of_span, 0.0));
    // 4 ranks for 39, busy for 36. The bound is the path to the last rank plus its work.
    assert!(close(uncapped.bubble_of_makespan, 1.0 - 36.0 / 39.0));
    assert!(close(uncapped.lower_bound, 39.0) && close(uncapped.gap, 0.0));
    let form = uncapped.closed_form.unwrap();
    assert_eq!((form.expected_bubble, form.expected_peak), (Some(0.0), Some(8.0)));
    assert!(close(reports[0].bubble_of_makespan, 0.2) && close(reports[0].stage_spans[3], 36.0));
    assert_eq!(reports[0].closed_form.as_ref().unwrap().expected_bubble, Some(9.0));
    assert!(reports[0].csv.starts_with("0F0,0F1,0F2,0F3,0B0,"), "{}", reports[0].csv);
}

/// A fixed order reports the rank that exceeds the limit. A generated order respects the limit.
#[test]
fn a_broken_cap_names_rank_and_need() {
    let reports = reports(json!({"kinds": ["gpipe", "1f1b", "zb_h1", "wait_free_cyclic"], "memory_cap": 2.5}));
    let broken: Vec<Option<LimitViolation>> = reports.iter().map(|report| report.cap.unwrap().broken).collect();
    let broken_by = |needed| Some(LimitViolation { rank: 0, needed });
    assert_eq!(broken, [broken_by(12.0), broken_by(4.0), None, None]);
    let rejections = refusals(json!({"kinds": ["zb_h2", "wait_free_cyclic"], "memory_cap": 0.5}));
    assert_eq!(
        rejections[0].detail,
        "ZB-H2: rank 0 holds 1 activations for its largest microbatch alone, 0.5 are allowed"
    );
    assert!(rejections[1].detail.contains("0.5 are allowed"), "{}", rejections[1].detail);
}

/// For values per rank, all schedules do the same work: 12 microbatches x 6. For values per stage,
/// two chunks mean twice the work.
#[test]
fn times_apply_per_stage_or_per_rank() {
    let kinds = json!(["1f1b", "zbv", "interleaved", "dual_pipe"]);
    let reports_per = |per: &str| {
        reports(json!({"kinds": kinds, "times": {"per": per, "forward": 2, "input_grad": 2, "weight_grad": 2}}))
    };
    let active_times = |reports: Vec<ScheduleReport>| reports.iter().map(|report| report.busy[0]).collect::<Vec<_>>();
    assert_eq!(active_times(reports_per("rank")), [72.0, 72.0, 72.0, 72.0]);
    assert_eq!(active_times(reports_per("stage")), [72.0, 144.0, 144.0, 72.0]);
    let peaks: Vec<f64> = reports_per("rank").iter().map(|report| report.peak_activations[0]).collect();
    // 1F1B p, ZBV 2 p halves, interleaved 2 (p - 1) + p + 1 halves, DualPipe p + 1.
    assert_eq!(peaks, [4.0, 4.0, 5.5, 5.0]);
}

/// p = 4, m = 8, F&B = 2.5 instead of 3: (p / 2 - 1)(F&B + B - 3 W) = 1.5 exactly.
#[test]
fn an_overlapped_pair_takes_the_time_that_is_given() {
    let times = json!({"forward": 1, "input_grad": 1, "weight_grad": 1, "overlapped": 2.5});
    let reports = reports(json!({"microbatches": 8, "times": times, "kinds": ["dual_pipe", "1f1b"]}));
    assert_eq!((reports[0].makespan, reports[0].bubble), (24.0, 1.5));
    assert_eq!(reports[0].closed_form.as_ref().unwrap().expected_bubble, Some(1.5));
    assert!(reports[0].csv.contains(")OVERLAP_F_B"), "{}", reports[0].csv);
    assert!(reports[0].lower_bound <= 24.0 && close(reports[1].lower_bound, 27.0), "only pairs gain");
    let timeline = &reports[0].timeline;
    assert_eq!((timeline.makespan_ns, timeline.memory[0].peak_bytes), (24_000_000, 5_000_000));
}

/// An overlapped pair delivers results when the pair ends. Dependent actions start then, so the
/// critical path contains no gaps.
#[test]
fn successors_wait_for_the_overlapped_pair_to_end() {
    for communication in [0.0, 0.25] {
        let times =
            json!({"forward": 1, "input_grad": 1, "weight_grad": 1, "overlapped": 2.5, "communication": communication});
        for report in reports(json!({"microbatches": 10, "times": times, "kinds": ["dual_pipe", "dual_pipe_v"]})) {
            let timeline = report.timeline;
            assert_eq!(timeline.start_ns[timeline.critical_path[0] as usize], 0);
            for pair in timeline.critical_path.windows(2) {
                assert_eq!(timeline.end_ns(pair[0] as usize), timeline.start_ns[pair[1] as usize]);
            }
        }
    }
}

/// 1e9 units are 1e9 ms. Ten times this duration exceeds the exact nanosecond range.
#[test]
fn too_long_tables_are_rejected() {
    let cells = |kind: char| (0..10).map(|microbatch| format!("0{kind}{microbatch}")).collect::<Vec<_>>().join(",");
    let table = json!([{"name": "long", "csv": format!("{},{}\n", cells('F'), cells('B'))}]);
    let times = json!({"forward": 1e9, "input_grad": 0, "weight_grad": 0});
    let rejections = refusals(json!({"ranks": 1, "microbatches": 10, "times": times, "kinds": [], "imported": table}));
    assert!(rejections[0].detail.contains("larger unit"), "{}", rejections[0].detail);
}

/// A unit has a million steps. Positive times below half a step would run in no time and be called
/// optimal.
#[test]
fn times_below_half_a_step_are_rejected() {
    let times = json!({"forward": [1, 1e-7], "input_grad": 1, "weight_grad": 1e-9, "communication": 1e-8});
    let errors = errors(json!({"ranks": 2, "microbatches": 4, "times": times, "kinds": ["1f1b"]}));
    let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/times/communication", "/times/forward/1", "/times/weight_grad"]);
    assert!(errors[0].detail.contains("take a smaller unit"), "{}", errors[0].detail);
}

/// W needs half an activation. On two ranks, ZB-H1 rank 1 stores a full activation plus half the
/// previous activation.
#[test]
fn a_split_backward_gives_back_in_two_parts() {
    let activations = json!({"forward": 1, "weight_grad": 0.5});
    let report = |kind: &str| reports(json!({"ranks": 2, "kinds": [kind], "activations": activations})).remove(0);
    assert_eq!(report("interleaved_zero_bubble").peak_activations.len(), 2);
    let zb1p =
        reports(json!({"ranks": 2, "chunks": 1, "kinds": ["interleaved_zero_bubble"], "activations": activations}));
    assert_eq!(zb1p[0].peak_activations, [2.0, 1.5]);
    assert_eq!(zb1p[0].closed_form.as_ref().unwrap().expected_peak, None);
    assert_eq!(report("1f1b").peak_activations, [2.0, 1.0]);
    assert_eq!(
        report("zb_h1").timeline.memory[1].bytes.iter().max(),
        Some(&report("zb_h1").timeline.memory[1].peak_bytes)
    );
}

#[test]
fn uneven_times_by_stage_and_microbatch_are_taken_where_they_fit() {
    // Stage 2 is three times slower. The bound is its 12 x 9 plus the path to the stage and back.
    let times = json!({"forward": [1, 1, 3, 1], "input_grad": [1, 1, 3, 1], "weight_grad": [1, 1, 3, 1]});
    let report = reports(json!({"times": times})).remove(0);
    assert_eq!(report.busy, [36.0, 36.0, 108.0, 36.0]);
    assert_eq!(report.closed_form.unwrap().expected_bubble, None);
    let rejections = refusals(json!({"times": times, "kinds": ["1f1b", "zbv"]}));
    assert_eq!(rejections[0].detail, "/times/forward has 4 values for 8 stages");
    let uneven = json!({"forward": [[1], [5], [1]], "input_grad": 1, "weight_grad": [[1, 1], [5, 5], [1, 1]]});
    let report = reports(json!({"ranks": 2, "microbatches": 3, "times": uneven})).remove(0);
    assert_eq!(report.busy, [17.0, 17.0]);
}

#[test]
fn zero_times_give_zero_metrics() {
    let times = json!({"forward": 0, "input_grad": 0, "weight_grad": 0});
    let kinds: Vec<&str> = ScheduleKind::ALL.iter().map(|kind| kind.id()).collect();
    for report in reports(json!({"times": times, "kinds": kinds, "activations": {"forward": 0}})) {
        let metrics =
            [report.makespan, report.span, report.bubble, report.bubble_of_makespan, report.bubble_of_span, report.gap];
        assert!(metrics.iter().all(|figure| *figure <= 0.0), "{metrics:?}");
    }
}

/// A table uses the request's times. The notes report omitted cells.
#[test]
fn tables_run_in_addition_to_the_kinds() {
    let generated = reports(json!({"kinds": ["zbv"]})).remove(0);
    let response = answered(json!({"kinds": ["1f1b"], "imported": [
        {"name": "mine", "csv": generated.csv},
        {"name": "spoilt", "csv": generated.csv.replacen("0F1", "0X1", 1)},
        {"name": "stuck", "csv": "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"},
        {"name": "small", "csv": "0SEND_F0,0F0,0B0\n"},
    ]}));
    let [_, mine, spoilt, stuck, small] = &response.entries[..] else { panic!("{response:?}") };
    let EntryOutcome::Run(mine) = &mine.outcome else { panic!("{mine:?}") };
    assert_eq!((&mine.csv, &mine.timeline, &mine.notes), (&generated.csv, &generated.timeline, &generated.notes));
    assert_eq!(mine.stage_ranks, [0, 1, 2, 3, 3, 2, 1, 0]);
    let EntryOutcome::Refused(spoilt) = &spoilt.outcome else { panic!("{spoilt:?}") };
    assert_eq!(spoilt.problems[0].cell.as_deref(), Some("B1"));
    let EntryOutcome::Refused(stuck) = &stuck.outcome else { panic!("{stuck:?}") };
    assert_eq!((stuck.deadlock.len(), stuck.deadlock[0].cell.as_str()), (2, "B1"));
    let EntryOutcome::Run(small) = &small.outcome else { panic!("{small:?}") };
    assert_eq!(small.notes.len(), 2, "{:?}", small.notes);
}

/// Groups smaller than the pipeline deadlock. The cycle uses cell addresses from the exported
/// table.
#[test]
fn generated_deadlocks_show_their_cycle() {
    let rejection = refusals(json!({"kinds": ["interleaved"], "group": 1})).remove(0);
    assert!(rejection.detail.starts_with("deadlock: ") && rejection.deadlock.len() > 1, "{rejection:?}");
}

fn errors(fields: serde_json::Value) -> Vec<FieldError> {
    match parse(&request_json(fields).to_string()) {
        Err(errors) => errors,
        Ok(request) => ValidRequest::new(request, Limits::SERVED).unwrap_err(),
    }
}

#[test]
fn every_wrong_field_is_named() {
    let times = |field: &str, value: serde_json::Value| {
        let mut times = json!({"forward": 1, "input_grad": 1, "weight_grad": 1});
        times[field] = value;
        json!({"times": times})
    };
    for (fields, pointer, says) in [
        (json!({"schema": "schedule/2"}), "/schema", "newer version"),
        (json!({"ranks": 0}), "/ranks", "1 to 1024"),
        (json!({"ranks": 1025}), "/ranks", "1 to 1024"),
        (json!({"ranks": -1}), "/ranks", "-1 is not a whole number"),
        (json!({"microbatches": 0}), "/microbatches", "1 to 1000000"),
        (json!({"microbatches": 900_000}), "/microbatches", "7200000 actions together"),
        (json!({"chunks": 0}), "/chunks", "1 to 64"),
        (json!({"memory_cap": -1}), "/memory_cap", "out of range"),
        (json!({"kinds": []}), "/kinds", "no schedule"),
        (json!({"kinds": ["1f1b", "1f1b"]}), "/kinds/1", "twice"),
        (json!({"kinds": ["2f2b"]}), "/kinds/0", "unknown variant"),
        (json!({"colour": 1}), "/colour", "unknown field"),
        (json!({"imported": [{"name": " ", "csv": ""}]}), "/imported/0/name", "1 to 200 characters"),
        (times("forward", json!(-1)), "/times/forward", "0 to 1000000000"),
        (times("forward", json!([1, 2, 3])), "/times/forward", "3 values; 1 or 4 would fit"),
        (times("forward", json!([1, 2, -3, 4])), "/times/forward/2", "out of range"),
        (times("weight_grad", json!([[1], [1]])), "/times/weight_grad", "12 microbatches"),
        (times("forward", json!("one")), "/times/forward", "a number, a list"),
        (times("forward", json!([[1], 2])), "/times/forward", "a number, a list"),
        (times("forward", json!(1e9)), "/times", "larger unit"),
        (
            times("overlapped", json!(3.5)),
            "/times/overlapped",
            "from the longer of forward and backward, 2, to both, 3",
        ),
        (times("communication", json!(-0.5)), "/times/communication", "out of range"),
        (json!({"activations": {"forward": 1, "weight_grad": 2}}), "/activations/weight_grad", "part"),
    ] {
        let found = errors(fields.clone());
        let found =
            found.iter().find(|error| error.pointer == pointer).unwrap_or_else(|| panic!("{fields}: {found:?}"));
        assert!(found.detail.contains(says), "{found}");
    }
    let many = errors(json!({"ranks": 0, "microbatches": 0, "kinds": [], "memory_cap": -1}));
    assert_eq!(many.len(), 4, "{many:?}");
}

proptest! {
    /// For all kinds and uneven times, the metrics are consistent and match the exported table.
    #[test]
    fn metrics_are_consistent(p in 1_u32..6, m in 1_u32..14, v in 1_u32..4, times in prop::collection::vec(0_u32..90, 14), cap in 1_u32..9) {
        let list: Vec<Vec<f64>> = times[..m as usize].iter().map(|&time| vec![f64::from(time) / 7.0]).collect();
        let kinds: Vec<&str> = ScheduleKind::ALL.iter().map(|kind| kind.id()).collect();
        let fields = json!({
            "ranks": p, "microbatches": m, "chunks": v, "kinds": kinds, "memory_cap": cap,
            "times": {"per": "rank", "forward": list, "input_grad": 1.5, "weight_grad": list, "communication": 0.1},
        });
        for entry in answered(fields.clone()).entries {
            let EntryOutcome::Run(report) = entry.outcome else { continue };
            prop_assert!(report.lower_bound <= report.makespan + 1e-9 && report.span <= report.makespan + 1e-9);
            prop_assert!((0.0..1.0).contains(&report.bubble_of_makespan) && report.bubble_of_span <= report.bubble_of_makespan + 1e-12);
            let is_cost_dependent = entry.kind.is_some_and(ScheduleKind::is_cost_dependent);
            prop_assert!(!is_cost_dependent || report.cap.unwrap().broken.is_none());
            let mut again = fields.clone();
            again["kinds"] = json!([]);
            again["imported"] = json!([{"name": "again", "csv": report.csv}]);
            let again = reports(again).remove(0);
            prop_assert_eq!((again.makespan, again.span, again.bubble), (report.makespan, report.span, report.bubble));
            prop_assert_eq!((again.timeline, again.peak_activations), (report.timeline, report.peak_activations));
        }
    }
}

#[test]
fn cancelled_comparison_returns_nothing() {
    struct Gone;
    impl planscope_core::host::Cancellation for Gone {
        fn is_over(&self) -> bool {
            true
        }

        fn seconds(&self) -> f64 {
            0.0
        }
    }
    let document = request_json(json!({ "kinds": ["1f1b", "gpipe"] }));
    let valid = ValidRequest::new(parse(&document.to_string()).unwrap(), Limits::SERVED).unwrap();
    assert_eq!(respond_while(&valid, &Gone), None);
    assert_eq!(respond_while(&valid, &planscope_core::host::NeverCancelled), Some(respond(&valid)));
}
