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
