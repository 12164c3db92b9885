//! Tests for tables and JSON lines that mix runs, processes, models, microbatches and epochs.

use super::*;

fn points(text: &str) -> Vec<(u32, u64, Option<f64>)> {
    read(text).points.iter().map(|point| (point.segment, point.step, point.loss)).collect()
}

fn has_note(text: &str, part: &str) -> bool {
    let notes = read(text).report.assumptions;
    notes.iter().any(|note| note.contains(part))
}

/// A CSV table from a header and rows.
fn table(header: &str, rows: &[&str]) -> String {
    format!("{header}\n{}\n", rows.join("\n"))
}

#[test]
fn microbatches_of_a_step_are_no_steps() {
    let same = table(
        "step,micro_step,loss,step_time_s",
        &["1,0,9.5,0.5", "1,1,9.25,0.5", "2,0,9.0,0.5", "2,1,8.5,0.5", "3,0,8.0,0.5", "3,1,7.5,0.5"],
    );
    assert_eq!(points(&same), [(0, 1, Some(9.5)), (0, 2, Some(9.0)), (0, 3, Some(8.0))]);
    assert!(read(&same).points.iter().all(|point| point.step_time_s.is_none()));
    assert!(has_note(&same, "rows are microbatches"));
    // The step column counts microbatches: two per step of 0.5 s each.
    let row = |step: u32| {
        format!("{{\"step\":{step},\"accum_step\":{},\"loss\":{step}.5,\"step_time_s\":0.5}}\n", (step - 1) % 2)
    };
    let counted: String = (1..=6).map(row).collect();
    let log = read(&counted);
    let seen: Vec<_> = log.points.iter().map(|point| (point.step, point.loss, point.step_time_s)).collect();
    assert_eq!(seen, [(1, Some(1.5), Some(1.0)), (2, Some(3.5), Some(1.0)), (3, Some(5.5), Some(1.0))]);
    assert_eq!(log.report.points, 3);
    // A counter of all microbatches, and a constant size, say nothing about the rows.
    for value in ["12", "4"] {
        let row = |step: u32| {
            let index = if value == "4" { 4 } else { step * 4 };
            format!("{{\"step\":{step},\"micro_step\":{index},\"loss\":2.5,\"step_time_s\":0.5}}\n")
        };
        let text: String = (1..=6).map(row).collect();
        assert_eq!(read(&text).points.len(), 6);
        assert!(read(&text).points.iter().all(|point| point.step_time_s == Some(0.5)));
    }
}

#[test]
fn models_of_reinforcement_learning_share_a_step() {
    let row = |step: u32, role: &str, loss: f64| {
        format!("{{\"step\":{step},\"role\":\"{role}\",\"loss\":{loss},\"step_time_s\":2.0}}\n")
    };
    let text: String = (1..=3)
        .flat_map(|step| [row(step, "actor", 0.5), row(step, "critic", 1.5), row(step, "reward", 2.5)])
        .collect();
    let log = read(&text);
    assert_eq!(points(&text), [(0, 1, Some(0.5)), (0, 2, Some(0.5)), (0, 3, Some(0.5))]);
    assert_eq!(
        (other(&log.points[0], "critic/loss"), other(&log.points[0], "reward/step_time_s")),
        (Some(1.5), Some(2.0))
    );
    assert!(has_note(&text, "rows are of several models (actor, critic, reward)"));
    let after: String = ["actor", "critic"].iter().flat_map(|role| (1..=3).map(|step| row(step, role, 0.5))).collect();
    assert_eq!((read(&after).points.len(), read(&after).report.restarts), (3, 0));
    // A model name is a constant label.
    let named = "{\"step\":1,\"model\":\"llama-8b\",\"loss\":2.5}\n{\"step\":2,\"model\":\"llama-8b\",\"loss\":2.25}\n";
    assert_eq!(points(named), [(0, 1, Some(2.5)), (0, 2, Some(2.25))]);
}

