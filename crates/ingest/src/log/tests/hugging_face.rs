//! Tests for Hugging Face trainer dicts and the sources of their steps and times.

use super::*;

type Seen = (u64, bool, Option<f64>, Option<StepTimeOrigin>, Option<f64>);

fn seen(text: &str) -> Vec<Seen> {
    let point = |p: &Point| (p.step, p.step_counted, p.step_time_s, p.step_time_origin, p.loss);
    read(text).points.iter().map(point).collect()
}

const BAR: Option<StepTimeOrigin> = Some(StepTimeOrigin::ProgressBar);

/// The bar is drawn after each step, then the dict is printed, then the bar is redrawn.
#[test]
fn the_bar_numbers_and_times_dicts() {
    let text = "\r  0%|          | 0/873 [00:00<?, ?it/s]\r  1%|          | 10/873 [00:48<1:08:54,  4.79s/it]\r                                   \r\
                {'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 4.9e-05, 'epoch': 0.01}\n\r  1%|          | 10/873 [00:48<1:08:54,  4.79s/it]\r  2%|2         | 20/873 [01:35<1:07:00,  2.00it/s]\
                {'loss': 2.25, 'grad_norm': 1.25, 'learning_rate': 4.8e-05, 'epoch': 0.02}\n\
                100%|##########| 50/50 [00:05<00:00,  9.5it/s]\r{'eval_loss': 2.0, 'eval_runtime': 5.5, 'epoch': 0.02}\n\r  3%|3         | 30/873 [02:25<1:07:00,  4.75s/it]\
                {'loss': 2.0, 'learning_rate': 4.7e-05, 'epoch': 0.03}\n{'train_runtime': 4200.0, 'train_steps_per_second': 0.208, 'train_loss': 2.0, 'epoch': 3.0}\n";
    let expected = [
        (10, false, Some(4.79), BAR, Some(2.5)),
        (20, false, Some(4.7), Some(StepTimeOrigin::Elapsed), Some(2.25)),
        (30, false, Some(5.0), Some(StepTimeOrigin::Elapsed), Some(2.0)),
    ];
    assert_eq!(seen(text), expected);
    let Log { points, report, .. } = read(text);
    assert_eq!((points[0].total_steps, points[2].notes.len(), report.restarts), (Some(873), 1, 0));
    assert!(report.assumptions.iter().any(|note| note.contains("progress bar")), "{report:?}");
    assert!(!report.assumptions.iter().any(|note| note.contains("does not number")), "{report:?}");
}

#[test]
fn dict_from_four_ranks_is_a_single_step() {
    let dict = |step: u32| format!("{{'loss': 2.{step}, 'learning_rate': 1e-05, 'epoch': 0.0{step}}}\n");
    let text: String = [1, 2, 3, 4, 5].map(|step| dict(step).repeat(4)).concat();
    let Log { points, report, .. } = read(&text);
    assert_eq!(points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!((report.steps, report.repeated, report.restarts), (20, 15, 0));
    // The second rank lags behind the first.
    let text = [1, 2, 1, 3, 2, 4, 3, 5, 4, 5].map(dict).concat();
    assert_eq!(read(&text).points.len(), 5);
    // With rank prefixes, each rank counts separately, even with different losses.
    let text: String = [1, 2, 3, 4, 5]
        .iter()
        .flat_map(|step| {
            (0..4).map(move |rank| format!("[rank{rank}]: {{'loss': {rank}.{step}, 'epoch': 0.0{step}}}\n"))
        })
        .collect();
    let Log { points, report, .. } = read(&text);
    assert_eq!(
        points.iter().map(|p| (p.step, p.loss)).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5].map(|step| (step, Some(step as f64 / 10.0)))
    );
    assert_eq!(report.restarts, 0);
}

/// 873 steps in 3 epochs are 291 steps per epoch.
#[test]
fn the_epoch_numbers_dicts() {
    let text = "***** Running training *****\n  Num Epochs = 3\n  Total optimization steps = 873\n\
                {'loss': 2.5, 'epoch': 0.034364}\n{'loss': 2.25, 'epoch': 1.0}\n{'train_runtime': 873.0, 'train_steps_per_second': 0.5, 'epoch': 3.0}\n";
    let expected =
        [(10, false, None, None, Some(2.5)), (291, false, Some(2.0), Some(StepTimeOrigin::RunAverage), Some(2.25))];
    assert_eq!(seen(text), expected);
}

