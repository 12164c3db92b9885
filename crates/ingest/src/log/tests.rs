//! Tests with trainer output and with malformed lines.

mod collectors;
mod cut;
mod doubts;
mod hugging_face;
mod left_out;
mod more_trainers;
mod newer_trainers;
mod order;
mod prefixes;
mod properties;
mod rows;
mod series;
mod starts;
mod streams;
mod tables;
mod trainers;

use super::*;

fn read(text: &str) -> Log {
    import(text.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Parses a text with exactly one point.
fn single_point(text: &str) -> Point {
    let Log { mut points, report, .. } = read(text);
    assert_eq!(points.len(), 1, "{text}: {report:?}");
    points.remove(0)
}

fn other(point: &Point, name: &str) -> Option<f64> {
    point.others.iter().find(|other| other.name == name).map(|other| other.value)
}

fn reasons(report: &Report) -> Vec<&str> {
    report.problems.iter().map(|problem| problem.reason.as_str()).collect()
}

const BLOOM: &str = "[default7]: iteration    31214/  115311 | consumed samples:     47768496 | consumed tokens:  97829879808 | elapsed time per iteration (s): 106.46 | learning rate: 5.279E-05 | global batch size:  2048 | lm loss: 2.198845E+00 | grad norm: 0.242 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 19.238 | TFLOPs: 147.29 |\n";
const V2: &str = " iteration       20/    1000 | consumed samples:           80 | elapsed time per iteration (ms): 1354.9 | learning rate: 3.750E-05 | global batch size:     4 | lm loss: 1.203115E+01 | loss scale: 32768.0 | number of skipped iterations:   8 | number of nan iterations:   0 |\n";
const HEAD: &str = " [2025-03-01 10:20:30.250000] iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 2500.0 | throughput per GPU (TFLOP/s/GPU): 412.5 | energy per GPU (J/iter/GPU): 900.0 | power per GPU (W/GPU): 360.0 | learning rate: 1.500000E-04 | global batch size:    16 | lm loss: 9.500000E+00 | mtp_1 loss: 9.700000E+00 | load_balancing_loss: 1.02 | loss scale: 1.0 | grad norm: 3.141 | num zeros: 0 | params norm: 1234.500 | number of skipped iterations:   0 | number of nan iterations:   0 |\n";

#[test]
fn megatron_prints_milliseconds_and_bloom_seconds() {
    let log = read(&format!("{V2}{BLOOM}"));
    let [v2, bloom] = &log.points[..] else { panic!("{log:?}") };
    assert_eq!((v2.step, v2.total_steps, v2.consumed_samples, v2.global_batch), (20, Some(1000), Some(80), Some(4)));
    assert_eq!((v2.step_time_s, v2.loss, v2.learning_rate), (Some(1.3549), Some(12.03115), Some(3.75e-5)));
    assert_eq!((v2.skipped_iterations, v2.nan_iterations, other(v2, "loss scale")), (Some(8), Some(0), Some(32768.0)));
    assert_eq!((bloom.step_time_s, bloom.consumed_tokens), (Some(106.46), Some(97_829_879_808)));
    assert_eq!(
        (bloom.samples_per_s, bloom.tflops_per_device, bloom.grad_norm),
        (Some(19.238), Some(147.29), Some(0.242))
    );
    assert_eq!((bloom.line, bloom.offset, bloom.segment), (2, V2.len() as u64, 0));
}

/// 2025-03-01T10:20:30Z is Unix time 1,740,824,430.
#[test]
fn current_megatron_has_a_time_and_further_losses() {
    let point = single_point(HEAD);
    assert_eq!(point.time_us, Some(1_740_824_430_250_000));
    assert_eq!((point.tflops_per_device, point.learning_rate, point.loss), (Some(412.5), Some(1.5e-4), Some(9.5)));
    let names: Vec<_> = point.others.iter().map(|other| other.name.as_str()).collect();
    let expected = [
        "energy per GPU (J/iter/GPU)",
        "power per GPU (W/GPU)",
        "mtp_1 loss",
        "load_balancing_loss",
        "loss scale",
        "num zeros",
        "params norm",
    ];
    assert_eq!(names, expected);
}

/// The first version prints neither samples nor batch. In the second, one line has no loss because
/// all steps were skipped.
#[test]
fn unstated_values_are_missing() {
    let first = single_point(
        " iteration 100/ 1000 | elapsed time per iteration (ms): 500.0 | learning rate: 1.000E-04 | lm loss: 7.0E+00 |\n",
    );
    assert_eq!((first.consumed_samples, first.loss, first.step_time_s), (None, Some(7.0), Some(0.5)));
    let skipped = single_point(
        " iteration       10/    0 | elapsed time per iteration (ms): 19932.4 | loss scale: 8388608.0 | number of skipped iterations:  10 |\n",
    );
    assert_eq!((skipped.loss, skipped.skipped_iterations, skipped.total_steps), (None, Some(10), None));
    let nan = single_point(" iteration 5/ 9 | lm loss: nan | grad norm: inf | params norm: 1e400 | loss scale: None |");
    assert_eq!((nan.loss, nan.grad_norm, nan.others.len()), (None, None, 0));
    assert_eq!(nan.not_finite, ["lm loss", "grad norm", "params norm"]);
}

#[test]
fn companions_belong_to_the_step_they_follow() {
    let text = format!(
        "time (ms) | model-and-optimizer-setup: 300.00\n\
         [Rank 1] (after 20 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.0 | reserved: 3072.0 | max reserved: 4096.0\n\
         {V2}[Rank 2] (after 20 iterations) memory (MB) | allocated: 512.0 | max allocated: 512.0 | reserved: 512.0 | max reserved: 512.0[Rank 3] (after 20 iterations) memory (MB) | allocated: 256.0 | max allocated: 1.0 | reserved: 1.0 | max reserved: 1.0 | total device memory used: 1024.0\n\n\
         time (ms) | forward-compute: 306.62 | forward-recv: 527.58\n\
         -----\n validation loss at iteration 20 | lm loss value: 2.500000E+00 | lm loss PPL: 1.218249E+01 | \n-----\n\
         Effective Tera Flops per GPU: 41.31 and total parameters 52.005 B\ntime (ms)\n"
    );
    let Log { points, setup, report } = read(&text);
    let point = &points[0];
    assert_eq!((points.len(), setup.len(), setup[0].name.as_str()), (1, 1, "model-and-optimizer-setup"));
    let memory: Vec<_> = point.memory.iter().map(|memory| (memory.rank, memory.allocated_gib)).collect();
    assert_eq!(memory, [(Some(1), Some(1.0)), (Some(2), Some(0.5)), (Some(3), Some(0.25))]);
    assert_eq!((point.memory[0].max_reserved_gib, point.memory[2].device_gib), (Some(4.0), Some(1.0)));
    let timers: Vec<_> = point.timers.iter().map(|timer| (timer.name.as_str(), timer.time_s)).collect();
    assert_eq!(timers, [("forward-compute", Some(0.30662)), ("forward-recv", Some(0.52758))]);
    assert_eq!((point.notes[0].step, point.notes[0].values[0].value), (Some(20), 2.5));
    assert_eq!(point.tflops_per_device, Some(41.31));
    assert_eq!((report.repaired, report.torn, report.skipped), (1, 0, 0));
    // Setup, two memory lines, two timer lines, validation.
    assert_eq!((report.steps, report.companions, report.ignored), (2, 6, 2));
}

#[test]
fn timers_come_in_tables_too() {
    let text = format!(
        "{HEAD}(min, max) time across ranks (ms):\n    forward-backward ...............................: (2400.10, 2500.00)\n    \
         optimizer ......................................: (10.00, 20.00)\n{V2}max time across ranks (ms):\n    \
         forward-compute ................................: 12.50\n iteration 30/ 1000 | lm loss: 2.0 |\ntimes across ranks (ms):\n  \
         forward-recv:\n     rank  0: 12.34\n     rank  1: 5.00\n"
    );
    let points = read(&text).points;
    assert_eq!(points[0].timers.len(), 2);
    let Timer { name, min_s, max_s, .. } = &points[0].timers[0];
    assert_eq!((name.as_str(), *min_s, *max_s), ("forward-backward", Some(2.4001), Some(2.5)));
    assert_eq!((points[1].timers[0].name.as_str(), points[1].timers[0].max_s), ("forward-compute", Some(0.0125)));
    let ranks: Vec<_> = points[2].timers[0].ranks.iter().map(|rank| (rank.rank, rank.time_s)).collect();
    assert_eq!(ranks, [(0, 0.01234), (1, 0.005)]);
}

#[test]
fn torn_lines_are_counted_and_stored() {
    let torn = [
        " iteration 1/ 10 | lm loss: 2.0 iteration 2/ 10 | lm loss: 3.0 |",
        " iteration 3/ 10 | lm loss: 2.0[INFO] saving |",
        " iteration 3/ 10 | learning rate: 1,234 |",
        " iteration 3/ 10 | learning rate: 0x10 |",
        " iteration 3/ 10 | consumed samp",
        "[Rank 1] (after 1 iterations) memory (MB) | allo[Rank 2] (after 1 iterations) memory (MB) | allocated: 1 |",
        "step: 20  loss: 11.8step: 21  loss: 3.0",
        "{'loss': 2.1, 'epo",
    ];
    let text = format!("{V2}{}", torn.join("\n"));
    let Log { points, report, .. } = read(&text);
    assert_eq!((points.len(), report.torn, report.torn_lines.len()), (1, 8, 8), "{report:?}");
    assert_eq!((report.torn_lines[0].line, report.torn_lines[0].offset), (2, V2.len() as u64));
    assert_eq!(report.torn_lines[4].text, torn[4].trim());
}

#[test]
fn a_number_beyond_reason_is_a_line_left_out() {
    let Log { points, report, .. } = read(&format!(" iteration 18446744073709551616/ 99 | lm loss: 1 |\n{V2}"));
    assert_eq!((points.len(), report.skipped, report.problems[0].line), (1, 1, 1));
}

#[test]
fn colours_returns_and_long_lines() {
    let long = "x".repeat(70_000);
    let text =
        format!("\u{1b}[31m{}\u{1b}[0m\r\n{long} iteration 21/ 99 | lm loss: 1 |\nbar\rbar{BLOOM}", V2.trim_end());
    let Log { points, report, .. } = read(&text);
    assert_eq!(points.iter().map(|point| (point.step, point.line)).collect::<Vec<_>>(), [(20, 1), (31214, 3)]);
    assert_eq!((report.lines, report.ignored, report.skipped), (4, 1, 1));
    assert_eq!(reasons(&report), ["the line is longer than is read"]);
}

#[test]
fn a_step_back_opens_a_segment() {
    let line = |step: u32| format!(" iteration {step}/ 99 | lm loss: {step}.0 |\n");
    let text: String = [10, 20, 30, 25, 35, 5].map(line).concat();
    let Log { points, report, .. } = read(&text);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step)).collect();
    assert_eq!(seen, [(0, 10), (0, 20), (0, 30), (1, 25), (1, 35), (2, 5)]);
    assert_eq!(report.restarts, 2);
}

