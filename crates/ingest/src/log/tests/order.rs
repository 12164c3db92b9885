//! Tests for unordered rows and for logs with several ranks or jobs.

use super::*;

fn places(log: &Log) -> Vec<(u32, u64)> {
    log.points.iter().map(|point| (point.segment, point.step)).collect()
}

fn has_note(log: &Log, start: &str) -> bool {
    log.report.assumptions.iter().any(|note| note.starts_with(start))
}

#[test]
fn rows_without_an_order_are_sorted_by_step() {
    let rows = [30, 10, 60, 20, 50, 40].map(|step| format!("{step},{}.5\n", step / 10)).concat();
    let log = read(&format!("step,loss\n{rows}"));
    assert_eq!(places(&log), [(0, 10), (0, 20), (0, 30), (0, 40), (0, 50), (0, 60)]);
    assert_eq!((log.points[0].loss, log.report.restarts), (Some(1.5), 0));
    assert!(has_note(&log, "the rows are not in the order of their steps"), "{:?}", log.report);
    // A restarted run repeats steps.
    let again = [10, 20, 30, 20, 30, 40, 30, 40].map(|step| format!("{step},2.5\n")).concat();
    let log = read(&format!("step,loss\n{again}"));
    assert_eq!((log.report.restarts, places(&log)[3]), (2, (1, 20)));
    // Timestamps that increase with the rows indicate restarts.
    let timed = [(30, 0), (10, 1), (60, 2), (20, 3), (50, 4), (40, 5)]
        .map(|(step, at)| format!("{step},2.5,{}\n", 1_700_000_000 + at * 50))
        .concat();
    assert_eq!(read(&format!("step,loss,_timestamp\n{timed}")).report.restarts, 3);
}

