//! Tests for JSON lines and CSV history and for units.

use super::*;

/// Step, step time, its origin and loss per point.
type Seen = (u64, Option<f64>, Option<StepTimeOrigin>, Option<f64>);

fn seen(text: &str) -> Vec<Seen> {
    let point = |point: &Point| (point.step, point.step_time_s, point.step_time_origin, point.loss);
    read(text).points.iter().map(point).collect()
}

const CLOCK: Option<StepTimeOrigin> = Some(StepTimeOrigin::Clock);

/// Weights & Biases counts `log` calls in `_step`. The trainer's step has a separate key.
#[test]
fn the_step_is_the_trainers() {
    let rows = |name: &str, loss: &str| {
        [0, 1, 2].map(|row| {
            let (step, time) = ((row + 1) * 10, 1_700_000_000.5 + f64::from(row) * 25.0);
            format!("{{\"_step\":{row},\"_timestamp\":{time},\"{name}\":{step},\"{loss}\":2.5}}\n")
        })
    };
    let expected = [(10, None, None, Some(2.5)), (20, Some(2.5), CLOCK, Some(2.5)), (30, Some(2.5), CLOCK, Some(2.5))];
    for (name, loss) in
        [("train/global_step", "train/loss"), ("trainer/global_step", "train_loss"), ("iter", "train/loss")]
    {
        assert_eq!(seen(&rows(name, loss).concat()), expected, "{name}");
    }
    // A row without the trainer's step belongs to the preceding step.
    let with = format!("{}{{\"_step\":7,\"val/loss\":3.5}}\n", rows("train/global_step", "train/loss").concat());
    let points = read(&with).points;
    assert_eq!((points.len(), other(&points[2], "val/loss")), (3, Some(3.5)));
}

#[test]
fn llama_factory_and_ms_swift() {
    let text = "{\"current_steps\": 10, \"total_steps\": 100, \"loss\": 1.25, \"lr\": 1e-05, \"epoch\": 0.1, \"percentage\": 10.0, \"elapsed_time\": \"0:00:50\", \"remaining_time\": \"0:07:30\", \"throughput\": 1234.5, \"total_tokens\": 61725}\n\
                {\"current_steps\": 20, \"total_steps\": 100, \"loss\": 1.0, \"lr\": 1e-05, \"epoch\": 0.2, \"percentage\": 20.0, \"elapsed_time\": \"0:01:30\", \"remaining_time\": \"0:06:00\", \"throughput\": 1371.7, \"total_tokens\": 123450}\n";
    assert_eq!(seen(text), [(10, None, None, Some(1.25)), (20, Some(4.0), Some(StepTimeOrigin::Elapsed), Some(1.0))]);
    let point = &read(text).points[0];
    assert_eq!((point.total_steps, point.consumed_tokens, point.tflops_per_device), (Some(100), Some(61725), None));
    assert_eq!(point.tokens_per_s, Some(1234.5));
    let swift = "{\"loss\": 1.5, \"learning_rate\": 1e-05, \"memory(GiB)\": 30.25, \"train_speed(iter/s)\": 0.125, \"epoch\": 0.1, \"global_step/max_steps\": \"12/94\", \"percentage\": \"12.77%\", \"elapsed_time\": \"1m 36s\"}\n";
    assert_eq!(seen(swift), [(12, Some(8.0), Some(StepTimeOrigin::RunAverage), Some(1.5))]);
    let point = single_point(swift);
    assert_eq!(
        (point.total_steps, point.memory[0].max_reserved_gib, point.elapsed_s),
        (Some(94), Some(30.25), Some(96.0))
    );
}

/// A metric without a unit is used if its value or the clocks determine the unit, never as TFLOP/s
/// from its name.
#[test]
fn units_that_names_leave_open() {
    let Log { points, report, .. } =
        read("{\"step\": 1, \"loss\": 2.5, \"throughput\": 123456.0, \"step_time\": 1501.0}\n");
    assert_eq!((points[0].tflops_per_device, points[0].step_time_s), (None, Some(1.501)));
    assert_eq!(other(&points[0], "throughput"), Some(123_456.0));
    assert!(report.assumptions.iter().any(|note| note.contains("throughput has no unit")), "{report:?}");
    assert!(report.assumptions.iter().any(|note| note.contains("milliseconds")), "{report:?}");
    // 0.8 must be seconds. 450 is ambiguous without clocks.
    assert_eq!(single_point("{\"step\": 1, \"step_time\": 0.8}\n").step_time_s, Some(0.8));
    let unclear = single_point("{\"step\": 1, \"step_time\": 450.0}\n");
    assert_eq!((unclear.step_time_s, other(&unclear, "step_time")), (None, Some(450.0)));
    let clocks = "{\"step\": 1, \"_timestamp\": 1700000000.25, \"step_time\": 450.0}\n{\"step\": 2, \"_timestamp\": 1700000000.75, \"step_time\": 460.0}\n";
    assert_eq!(read(clocks).points[1].step_time_s, Some(0.46));
    let named =
        single_point("{\"step\": 1, \"step_time_ms\": 450.0, \"throughput (tokens/s)\": 1000.0, \"mfu\": 41.5}\n");
    assert_eq!((named.step_time_s, named.mfu), (Some(0.45), Some(0.415)));
    assert_eq!(named.tokens_per_s, Some(1000.0));
    // Megatron-LM scalars.
    assert_eq!(
        single_point("{\"step\": 1, \"loss-scale\": 1.0, \"throughput\": 412.5}\n").tflops_per_device,
        Some(412.5)
    );
}