/// All ranks print. Their order varies, and a rank may lag by one step.
#[test]
fn printing_ranks_are_a_single_run() {
    let line = |rank: u32, step: u32| {
        format!(
            "[rank{rank}]:[titan] 2025-03-01 10:20:30,250 - root - INFO - step: {step}  loss:  2.50000  memory: 4{rank}.00GiB(50.00%)  tps: 4,376  tflops: 253.41  mfu: N/A\n"
        )
    };
    let text: String =
        [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (2, 2), (1, 3)].map(|(rank, step)| line(rank, step)).concat();
    let Log { points, report, .. } = read(&text);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step, point.memory.len())).collect();
    assert_eq!(seen, [(0, 1, 2), (0, 2, 2), (0, 3, 2)]);
    assert_eq!((report.steps, report.repeated, report.restarts), (7, 4, 0));
    // After a restart, another rank with the same format prints first.
    let log = read(&[10, 20, 30].map(|step| line(0, step)).into_iter().chain([line(5, 12)]).collect::<String>());
    assert_eq!(log.points.last().map(|point| (point.segment, point.step)), Some((1, 12)));
}

#[test]
fn repeated_line_is_a_single_point() {
    let Log { points, report, .. } = read(&format!("{V2}{V2}"));
    assert_eq!((points.len(), report.repeated, points[0].others.len()), (1, 1, 1));
}

