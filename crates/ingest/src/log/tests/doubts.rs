//! Tests for ambiguous metrics and the corresponding notes.

use super::*;

fn has_note(text: &str, start: &str) -> bool {
    read(text).report.assumptions.iter().any(|note| note.starts_with(start))
}

fn times(text: &str) -> Vec<Option<f64>> {
    read(text).points.iter().map(|point| point.step_time_s).collect()
}

/// Rows for six steps with a metric, spaced by `seconds`.
fn rows(figure: &str, seconds: f64) -> String {
    let row = |step: u32| {
        let time = 1_772_668_800.25 + f64::from(step) * seconds;
        format!("{{\"step\":{step},\"loss\":2.5,{figure},\"timestamp\":{time}}}\n")
    };
    [1, 2, 3, 4, 5, 6].map(row).concat()
}

/// Clocks determine a missing step time unit for values of any size.
#[test]
fn the_clocks_give_the_unit() {
    let long = rows("\"step_time\":1200.5", 1201.0);
    assert_eq!(times(&long)[1..], [Some(1200.5); 5]);
    assert!(has_note(&long, "the step time has no unit; by the clocks it is in seconds"));
    assert_eq!(times(&rows("\"step_time\":5.5", 0.0056))[1..], [Some(0.0055); 5]);
    assert_eq!(times(&rows("\"step_time\":1500500.0", 1.52))[1..], [Some(1.5005); 5]);
    // One tenth of the step time fits no unit, so the clocks are used.
    let part = rows("\"step_time\":0.5", 5.0);
    assert_eq!(times(&part)[1..], [Some(5.0); 5]);
    assert!(has_note(&part, "a step time has no unit, and neither"));
}

#[test]
fn clocks_that_contradict_the_step_times_are_reported() {
    const NOTE: &str = "the clocks contradict the step times";
    assert!(has_note(&rows("\"step_time_s\":0.25", 4.0), NOTE));
    assert!(!has_note(&rows("\"step_time_s\":3.5", 4.0), NOTE));
}

/// The second job continues with the step after the last one in the first job.
#[test]
fn consumed_samples_that_fall_are_reported() {
    let line = |step: u32, batch: u32| {
        format!(
            " iteration {step}/ 99 | consumed samples: {} | elapsed time per iteration (ms): 900.0 | lm loss: 7.5 |\n",
            step * batch
        )
    };
    let text = [line(10, 256), line(20, 256), line(30, 32)].concat();
    assert!(has_note(&text, "the consumed samples or tokens fall"));
    assert!(!has_note(&[line(10, 256), line(20, 256)].concat(), "the consumed samples"));
}

/// TRL prints the step time next to the bar. After a resume the bar divides by all steps.
#[test]
fn printed_step_time_and_clock_replace_the_progress_bar() {
    let dict = |step: u32, seconds: u32, rate: &str, more: &str| {
        format!(
            "  1%|   | {step}/900 [00:{seconds:02}<1:00:00, {rate}s/it]\n{{'loss': {step}.5, 'learning_rate': 1e-06, {more}'epoch': 0.0{step}}}\n"
        )
    };
    let trl = [dict(1, 5, "5.00", "'step_time': 4.7, "), dict(2, 10, "5.00", "'step_time': 4.8, ")].concat();
    assert_eq!(times(&trl), [Some(5.0), Some(4.8)]);
    let resumed = [dict(501, 4, "0.05", ""), dict(502, 8, "0.35", ""), dict(503, 12, "0.65", "")].concat();
    assert_eq!(times(&resumed), [Some(0.05), Some(4.0), Some(4.0)]);
}

#[test]
fn both_token_rates_are_stored() {
    let point = single_point(
        "{\"step\":1,\"loss\":9.5,\"step_time_s\":4.1,\"tokens_per_second\":127875.1,\"tokens_per_second_per_gpu\":15984.4}\n",
    );
    assert_eq!((point.tokens_per_s, point.tokens_per_s_per_device), (Some(127_875.1), Some(15_984.4)));
    let fairseq = single_point(
        "2023-01-01 10:20:30 | INFO | train_inner | {\"epoch\": 1, \"loss\": \"12.3\", \"wps\": \"12345.6\", \"ups\": \"0.5\", \"num_updates\": \"100\"}\n",
    );
    assert_eq!((fairseq.tokens_per_s, fairseq.tokens_per_s_per_device), (Some(12345.6), None));
    let unclear = "{\"step\":1,\"loss\":9.5,\"tps\":4096}\n";
    assert_eq!(single_point(unclear).tokens_per_s_per_device, Some(4096.0));
    assert!(has_note(unclear, "tps and wps are read as tokens per second of one device"));
}