#[test]
fn tables_with_a_step_column() {
    let lightning = "epoch,lr-AdamW,step,train_loss,val_loss\n0,,49,2.5,\n0,,49,,2.25\n1,,99,2.0,\n";
    assert_eq!(seen(lightning), [(49, None, None, Some(2.5)), (99, None, None, Some(2.0))]);
    assert_eq!(other(&read(lightning).points[0], "val_loss"), Some(2.25));
    let history = ",_step,_runtime,_timestamp,train/loss,train/global_step\n0,0,10.5,1700000000.5,2.5,10\n1,1,20.5,1700000010.5,2.25,20\n2,2,21.0,1700000011.0,,\n";
    assert_eq!(seen(history), [(10, None, None, Some(2.5)), (20, Some(1.0), CLOCK, Some(2.25))]);
    let mlflow = "run_id,key,value,step,timestamp\na,loss,2.5,10,1700000000500\na,loss,2.0,20,1700000020500\na,lr,0.5,10,1700000000500\nb,loss,3.5,10,1700000000500\n";
    let Log { points, report, .. } = read(mlflow);
    let values = |point: &Point| (point.segment, point.step, point.loss, point.learning_rate, point.step_time_s);
    let expected =
        [(0, 10, Some(2.5), Some(0.5), None), (0, 20, Some(2.0), None, Some(2.0)), (1, 10, Some(3.5), None, None)];
    assert_eq!(points.iter().map(values).collect::<Vec<_>>(), expected);
    assert_eq!((report.lines, report.steps), (4, 4));
    let file = "1700000000500 2.5 10\n1700000020500 2.0 20\n";
    let points = read(file).points;
    assert_eq!(
        points.iter().map(|p| (p.step, other(p, "value"), p.step_time_s)).collect::<Vec<_>>(),
        [(10, Some(2.5), None), (20, Some(2.0), Some(2.0))]
    );
}

#[test]
fn tensorboardx_replaces_blanks() {
    let bytes = [
        tensorboard::tests::event(1, "lm_loss", 4.0),
        tensorboard::tests::event(64, "lm_loss_vs_samples", 4.0),
        tensorboard::tests::event(2, "lm_loss", 3.5),
        tensorboard::tests::event(128, "lm_loss_vs_samples", 3.5),
    ]
    .concat();
    let points = import(&bytes, &Limits::default()).expect("events").points;
    assert_eq!(
        points.iter().map(|point| (point.step, point.loss)).collect::<Vec<_>>(),
        [(1, Some(4.0)), (2, Some(3.5))]
    );
}

fn mllog(time_ms: u64, key: &str, value: &str, metadata: &str) -> String {
    format!(
        ":::MLLOG {{\"time_ms\": {time_ms}, \"key\": \"{key}\", \"value\": {value}, \"metadata\": {{{metadata}}}}}\n"
    )
}

/// 3072 samples with batch size 8 are 384 steps. A batch takes 0.5 s at 16 samples/s.
#[test]
fn mlperf_counts_samples() {
    let text = [
        mllog(1000, "global_batch_size", "8", ""),
        mllog(2_000, "tracked_stats", "{\"throughput\": 16.0}", "\"step\": 3072"),
        mllog(2_000, "train_loss", "1.5", "\"step\": 3072"),
        mllog(194_000, "train_loss", "1.25", "\"step\": 6144"),
        mllog(386_000, "train_loss", "1.0", "\"step\": 9216"),
    ]
    .concat();
    let points = read(&text).points;
    let values = |point: &Point| (point.step, point.consumed_samples, point.loss, point.step_time_s);
    let expected = [
        (384, Some(3072), Some(1.5), None),
        (768, Some(6144), Some(1.25), Some(0.5)),
        (1152, Some(9216), Some(1.0), Some(0.5)),
    ];
    assert_eq!(points.iter().map(values).collect::<Vec<_>>(), expected);
    assert_eq!((points[0].samples_per_s, points[0].global_batch), (Some(16.0), Some(8)));
    let counted = text.replace("\"step\"", "\"samples_count\"");
    assert_eq!(read(&counted).points.iter().map(values).collect::<Vec<_>>(), expected);
}

