//! Tests for trainers that print `name: value` pairs: steps, times and losses.

use super::*;

/// Step, step time and loss per point.
fn seen(text: &str) -> Vec<(u64, Option<f64>, Option<f64>)> {
    read(text).points.iter().map(|point| (point.step, point.step_time_s, point.loss)).collect()
}

/// Tokens per second for the job and per device.
fn rate(point: &Point) -> (Option<f64>, Option<f64>) {
    (point.tokens_per_s, point.tokens_per_s_per_device)
}

/// AMD's Megatron prints the step value and the average.
#[test]
fn primus() {
    let point = single_point(
        " [2025-08-05 10:20:30] iteration       10/      50 | consumed samples:          320 | elapsed time per iteration (ms): 2701.3/2712.7 | hip mem usage/free/total/usage_ratio: 150.21GB/41.78GB/191.98GB/78.24% | throughput per GPU (TFLOP/s/GPU): 578.7/573.5 | tokens per GPU (tokens/s/GPU): 12131.1/12020.4 | learning rate: 1.000000E-05 | global batch size:    32 | lm loss: 1.189000E+01 | loss scale: 1.0 | grad norm: 4.510 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
    );
    assert_eq!((point.step, point.total_steps, point.step_time_s), (10, Some(50), Some(2701.3 / 1e3)));
    assert_eq!((point.loss, point.tflops_per_device, point.global_batch), (Some(11.89), Some(578.7), Some(32)));
    assert_eq!(rate(&point), (None, Some(12131.1)));
    assert_eq!(other(&point, "elapsed time per iteration (ms) average"), Some(2712.7));
    // 150.21 x 10^9 bytes.
    assert_eq!(point.memory[0].device_gib.map(|gib| (gib * 100.0).round()), Some(13989.0));
}

#[test]
fn gpt_neox() {
    let log = read(
        " samples/sec: 20.208 | iteration       10/  320000 | elapsed time per iteration (ms): 1583.5 | learning rate: 3.750E-06 | approx flops per GPU: 45.3TFLOPS | lm_loss: 1.054000E+01 | loss scale: 4096.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
    );
    let point = &log.points[0];
    assert_eq!((point.step, point.total_steps, point.step_time_s), (10, Some(320_000), Some(1.5835)));
    assert_eq!((point.loss, point.tflops_per_device, point.samples_per_s), (Some(10.54), Some(45.3), Some(20.208)));
    assert_eq!(log.report.torn, 0);
}

#[test]
fn nanotron() {
    let log = read(
        "[0|DP=0|PP=0|TP=0|ip-26-0-1-1]: 05/29/2024 16:22:01 [INFO|DP=0|PP=0|TP=0|ip-26-0-1-1]: iteration: 10 / 100 | consumed_tokens: 10.5M | elapsed_time_per_iteration_ms: 6.05K | tokens_per_sec: 173K | tokens_per_sec_per_gpu: 21.7K | global_batch_size: 1.02K | lm_loss: 8.57 | lr: 0.0003 | model_tflops_per_gpu: 160 | hardware_tflops_per_gpu: 165 | grad_norm: 2.9 | cuda_memory_allocated: 4.39G | cuda_max_memory_reserved: 12.9G\n",
    );
    let point = &log.points[0];
    assert_eq!((point.step, point.total_steps, point.step_time_s), (10, Some(100), Some(6.05)));
    assert_eq!((point.loss, point.tflops_per_device, point.grad_norm), (Some(8.57), Some(160.0), Some(2.9)));
    assert_eq!((point.consumed_tokens, point.global_batch), (Some(10_500_000), Some(1020)));
    assert_eq!(
        (rate(point), other(point, "hardware_tflops_per_gpu")),
        ((Some(173_000.0), Some(21_700.0)), Some(165.0))
    );
    assert_eq!(point.memory[0].max_reserved_gib.map(|gib| (gib * 100.0).round()), Some(1201.0));
    assert!(log.report.flop_formula.as_deref().is_some_and(|formula| formula.starts_with("nanotron")));
    assert_eq!(log.report.tables, ["nanotron"]);
}

#[test]
fn maxtext() {
    let text = "completed step: 0, seconds: 22.5, TFLOP/s/device: 12.5, Tokens/s/device: 364.1, total_weights: 65536, loss: 10.870\n\
                completed step: 1, seconds: 2.345, TFLOP/s/device: 119.7, Tokens/s/device: 3493.4, total_weights: 65536, loss: 10.268\n";
    assert_eq!(seen(text), [(0, Some(22.5), Some(10.87)), (1, Some(2.345), Some(10.268))]);
    let point = &read(text).points[1];
    assert_eq!((point.tflops_per_device, rate(point)), (Some(119.7), (None, Some(3493.4))));
}

