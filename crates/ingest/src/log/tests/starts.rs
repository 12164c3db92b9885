//! Tests for restarts within a log, and for logs not ordered by step.

use super::*;

type Seen = (u32, u64, Option<f64>);

fn seen(log: &Log) -> Vec<Seen> {
    log.points.iter().map(|point| (point.segment, point.step, point.step_time_s)).collect()
}

/// 64 x 2048 tokens at 6,068.15 tokens/s on 8 devices take 2.70 s. The second start has sequence
/// length 1,024.
#[test]
fn start_size_applies_to_its_steps() {
    let start = |sequence: u32| {
        format!(
            "[titan] root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n[titan] root - INFO - Trainer is initialized \
             with local batch size 8, global batch size 64, gradient accumulation steps 1, sequence length {sequence}, total steps 99\n"
        )
    };
    let step =
        |step: u32| format!("[titan] root - INFO - step: {step}  loss:  2.5  memory: 40.00GiB(42.00%)  tps: 6,068\n");
    let log = read(&[start(2048), step(10), step(20), start(1024), step(10)].concat());
    let rounded: Vec<_> =
        seen(&log).into_iter().map(|(part, step, time)| (part, step, time.map(|time| (time * 1e2).round()))).collect();
    assert_eq!(rounded, [(0, 10, Some(270.0)), (0, 20, Some(270.0)), (1, 10, Some(135.0))]);
    // A start that continues after the last step also begins a new segment.
    let log = read(&[start(2048), step(10), step(20), start(1024), step(30)].concat());
    assert_eq!(
        log.points.iter().map(|point| (point.segment, point.step)).collect::<Vec<_>>(),
        [(0, 10), (0, 20), (1, 30)]
    );
}

#[test]
fn a_restart_that_repeats_the_last_step_is_a_segment() {
    let step = |step: u32, time: &str| {
        format!(" iteration {step}/ 99 | elapsed time per iteration (ms): {time} | lm loss: 2.0 |\n")
    };
    let log = read(&[step(10, "1500.0"), step(20, "1500.0"), step(20, "1750.0"), step(30, "1750.0")].concat());
    assert_eq!(seen(&log), [(0, 10, Some(1.5)), (0, 20, Some(1.5)), (1, 20, Some(1.75)), (1, 30, Some(1.75))]);
    assert_eq!(log.report.restarts, 1);
    let arguments = "------------------------ arguments ------------------------\n".to_owned();
    let log = read(&[step(20, "1500.0"), arguments, step(20, "1500.0")].concat());
    assert_eq!((seen(&log).len(), log.report.restarts), (2, 1));
    // An identical line is not a start.
    assert_eq!(read(&step(20, "1500.0").repeat(2)).points.len(), 1);
}

/// Epoch 1, iteration 9 in 0 to 49: global step 59 is step 60.
#[test]
fn nemo_global_step_continues_over_epochs() {
    let point = single_point(
        "Training epoch 1, iteration 9/49 | lr: 3e-05 | global_batch_size: 1 | global_step: 59 | reduced_train_loss: 1.233 | train_step_timing in s: 0.5\n",
    );
    assert_eq!((point.step, point.total_steps, point.step_time_s), (60, None, Some(0.5)));
}

#[test]
fn rows_with_the_newest_step_first_are_turned_round() {
    let csv = "step,loss,_timestamp\n30,2.0,1700000040.5\n20,2.25,1700000020.5\n10,2.5,1700000000.5\n";
    let log = read(csv);
    assert_eq!(seen(&log), [(0, 10, None), (0, 20, Some(2.0)), (0, 30, Some(2.0))]);
    assert_eq!(log.report.restarts, 0);
    assert!(log.report.assumptions.iter().any(|assumption| assumption.starts_with("the newest step stands first")));
    // The timestamps indicate three starts.
    let starts = "step,loss,_timestamp\n30,2.0,1700000000.5\n20,2.25,1700000020.5\n10,2.5,1700000040.5\n";
    assert_eq!(seen(&read(starts)), [(0, 30, None), (1, 20, None), (2, 10, None)]);
    let lines = [4, 3, 2, 1].map(|step| format!("{{\"step\": {step}, \"loss\": {step}.5}}\n")).concat();
    assert_eq!(
        read(&lines).points.iter().map(|point| (point.segment, point.step)).collect::<Vec<_>>(),
        [(0, 1), (0, 2), (0, 3), (0, 4)]
    );
}

/// A validation row is separate from the training row, in either order.
#[test]
fn validation_rows_do_not_replace_training_rows() {
    let csv = "split,step,loss,lr\ntrain,10,2.5,0.5\nval,10,3.5,\nval,20,3.25,\ntrain,20,2.25,0.5\ntrain,30,2.0,0.5\n";
    let Log { points, report, .. } = read(csv);
    let values: Vec<_> = points.iter().map(|point| (point.step, point.loss, point.notes.len())).collect();
    assert_eq!(values, [(10, Some(2.5), 2), (20, Some(2.25), 0), (30, Some(2.0), 0)]);
    assert_eq!((points[0].notes[1].step, points[0].notes[1].values[0].value), (Some(20), 3.25));
    assert_eq!((report.steps, report.companions), (3, 2));
    for (key, part) in [("mode", "eval"), ("phase", "Validation"), ("split", "test")] {
        let json = format!(
            "{{\"step\":1,\"loss\":2.5}}\n{{\"{key}\":\"{part}\",\"step\":2,\"loss\":9.5}}\n{{\"{key}\":\"train\",\"step\":2,\"loss\":2.25}}\n"
        );
        let losses: Vec<_> = read(&json).points.iter().map(|point| point.loss).collect();
        assert_eq!(losses, [Some(2.5), Some(2.25)], "{key}");
    }
}

