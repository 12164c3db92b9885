//! Trainers of 2025 and later, in their own layouts.

use super::*;

#[test]
fn olmo_core_without_a_known_end() {
    let lines = |step: u32| {
        format!(
            "2025-03-01 10:00:0{step}.120\tINFO\tconsole_logger:58\trank0\t[step={step}/???,epoch=1,eta=3 days3:02:11(hard stop)]\n    throughput/device/BPS=0.25\n    train/CE loss=2.12{step}\n"
        )
    };
    let points = read(&[1, 2].map(lines).concat()).points;
    let seen: Vec<_> = points.iter().map(|p| (p.step, p.total_steps, p.step_time_s, p.loss)).collect();
    assert_eq!(seen, [(1, None, Some(4.0), Some(2.121)), (2, None, Some(4.0), Some(2.122))]);
}

#[test]
fn prime_rl() {
    for line in [
        "10:00:05 SUCCESS Step 3 | Time: 5.25s | Loss: 0.125 | Grad. Norm: 0.5 | LR: 1.00e-06 | Throughput: 45123 tokens/s | MFU: 50.0% | Peak Mem.: 60.5/79.1 GiB (76.5%)\n",
        "10:00:05 SUCCESS Step 3 |   5.25s | Loss 0.125 | Entropy 0.3 | Grad. Norm 0.5 | LR 1.00e-06 | Throughput 45123 tokens/s | MFU 50.0% | Peak Mem. 60.5/79.1 GiB (76.5%) | Max Vio 0.1\n",
    ] {
        let Log { points, report, .. } = read(line);
        let point = &points[0];
        assert_eq!((point.step, point.step_time_s, point.loss), (3, Some(5.25), Some(0.125)), "{line}");
        assert_eq!((point.grad_norm, point.tokens_per_s, point.mfu), (Some(0.5), Some(45123.0), Some(0.5)));
        assert_eq!(report.tables, ["prime-rl"]);
        // Older versions print the allocated memory, behind a colon.
        let memory = &point.memory[0];
        let (allocated, reserved) = if line.contains("Mem.:") { (Some(60.5), None) } else { (None, Some(60.5)) };
        assert_eq!((memory.max_allocated_gib, memory.max_reserved_gib), (allocated, reserved));
    }
    let minutes = read("Step 3 | 1m 5s | Loss 0.125 | LR 1.00e-06\n").points;
    assert_eq!(minutes[0].step_time_s, Some(65.0));
    // The orchestrator's line has no loss: it is no training step.
    let orchestrator = "Step 3 | Time: 5.25s | Reward: 0.5 | Seq. Length: 100.0 tokens/sample\n";
    assert!(import(orchestrator.as_bytes(), &Limits::default()).is_err());
}

#[test]
fn automodel_and_open_instruct() {
    let line = "2025-03-01 10:00:01 | INFO | root | step 4 | epoch 0 | loss 2.1250 | grad_norm 1.25 | lr 1.00e-05 | mem 40.50 GiB | tps 12000.50(1500.25/gpu) | num_label_tokens 65536\n";
    let point = &read(line).points[0];
    assert_eq!((point.step, point.loss, point.learning_rate), (4, Some(2.125), Some(1e-5)));
    assert_eq!(point.grad_norm, Some(1.25));
    assert_eq!((point.tokens_per_s, point.tokens_per_s_per_device), (Some(12000.5), Some(1500.25)));
    assert_eq!(point.memory[0].max_allocated_gib, Some(40.5));
    let line = "03/01/2025 10:00:01 - INFO - __main__ -   Step: 4, LR: 5e-06, Loss: 1.25, TPS: 12345.6\n";
    let point = &read(line).points[0];
    assert_eq!((point.step, point.loss, point.learning_rate), (4, Some(1.25), Some(5e-6)));
}

/// ms-swift adds times as text to Megatron-LM's line.
#[test]
fn megatron_lines_with_durations() {
    let line = " [2025-03-01 10:20:00] iteration 10/ 500 | consumed samples: 640 | elapsed time per iteration (ms): 4321.0 | memory(GiB): 61.23 | elapsed time: 43s | remaining time: 1h 3m 4s | lm loss: 1.25E+00 | number of nan iterations: 0 |\n";
    let Log { points, report, .. } = read(line);
    let point = &points[0];
    assert_eq!((point.step, point.step_time_s, point.loss, report.torn), (10, Some(4.321), Some(1.25), 0));
    assert_eq!((point.elapsed_s, other(point, "remaining time (s)")), (Some(43.0), Some(3784.0)));
}