#[test]
fn olmo() {
    let text = "2024-05-01T10:20:30.123456789Z\t[rank0]\tolmo.train:966\tINFO\t[step=10/739328,epoch=0]\n    optim/total_grad_norm=12.34\n    \
                train/CrossEntropyLoss=11.05\n    train/Perplexity=62,944\n    throughput/total_tokens=41,943,040\n    \
                throughput/device/tokens_per_second=12,345\n    throughput/device/batches_per_second=0.125\n    System/Peak GPU Memory (MB)=31,002\n\
                2024-05-01T10:22:30.123456789Z\t[rank0]\tolmo.train:966\tINFO\t[step=11/739328,epoch=0]\n    train/CrossEntropyLoss=10.75\n";
    let points = read(text).points;
    assert_eq!(
        points.iter().map(|point| (point.step, point.loss)).collect::<Vec<_>>(),
        [(10, Some(11.05)), (11, Some(10.75))]
    );
    let point = &points[0];
    assert_eq!((point.step_time_s, point.total_steps, point.grad_norm), (Some(8.0), Some(739_328), Some(12.34)));
    assert_eq!((point.consumed_tokens, rate(point)), (Some(41_943_040), (None, Some(12345.0))));
    assert_eq!(other(point, "train/Perplexity"), Some(62944.0));
}

#[test]
fn composer() {
    let text = "[epoch=1][batch=10/100]:\n\t Train time/batch: 9\n\t Train throughput/batches_per_sec: 0.5000\n\t Train throughput/device/tokens_per_sec: 16384.0000\n\t \
                Train loss/train/total: 8.1234\n\t Train memory/peak_reserved_mem: 38.2000\n[epoch=1][batch=11/100]:\n\t Train loss/train/total: 8.0000\n";
    let points = read(text).points;
    assert_eq!(
        points.iter().map(|point| (point.step, point.loss)).collect::<Vec<_>>(),
        [(10, Some(8.1234)), (11, Some(8.0))]
    );
    assert_eq!((points[0].step_time_s, points[0].total_steps), (Some(2.0), Some(100)));
    assert_eq!(rate(&points[0]), (None, Some(16384.0)));
}

/// The iteration time covers one microbatch, so it is not a step time.
#[test]
fn litgpt() {
    let text = "Epoch 1 | iter 16 step 1 | loss train: 9.876, val: n/a | iter time: 234.56 ms (step) remaining time: 0:12:34\n\
                Epoch 1 | iter 32 step 2 | loss train: 9.5, val: 9.75 | iter time: 230.00 ms (step)\n";
    assert_eq!(seen(text), [(1, None, Some(9.876)), (2, None, Some(9.5))]);
    let point = &read(text).points[1];
    assert_eq!((other(point, "val_loss"), other(point, "microbatch_time_ms")), (Some(9.75), Some(230.0)));
    assert_eq!(seen("iter 0 step 1: loss 1.2345, iter time: 567.89ms (optimizer.step)\n"), [(1, None, Some(1.2345))]);
}

#[test]
fn fairseq() {
    let text = "2023-01-01 10:20:30 | INFO | train_inner | epoch 001:    100 / 1234 loss=12.345, nll_loss=11.2, ppl=2345.6, wps=12345.6, ups=1.25, wpb=10000, bsz=256, num_updates=100, lr=1.25e-05, gnorm=2.3, clip=0, train_wall=81, gb_free=12.3, wall=90\n";
    let point = single_point(text);
    assert_eq!(
        (point.step, point.step_time_s, point.loss, point.global_batch),
        (100, Some(0.8), Some(12.345), Some(256))
    );
    assert_eq!((rate(&point), point.learning_rate), ((Some(12345.6), None), Some(1.25e-5)));
    assert_eq!(point.time_us, Some(1_672_568_430_000_000));
    let json = "2023-01-01 10:20:30 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.081, \"loss\": \"12.3\", \"ups\": \"1.25\", \"num_updates\": \"100\", \"lr\": \"1e-05\"}\n";
    assert_eq!(seen(json), [(100, Some(0.8), Some(12.3))]);
}

#[test]
fn torchtune() {
    let text = "Step 1 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:12.25 \nStep 2 | loss:1.25 lr:2e-05 \n";
    assert_eq!(seen(text), [(1, None, Some(1.5)), (2, None, Some(1.25))]);
    let point = &read(text).points[0];
    assert_eq!((rate(point), point.memory[0].max_allocated_gib), ((None, Some(1234.5)), Some(12.25)));
}