#[test]
fn repetitions_are_runs() {
    for key in ["trial", "seed", "run", "fold", "job_id"] {
        let header = format!("{key},step,loss");
        let after = table(&header, &["0,1,2.5", "0,2,2.25", "1,1,3.5", "1,2,3.25"]);
        let expected = [(0, 1, Some(2.5)), (0, 2, Some(2.25)), (1, 1, Some(3.5)), (1, 2, Some(3.25))];
        assert_eq!(points(&after), expected, "{key}");
        assert!(has_note(&after, "each run is a segment"), "{key}");
        let mixed = table(&header, &["0,1,2.5", "1,1,3.5", "0,2,2.25", "1,2,3.25"]);
        assert_eq!(points(&mixed), expected, "{key}");
    }
    let both = table("trial,seed,step,loss", &["a,0,1,2.5", "a,1,1,3.5", "a,0,2,2.25", "a,1,2,3.25"]);
    assert!(has_note(&both, "each run is a segment: seed 0, trial a, seed 1, trial a"), "{:?}", read(&both).report);
    // One seed for all rows, and a seed per step, are one run.
    let constant = table("seed,step,loss", &["7,1,2.5", "7,2,2.25"]);
    let random = table("seed,step,loss", &["17,1,2.5", "93,2,2.25", "5,3,2.0"]);
    assert_eq!(points(&constant).len(), 2);
    assert_eq!(points(&random), [(0, 1, Some(2.5)), (0, 2, Some(2.25)), (0, 3, Some(2.0))]);
    assert!(!has_note(&constant, "each run") && !has_note(&random, "each run"));
}