#[test]
fn ms_swift_and_llama_factory() {
    let text = "{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'memory(GiB)': 30.25, 'train_speed(iter/s)': 0.125, 'epoch': 0.13, 'global_step/max_steps': '12/94', 'percentage': '12.77%', 'elapsed_time': '1m 36s', 'remaining_time': '10m 56s'}\n\
                {'loss': 1.25, 'train_speed(iter/s)': 0.125, 'epoch': 0.25, 'global_step/max_steps': '24/94', 'percentage': '25.53%', 'elapsed_time': '3m 12s'}\n";
    let expected = [
        (12, false, Some(8.0), Some(StepTimeOrigin::RunAverage), Some(1.5)),
        (24, false, Some(8.0), Some(StepTimeOrigin::Elapsed), Some(1.25)),
    ];
    assert_eq!(seen(text), expected);
    assert_eq!(
        (read(text).points[0].total_steps, read(text).points[0].memory[0].max_reserved_gib),
        (Some(94), Some(30.25))
    );
    let factory = single_point(
        "[INFO|2024-05-01 10:20:30] llamafactory.train.callbacks:143 >> {'loss': 1.25, 'learning_rate': 4.9e-05, 'epoch': 0.02, 'throughput': 1234.5}\n",
    );
    assert_eq!(
        (factory.loss, factory.tflops_per_device, factory.time_us),
        (Some(1.25), None, Some(1_714_558_830_000_000))
    );
    assert_eq!(factory.tokens_per_s, Some(1234.5));
}

/// 25,600 rows were mapped before training, and this bar is not used. With a known training length,
/// epochs determine the steps.
#[test]
fn bar_in_another_loop_numbers_nothing() {
    let text = "\r100%|##########| 25600/25600 [00:02<00:00, 12800.5it/s]\n{'loss': 2.5, 'epoch': 0.01}\n{'loss': 2.25, 'epoch': 0.02}\n";
    let numbered: Vec<_> =
        read(text).points.iter().map(|p| (p.step, p.step_counted, p.step_time_s, p.total_steps)).collect();
    assert_eq!(numbered, [(1, true, None, None), (2, true, None, None)]);
    let known = ["  Num Epochs = 1\n  Total optimization steps = 1000\n", text].concat();
    assert_eq!(read(&known).points.iter().map(|p| p.step).collect::<Vec<_>>(), [10, 20]);
    // The training bar itself, at its end.
    let training_bar = "\r100%|##########| 10/10 [00:48<00:00,  4.79s/it]\n{'loss': 2.5, 'epoch': 0.02}\n";
    assert_eq!(seen(training_bar), [(10, false, Some(4.79), BAR, Some(2.5))]);
}

/// Four ranks without prefixes print local losses at the same bar position.
#[test]
fn local_losses_at_the_same_bar_are_a_single_step() {
    let dicts = |step: u32| {
        (0..4).map(|rank| format!("{{'loss': {rank}.{step}, 'epoch': 0.0{step}}}\n")).collect::<Vec<_>>().concat()
    };
    let bar = |step: u32| format!("\r  {step}%|#    | {step}0/99 [00:{step}0<16:30,  1.00s/it]\n");
    let text: String = [1, 2, 3].map(|step| [bar(step), dicts(step)].concat()).concat();
    let Log { points, report, .. } = read(&text);
    let steps: Vec<_> = points.iter().map(|point| (point.step, point.loss)).collect();
    assert_eq!(steps, [(10, Some(0.1)), (20, Some(0.2)), (30, Some(0.3))]);
    assert_eq!((report.steps, report.repeated, report.restarts), (12, 9, 0));
}

/// `trainer_state.json` contains only the run average time.
#[test]
fn trainer_state_has_an_average() {
    let text = "{\n\"max_steps\": 20, \"log_history\": [{\"loss\": 2.5, \"step\": 10}, {\"loss\": 2.0, \"step\": 20}, {\"train_runtime\": 40.0, \"train_steps_per_second\": 0.5, \"step\": 20}]}";
    assert_eq!(seen(text)[1], (20, false, Some(2.0), Some(StepTimeOrigin::RunAverage), Some(2.0)));
}