#[test]
fn verl() {
    let text = "(TaskRunner pid=1234) step:1 - global_seqlen/min:12345.000 - actor/pg_loss:-0.010 - actor/grad_norm:0.5 - actor/lr:1e-06 - timing_s/step:123.4 - perf/throughput:567.8 - perf/max_memory_allocated_gb:45.5\n";
    let point = single_point(text);
    assert_eq!((point.step, point.step_time_s, point.loss, point.grad_norm), (1, Some(123.4), Some(-0.01), Some(0.5)));
    assert_eq!((rate(&point), point.memory[0].max_allocated_gib), ((None, Some(567.8)), Some(45.5)));
}

/// A step of 110 s, of which the training of the actor takes 30.25 s.
#[test]
fn the_step_time_of_reinforcement_learning_is_that_of_the_training() {
    let text = "step:1 - actor/pg_loss:0.5 - perf/mfu/actor:0.35 - timing_s/gen:60.5 - timing_s/update_actor:30.25 - timing_s/step:110.0 - perf/time_per_step:110.0 - perf/throughput:2234.0\n";
    let point = single_point(text);
    assert_eq!((point.step_time_s, point.mfu, rate(&point)), (Some(30.25), Some(0.35), (None, None)));
    let notes = read(text).report.assumptions;
    assert!(notes.len() == 1 && notes[0].contains("without the generation of samples"), "{notes:?}");
    for row in [
        r#"{"step": 1, "timing_s/step": 110.0, "timing_s/update_actor": 30.25}"#,
        r#"{"step": 1, "timing_s/update_actor": 30.25, "timing_s/step": 110.0}"#,
    ] {
        assert_eq!(single_point(&format!("{row}\n")).step_time_s, Some(30.25), "{row}");
    }
}

#[test]
fn small_trainers() {
    let text = "iter 0: loss 10.9, time 12345.00ms, mfu -100.00%\niter 10: loss 9.5, time 123.45ms, mfu 12.50%\n";
    assert_eq!(seen(text), [(0, Some(12.345), Some(10.9)), (10, Some(0.12345), Some(9.5))]);
    assert_eq!(read(text).points[1].mfu, Some(0.125));
    // 123.5 ms and 125 ms are averages since the start; 1,235 ms and 1,373 ms are training times.
    // The last step took 138 ms.
    let text = "step:10/1480 train_loss:5.1 train_time:1235ms step_avg:123.50ms\nstep:11/1480 train_loss:5.0 train_time:1373ms step_avg:124.82ms\n";
    let points = read(text).points;
    assert_eq!(points[0].step_time_origin, Some(StepTimeOrigin::RunAverage));
    assert_eq!(points[1].step_time_origin, Some(StepTimeOrigin::Elapsed));
    assert_eq!(
        points.iter().map(|p| (p.step, p.loss, p.step_time_s.map(|s| (s * 1e4).round()))).collect::<Vec<_>>(),
        [(10, Some(5.1), Some(1235.0)), (11, Some(5.0), Some(1380.0))]
    );
    let clip = single_point(
        "2023-01-01,10:20:30 | INFO | Train Epoch: 0 [  51200/10968539 (0%)] Data (t): 0.123 Batch (t): 0.456, 1123.4/s, 140.4/s/gpu LR: 0.000500 Logit Scale: 14.286 Contrastive_loss: 5.43 (5.43) Loss: 5.43 (5.43)\n",
    );
    assert_eq!(
        (clip.step_time_s, clip.samples_per_s, clip.loss, clip.step_counted),
        (Some(0.456), Some(1123.4), Some(5.43), true)
    );
    assert_eq!(clip.time_us, Some(1_672_568_430_000_000));
    let mae = "Epoch: [1]  [  20/1251]  eta: 0:12:34  lr: 0.000100  loss: 1.2345 (1.3456)  time: 0.6789  data: 0.0012  max mem: 7890\n";
    assert_eq!(seen(mae), [(1271, Some(0.6789), Some(1.2345))]);
    assert_eq!(
        seen(
            "DLL 2020-05-01 10:20:30.123456 - Training Epoch: 0 Training Iteration: 10  average_loss : 10.5  step_loss : 10.4  learning_rate : 1e-4\n"
        ),
        [(10, None, Some(10.4))]
    );
    assert_eq!(
        seen(
            "DLLL {\"timestamp\": \"1588.5\", \"elapsedtime\": \"12.5\", \"type\": \"LOG\", \"step\": [0, 10], \"data\": {\"loss\": 10.5}}\n"
        ),
        [(10, None, Some(10.5))]
    );
}