/// If a line contains several peaks, the maximum is used.
#[test]
fn maximum_memory_peak_counts() {
    let axolotl = single_point(
        "{'loss': 9.5, 'learning_rate': 1e-06, 'memory/max_active (GiB)': 20.11, 'memory/max_allocated (GiB)': 21.12, 'memory/device_reserved (GiB)': 25.13, 'epoch': 0.5}\n",
    );
    let memory = &axolotl.memory[0];
    assert_eq!((memory.max_allocated_gib, memory.reserved_gib), (Some(21.12), Some(25.13)));
    let paddle = single_point(
        "[2026-03-05 00:01:00,331] [    INFO] - loss: 9.5, learning_rate: 1e-05, global_step: 10, current_memory_allocated: 40.1, current_memory_reserved: 60.2, max_memory_allocated: 55.5, max_memory_reserved: 62.1, interval_steps_per_second: 0.25\n",
    );
    let memory = &paddle.memory[0];
    assert_eq!(
        (memory.max_allocated_gib, memory.allocated_gib, memory.max_reserved_gib),
        (Some(55.5), Some(40.1), Some(62.1))
    );
}

#[test]
fn rounded_epochs_and_dict_pairs_are_reported() {
    let dict = |loss: f64, epoch: &str| format!("{{'loss': {loss}, 'learning_rate': 2e-05, 'epoch': {epoch}}}\n");
    let head = "  Num Epochs = 3\n  Total optimization steps = 873\n".to_owned();
    assert!(has_note(
        &[head.clone(), dict(9.5, "0.03")].concat(),
        "steps follow from the epoch, which the trainer rounds"
    ));
    assert!(!has_note(&[head, dict(9.5, "0.034364261")].concat(), "steps follow"));
    let ranks: String = (1..=4)
        .flat_map(|step| {
            [dict(f64::from(step), &format!("0.{step}")), dict(f64::from(step) + 0.25, &format!("0.{step}"))]
        })
        .collect();
    assert!(has_note(&ranks, "dicts of one epoch and learning rate follow each other"));
}

const UNNUMBERED: &str = "no step time is read or derived: the steps between two lines are not known";

/// The steps between two dicts without numbers are unknown, also if the lines have times of day.
#[test]
fn unnumbered_dicts_without_times_are_reported() {
    let dict = |step: u32| format!("{{'loss': {}.5, 'learning_rate': 1e-05, 'epoch': 0.{step}}}\n", 9 - step);
    let plain: String = (1..5).map(dict).collect();
    let line = |step: u32| format!("2024-05-01 10:0{step}:00,123 - INFO - {}", dict(step));
    let timed: String = (1..5).map(line).collect();
    for log in [&plain, &timed] {
        assert!(has_note(log, UNNUMBERED), "{log}");
        assert!(read(log).points.iter().all(|point| point.step_time_s.is_none()));
    }
    let summed_up =
        format!("{plain}{{'train_runtime': 40.0, 'train_steps_per_second': 0.5, 'train_loss': 2.5, 'epoch': 0.4}}\n");
    assert!(!has_note(&summed_up, UNNUMBERED));
}

#[test]
fn possibly_missed_metrics_are_named() {
    let custom =
        "{\"step\":1,\"my_loss\":9.5,\"step_ms_time\":250.0,\"gpu_toks/s_rate\":9.0}\n{\"step\":2,\"my_loss\":9.25}\n";
    let notes = read(custom).report.assumptions;
    for start in [
        "no loss is read; a figure that may be one is stored by its name only (my_loss)",
        "no step time is read; a figure",
        "no rate of tokens is read",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(start)), "{start}: {notes:?}");
    }
    // Timestamps without a year are not used.
    let syslog = "Mar 05 23:59:50 gpu-1 root: step: 10  loss: 9.5\nMar 06 00:01:50 gpu-1 root: step: 20  loss: 9.25\n";
    assert!(has_note(syslog, "no step time is read or derived"));
    for (first, second) in [
        ("30/01/2026 23:59:50", "31/01/2026 00:01:50"),
        ("01/31/2026 11:59:50 PM", "02/01/2026 12:01:50 AM"),
        ("1772668800", "1772668920"),
    ] {
        let text =
            format!("{first} - root - INFO - step: 10  loss: 9.5\n{second} - root - INFO - step: 20  loss: 9.25\n");
        assert_eq!(times(&text), [None, Some(12.0)], "{first}");
    }
}