#[test]
fn values_that_are_lists_are_passed_over() {
    assert_eq!(single_point("{'loss': 1.5, 'rewards': [1, {'a': 2}], 'epoch': 0.5}\n").loss, Some(1.5));
}

/// The trainer prints header numbers with commas.
#[test]
fn header_numbers_have_commas() {
    let lines = [10, 20, 30].map(|step| {
        let bar = format!("  0%|  | {step}/12345 [00:{:02}<1:00:00,  4.10s/it]\n", step + 11);
        format!("{bar}{{'loss': 9.{step}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.00{step}}}\n")
    });
    let text = format!("  Num Epochs = 3\n  Total optimization steps = 12,345\n{}", lines.concat());
    let points = read(&text).points;
    let steps: Vec<(u64, Option<u64>)> = points.iter().map(|point| (point.step, point.total_steps)).collect();
    assert_eq!(steps, [(10, Some(12_345)), (20, Some(12_345)), (30, Some(12_345))]);
}

/// A checkpoint of step 50, a crash after step 60, and a second start from the checkpoint.
#[test]
fn a_new_start_may_repeat_the_last_step() {
    let bar = |step: u32, seconds: u32| {
        format!("\r {step}%|#   | {step}/100 [{:02}:{:02}<09:00,  3.00s/it]", seconds / 60, seconds % 60)
    };
    let dict = |step: u32, loss: &str| format!("{{'loss': {loss}, 'learning_rate': 1e-05, 'epoch': 0.{step}}}\n");
    let first: String = [40, 50, 60].map(|step| bar(step, step * 3) + &dict(step, "2.5")).concat() + &bar(63, 189);
    let steps = |text: &str| {
        let Log { points, report, .. } = read(text);
        (points.iter().map(|point| (point.segment, point.step)).collect::<Vec<_>>(), report.restarts)
    };
    let expected = (vec![(0, 40), (0, 50), (0, 60), (1, 60), (1, 70)], 1);
    // The bar is drawn at 0, or its time begins again.
    for start in [bar(0, 0) + &bar(51, 153), bar(51, 3)] {
        let text =
            [&first, "\nTraceback\n", &start, &bar(60, 180), &dict(60, "2.375"), &bar(70, 210), &dict(70, "2.25")]
                .concat();
        assert_eq!(steps(&text), expected, "{start}");
    }
    // A step printed in the same words, and a lagging bar of another node, are no starts.
    let repeated = [&first[..], &bar(0, 0), &bar(60, 180), &dict(60, "2.5"), &bar(70, 210), &dict(70, "2.25")].concat();
    assert_eq!(steps(&repeated).1, 0);
    let lagging = [&first[..], &bar(59, 177), &bar(60, 180), &dict(60, "2.375")].concat();
    assert_eq!(steps(&lagging), (vec![(0, 40), (0, 50), (0, 60)], 0));
    // Without bars the trainer's start line shows it.
    let header = "***** Running training *****\n  Num Epochs = 1\n  Total optimization steps = 100\n";
    let text = [header, &dict(40, "2.5"), &dict(60, "2.25"), header, &dict(60, "2.125"), &dict(80, "2.0")].concat();
    assert_eq!(steps(&text), (vec![(0, 40), (0, 60), (1, 60), (1, 80)], 1));
    // The time since the start begins again.
    let swift = |step: u32, loss: &str, minutes: u32| {
        format!(
            "{{'loss': {loss}, 'epoch': 0.1, 'global_step/max_steps': '{step}/100', 'elapsed_time': '{minutes}m 0s'}}\n"
        )
    };
    let text = [swift(50, "2.5", 50), swift(60, "2.25", 60), swift(60, "2.125", 10)].concat();
    assert_eq!(steps(&text), (vec![(0, 50), (0, 60), (1, 60)], 1));
}