#[test]
fn deepspeed_breakdown_only() {
    let text = "[2023-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 60.25 | bwd_microstep: 120.25 | step_microstep: 12.00\n\
                [2023-11-07 01:55:23,714] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 120.50 | bwd: 240.50 | bwd_inner: 230.00 | bwd_allreduce: 10.00 | step: 14.00\n";
    let log = read(text);
    let point = &log.points[0];
    assert_eq!(
        (point.step_counted, point.step_time_s, point.step_time_origin),
        (true, Some(0.375), Some(StepTimeOrigin::Timers))
    );
    assert_eq!((log.points.len(), point.timers.len(), log.report.torn), (1, 5, 0));
    // If other lines contain step numbers, the timers belong to that step.
    let named = "[2023-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n";
    let point = single_point(&format!("{named}{text}"));
    assert_eq!((point.step, point.timers.len(), point.step_time_s), (10, 8, Some(0.375)));
}

/// 16 sequences with 8,192 tokens at 4,096 tokens/s on each of 8 devices take 4 s. Without the job
/// size, the clock gives the time.
#[test]
fn torchtitan_step_times() {
    let job = "[rank0]:[titan] 2025-03-01 10:20:00,250 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [2, 4]\n\
               [rank0]:[titan] 2025-03-01 10:20:00,250 - root - INFO - Trainer is initialized with local batch size 8, global batch size 16, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 2).\n";
    let steps = "[rank0]:[titan] 2025-03-01 10:20:30,250 - root - INFO - step: 10  loss:  9.50000  memory: 40.00GiB(50.00%)  tps: 4,096  tflops: 253.41  mfu: 25.62%\n\
                 [rank0]:[titan] 2025-03-01 10:21:15,250 - root - INFO - step: 20  loss:  8.50000  memory: 40.00GiB(50.00%)  tps: 4,096  tflops: 253.41  mfu: 25.62%\n";
    let step_times =
        |text: &str| read(text).points.iter().map(|p| (p.step, p.step_time_s, p.step_time_origin)).collect::<Vec<_>>();
    let by_tokens = (Some(4.0), Some(StepTimeOrigin::TokenRate));
    assert_eq!(step_times(&format!("{job}{steps}")), [(10, by_tokens.0, by_tokens.1), (20, by_tokens.0, by_tokens.1)]);
    assert_eq!(step_times(steps), [(10, None, None), (20, Some(4.5), Some(StepTimeOrigin::Clock))]);
    let report = read(steps).report;
    assert!(report.flop_formula.is_some_and(|formula| formula.starts_with("torchtitan")));
}

/// Docker wraps each line and adds a timestamp.
#[test]
fn docker() {
    let text = "{\"log\":\"step: 20  loss: 11.5  tps: 4,376\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-01T10:20:30.500000000Z\"}\n\
                {\"log\":\"step: 30  loss: 11.0  tps: 4,376\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-01T10:20:50.500000000Z\"}\n";
    assert_eq!(seen(text), [(20, None, Some(11.5)), (30, Some(2.0), Some(11.0))]);
    assert_eq!(read(text).report.torn, 0);
}

#[test]
fn utf16() {
    for bytes in [
        [0xfeff].into_iter().chain(V2.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
        [0xfeff].into_iter().chain(V2.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
    ] {
        let log = import(&bytes, &Limits::default()).expect("a log");
        assert_eq!((log.points[0].step, log.points[0].step_time_s), (20, Some(1.3549)));
        let mut parser = LogParser::new();
        let mut points: Vec<Point> = bytes.chunks(3).flat_map(|piece| parser.push(piece)).collect();
        points.extend(parser.finish().0);
        assert_eq!(points, log.points);
    }
}

#[test]
fn line_with_100_megabytes_is_omitted() {
    let mut parser = LogParser::new();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        assert!(parser.push(&piece).is_empty());
    }
    parser.push(format!("\n{V2}").as_bytes());
    let (points, report) = parser.finish();
    assert_eq!((points.len(), report.skipped, report.bytes), (1, 1, (100 << 20) + 1 + V2.len() as u64));
}

/// DeepSpeed prints the timers of a microbatch in a line of their own: those of a step are summed.
#[test]
fn timers_of_microbatches_are_summed() {
    let micro = "[Rank 0] time (ms) | fwd_microstep: 60.0 | bwd_microstep: 120.0 | step_microstep: 1.0\n";
    let step = "[Rank 0] time (ms) | fwd: 120.0 | bwd: 240.0 | step: 2.0\n";
    let Log { points, .. } = read(&[step, micro, micro, step].concat());
    let forward = points[0].timers.iter().find(|timer| timer.name == "fwd_microstep").and_then(|timer| timer.time_s);
    assert_eq!((points.len(), forward), (2, Some(0.12)));
}
