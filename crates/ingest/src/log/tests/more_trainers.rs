//! Tests for further trainers in the table, log collectors, and units in names and values.

use super::*;

fn rate(point: &Point) -> Option<f64> {
    point.tokens_per_s.or(point.tokens_per_s_per_device)
}

/// Returns steps and step times for the first and last point, and the first point's token rate.
fn ends(text: &str) -> (u64, u64, Option<f64>, Option<f64>) {
    let points = read(text).points;
    let (first, last) = (points.first().expect("points"), points.last().expect("points"));
    (first.step, last.step, last.step_time_s, rate(first))
}

#[test]
fn single_step_lines() {
    for (text, expected) in [
        (
            "step    1/19560 | loss 10.900000 (+nanz)| norm 15.01 (+nanz)| lr 2.00e-05 | 201.00 ms | 54.9% bf16 MFU | 2621441 tok/s\n\
             step    2/19560 | loss 10.890000 (+nanz)| norm 15.02 (+nanz)| lr 2.00e-05 | 202.00 ms | 54.9% bf16 MFU | 2621442 tok/s\n",
            (1, 2, Some(0.202), Some(2_621_441.0)),
        ),
        (
            "step 00001/21400 (0.01%) | loss: 10.890000 | lrm: 1.00 | dt: 501.00ms | tok/sec: 1,048,576 | mfu: 47.12 | total time: 0.01m\n",
            (1, 1, Some(0.501), Some(1_048_576.0)),
        ),
        (
            "step     1 | loss: 10.890000 | lr 8.3916e-07 | norm: 15.2 | dt: 5001.00ms | tok/sec: 104857.00\n",
            (1, 1, Some(5.001), Some(104_857.0)),
        ),
        (
            "2024-03-01 10:00:01,123\tINFO record_metrics.py:370 -- tflops=180.51 step=1 loss=10.1 tgs (tokens/gpu/second)=4000.5 lr=4e-06 loss_scale=65536.0 num_consumed_tokens=131072 fwd_bwd_time=7.41\n",
            (1, 1, None, Some(4000.5)),
        ),
        (
            "2024-03-01 10:00:01,123 INFO launch.py:228 in launch -- tflops=63.28,step=5,loss=11.6,tgs (tokens/gpu/second)=1424.9,lr=4e-07\n",
            (5, 5, None, Some(1424.9)),
        ),
        (
            "[2024-03-01 10:00:01,123] [    INFO] - loss: 10.1, learning_rate: 3e-05, global_step: 10, max_memory_reserved: 40.2, interval_samples_per_second: 20.5, interval_tokens_per_second_per_device: 5248.1, interval_steps_per_second: 0.8\n",
            (10, 10, Some(1.25), Some(5248.1)),
        ),
        (
            "2024-03-01 10:00:01,123 - mindformers[callback.py:339] - INFO - { Epoch:[  1/  2], step:[    2/ 1000], loss: 10.1, per_step_time: 5121ms, lr: 1e-05, overflow cond: False, train_throughput_per_npu: 150.1T}\n",
            (2, 2, Some(5.121), None),
        ),
        (
            "[03/01 10:01:00 d2.utils.events]:  eta: 1:23:45  iter: 19  total_loss: 1.1  loss_cls: 0.5  time: 0.3121  last_time: 0.3512  data_time: 0.0123  lr: 0.0002  max_mem: 12345M\n",
            (20, 20, Some(0.3121), None),
        ),
        (
            "step: 100\nloss: 5.1\nLR: 0.0003\ntokens seen: 104857600\ncurrent step time: 3.41\nreserved memory: 60129542144\ncurrent token per gpu per sec: 4700\n",
            (100, 100, Some(3.41), Some(4700.0)),
        ),
        ("1|5|Loss: 1.5:   0%|          | 5/1000 [00:06<16:39,  1.20s/it]\n", (5, 5, Some(1.2), None)),
        ("1|5|Loss: nan:   0%|          | 5/1000 [00:06<16:39,  1.25it/s]\n", (5, 5, Some(0.8), None)),
        (
            "step    1/10 | loss nan (+nanz)| norm -nan (+nanz)| lr 2.00e-05 | 201.00 ms | n/a MFU | 2621441 tok/s\n",
            (1, 1, Some(0.201), Some(2_621_441.0)),
        ),
    ] {
        assert_eq!(ends(text), expected, "{text}");
    }
}

/// Steps that restart each epoch continue over epochs.
#[test]
fn epoch_steps_continue() {
    let mindformers = |epoch: u32, step: u32| {
        format!(
            "2024-03-01 - INFO - {{ Epoch:[  {epoch}/  2], step:[ {step}/ 1000], loss: 10.1, per_step_time: 5121ms, lr: 1e-05 }}\n"
        )
    };
    let recipes =
        |epoch: u32, step: u32| format!("Training Epoch: {epoch}/3, step {step}/1000 completed (loss: 1.5)\n");
    for line in [&mindformers as &dyn Fn(u32, u32) -> String, &recipes] {
        let log = read(&format!("{}{}{}", line(1, 999), line(1, 1000), line(2, 1)));
        let steps: Vec<(u64, u32)> = log.points.iter().map(|point| (point.step, point.segment)).collect();
        assert_eq!(steps, [(999, 0), (1000, 0), (1001, 0)]);
    }
}