#[test]
fn bars_with_colons_are_steps_if_they_have_a_loss() {
    let bar = |step: u32| {
        format!(
            "Epoch 1/3:   1%|1 | {step}/1000 [00:0{step}<49:57,  3.00s/it, loss: 2.5{step}, grad_norm: 1.25, lr: 1.00e-05]\r"
        )
    };
    let points = read(&[1, 2].map(bar).concat()).points;
    let seen: Vec<_> = points.iter().map(|p| (p.loss, p.grad_norm, p.step_time_s)).collect();
    assert_eq!(seen, [(Some(2.51), Some(1.25), Some(3.0)), (Some(2.52), Some(1.25), Some(3.0))]);
    let vllm = "Processed prompts:  10%|# | 10/100 [00:10<01:30,  1.00it/s, est. speed input: 100.10 toks/s, output: 50.20 toks/s]\n";
    assert!(import(vllm.as_bytes(), &Limits::default()).is_err());
}

/// TRL's step time has no unit in the log, and dicts have no clock.
#[test]
fn step_times_of_trl_are_seconds() {
    let dict =
        "{'loss': 0.125, 'learning_rate': 1e-06, 'completions/mean_length': 250.5, 'step_time': 42.5, 'epoch': 0.5}\n";
    let Log { points, report, .. } = read(dict);
    assert_eq!((points[0].step_time_s, points[0].step_time_origin), (Some(42.5), Some(StepTimeOrigin::Log)));
    assert!(report.assumptions.iter().any(|note| note.contains("TRL's, in seconds")));
    let plain = read(&dict.replace("'completions/mean_length': 250.5, ", ""));
    assert_eq!(plain.points[0].step_time_s, None);
}

/// Primus prints averages in two forms. A value in an unknown form is left out, not its line.
#[test]
fn primus_averages() {
    let line = |step: u32, flops: &str| {
        format!(" iteration {step}/ 9 | elapsed time per iteration (ms): 2000.0/2100.0 | {flops} | lm loss: 1.5 |\n")
    };
    let new =
        line(1, "compute per GPU (TFLOP/s/GPU): 400.5 (avg 390.5)  | tokens/s/GPU inst/harmonic mean: 5000.5/4900.5");
    let old = line(2, "throughput per GPU (TFLOP/s/GPU): 400.5/390.5 | tokens/s/GPU inst/harmonic mean: 5000.5/4900.5");
    let Log { points, report, .. } = read(&(new + &old + &line(3, "speed: fast, very")));
    for point in &points[..2] {
        assert_eq!((point.step_time_s, point.tflops_per_device), (Some(2.0), Some(400.5)), "{point:?}");
        assert_eq!(point.tokens_per_s_per_device, Some(5000.5));
    }
    assert_eq!((points[2].step, points[2].step_time_s, points[2].loss), (3, Some(2.0), Some(1.5)));
    assert_eq!((report.torn, reasons(&report)), (0, vec!["a value of a step is not a number, and is missing"]));
    assert!(report.flop_formula.is_some_and(|formula| formula.starts_with("Megatron-LM")));
}

/// A counter of tokens with three decimals of a billion states its rounding. It does not make the formula that of BLOOM.
#[test]
fn rounded_tokens_and_the_formula_of_their_line() {
    let line = |flops: &str, tokens: &str| {
        format!(
            " iteration 3/ 9 | consumed tokens: {tokens} | elapsed time per iteration (ms): 2000.0 | {flops}: 99.5 |\n"
        )
    };
    let Log { points, report, .. } = read(&line("throughput per GPU (TFLOP/s/GPU)", "0.153B"));
    assert_eq!((points[0].consumed_tokens, points[0].token_rounding), (Some(153_000_000), Some(1_000_000)));
    assert!(report.flop_formula.is_some_and(|formula| formula.starts_with("Megatron-LM")));
    let Log { points, report, .. } = read(&line("TFLOPs", "1048576"));
    assert_eq!((points[0].consumed_tokens, points[0].token_rounding), (Some(1_048_576), None));
    assert!(report.flop_formula.is_some_and(|formula| formula.contains("BLOOM")));
}