#[test]
fn torchtitan() {
    let point = single_point(
        "[titan] 2025-03-01 10:20:30,250 - root - INFO - \u{1b}[31mstep: 20  \u{1b}[38;2;180;60;0mloss: 11.83506  \u{1b}[39mgrad_norm:  9.6669  memory: 48.87GiB(51.44%)  tps: 4,376  tflops: 253.41  mfu: 25.62%\u{1b}[39m\n[titan] validate step: 20  loss: 11.5  memory: 40.00GiB(42.00%)  tps: 9,000\n",
    );
    assert_eq!((point.step, point.loss, point.grad_norm), (20, Some(11.83506), Some(9.6669)));
    assert_eq!(point.tokens_per_s_per_device, Some(4376.0));
    assert_eq!((point.tflops_per_device, point.mfu), (Some(253.41), Some(0.2562)));
    assert_eq!(point.memory[0].max_reserved_gib, Some(48.87));
    assert_eq!(point.time_us, Some(1_740_824_430_250_000));
    assert_eq!((point.notes[0].kind, point.notes[0].values[0].value), (NoteKind::Validation, 11.5));
    let old = single_point("step:  1  loss: 12.2580  memory:  7.29GiB(8.00%)  wps: 5,000  mfu: 9.99%");
    assert_eq!(old.tokens_per_s_per_device, Some(5000.0));
}