/// nanochat prints 0.52 for 0.52 %.
#[test]
fn percent_without_a_sign() {
    let text =
        "step 00001/21400 (0.01%) | loss: 10.9 | dt: 501.00ms | tok/sec: 1,048,576 | mfu: 0.52 | total time: 0.01m\n";
    assert!(read(text).points[0].mfu.is_some_and(|mfu| (mfu - 0.0052).abs() < 1e-12));
}

/// NumPy 2 prints the number type.
#[test]
fn numpy_numbers() {
    let point = &read("step:1 - actor/pg_loss:np.float64(0.12) - timing_s/step:np.float64(25.5)\n").points[0];
    assert_eq!((point.loss, point.step_time_s), (Some(0.12), Some(25.5)));
}

/// 2.5 s between rows, with all timestamp units.
#[test]
fn times_in_json_rows() {
    for time in [
        |step: u64| (1_740_000_000_000 + step * 2500).to_string(),
        |step: u64| (1_740_000_000_000_000_000 + step * 2_500_000_000).to_string(),
        |step: u64| format!("{}.5", 1_740_000_000 + step * 5 / 2),
        |step: u64| format!("\"2025-03-01T10:00:{:02}.{}Z\"", step * 5 / 2, if step.is_multiple_of(2) { 0 } else { 5 }),
    ] {
        let rows: Vec<String> = (2..10)
            .step_by(2)
            .map(|step| format!("{{\"step\": {step}, \"loss\": 5.0, \"timestamp\": {}}}", time(step)))
            .collect();
        let points = read(&rows.join("\n")).points;
        assert_eq!(points.last().and_then(|point| point.step_time_s), Some(2.5), "{}", rows[0]);
    }
    // Two minutes are a duration, not a timestamp.
    let point = &read("{\"step\": 1, \"loss\": 5.0, \"time\": 120.0}\n").points[0];
    assert_eq!((point.time_us, other(point, "time")), (None, Some(120.0)));
}

#[test]
fn units_in_json_names_and_values() {
    let text = "{\"step\": 1, \"elapsed_min\": 0.5, \"step_duration_ms\": 2500, \"mfu\": \"41.2%\"}\n";
    let point = &read(text).points[0];
    assert_eq!((point.elapsed_s, point.step_time_s), (Some(30.0), Some(2.5)));
    assert!(point.mfu.is_some_and(|mfu| (mfu - 0.412).abs() < 1e-12));
    let composer = "{\"trainer/global_step\": 1, \"throughput/device/flops_per_sec\": 1.8e14}\n";
    assert_eq!(read(composer).points[0].tflops_per_device, Some(180.0));
}

#[test]
fn lines_that_collectors_wrap() {
    let line = " iteration 10/ 1000 | elapsed time per iteration (ms): 2701.3 | lm loss: 5.1E+00 |";
    for text in [
        format!("{{\"line\":\"{line}\",\"timestamp\":\"2025-03-01T10:00:01Z\",\"fields\":{{}}}}\n"),
        format!(
            "{{\"insertId\":\"a\",\"textPayload\":\"{line}\",\"timestamp\":\"2025-03-01T10:00:01Z\",\"severity\":\"INFO\"}}\n"
        ),
    ] {
        let point = &read(&text).points[0];
        assert_eq!((point.step, point.step_time_s), (10, Some(2701.3 / 1e3)), "{text}");
        assert!(point.time_us.is_some());
    }
    // A metrics row with a field of the same name.
    let point = &read("{\"line\":\"train.py:30\",\"step\":5,\"loss\":2.1,\"step_time_ms\":900}\n").points[0];
    assert_eq!((point.step, point.loss, point.step_time_s), (5, Some(2.1), Some(0.9)));
}