/// GPT-3: 1536 sequences with 2048 tokens are 3,145,728 tokens per step. 385 steps are
/// 1,211,105,280 tokens.
#[test]
fn mlperf_counts_tokens() {
    let text = [
        mllog(0, "global_batch_size", "1536", ""),
        mllog(0, "max_sequence_length", "2048", ""),
        mllog(1_000, "tracked_stats", "{\"throughput\": 5154997.0}", "\"step\": 1211105280"),
        mllog(235_935, "tracked_stats", "{\"throughput\": 5154997.0}", "\"step\": 2422210560"),
    ]
    .concat();
    let points = read(&text).points;
    assert_eq!(
        points.iter().map(|point| (point.step, point.consumed_tokens)).collect::<Vec<_>>(),
        [(385, Some(1_211_105_280)), (770, Some(2_422_210_560))]
    );
    assert_eq!((points[0].tokens_per_s, points[0].samples_per_s), (Some(5_154_997.0), None));
    // Without batch size and sequence length the steps are counted.
    let without_sizes = read(&text.lines().skip(2).flat_map(|line| [line, "\n"]).collect::<String>());
    assert_eq!(
        without_sizes.points.iter().map(|point| (point.step, point.step_counted)).collect::<Vec<_>>(),
        [(1, true), (2, true)]
    );
    assert_eq!(without_sizes.points[0].samples_per_s, None);
}

/// ResNet logs evaluations per epoch only: 1,600 samples with batch size 8 are 200 steps.
#[test]
fn mlperf_evaluations_are_steps_of_logs_without_others() {
    let header = mllog(0, "global_batch_size", "8", "") + &mllog(0, "train_samples", "1600", "");
    let evaluations = mllog(100_000, "eval_accuracy", "0.1", "\"epoch_num\": 1")
        + &mllog(300_000, "eval_accuracy", "0.2", "\"epoch_num\": 3");
    let log = read(&(header + &evaluations));
    let values = |point: &Point| (point.step, point.step_time_s, point.others.last().map(|other| other.value));
    assert_eq!(
        log.points.iter().map(values).collect::<Vec<_>>(),
        [(200, None, Some(0.1)), (600, Some(0.5), Some(0.2))]
    );
    assert!(log.report.assumptions.iter().any(|note| note.contains("evaluations only")));
    let error = import(evaluations.as_bytes(), &Limits::default()).unwrap_err().to_string();
    assert!(
        error.contains("does not state train_samples and global_batch_size") && error.contains("2 times"),
        "{error}"
    );
    // In front of steps they are no steps.
    let steps = mllog(400_000, "train_loss", "2.5", "\"step\": 700");
    let log = read(&(evaluations + &steps));
    assert_eq!(log.points.iter().map(|point| point.step).collect::<Vec<_>>(), [700]);
}

/// The throughput shows that the numbers are steps: batch size 8 at 16 samples/s is two steps per
/// second.
#[test]
fn mlperf_counts_steps() {
    let text = [
        mllog(0, "global_batch_size", "8", ""),
        mllog(1_000, "tracked_stats", "{\"throughput\": 16.0}", "\"step\": 16"),
        mllog(9_000, "tracked_stats", "{\"throughput\": 16.0}", "\"step\": 32"),
        mllog(9_500, "eval_accuracy", "0.5", "\"epoch_num\": 1"),
        mllog(17_000, "tracked_stats", "{\"throughput\": 16.0}", "\"step\": 48"),
    ]
    .concat();
    let points = read(&text).points;
    assert_eq!(
        points.iter().map(|point| (point.step, point.step_time_s)).collect::<Vec<_>>(),
        [(16, None), (32, Some(0.5)), (48, Some(0.5))]
    );
    assert_eq!(points[1].notes[0].name, "eval_accuracy");
    // Epochs alone do not determine a step number.
    let epochs =
        [mllog(0, "train_loss", "2.5", "\"epoch_num\": 1"), mllog(9_000, "train_loss", "2.0", "\"epoch_num\": 2")]
            .concat();
    assert_eq!(
        read(&epochs).points.iter().map(|point| (point.step, point.step_counted)).collect::<Vec<_>>(),
        [(1, true), (2, true)]
    );
}