/// DeepSpeed prints a step in two lines, here interleaved with Megatron.
#[test]
fn lines_from_several_programs_are_merged() {
    let text = "[2023-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=4, lr=[4.99804827338393e-05, 4.99804827338393e-05], mom=[(0.9, 0.95), (0.9, 0.95)]\n\
                [2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n\
                [2023-11-07 01:55:23,714] [INFO] [timer.py:197:stop] 0/40, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=-inf\n \
                iteration       10/    1000 | elapsed time per iteration (ms): 1000.0 | lm loss: 3.0 |\n";
    let Log { points, report, .. } = read(text);
    let [point] = &points[..] else { panic!("{points:?}") };
    assert_eq!((point.step, point.total_steps, point.loss, point.step_time_s), (10, Some(1000), Some(3.0), Some(1.0)));
    assert_eq!(point.samples_per_s, Some(25.704_280_480_541_442));
    assert_eq!((point.memory[0].allocated_gib, point.memory[0].max_allocated_gib), (Some(4.32), Some(38.49)));
    assert_eq!(other(point, "skipped steps in total"), Some(4.0));
    let sources: Vec<_> = report.sources.iter().map(|count| (count.source, count.lines)).collect();
    assert_eq!(sources, [(Source::DeepspeedStep, 1), (Source::DeepspeedTimer, 2), (Source::Megatron, 1)]);
    assert_eq!(report.repeated, 0);
}

#[test]
fn deepspeed_pipelines() {
    let point = single_point("steps: 10 loss: 2.3456 iter time (s): 1.234 samples/sec: 51.864\n");
    assert_eq!(
        (point.step, point.loss, point.step_time_s, point.samples_per_s),
        (10, Some(2.3456), Some(1.234), Some(51.864))
    );
}

/// NeMo 2 counts from 0: iteration 120 of 149 is step 121 of 150.
#[test]
fn nemo() {
    let point = single_point(
        "Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 1 | global_step: 120 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106\n",
    );
    assert_eq!((point.source, point.step, point.total_steps), (Source::Nemo2, 121, Some(150)));
    assert_eq!((point.loss, point.step_time_s, point.consumed_samples), (Some(1.233), Some(0.03146), Some(121)));
    assert_eq!((point.learning_rate, other(&point, "val_loss")), (Some(3e-5), Some(4.106)));
    let bars = "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, reduced_train_loss=3.090, global_step=794.0, consumed_samples=1.63e+6]\rEpoch 0:   1%|          | 796/77225 [9:08:39<878:01:48, 2.00it/s, v_num=a, reduced_train_loss=3.080, global_step=795.0, train_step_timing in s=41.00]\rEpoch 0: 2%| | 797/77225 [9:07<8:0, 41.36s/it]";
    let points = read(bars).points;
    let seen: Vec<_> = points.iter().map(|point| (point.step, point.loss, point.step_time_s)).collect();
    assert_eq!(seen, [(795, Some(3.1), Some(41.36)), (796, Some(3.08), Some(41.0))]);
    assert_eq!((points[0].consumed_samples, points[0].total_steps), (Some(1_630_000), Some(77225)));
}