#[test]
fn mixed_runs_in_a_table_are_segments() {
    let csv = "run,step,loss\na,1,2.5\nb,1,3.5\na,2,2.25\nb,2,3.25\na,3,2.0\n";
    let expected = [(0, 1, Some(2.5)), (0, 2, Some(2.25)), (0, 3, Some(2.0)), (1, 1, Some(3.5)), (1, 2, Some(3.25))];
    let losses = |log: &Log| log.points.iter().map(|point| (point.segment, point.step, point.loss)).collect::<Vec<_>>();
    let log = read(csv);
    assert_eq!(losses(&log), expected);
    assert_eq!((log.report.restarts, log.report.repeated, log.report.points), (0, 0, 5));
    assert!(
        log.report.assumptions.iter().any(|assumption| assumption == "each run is a segment: a, b"),
        "{:?}",
        log.report
    );
    assert_eq!(losses(&read(&csv.replace("run,", "run_name,"))), expected);
    let json: String = csv
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut cells = line.split(',');
            let (run, step, loss) = (cells.next()?, cells.next()?, cells.next()?);
            Some([r#"{"run": ""#, run, r#"", "step": "#, step, r#", "loss": "#, loss, "}\n"].concat())
        })
        .collect();
    assert_eq!(losses(&read(&json)), expected);
    // A restarted run has two segments, and both differ from the other run's segment.
    let again = "run,step,loss\na,5,2.5\nb,1,3.5\na,4,2.25\nb,2,3.25\na,5,2.0\n";
    let places: Vec<_> = read(again).points.iter().map(|point| (point.segment, point.step)).collect();
    assert_eq!(places, [(0, 5), (1, 1), (1, 2), (2, 4), (2, 5)]);
}

/// 0.04 ms is not a step time. DeepSpeed samples are not steps.
#[test]
fn samples_are_no_steps() {
    let bytes = [
        tensorboard::tests::event(32, "Train/Samples/train_loss", 4.0),
        tensorboard::tests::event(64, "Train/Samples/train_loss", 3.5),
    ]
    .concat();
    let Log { points, report, .. } = import(&bytes, &Limits::default()).expect("events");
    let values: Vec<_> = points.iter().map(|point| (point.consumed_samples, point.loss, point.step_time_s)).collect();
    assert_eq!(values, [(Some(32), Some(4.0), None), (Some(64), Some(3.5), None)]);
    assert_eq!(report.assumptions.len(), 1, "{report:?}");
    assert!(report.assumptions[0].starts_with("DeepSpeed numbers its scalars by samples"));
    let csv = "step,loss,_timestamp\n0,2.5,1700000000.25\n25600,2.0,1700000001.25\n";
    let Log { points, report, .. } = read(csv);
    assert_eq!(points[1].step_time_s, None);
    assert!(
        report.assumptions.iter().any(|assumption| assumption.starts_with("step times below 0.1 ms")),
        "{report:?}"
    );
}

/// Ranks print the same step with nearly equal times.
#[test]
fn ranks_that_print_the_same_step_are_not_a_restart() {
    let line = |rank: u32, step: u32, ms: f64| {
        format!(
            "[rank{rank}]: [2026-03-01 10:00:{step:02}] iteration {step}/ 1000 | elapsed time per iteration (ms): {ms} | lm loss: 7.5E+00 |\n"
        )
    };
    let text: String = (1..=5).flat_map(|at| [line(0, at * 10, 2500.0), line(1, at * 10, 2500.3)]).collect();
    for text in [text.clone(), text.replace("[rank0]: ", "").replace("[rank1]: ", "")] {
        let log = read(&text);
        assert_eq!((log.points.len(), log.report.restarts), (5, 0), "{text}");
    }
}

/// The first step after a restart repeats the last step before it, one hour later.
#[test]
fn a_step_that_is_repeated_an_hour_later_is_a_restart() {
    let line = |time: &str, step: u32| {
        format!("[rank0]:[titan] 2026-03-01 {time},000 - root - INFO - step: {step}  loss: 7.7  tps: 8,192\n")
    };
    let log = read(&format!(
        "{}{}{}{}",
        line("10:00:20", 20),
        line("10:00:30", 30),
        line("11:00:30", 30),
        line("11:00:40", 40)
    ));
    let seen: Vec<(u64, u32)> = log.points.iter().map(|point| (point.step, point.segment)).collect();
    assert_eq!(seen, [(20, 0), (30, 0), (30, 1), (40, 1)]);
}