#[test]
fn other_rank_rows_are_not_a_restart() {
    let row =
        |rank: u32, step: u32| format!("{{\"step\":{step},\"rank\":{rank},\"loss\":{rank}.5,\"step_time_s\":9.0}}\n");
    let rank_rows = |rank: u32| (1..=4).map(|step| row(rank, step)).collect::<String>();
    let log = read(&[rank_rows(1), rank_rows(0)].concat());
    assert_eq!(places(&log), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!((log.points[0].loss, log.report.repeated, log.report.restarts), (Some(1.5), 4, 0));
    assert!(
        reasons(&log.report).contains(&"a row of another rank repeats a step, and is left out"),
        "{:?}",
        log.report
    );
    let mixed: String = (1..=4).flat_map(|step| [row(0, step), row(1, step)]).collect();
    assert_eq!(places(&read(&mixed)).len(), 4);
}

#[test]
fn consecutive_rank_files_are_a_single_segment() {
    let line = |rank: u32, step: u32| {
        format!(
            "[rank{rank}]: [2026-03-01 10:00:{step:02}] iteration {step}/ 99 | elapsed time per iteration (ms): 900.0 | lm loss: 7.5 |\n"
        )
    };
    let rank_lines = |rank: u32| [10, 20, 30, 40].map(|step| line(rank, step)).concat();
    let log = read(&[rank_lines(0), rank_lines(1)].concat());
    assert_eq!((log.points.len(), log.report.restarts, log.report.repeated), (4, 0, 4), "{:?}", log.report);
    // Without rank prefixes, the report says that times decrease.
    let log = read(&[rank_lines(0), rank_lines(1)].concat().replace("[rank0]: ", "").replace("[rank1]: ", ""));
    assert_eq!(log.report.restarts, 1);
    assert!(has_note(&log, "the times of day go back"), "{:?}", log.report);
}

#[test]
fn pods_from_two_jobs_are_two_runs() {
    let line = |pod: &str, step: u32, batch: u32, ms: u32| {
        format!(
            "[pod/{pod}/main]  iteration {step}/ 99 | elapsed time per iteration (ms): {ms}.0 | global batch size: {batch} | lm loss: 7.5 |\n"
        )
    };
    let text: String = [10, 20, 30]
        .iter()
        .flat_map(|&step| {
            [line("job-a-0", step, 256, 2500), line("job-a-1", step, 256, 2500), line("job-b-0", step, 32, 900)]
        })
        .collect();
    let log = read(&text);
    let seen: Vec<_> = log.points.iter().map(|point| (point.segment, point.step, point.global_batch)).collect();
    let job_steps = |segment, batch| [10, 20, 30].map(|step| (segment, step, Some(batch)));
    assert_eq!(seen, [job_steps(0, 256), job_steps(1, 32)].concat());
    assert!(has_note(&log, "each run is a segment: job-a, job-b"), "{:?}", log.report);
    // Without run names, many restarts trigger a warning.
    let bare = text
        .lines()
        .filter(|line| !line.contains("job-a-1"))
        .map(|line| [line.split_once("] ").map_or("", |(_, rest)| rest), "\n"].concat());
    let log = read(&bare.collect::<String>());
    assert!(has_note(&log, "the steps go back every few points"), "{:?}", log.report);
}

#[test]
fn scalars_over_epochs_are_no_steps() {
    let event = tensorboard::tests::event;
    let epochs =
        [event(0, "epoch/train_loss", 4.0), event(1, "epoch/train_loss", 3.5), event(2, "epoch/train_loss", 3.0)]
            .concat();
    let log = import(&epochs, &Limits::default()).expect("events");
    assert!(log.points.iter().all(|point| point.step_counted && point.step_time_s.is_none()));
    assert!(has_note(&log, "the scalars are numbered by epochs"), "{:?}", log.report);
    let mixed =
        [event(10, "loss", 4.0), event(0, "epoch/loss", 4.0), event(20, "loss", 3.5), event(1, "epoch/loss", 3.5)]
            .concat();
    let log = import(&mixed, &Limits::default()).expect("events");
    assert_eq!((places(&log), log.report.restarts), (vec![(0, 10), (0, 20)], 0));
}

/// Cloud consoles export the newest entry first. CloudWatch entries are in `events`.
#[test]
fn row_lists_and_entry_lists() {
    let rows = r#"[{"step": 1, "loss": 2.5, "step_time_s": 9.0}, {"step": 2, "loss": 2.0, "step_time_s": 9.0}]"#;
    for text in
        [rows.to_owned(), rows.replace("}, {", "},\n{"), format!("[\n{}", &rows[1..]), format!("{{\"rows\": {rows}}}")]
    {
        let log = read(&text);
        assert_eq!(places(&log), [(0, 1), (0, 2)], "{text}");
        assert_eq!((log.points[1].loss, log.points[1].step_time_s), (Some(2.0), Some(9.0)));
    }
    let columns = r#"{"step": [1, 2], "loss": [2.5, 2.0], "run": "a"}"#;
    assert_eq!(read(columns).points.iter().map(|point| point.loss).collect::<Vec<_>>(), [Some(2.5), Some(2.0)]);
    let entry = |step: u32| {
        format!(
            "{{\"textPayload\": \"step: {step}  loss: 9.5  tps: 4,096\", \"timestamp\": \"2026-03-05T00:00:{step}.5Z\"}}"
        )
    };
    let log = read(&format!("[{},\n{},\n{}]", entry(30), entry(20), entry(10)));
    assert_eq!(places(&log), [(0, 10), (0, 20), (0, 30)]);
    assert_eq!((log.points[1].step_time_s, log.points[1].tokens_per_s_per_device), (Some(1.0), Some(4096.0)));
    let cloud_event = |step: u64| {
        format!("{{\"timestamp\": {}, \"message\": \"step: {step}  loss: 9.5\"}}", 1_772_668_800_500 + step * 1000)
    };
    let log = read(&format!("{{\"events\": [{}, {}], \"nextToken\": \"f/3\"}}", cloud_event(10), cloud_event(30)));
    assert_eq!((places(&log), log.points[1].step_time_s), (vec![(0, 10), (0, 30)], Some(1.0)));
}

/// The container runtime splits lines at 16 KiB or earlier.
#[test]
fn line_parts_are_joined() {
    let line = |at: u32, text: &str| format!("2026-03-05T00:00:0{at}.1Z stdout {text}\n");
    let text = [
        line(1, "P  iteration 10/ 99 | elapsed time per iteration (ms): 25"),
        "2026-03-05T00:00:01.1Z stderr F warning\n".to_owned(),
        line(1, "P 00.0 | lm los"),
        line(1, "F s: 7.5 |"),
        line(2, "F  iteration 20/ 99 | elapsed time per iteration (ms): 2600.0 | lm loss: 7.25 |"),
    ];
    let log = read(&text.concat());
    let seen: Vec<_> = log.points.iter().map(|point| (point.step, point.step_time_s, point.loss)).collect();
    assert_eq!(seen, [(10, Some(2.5), Some(7.5)), (20, Some(2.6), Some(7.25))]);
    assert_eq!((log.report.lines, log.report.torn), (3, 0));
}