/// Trainer output with other line parts, or with a bar without rate.
#[test]
fn other_known_trainer_layouts() {
    for (text, expected) in [
        (
            "Epoch 0: :   1%|▏         | 10/1000 [00:30<49:30, v_num=3, reduced_train_loss=9.5, global_step=9.000, train_step_timing in s=3.010]\n",
            (10, Some(3.01), Some(9.5)),
        ),
        (
            "2026-03-05 00:00:01.123\tnode3:0\tolmo_core.train:105\tINFO\t[step=10/739328,epoch=1,eta=3 days, 2:11:00]\n    optim/LR (group 0)=0.0003000\n    \
             train/CE loss=9.500\n    throughput/device/BPS=0.2500\n    throughput/device/TPS=10,234\n",
            (10, Some(4.0), Some(9.5)),
        ),
        (
            "2026/03/05 00:00:10 - mmengine - INFO - Epoch(train)  [2][  50/ 150]  base_lr: 1.0e-04 lr: 1.0e-04  eta: 2:34:56  time: 0.7100  data_time: 0.0123  memory: 15123  loss: 9.5000\n",
            (200, Some(0.71), Some(9.5)),
        ),
        (
            "Train: 1 [  50/1251 (  4%)]  Loss: 9.5 (9.6)  Time: 0.412s, 2485.44/s  (0.500s, 2048.00/s)  LR: 1.000e-03  Data: 0.011 (0.031)\n",
            (1301, Some(0.412), Some(9.5)),
        ),
        (
            "Training Epoch: 1/3, step 8/388 completed (loss: 9.5):   2%|▏        | 9/388 [00:45<31:00,  4.97s/it]\n",
            (8, Some(4.97), Some(9.5)),
        ),
        (
            "INFO:levanter.callbacks:Progress on:train 10it/10.0kit rate:1.25it/s remaining:2:00:00 elapsed:00:00:10 postfix:loss:9.500\n",
            (10, Some(0.8), Some(9.5)),
        ),
    ] {
        let point = single_point(text);
        assert_eq!((point.step, point.step_time_s, point.loss), expected, "{text}");
    }
}

/// tqdm prints three digits: `1.00it`, `19.0it`, `1.48kit`.
#[test]
fn levanter_rounds_steps() {
    let line = |step: &str, loss: u32| {
        format!(
            "INFO :: Progress on:train {step}it/10.0kit rate:1.5s/it remaining:3:05:15 elapsed:01:40 postfix:loss=4.{loss}\n"
        )
    };
    let text = [line("1.00", 1), line("26.0", 2), line("976", 3)].concat();
    let seen = |text: &str| read(text).points.iter().map(|p| (p.step, p.total_steps, p.loss)).collect::<Vec<_>>();
    let total = Some(10_000);
    assert_eq!(seen(&text), [(1, total, Some(4.1)), (26, total, Some(4.2)), (976, total, Some(4.3))]);
    assert!(!read(&text).report.assumptions.iter().any(|note| note.contains("rounds")));
    let text = [text, line("1.00k", 4), line("1.15k", 5), line("1.15k", 6)].concat();
    assert_eq!(seen(&text)[3..], [(1000, total, Some(4.4)), (1150, total, Some(4.5))]);
    assert!(read(&text).report.assumptions.iter().any(|note| note.contains("rounds large steps")));
    let short = line("2.00", 1).replace("10.0k", "70.0");
    assert_eq!((single_point(&short).total_steps, single_point(&short).step_time_s), (Some(70), Some(1.5)));
}

/// composer's bar has batches as its unit.
#[test]
fn composer_bars() {
    let bar = |step: u32| {
        format!(
            "train                           0%|     | {step}/5000 [00:0{step}<2:15:12,  2.50s/ba, loss/train/total=9.{step}000]\r"
        )
    };
    let points = read(&[1, 2, 3].map(bar).concat()).points;
    let seen: Vec<_> = points.iter().map(|p| (p.step, p.total_steps, p.step_time_s, p.loss)).collect();
    assert_eq!(seen[2], (3, Some(5000), Some(2.5), Some(9.3)));
    let epochs = "train          Epoch   1:  100%|###| 50/50 [1:16:18<00:00,  2.00ba/s, loss/train/total=2.75]\neval           Epoch   1:  100%|###| 49/49 [01:43<00:00,  1.95s/ba, metrics/eval/Accuracy=0.75]\n";
    let point = single_point(epochs);
    assert_eq!((point.step, point.total_steps, point.step_time_s), (100, None, Some(0.5)));
}

/// The bar of an epoch has the length of the epoch, not of the run.
#[test]
fn bars_of_epochs_state_no_total() {
    let bar = |epoch: u32, step: u32| {
        format!("Epoch {epoch}:  50%|## | {step}/50 [00:01<00:49,  1.00it/s, v_num=0, train_loss=2.5]\r")
    };
    let points = read(&[bar(0, 49), bar(0, 50), bar(1, 1)].concat()).points;
    let seen: Vec<_> = points.iter().map(|point| (point.step, point.total_steps)).collect();
    assert_eq!(seen, [(49, None), (50, None), (51, None)]);
}

/// Megatron-LM of 2019 prints no colon after most names.
#[test]
fn megatron_without_colons() {
    let point = single_point(
        " iteration      100/  500000 | elapsed time per iteration (ms): 525.5 | learning rate 1.500E-04 | lm loss 6.5E+00 | loss scale 65536.0 |\n",
    );
    assert_eq!((point.step, point.step_time_s, point.learning_rate), (100, Some(0.5255), Some(1.5e-4)));
    assert_eq!((point.loss, other(&point, "loss scale")), (Some(6.5), Some(65536.0)));
}