/// litgpt numbers microbatches with `iter`. A step contains four.
#[test]
fn rows_with_two_numbers_say_which_is_the_step() {
    let litgpt = "iter,iter_time,loss,step\n40,0.625,7.9,10\n80,0.625,7.8,20\n";
    let log = read(litgpt);
    assert_eq!(
        log.points.iter().map(|point| (point.step, point.step_time_s)).collect::<Vec<_>>(),
        [(10, None), (20, None)]
    );
    assert!(has_note(litgpt, "rows have iter and step: iter counts microbatches"));
    let both = "{\"iter\":40,\"step\":10,\"loss\":2.5}\n";
    assert_eq!(single_point(both).step, 40);
    assert!(has_note(both, "rows have iter and step with different values: iter is read as the step"));
    assert_eq!(single_point("{\"step\":2,\"loss\":2.5}\n{\"step\":2.5,\"loss\":2.5}\n").step, 2);
}

#[test]
fn units_and_objects_inside_values() {
    let point = single_point(
        "{\"step\":1,\"train\":{\"loss\":2.5,\"step_time\":\"9.0s\"},\"val\":{\"loss\":7.5},\"tokens_per_sec\":\"98.7K\"}\n",
    );
    assert_eq!((point.loss, point.step_time_s, point.tokens_per_s), (Some(2.5), Some(9.0), Some(98_700.0)));
    assert_eq!(other(&point, "val/loss"), Some(7.5));
    let dict = single_point(
        "{'loss': 2.5, 'grad_norm': tensor(1.5000, device='cuda:0'), 'learning_rate': np.float64(1e-05), 'epoch': 0.5}\n",
    );
    assert_eq!((dict.loss, dict.grad_norm, dict.learning_rate), (Some(2.5), Some(1.5), Some(1e-5)));
}

#[test]
fn tables_in_other_notations() {
    let seen = |text: &str| {
        read(text).points.iter().map(|point| (point.step, point.loss, point.tokens_per_s)).collect::<Vec<_>>()
    };
    let expected = [(1000, Some(9.5), Some(12345.0)), (1100, Some(9.25), Some(12345.0))];
    assert_eq!(seen("step,loss,tokens_per_second\n\"1,000\",9.5,\"12,345\"\n\"1,100\",9.25,\"12,345\"\n"), expected);
    assert_eq!(seen("step;loss;tokens_per_second\n1.000;9,50;12.345\n1.100;9,25;12.345\n"), expected);
    let notebook = "Step\tTraining Loss\tValidation Loss\n10\t9.5\t7.75\n20\t9.25\t7.5\n";
    assert_eq!(seen(notebook), [(10, Some(9.5), None), (20, Some(9.25), None)]);
    let panel = "\"Step\",\"exp - lr 1e-4 - train/loss\",\"exp - lr 1e-4 - train/loss__MIN\"\n\"10\",\"2.5\",\"1\"\n";
    assert_eq!(seen(panel), [(10, Some(2.5), None)]);
    let by_name = "\"train/global_step\",\"run-a - perf/step_time_ms\",\"run-b - perf/step_time_ms\"\n10,2500.5,900\n";
    assert_eq!(
        read(by_name).points.iter().map(|point| (point.segment, point.step_time_s)).collect::<Vec<_>>(),
        [(0, Some(2.5005)), (1, Some(0.9))]
    );
}

/// A second table below the first has its own columns and units.
#[test]
fn headers_between_rows_and_rows_of_units() {
    let seen = |text: &str| {
        let points = read(text).points;
        points.iter().map(|point| (point.step, point.loss, point.step_time_s)).collect::<Vec<_>>()
    };
    let expected = [(1, Some(2.5), Some(1.5)), (2, Some(2.25), Some(1.25))];
    assert_eq!(seen("step,loss,step_time_s\n1,2.5,1.5\nstep,step_time_ms,loss\n2,1250,2.25\n"), expected);
    assert_eq!(seen("step,loss,step_time_s\n1,2.5,1.5\nstep,loss,step_time_s\n2,2.25,1.25\n"), expected);
    assert_eq!(seen("step;loss;step_time\n-;-;ms\n1;2,5;1500\n2;2,25;1250\n"), expected);
    assert_eq!(seen("step,loss,step_time\n,,[s]\n1,2.5,1.5\n2,2.25,1.25\n"), expected);
    // Of semicolons and commas, the commas are decimal.
    assert_eq!(seen("step;loss;step_time_s\n1;2,500;1,500\n2;2,250;1,250\n"), expected);
    // So do headers of tables with a value per row.
    assert_eq!(
        read("key,value,step\nloss,2.5,1\nstep,key,value\n2,loss,2.25\n").points.len(),
        2,
        "columns of the second header"
    );
    let Log { points, report, .. } = read("step,loss\n1,2.5\nkey,value,step\nloss,2.25,2\n");
    assert_eq!((points.len(), reasons(&report).len()), (1, 2), "{report:?}");
}

