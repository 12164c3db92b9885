//! Tests for lines and rows that are cut inside a value.

use super::*;

fn megatron(step: u32) -> String {
    format!(
        " iteration {step}/ 99 | consumed samples: {} | elapsed time per iteration (ms): 2000.5 | learning rate: 3.000E-05 | global batch size: 256 | lm loss: 9.690000E+00 | grad norm: 1.234 | number of nan iterations: 0 |\n",
        step * 256
    )
}

/// Points of a log sent as one piece, which ends as a run.
fn streamed(text: &str) -> Vec<Point> {
    let mut parser = LogParser::new();
    let mut points = parser.push(text.as_bytes());
    points.extend(parser.finish().0);
    points
}

/// Each value of a cut line is that of the whole line, or missing.
fn check_each_cut(before: &str, line: &str, least: usize) {
    let [.., whole] = &read(&format!("{before}{line}\n")).points[..] else { panic!("{line}") };
    for cut in 0..line.len() {
        let text = format!("{before}{}", &line[..cut]);
        let points = read(&text).points;
        assert_eq!(streamed(&text), points, "{text}");
        assert!(points.len() >= least, "{text}");
        for point in points.iter().filter(|point| point.step == whole.step) {
            let same = |part: Option<f64>, all: Option<f64>| part.is_none() || part == all;
            assert!(
                same(point.loss, whole.loss)
                    && same(point.learning_rate, whole.learning_rate)
                    && same(point.grad_norm, whole.grad_norm)
                    && same(point.mfu, whole.mfu)
                    && same(point.tokens_per_s_per_device, whole.tokens_per_s_per_device)
                    && same(point.tflops_per_device, whole.tflops_per_device)
                    && point.global_batch.is_none_or(|batch| Some(batch) == whole.global_batch)
                    && point.consumed_samples.is_none_or(|samples| Some(samples) == whole.consumed_samples),
                "{text}: {point:?}"
            );
            if point.step_time_origin == Some(StepTimeOrigin::Log) {
                assert_eq!(point.step_time_s, whole.step_time_s, "{text}");
            }
        }
    }
}

#[test]
fn a_log_may_end_inside_any_line() {
    let before: String = (1..3).map(megatron).collect();
    check_each_cut(&before, megatron(3).trim_end(), 2);
    let torchtitan = |step: u32| {
        format!(
            "[titan] 2025-03-01 10:20:3{step},250 - root - INFO - step: {step}  loss: 11.83506  memory: 48.87GiB(51.44%)  tps: 4,376  tflops: 253.41  mfu: 25.62%\n"
        )
    };
    check_each_cut(&torchtitan(1), torchtitan(2).trim_end(), 1);
    for line in [
        "completed step: 12, seconds: 5.123, TFLOP/s/device: 401.254, Tokens/s/device: 1599.101, loss: 9.125",
        "iteration: 12 / 99 | consumed_tokens: 1.02M | elapsed_time_per_iteration_ms: 10.1K | lm_loss: 7.12 | lr: 0.0003 | model_tflops_per_gpu: 412.5",
        "Training epoch 0, iteration 12/149 | lr: 3e-05 | global_batch_size: 16 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146",
        "steps: 12 loss: 2.3456 iter time (s): 1.234 samples/sec: 51.864",
        "Step 12 | loss:2.5625 lr:0.5125 tokens_per_second_per_gpu:2048.125",
        "{\"step\": 12, \"loss\": 2.5625, \"grad_norm\": 1.125, \"lr\": 0.00025}",
    ] {
        let first = line.replace("12", "11");
        check_each_cut(&format!("{first}\n"), line, 1);
    }
}

#[test]
fn a_cut_line_is_reported() {
    let text = format!("{}{}", megatron(1), " iteration 2/ 99 | elapsed time per iteration (ms): 200");
    let Log { points, report, .. } = read(&text);
    assert_eq!((points.len(), report.torn, report.torn_lines[0].line), (1, 1, 2));
    assert_eq!(
        reasons(&report),
        ["the end of the line is missing: it is cut, or the file is wrapped at a fixed width"]
    );
}

/// Units, brackets and colors show that the last value is complete.
#[test]
fn a_complete_last_line_needs_no_line_end() {
    for line in [
        "step: 20  loss: 11.8  tps: 4,376  mfu: 25.62%",
        "step: 20  loss: 11.8  \u{1b}[34mtps: 4,376\u{1b}[39m",
        "iter 20: loss 2.5000, time 150.00ms",
        "{'loss': 2.5, 'epoch': 0.5}",
        "{\"step\": 20, \"loss\": 2.5}",
        "{\"log\":\"step: 20  loss: 11.8  tps: 4,376\",\"time\":\"2024-05-01T10:20:30.5Z\"}",
    ] {
        assert_eq!(read(line).points.len(), 1, "{line}");
    }
}