#[test]
fn hugging_face_dicts_are_counted() {
    let text = "{'loss': 2.1322, 'grad_norm': nan, 'learning_rate': 4.9e-05, 'epoch': 0.02}\n  1%|▏ | 10/1000 [00:10<16:30,  1.00s/it]\r{'loss': '1.9', 'epoch': '0.04'}\n{'eval_loss': 2.0, 'eval_runtime': 1.5, 'epoch': 0.04}\n{'train_runtime': 10.0, 'train_loss': 2.0, 'epoch': 0.04}\n{'loss': 2.0, 'epoch': 0.02}\n";
    let Log { points, report, .. } = read(text);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step, point.loss, point.notes.len())).collect();
    assert_eq!(seen, [(0, 1, Some(2.1322), 0), (0, 10, Some(1.9), 2), (1, 1, Some(2.0), 0)]);
    // The bar gives the step of the second dict. Where the epoch decreases, the bar belongs to the
    // previous training.
    assert_eq!(points.iter().map(|point| point.step_counted).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(points[0].not_finite, ["grad_norm"]);
    assert_eq!((report.ignored, report.companions), (1, 2));
}

#[test]
fn trainer_state() {
    let text = r#"{
  "best_metric": null, "epoch": 0.8, "global_step": 100, "max_steps": 500,
  "log_history": [
    {"epoch": 0.08, "grad_norm": NaN, "learning_rate": 0.000491, "loss": 1.6788902282714844, "step": 10},
    {"epoch": 0.4, "eval_loss": 1.5, "eval_runtime": 2.0, "step": 10},
    {"epoch": 0.16, "loss": 1.5, "step": 20},
    {"epoch": 0.2},
    {"train_runtime": 99.0, "total_flos": 1e18, "train_loss": 1.6, "step": 20}
  ]
}
"#;
    let Log { points, report, .. } = read(text);
    let seen: Vec<_> =
        points.iter().map(|point| (point.step, point.loss, point.total_steps, point.notes.len())).collect();
    assert_eq!(seen, [(10, Some(1.678_890_228_271_484_4), Some(500), 1), (20, Some(1.5), Some(500), 1)]);
    assert_eq!((report.skipped, report.lines, points[0].not_finite.len()), (1, 5, 1));
}

#[test]
fn golden_curves() {
    let text = r#"{"lm loss": {"start_step": 1, "end_step": 50, "step_interval": 5, "values": {"6": 9.5, "1": 10.49226, "11": "nan"}},
        "iteration-time": {"start_step": 1, "end_step": 50, "step_interval": 5, "values": {"1": 2.5, "x": 1}}}"#;
    for text in [text.to_owned(), text.replace('\n', "")] {
        let Log { points, report, .. } = read(&text);
        let seen: Vec<_> = points.iter().map(|point| (point.step, point.loss, point.step_time_s)).collect();
        assert_eq!(seen, [(1, Some(10.49226), Some(2.5)), (6, Some(9.5), None), (11, None, None)]);
        assert_eq!((report.lines, report.skipped, points[2].not_finite.len()), (5, 1, 1));
    }
}

/// Data above the limits is counted without memory growth.
#[test]
fn limits_hold() {
    let limits = Limits { values: 2, ranks: 3, timers: 1, notes: 1, name_chars: 4, ..Limits::default() };
    let memory = [0, 1, 2, 3, 4, 5, 6, 7, 8]
        .map(|rank| format!("[Rank {rank}] (after 1 iterations) memory (MB) | allocated: 1.0 |\n"))
        .concat();
    let validation = " validation loss at iteration 1 | lm loss value: 2.0 |\n";
    let text = format!(
        " iteration 1/ 9 | aaaaaa: 1 | b: 2 | c: 3 | lm loss: 1 |\n{memory}time (ms) | x: 1 | y: 2\n{validation}{validation}"
    );
    let Log { points, report, .. } = import(text.as_bytes(), &limits).expect("a log");
    let point = &points[0];
    assert_eq!((point.others.len(), point.others[0].name.as_str(), point.loss), (2, "aaaa", Some(1.0)));
    assert_eq!((point.memory.len(), point.timers.len(), point.notes.len()), (3, 1, 1));
    let counted: Vec<_> = report.problems.iter().map(|problem| (problem.reason.as_str(), problem.count)).collect();
    assert_eq!(
        counted,
        [
            ("a step has more values than can be stored", 1),
            ("a line beside the steps came before any step, or there are more than can be stored", 8)
        ]
    );
    let many = [1, 2, 3, 4, 5, 6, 7, 8].map(|step| format!(" iteration {step}/ 9 | lm loss: 1 |\n")).concat();
    let limits = Limits { points: 3, ..Limits::default() };
    assert_eq!(import(many.as_bytes(), &limits).map(|log| log.points.len()), Ok(3));
    let limits = Limits { file_bytes: 10, ..Limits::default() };
    assert_eq!(import(many.as_bytes(), &limits), Err(LogError::TooLarge { limit: 10 }));
}