/// LLaMA-Factory's callback and the trainer print a dict each. Newer versions print text.
#[test]
fn dicts_of_callback_and_trainer_are_one_step() {
    let header = "***** Running training *****\n  Num Epochs = 3\n  Total optimization steps = 420\n";
    let callback = |step: u32| {
        format!(
            "[INFO|2025-03-01 10:0{step}:00] llamafactory.train.callbacks:143 >> {{'loss': 2.{step}000, 'learning_rate': 1.{step}524e-05, 'epoch': 0.{:02}, 'throughput': 4096.5}}\n",
            step * 7
        )
    };
    let trainer = |step: u32| {
        format!(
            "{{'loss': 2.{step}, 'grad_norm': 1.25, 'learning_rate': 1.{step}523809e-05, 'epoch': 0.{:02}}}\n",
            step * 7
        )
    };
    let quoted = |step: u32| {
        format!(
            "{{'loss': '2.{step}', 'grad_norm': '1.25', 'learning_rate': '1.{step}524e-05', 'epoch': '0.{:02}14'}}\n",
            step * 7
        )
    };
    for second in [trainer, quoted] {
        for is_swapped in [false, true] {
            let pair = |step| if is_swapped { second(step) + &callback(step) } else { callback(step) + &second(step) };
            let text = [header.to_owned(), [1, 2, 3, 4, 5].map(pair).concat()].concat();
            let Log { points, report, .. } = read(&text);
            assert_eq!(points.len(), 5, "{text}{points:?}");
            assert_eq!(points.iter().map(|point| point.segment).max(), Some(0), "{text}");
            let figures = |point: &Point| (point.loss, point.grad_norm, point.tokens_per_s);
            assert_eq!(figures(&points[1]), (Some(2.2), Some(1.25), Some(4096.5)));
            assert!(!report.assumptions.iter().any(|note| note.contains("several ranks")), "{report:?}");
        }
    }
    let steps: Vec<u64> = read(&(header.to_owned() + &[1, 2, 3].map(|step| callback(step) + &trainer(step)).concat()))
        .points
        .iter()
        .map(|point| point.step)
        .collect();
    assert_eq!(steps, [10, 20, 29]);
}

/// Megatron-SWIFT: the step is a fraction under another name, at any place of the dict.
#[test]
fn steps_as_fractions_have_several_names() {
    for name in ["iteration", "global_step", "step"] {
        let last = |step: u32| {
            format!(
                "{{'loss': 1.25, 'learning_rate': 1e-05, 'elapsed_time_per_iteration': 3.21, '{name}': '{step}/1000', 'consumed_samples': {}}}\n",
                step * 16
            )
        };
        let first = |step: u32| {
            format!(
                "{{'{name}': '{step}/1000', 'consumed_samples': {}, 'elapsed_time_per_iteration': 3.21, 'learning_rate': 1e-05, 'loss': 1.25}}\n",
                step * 16
            )
        };
        for text in [[5, 10, 15].map(last).concat(), [5, 10, 15].map(first).concat()] {
            let points = read(&text).points;
            let seen: Vec<_> = points.iter().map(|p| (p.step, p.total_steps, p.step_time_s, p.loss)).collect();
            assert_eq!(seen, [5, 10, 15].map(|step| (step, Some(1000), Some(3.21), Some(1.25))), "{text}");
        }
    }
    let row = "{\"loss\": 1.25, \"elapsed_time_per_iteration\": 3.21, \"iteration\": \"5/1000\"}\n";
    assert_eq!((single_point(row).step, single_point(row).step_time_s), (5, Some(3.21)));
    // A printed configuration is no step.
    let text = "{'learning_rate': 1e-05, 'loss': 'mse'}\n{'model': 'a', 'loss': 1.5}\n{'loss': 2.5, 'epoch': 0.5}\n";
    assert_eq!((single_point(text).loss, read(text).report.ignored), (Some(2.5), 2));
}

/// Tags of ranks show that the dicts of one step belong together.
#[test]
fn tagged_ranks_raise_no_doubt() {
    let text: String = (1..9)
        .flat_map(|step| {
            (0..4).map(move |rank| format!("{rank}: {{'loss': 2.{step}, 'learning_rate': 1e-05, 'epoch': 0.{step}}}\n"))
        })
        .collect();
    let Log { points, report, .. } = read(&text);
    assert_eq!(points.len(), 8);
    assert!(!report.assumptions.iter().any(|note| note.contains("several ranks")), "{report:?}");
}