/// A line that a crash cut is replaced by the line that the next start prints.
#[test]
fn the_complete_line_of_a_step_replaces_a_cut_one() {
    let cut = " iteration 3/ 99 | consumed samples: 768 | elapsed time per iteration (ms): 200\n";
    let text = [&megatron(1), &megatron(2), cut, "Traceback (most recent call last):\n", &megatron(3)].concat();
    let Log { points, report, .. } = read(&text);
    let last = &points[2];
    assert_eq!(
        (points.len(), last.step, last.step_time_s, last.loss, report.torn),
        (3, 3, Some(2.0005), Some(9.69), 1)
    );
    let lines = "step: 1  loss: 9.5  tps: 2,048  mfu: 25.50%\nstep: 2  loss: 9.\nTraceback\nstep: 2  loss: 9.25  tps: 2,048  mfu: 25.50%\n";
    let points = read(lines).points;
    assert_eq!(points.iter().map(|p| (p.step, p.loss)).collect::<Vec<_>>(), [(1, Some(9.5)), (2, Some(9.25))]);
}

/// A variant of Megatron-LM that never prints the last bar.
#[test]
fn lines_without_bars_are_read_if_no_line_has_one() {
    let text = " iteration 1/ 9 | elapsed time per iteration (ms): 2000.5 | lm loss: 9.5\n iteration 2/ 9 | elapsed time per iteration (ms): 2000.5 | lm loss: 9.25\n";
    assert_eq!(read(text).points.iter().map(|point| point.loss).collect::<Vec<_>>(), [Some(9.5), Some(9.25)]);
    let cut = text
        .replace("lm loss: 9.25", "lm loss: 9.25 | grad norm: 1.5")
        .replace("lm loss: 9.5", "lm loss: 9.5 | grad norm: 1.25");
    let cut = cut
        + " iteration 3/ 9 | elapsed time per iteration (ms): 20\n"
        + " iteration 4/ 9 | elapsed time per iteration (ms): 2000.5 | lm loss: 9.125 | grad norm: 1.125\n";
    let points = read(&cut).points;
    assert_eq!(points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn the_last_cell_of_a_cut_table_is_not_read() {
    let table = "step,loss,step_time_s\n1,2.5,4.125\n2,2.25,4.125\n3,2.25,4.1";
    let Log { points, report, .. } = read(table);
    assert_eq!(points.iter().map(|p| p.step_time_s).collect::<Vec<_>>(), [Some(4.125), Some(4.125), None]);
    assert_eq!(reasons(&report), ["the last cell of the file has no line end, so that it may be cut: it is not read"]);
    assert_eq!(read("step,loss\n1,2.5\n2,2.25\n3").points.len(), 2);
    // A cell with the decimals of its column is complete.
    let Log { points, report, .. } = read("step,loss,step_time_s\n1,2.5,4.125\n2,2.25,4.250\n3,2.25,4.375");
    assert_eq!((points[2].step_time_s, report.problems.len()), (Some(4.375), 0));
    assert_eq!(read("step,loss,step_time_s\n1,2.5,4.125\n2,2.25,4.375").points[1].step_time_s, None);
    assert_eq!(read("step,loss,tokens_per_s\n1,2.5,4125\n2,2.25,4250\n3,2.25,43").points[2].tokens_per_s, None);
    assert_eq!(read("\"step\",\"loss\"\n\"1\",\"2.5\"\n\"2\",\"2.25\"").points[1].loss, Some(2.25));
    assert_eq!(read("1700000000500 2.5 10\n1700000001500 2.25 1").points.len(), 1);
    assert_eq!(read("Wall time,Step,Value\n1700000000,1,2.5\n1700000001,2,2.").points.len(), 1);
}

/// The next file of a stream begins after a crash.
#[test]
fn a_file_may_end_inside_a_line() {
    let mut parser = LogParser::new();
    let mut points = parser.push(format!("{} iteration 2/ 99 | lm loss: 9", megatron(1)).as_bytes());
    points.extend(parser.end_file());
    points.extend(parser.push(megatron(2).as_bytes()));
    let (last, report) = parser.finish();
    points.extend(last);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step, point.line, point.loss)).collect();
    assert_eq!(seen, [(0, 1, 1, Some(9.69)), (0, 2, 3, Some(9.69))]);
    assert_eq!((report.torn, report.lines), (1, 3));
}