/// verl prints the step time twice, once without a unit.
#[test]
fn a_second_name_for_a_step_time_raises_no_doubt() {
    let line = |step: u32| {
        format!(
            "(TaskRunner pid=9) step:{step} - actor/pg_loss:0.5 - timing_s/step:98.75 - perf/time_per_step:98.75 - perf/throughput:1024.5\n"
        )
    };
    let text = [1, 2, 3].map(line).concat();
    assert_eq!(times(&text), [Some(98.75); 3]);
    assert_eq!(read(&text).report.assumptions, Vec::<String>::new());
}

/// Seconds since the start without a unit.
#[test]
fn elapsed_times_without_a_unit() {
    for name in ["elapsed", "wall_time", "time_elapsed"] {
        let row = |step: u32, seconds: f64| format!("{{\"step\": {step}, \"loss\": 2.5, \"{name}\": {seconds}}}\n");
        let text = [10, 20, 30].map(|step| row(step, f64::from(step) * 2.5)).concat();
        assert_eq!(times(&text), [None, Some(2.5), Some(2.5)], "{name}");
        assert!(has_note(&text, &format!("{name} has no unit: it is read as the seconds since")), "{name}");
        let table = [10, 20, 30].map(|step| format!("{step},{},2.5\n", f64::from(step) * 2.5)).concat();
        assert_eq!(times(&format!("step,{name},loss\n{table}")), [None, Some(2.5), Some(2.5)], "{name}");
        // Times of single steps vary and do not rise.
        let single =
            [(10, 2.5), (20, 2.625), (30, 2.5), (40, 2.75), (50, 2.875)].map(|(step, time)| row(step, time)).concat();
        assert_eq!(times(&single), [None; 5], "{name}");
        let millis = [10, 20, 30].map(|step| row(step, f64::from(step) * 2500.0)).concat();
        assert_eq!(times(&millis), [None; 3], "{name}");
    }
}

/// `dt` is the time of a step.
#[test]
fn dt_is_a_step_time() {
    let rows = |dt: &str| [1, 2, 3].map(|step| format!("{{\"step\": {step}, \"loss\": 2.5, \"dt\": {dt}}}\n")).concat();
    assert_eq!(times(&rows("0.5125")), [Some(0.5125); 3]);
    assert_eq!(times(&rows("512.5")), [None; 3]);
    assert!(has_note(&rows("512.5"), "a step time has no unit"));
    assert!(!has_note(&rows("512.5"), "no step time is read or derived"));
}

/// The header of MLPerf comes before the steps. Without a batch, samples are no steps.
#[test]
fn notes_of_mlperf_are_true() {
    let event = |key: &str, value: &str, more: &str| {
        format!(
            ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"time_ms\": 1740823200000, \"metadata\": {{{more}}}}}\n"
        )
    };
    let step = |samples: u32| event("train_loss", "1.5", &format!("\"samples_count\": {samples}"));
    let text = [event("global_batch_size", "8", ""), step(8), step(16), step(24)].concat();
    let Log { points, report, .. } = read(&text);
    assert_eq!(points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(reasons(&report), Vec::<&str>::new());
    assert!(has_note(&text, "step of MLPerf events counts samples; steps are"));
    let unknown = [step(8), step(16), step(24)].concat();
    assert!(has_note(&unknown, "MLPerf events count samples, and the log does not state global_batch_size"));
    assert!(!has_note(&unknown, "step of MLPerf events counts samples; steps are"));
}

/// A counter of optimizer steps shows that the steps are microbatches.
#[test]
fn steps_that_may_be_microbatches_are_reported() {
    let rows = |per: u32| -> String {
        let row = |step: u32| format!("{{\"step\": {step}, \"optimizer_step\": {}, \"loss\": 2.5}}\n", step / per);
        (1..30).map(row).collect()
    };
    assert!(has_note(&rows(8), "the steps may be microbatches: optimizer_step rises once in 8 steps"));
    assert!(!has_note(&rows(1), "the steps may be microbatches"));
}