#[test]
fn rows_of_several_hosts_are_no_restarts() {
    for key in ["hostname", "host", "node", "worker", "pod", "dp_rank", "local_rank"] {
        let header = format!("step,{key},loss,step_time_s");
        let after = table(&header, &["1,a,2.5,9.0", "2,a,2.25,9.0", "3,a,2.0,9.0", "1,b,2.5,9.0", "2,b,2.25,9.0"]);
        let log = read(&after);
        assert_eq!(points(&after), [(0, 1, Some(2.5)), (0, 2, Some(2.25)), (0, 3, Some(2.0))], "{key}");
        assert_eq!((log.report.restarts, log.report.repeated), (0, 2), "{key}");
        let mixed =
            table(&header, &["1,a,2.5,9.0", "1,b,2.5,9.0", "2,b,2.25,9.0", "2,a,2.25,9.0", "3,a,2,9", "2,c,2,9"]);
        assert_eq!((points(&mixed).len(), read(&mixed).report.restarts), (3, 0), "{key}");
        assert!(has_note(&mixed, "rows are of several processes"), "{key}");
    }
    // A restart on another host continues.
    let moved = table("step,host,loss", &["1,a,2.5", "2,a,2.25", "3,a,2.0", "3,b,2.0", "4,b,1.75", "5,b,1.5"]);
    assert_eq!(points(&moved).iter().map(|point| point.1).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // By its times of day the second host begins an hour later.
    let timed = table(
        "step,host,loss,timestamp",
        &[
            "8,a,2.5,1700000000",
            "9,a,2.5,1700000009",
            "10,a,2.5,1700000018",
            "5,b,2.5,1700003600",
            "6,b,2.5,1700003609",
        ],
    );
    assert_eq!((read(&timed).report.restarts, points(&timed).len()), (1, 5));
}

#[test]
fn the_last_pipeline_stage_has_the_loss() {
    let header = "step,pp_rank,loss,step_time_s";
    let mixed = table(header, &["1,0,0.0,9.0", "1,1,0.0,9.0", "1,3,2.5,9.0", "2,0,0.0,9.0", "2,3,2.25,9.0"]);
    let after = table(header, &["1,0,0.0,9.0", "2,0,0.0,9.0", "1,3,2.5,9.0", "2,3,2.25,9.0"]);
    for text in [&mixed, &after, &mixed.replace("pp_rank", "pipeline_rank")] {
        assert_eq!(points(text), [(0, 1, Some(2.5)), (0, 2, Some(2.25))], "{text}");
        assert_eq!(read(text).points[0].step_time_s, Some(9.0));
        assert!(has_note(text, "only the last pipeline stage has a loss"));
    }
    // Without pipeline ranks, a loss of 0 is a loss: GRPO begins with it.
    assert_eq!(points("step,rank,loss\n1,0,0.0\n2,0,0.5\n"), [(0, 1, Some(0.0)), (0, 2, Some(0.5))]);
}

#[test]
fn steps_that_begin_again_in_each_epoch_continue() {
    let epochs = |first: u32, count: u32, interval: u32| {
        let row = |epoch: u32, row: u32| format!("{epoch},{},{}.5\n", first + row * interval, 9 - epoch);
        let rows: String = (0..3).flat_map(|epoch| (0..count).map(move |at| row(epoch, at))).collect();
        format!("epoch,step,loss\n{rows}")
    };
    for (first, count, interval) in [(0, 4, 1), (1, 4, 1), (0, 4, 10), (10, 4, 10), (1, 4, 10), (50, 1, 50)] {
        let text = epochs(first, count, interval);
        let log = read(&text);
        let steps: Vec<u64> = log.points.iter().map(|point| point.step).collect();
        let expected: Vec<u64> =
            (0..u64::from(3 * count)).map(|at| u64::from(first) + at * u64::from(interval)).collect();
        assert_eq!((steps, log.report.restarts), (expected, 0), "{text}");
        assert!(has_note(&text, "the steps begin again in each epoch"));
    }
    // Steps that rise over epochs, a restart in an earlier epoch, and an evaluation.
    assert_eq!(
        points("epoch,step,loss\n0,1,2.5\n0,2,2.5\n1,3,2.5\n").iter().map(|p| p.1).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let again = read("epoch,step,loss\n0,1,2.5\n0,2,2.5\n1,1,2.5\n1,2,2.5\n1,1,2.5\n1,2,2.5\n");
    assert_eq!(
        again.points.iter().map(|p| (p.segment, p.step)).collect::<Vec<_>>(),
        [(0, 1), (0, 2), (0, 3), (0, 4), (1, 3), (1, 4)]
    );
    let evaluated = read("epoch,step,loss,val_loss\n0,49,2.5,\n1,49,,2.25\n1,99,2.0,\n");
    assert_eq!(evaluated.points.iter().map(|p| p.step).collect::<Vec<_>>(), [49, 99]);
}

#[test]
fn tables_with_a_value_per_row() {
    let expected = [(0, 1, Some(2.5)), (0, 2, Some(2.25))];
    for (header, rows) in [
        ("step,tag,value", ["1,loss,2.5", "2,loss,2.25", "1,lr,0.5", "2,lr,0.25"]),
        ("tag,step,value", ["loss,1,2.5", "lr,1,0.5", "loss,2,2.25", "lr,2,0.25"]),
        ("metric,step,value", ["loss,1,2.5", "loss,2,2.25", "lr,1,0.5", "lr,2,0.25"]),
        ("Step,Tag,Value", ["1,train/loss,2.5", "2,train/loss,2.25", "1,lr,0.5", "2,lr,0.25"]),
        ("step,variable,value", ["1,loss,2.5", "2,loss,2.25", "1,lr,0.5", "2,lr,0.25"]),
    ] {
        let text = table(header, &rows);
        assert_eq!(points(&text), expected, "{header}");
        assert_eq!(read(&text).points[1].learning_rate, Some(0.25), "{header}");
    }
    let runs = table("dir_name,step,tag,value", &["a,1,loss,2.5", "a,2,loss,2.25", "b,1,loss,3.5"]);
    assert_eq!(points(&runs)[2], (1, 1, Some(3.5)));
    let timed = table("step,tag,value,wall_time", &["10,loss,2.5,1700000000.5", "20,loss,2.25,1700000025.5"]);
    assert_eq!(read(&timed).points[1].step_time_s, Some(2.5));
    let lines = "{\"step\":1,\"tag\":\"loss\",\"value\":2.5}\n{\"step\":2,\"tag\":\"loss\",\"value\":2.25}\n{\"step\":1,\"tag\":\"lr\",\"value\":0.5}\n{\"step\":2,\"tag\":\"lr\",\"value\":0.25}\n";
    assert_eq!((points(lines), read(lines).points[1].learning_rate), (expected.to_vec(), Some(0.25)));
    // A tag beside metrics is a label.
    let label = table("step,loss,tag,value", &["1,2.5,a,7", "2,2.25,a,8"]);
    assert_eq!((points(&label), other(&read(&label).points[0], "value")), (expected.to_vec(), Some(7.0)));
}

#[test]
fn steps_of_a_workflow_are_refused() {
    for (text, reason) in [
        (table("step,name,status,duration_s", &["1,Check out,ok,2.5", "2,Build image,ok,190"]), "named steps of a workflow"),
        (
            "{\"step\":1,\"name\":\"build\",\"step_time_s\":9.5}\n{\"step\":2,\"name\":\"test\",\"step_time_s\":99.5}\n".to_owned(),
            "named steps of a workflow",
        ),
        (
            "{\"step\":1,\"event\":\"pull\",\"ts\":1700000000}\n{\"step\":2,\"event\":\"push\",\"ts\":1700000060}\n".to_owned(),
            "named steps of a workflow",
        ),
        ("Step 1/7: check out\nStep 2/7: build image\nStep 3/7 : RUN make\n".to_owned(), "no step of a known trainer"),
        ("step: 1 name: build image\nstep 2: test\n".to_owned(), "no step of a known trainer"),
    ] {
        let error = import(text.as_bytes(), &Limits::default()).expect_err(&text).to_string();
        assert!(error.contains(reason), "{error}");
    }
    // Named runs, and named rows with metrics of training, are logs.
    let run =
        "{\"step\":1,\"name\":\"base\",\"step_time_s\":9.5}\n{\"step\":2,\"name\":\"base\",\"step_time_s\":9.75}\n";
    assert_eq!(read(run).points.len(), 2);
    let events =
        "{\"step\":1,\"event\":\"train\",\"ts\":1700000000}\n{\"step\":2,\"event\":\"train\",\"ts\":1700000060}\n";
    assert_eq!(read(events).points[1].step_time_s, Some(60.0));
    let trained = "{\"step\":1,\"name\":\"a\",\"loss\":9.5}\n{\"step\":2,\"name\":\"b\",\"loss\":9.25}\n";
    assert_eq!(read(trained).points.len(), 2);
}

#[test]
fn step_times_in_further_notations() {
    for (field, seconds) in [
        ("\"iters_per_sec\":0.25", 4.0),
        ("\"iterations_per_second\":0.25", 4.0),
        ("\"it/s\":\"0.25\"", 4.0),
        ("\"perf/steps_per_min\":15", 4.0),
        ("\"step_duration_ns\":4100000000", 4.1),
        ("\"step_duration_us\":4100000", 4.1),
        ("\"step_time\":\"0:00:04.1\"", 4.1),
        ("\"step_time\":\"00:00:04.100\"", 4.1),
        ("\"iter_time\":\"1:02\"", 62.0),
        ("\"step_time_ms\":\"0:00:04.1\"", 4.1),
        ("\"step_time\":\"1m 2s\"", 62.0),
        ("\"step_time\":\"4100ms\"", 4.1),
        ("\"step_time\":\"4100000000 ns\"", 4.1),
        ("\"ms_per_step\":4100", 4.1),
        ("\"ms/iter\":4100", 4.1),
        ("\"iteration_ms\":4100", 4.1),
        ("\"step_latency_ms\":4100", 4.1),
    ] {
        let point = single_point(&format!("{{\"step\":1,\"loss\":2.5,{field}}}\n"));
        let time = point.step_time_s.unwrap_or_default();
        assert!((time - seconds).abs() < 1e-9, "{field}: {point:?}");
        assert_eq!(point.step_time_origin, Some(StepTimeOrigin::Log), "{field}");
    }
    let csv = read("step,loss,step_time\n1,2.5,0:00:04.1\n2,2.25,0:00:04.3\n");
    assert_eq!(csv.points.iter().map(|point| point.step_time_s).collect::<Vec<_>>(), [Some(4.1), Some(4.3)]);
    // Other durations and minima are no step times.
    for field in [
        "\"eta\":\"0:10:00\"",
        "\"step_min\":0.5",
        "\"eval_iters_per_sec\":0.5",
        "\"batch_s\":0.5",
        "\"steps_per_epoch\":9",
        "\"step/ms\":450",
    ] {
        assert_eq!(single_point(&format!("{{\"step\":1,\"loss\":2.5,{field}}}\n")).step_time_s, None, "{field}");
    }
    // Durations in lines of text are no numbers before their first colon.
    let line = single_point("step:7 - train/loss:2.5 - timing_s/step:0:00:04.1 - eta:0:10:00\n");
    assert_eq!((line.step_time_s, other(&line, "eta")), (Some(4.1), None));
    // Where another field has the time, no note denies it.
    let clocks = "{\"step\":1,\"_timestamp\":1700000000.5,\"odd_time\":2.0}\n{\"step\":2,\"_timestamp\":1700000002.5,\"odd_time\":2.0}\n";
    assert!(!has_note(clocks, "the log prints no step times"));
}

#[test]
fn metrics_of_all_devices_are_divided() {
    let row = |more: &str| single_point(&format!("{{\"step\":1,\"loss\":2.5,{more}}}\n"));
    let batch = row("\"global_batch_size\":4194304,\"seq_length\":4096");
    assert_eq!(batch.global_batch, Some(1024));
    let by_rate = row("\"global_batch_size\":65536,\"seq_len\":1024,\"tokens_per_s\":32768,\"step_time_s\":2.0");
    assert_eq!(by_rate.global_batch, Some(64));
    assert_eq!(row("\"global_batch_size\":2048,\"seq_length\":2048").global_batch, Some(2048));
    let sums = row("\"tflops\":3200,\"max_memory_allocated_gb\":640,\"world_size\":8");
    assert_eq!(sums.tflops_per_device, Some(400.0));
    let memory = sums.memory[0].max_allocated_gib.unwrap_or_default();
    assert!((memory - 80e9 / 1_073_741_824.0).abs() < 1e-9);
    let unknown = "{\"step\":1,\"loss\":2.5,\"tflops\":25600,\"max_memory_allocated_gb\":640}\n";
    assert_eq!((single_point(unknown).tflops_per_device, single_point(unknown).memory.len()), (None, 0));
    assert!(has_note(unknown, "the TFLOP/s are above the peak") && has_note(unknown, "the memory is above"));
    let usual = row("\"tflops\":989,\"max_memory_allocated_gb\":288,\"world_size\":8");
    assert_eq!(usual.tflops_per_device, Some(989.0));
    assert!(usual.memory[0].max_allocated_gib.is_some_and(|memory| memory > 260.0));
    let setup = job_setup(b"global_batch_size: 4194304\nseq_length: 4096\n");
    assert_eq!(setup.global_batch, Some(1024));
    assert_eq!(job_setup(b"global_batch_size: 2048\nseq_length: 2048\n").global_batch, Some(2048));
}

/// Weights & Biases counts calls of log in `_step`.
#[test]
fn steps_of_a_logger_are_named() {
    let note = |text: &str| read(text).report.assumptions.iter().any(|note| note.contains("(_step)"));
    let row = |step: u32, fields: &str| format!("{{\"_step\":{},\"loss\":2.5{fields}}}\n", step * 7);
    assert!(note(&(row(1, "") + &row(2, ""))));
    assert!(!note(&(row(1, ",\"iter\":10") + &row(2, ",\"iter\":20"))));
}

/// Levanter and the bars of OpenRLHF.
#[test]
fn names_and_titles_of_further_trainers() {
    let row = r#"{"global_step": 5, "throughput/duration": 4.5, "throughput/mfu": 41.5, "train/loss": 2.5}"#;
    let point = single_point(row);
    assert_eq!((point.step_time_s, point.mfu, point.loss), (Some(4.5), Some(0.415), Some(2.5)));
    let bar = "Train epoch [1/2]:   5%|5         | 5/100 [00:05<01:35,  1.50s/it, loss=2.5]\n";
    let point = single_point(bar);
    assert_eq!((point.step, point.total_steps, point.step_time_s), (5, Some(100), Some(1.5)));
}