/// A crash cuts a line, and the next start writes behind it.
#[test]
fn lines_in_the_middle_may_be_cut() {
    for (line, cut) in [
        (
            "step:  2  loss:  8.1  grad_norm:  1.2  memory: 10.00GiB(12.63%)  tps: 5,000  tflops: 40.00  mfu: 4.00%",
            "tps: 5",
        ),
        ("step:2 - actor/pg_loss:-0.011 - timing_s/step:120.125 - perf/throughput:1041.25", "timing_s/step:12"),
        (
            "completed step: 2, seconds: 3.211, TFLOP/s/device: 401.125, Tokens/s/device: 9876.500, loss: 9.125",
            "device: 98",
        ),
        (
            "Training epoch 0, iteration 2/99 | lr: 1e-05 | global_batch_size: 128 | train_step_timing in s: 6.512 | consumed_samples: 128",
            "in s: 6",
        ),
        (
            "2024-03-01 10:00:02 | INFO | train_inner | epoch 001:    200 / 5000 loss=10.125, wps=650.5, num_updates=200, lr=1e-05, wall=120",
            "num_updates=2",
        ),
        (
            "iteration: 2 / 99 | consumed_tokens: 1.02M | elapsed_time_per_iteration_ms: 1150 | lm_loss: 7.125",
            "iteration_ms: 11",
        ),
        ("steps: 2 loss: 2.3456 iter time (s): 1.234 samples/sec: 51.864", "samples"),
    ] {
        let first = line.replace("step:  2", "step:  1").replace("step:2", "step:1").replace("step: 2", "step: 1");
        let first = first
            .replace("iteration 2/", "iteration 1/")
            .replace("=200", "=100")
            .replace("iteration: 2", "iteration: 1");
        let first = first.replace("steps: 2", "steps: 1");
        let end = line.find(cut).unwrap() + cut.len();
        let text = format!("{first}\n{}\nTraceback (most recent call last):\n{line}\n", &line[..end]);
        let Log { points, report, .. } = read(&text);
        assert_eq!(
            (points.len(), report.torn, report.restarts),
            (2, u64::from(cut != "samples"), 0),
            "{line}: {report:?}"
        );
        let whole = &read(&format!("{first}\n{line}\n")).points[1];
        assert_eq!(
            (points[1].loss, points[1].step_time_s, points[1].tokens_per_s_per_device),
            (whole.loss, whole.step_time_s, whole.tokens_per_s_per_device),
            "{line}"
        );
    }
}

/// Some trainers add a metric to every tenth line.
#[test]
fn shorter_lines_are_read_if_they_occur_again() {
    let lines: String = (1..=30).fold(String::new(), |lines, step| {
        let extra = if step % 10 == 1 { " | val_loss: 2.5" } else { "" };
        lines + &format!("Step {step} | loss:2.125 tokens_per_second_per_gpu:100{extra}\n")
    });
    let Log { points, report, .. } = read(&lines);
    assert_eq!((points.len(), report.torn), (29, 1));
    assert_eq!(report.torn_lines[0].line, 2);
}

/// A terminal wraps lines at its width. The last number of each first part is cut.
#[test]
fn wrapped_lines_are_named() {
    const STEPS: [u32; 7] = [1, 2, 3, 4, 5, 6, 7];
    let whole = |step: u32| {
        format!(
            " [2025-03-01 10:00:{:02}] iteration {step}/ 9 | elapsed time per iteration (ms): 2000.5 | lm loss: 9.25 |",
            4 * step
        )
    };
    let width = whole(1).find("00.5").unwrap();
    let wrapped = STEPS.map(|step| format!("{}\n{}\n", &whole(step)[..width], &whole(step)[width..])).concat();
    let log = read(&wrapped);
    assert_eq!(log.points[0].step_time_s, Some(0.02));
    let has = |log: &Log, words: &str| log.report.assumptions.iter().any(|note| note.contains(words));
    assert!(has(&log, &format!("ends with a number at column {width}")), "{:?}", log.report.assumptions);
    assert!(has(&log, "the clocks contradict the step times"), "{:?}", log.report.assumptions);
    let natural = STEPS.map(|step| whole(step) + "\nsaved\n").concat();
    assert!(!has(&read(&natural), "wrapped") && !has(&read(&natural), "clocks"));
    // Other lines may be as short, if not each step line is followed by one.
    let open = STEPS.map(|step| format!("iteration {step}/ 9 | lm loss: 9.25\n")).concat();
    assert!(!has(&read(&(open + "saved\n")), "wrapped"));
}