/// Megatron-Bridge prints the operations before the step line. Without step lines, its lines are steps.
#[test]
fn megatron_bridge() {
    let early = |tflops: u32| format!("Step Time : 2.50s GPU utilization: {tflops}.5MODEL_TFLOP/s/GPU\n");
    let step = |step: u32| {
        format!(
            " [2025-03-01 10:00:0{step}] iteration {step}/ 9 | elapsed time per iteration (ms): 2501.0 | lm loss: 1.5 |\n"
        )
    };
    let log = read(&(early(10) + &step(1) + &early(20) + &step(2) + &early(30)));
    let seen: Vec<_> =
        log.points.iter().map(|point| (point.step, point.step_time_s, point.tflops_per_device)).collect();
    assert_eq!(seen, [(1, Some(2.501), Some(10.5)), (2, Some(2.501), Some(20.5))]);
    assert_eq!(reasons(&log.report), ["the time of a step has no step line"]);
    let alone = read(&(early(10) + "other text\n" + &early(20).replace("MODEL_", "")));
    let seen: Vec<_> =
        alone.points.iter().map(|point| (point.step, point.step_time_s, point.tflops_per_device)).collect();
    assert_eq!(seen, [(1, Some(2.5), Some(10.5)), (2, Some(2.5), Some(20.5))]);
}

/// Ranks without the last pipeline stage of torchtitan have no loss.
#[test]
fn torchtitan_ranks_without_loss() {
    let line = |rank: u32, loss: &str| {
        format!(
            "[rank{rank}]:[titan] 2025-03-01 10:00:01,000 - root - INFO - step: 5  loss: {loss}  memory: 40.00GiB(50.00%)  tps: 5,000\n"
        )
    };
    let points = read(&(line(0, "-1.00000") + &line(7, " 5.25000"))).points;
    assert_eq!((points.len(), points[0].loss), (1, Some(5.25)));
    assert_eq!(read(&line(0, "-1.00000")).points[0].loss, None);
}

/// The optimizer of DeepSpeed prints its timers before the line of the step.
#[test]
fn deepspeed_timers_before_their_step() {
    let step = |step: u32| {
        format!(
            "[2025-03-01 10:00:0{step},000] [INFO] [Rank 0] rank=0 time (ms) | optimizer_gradients: {step}.0 | optimizer_step: 1.0\n\
             [2025-03-01 10:00:0{step},000] [INFO] [Rank 0] step={step}, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n\
             [2025-03-01 10:00:0{step},000] [INFO] [Rank 0] rank=0 time (ms) | forward: 5.0 | backward: 6.0 | step: 7.0\n"
        )
    };
    let points = read(&(step(1) + &step(2))).points;
    let of = |point: &Point, name: &str| {
        point.timers.iter().filter(|timer| timer.name == name).filter_map(|timer| timer.time_s).collect::<Vec<_>>()
    };
    assert_eq!(points.iter().map(|point| of(point, "optimizer_gradients")).collect::<Vec<_>>(), [[0.001], [0.002]]);
    assert_eq!(of(&points[1], "forward"), [0.005]);
}

#[test]
fn verl_supervised() {
    let points = read("step:3 - train/loss:1.5 - train/time(s):3.25 - train/mfu:0.4\n").points;
    assert_eq!((points[0].step, points[0].step_time_s, points[0].loss), (3, Some(3.25), Some(1.5)));
}

/// Without step lines, the steps are those of the progress bar that runs longest.
#[test]
fn bars_alone_are_steps() {
    let loading = "Loading checkpoint shards: 100%|##| 4/4 [00:09<00:00,  2.25s/it]\n";
    let bar = |step: u32| format!("  0%|  | {step}/900 [00:{:02}<2:29:48, 10.00s/it]\n", 10 * step);
    let Log { points, report, .. } = read(&(loading.to_owned() + &bar(1) + &bar(1) + &bar(2) + &bar(3)));
    let seen: Vec<_> = points.iter().map(|point| (point.step, point.total_steps, point.step_time_s)).collect();
    assert_eq!(seen, [1, 2, 3].map(|step| (step, Some(900), Some(10.0))));
    assert!(report.assumptions.iter().any(|note| note.starts_with("no step line is read")), "{:?}", report.assumptions);
    // A single bar is no log.
    assert!(import(bar(1).as_bytes(), &Limits::default()).is_err());
}