#[test]
fn mlperf() {
    let text = ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1727145576000, \"event_type\": \"POINT_IN_TIME\", \"key\": \"tracked_stats\", \"value\": {\"throughput\": 111.5}, \"metadata\": {\"lineno\": 287, \"step\": 4224}}\n\
                0: :::MLLOG {\"namespace\": \"\", \"time_ms\": 1727145577000, \"event_type\": \"POINT_IN_TIME\", \"key\": \"train_loss\", \"value\": 1.25, \"metadata\": {\"step\": 4224}}\n\
                :::MLLOG {\"key\": \"eval_accuracy\", \"value\": 0.9, \"time_ms\": 5, \"metadata\": {\"samples_count\": 10}}\n:::MLLOG {\"key\"\n";
    let Log { points, report, .. } = read(text);
    let [point] = &points[..] else { panic!("{points:?}") };
    assert_eq!((point.step, point.samples_per_s, point.loss), (4224, Some(111.5), Some(1.25)));
    assert_eq!(point.time_us, Some(1_727_145_576_000_000));
    assert_eq!((point.notes[0].name.as_str(), point.notes[0].values[0].value), ("eval_accuracy", 0.9));
    assert_eq!(report.torn, 1);
}

#[test]
fn weights_and_biases() {
    let text = "{\"_step\":7,\"_runtime\":12.5,\"_timestamp\":1700000012.5,\"train/loss\":2.5,\"grad_norm\":NaN,\"note\":\"a\"}\n{\"_step\":8,\"train/loss\":2.25}\n";
    let points = read(text).points;
    assert_eq!((points[0].step, points[0].loss, points[0].time_us), (7, Some(2.5), Some(1_700_000_012_500_000)));
    // Strings may contain text that looks like another format, but no metrics are read from them.
    let quoting =
        read("{\"_step\":7,\"loss\":2.5,\"cfg\":\"{'lr': 1e-4}\"}\n{\"_step\":8,\"note\":\"{'loss': 1}\"}\n").points;
    let seen: Vec<_> = quoting.iter().map(|point| (point.source, point.step, point.loss)).collect();
    assert_eq!(seen, [(Source::JsonLines, 7, Some(2.5)), (Source::JsonLines, 8, None)]);
    assert_eq!((points[0].not_finite.len(), other(&points[0], "_runtime")), (1, Some(12.5)));
    let panel =
        "\"Step\",\"a - train/loss\",\"a - train/loss__MIN\",\"b - train/loss\"\n1,2.5,2.4,\n2,,,3.5\nx,1,1,1\n";
    let Log { points, report, .. } = read(panel);
    let seen: Vec<_> = points.iter().map(|point| (point.segment, point.step, point.loss)).collect();
    assert_eq!(seen, [(0, 1, Some(2.5)), (1, 2, Some(3.5))]);
    assert_eq!((report.skipped, report.lines), (1, 3));
    let scalar = "Wall time,Step,Value\n1700000001.5,7,2.5\n1700000002.5,8,2.25\n";
    assert_eq!(
        read(scalar).points.iter().map(|point| (point.step, other(point, "value"))).collect::<Vec<_>>(),
        [(7, Some(2.5)), (8, Some(2.25))]
    );
}

#[test]
fn non_logs_are_rejected_by_name() {
    for (bytes, message) in [
        (&b""[..], "empty"),
        (b" \n", "empty"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x80\x04\x95", "pickle"),
        (b"\xff\xfea\0", "no step of a known trainer is in these 1 lines"),
        (b"hello\nworld\n", "no step of a known trainer is in these 2 lines"),
        (b"{\n\"log_history\": 5}", "without a list log_history"),
        (b"{\n\"log_history\": [", "not readable as JSON"),
    ] {
        let error = import(bytes, &Limits::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
}

/// Deep nesting must not overflow the stack.
#[test]
fn nesting_is_limited() {
    for text in [
        "[".repeat(100_000),
        format!("{{\n{}", "{\"log_history\":".repeat(50_000)),
        format!("{{\"_step\":{}", "[".repeat(60_000)),
    ] {
        assert!(import(text.as_bytes(), &Limits::default()).is_err());
    }
}
