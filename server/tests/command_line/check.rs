//! Tests of `planscope check`.

use super::planscope;

/// A job file of torchtitan for Llama-3 8B.
fn job(recompute: &str) -> String {
    format!(
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n\n\
         [parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 1\n\n\
         [activation_checkpoint]\nmode = \"{recompute}\"\n"
    )
}

#[test]
fn a_job_file_is_checked_with_changes_in_its_own_syntax() {
    let output = planscope(&["check", "-", "--gpus", "8", "--device", "h100", "--json"], &job("none"));
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["verdict"], &report["format"]), (&"does_not_fit".into(), &"torchtitan".into()));
    assert!(report["fit"]["ranks"][0]["memory"]["activations_gib"].as_f64().unwrap() > 10.0);
    let edits = report["edits"].as_array().unwrap().iter().flat_map(|edits| edits.as_array().unwrap());
    let settings: Vec<&str> = edits.filter_map(|edit| edit["setting"].as_str()).collect();
    assert!(settings.contains(&"local_batch_size = 1"), "{settings:?}");

    let output = planscope(&["check", "-", "--gpus", "8", "--device", "H100"], &job("full"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("torchtitan job file, llama3 8B (8.03 billion parameters) on 8 H100"), "{text}");
    assert!(text.contains(" % MFU; TP 1, PP 1, DP 8"), "{text}");
    assert!(!text.contains("number of devices is not stated"), "{text}");
}

#[test]
fn a_check_names_unknown_devices_and_unknown_files() {
    let output = planscope(&["check", "-", "--device", "h1000"], &job("full"));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown device type; known: a100-80gb"));
    let output = planscope(&["check", "-"], "hello");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn edits_of_several_files_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        (
            "job.yaml",
            "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: full\nper_device_train_batch_size: 1\n\
             gradient_accumulation_steps: 4\nbf16: true\n",
        ),
        (
            "ds.json",
            "{\"bf16\": {\"enabled\": true},\n \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": false}}\n",
        ),
    ];
    let paths = files.map(|(name, text)| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    });
    let output = planscope(&["check", &paths[0], &paths[1], "--gpus", "16"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("job.yaml, line 4: per_device_train_batch_size: 4"), "{text}");
    // ZeRO 2 reduces each of the four microbatches.
    assert!(text.contains("ds.json, line 2: \"stage\": 1"), "{text}");
}

/// Errors and changes have the keys of the file or plain names.
#[test]
fn fields_have_the_names_of_the_file() {
    let script = "--num-layers 32 --hidden-size 4608 --num-attention-heads 36 --seq-length 2048 --max-position-embeddings 2048 \
                  --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 8 --bf16";
    let output = planscope(&["check", "-", "--gpus", "8"], script);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("--tensor-model-parallel-size: 36 heads of Megatron-LM model are not a multiple of TP 8"),
        "{stderr}"
    );
    assert!(!stderr.contains("/layout"), "{stderr}");
    let command = "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 4 --max_length 1024\n";
    let output = planscope(&["check", "-", "--gpus", "8", "--device", "h100"], command);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("TRL command line") && stdout.contains("(TRL, no pipeline)"), "{stdout}");
    assert!(stdout.contains("add after line 1: --torch_compile True"), "{stdout}");
    assert!(!stdout.contains("/training/") && !stdout.contains("/cluster/"), "{stdout}");
}

#[test]
fn devices_have_the_names_of_products() {
    for (name, device) in [
        ("a100", "A100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("A100-SXM4-40GB", "A100-40GB"),
        ("gb200", "GB200 NVL72"),
    ] {
        let output = planscope(&["check", "-", "--gpus", "8", "--device", name], &job("full"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains(&format!("on 8 {device} (")),
            "{name}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The exported file differs in the changed lines only, and a check of it gives the changed plan.
#[test]
fn a_file_is_exported_with_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let own = format!("# my job\r\n{}# HF_TOKEN=hf_AbCdEfGhIjKlMnOp\n", job("full"));
    std::fs::write(path("job.toml"), &own).unwrap();
    let file = path("job.toml");
    let check =
        |arguments: &[&str]| planscope(&[&["check", "--gpus", "8", "--device", "h100"], arguments].concat(), "");
    let report: serde_json::Value = serde_json::from_slice(&check(&[&file, "--json"]).stdout).unwrap();
    let number =
        1 + report["edits"].as_array().unwrap().iter().position(|edits| edits.as_array().unwrap().len() == 1).unwrap();
    let folder = path("changed");
    let output = check(&[&file, "--export", &folder, "--change", &number.to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let exported = std::fs::read_to_string(directory.path().join("changed/job.toml")).unwrap();
    let differing = own.lines().filter(|line| !exported.lines().any(|other| other == *line)).count();
    assert!(differing <= 1 && exported != own && exported.starts_with("# my job\r\n"), "{exported}");
    assert!(exported.contains("hf_AbCdEfGhIjKlMnOp"), "comments are unchanged");
    let again: serde_json::Value =
        serde_json::from_slice(&check(&[&path("changed/job.toml"), "--json"]).stdout).unwrap();
    let expected = &report["fit"]["changes"][number - 1]["result"];
    assert_eq!(again["plan"]["metrics"]["iteration_s"], expected["iteration_s"]);

    // Nothing is overwritten, and a change without a setting is no file.
    let output = check(&[&file, "--export", &folder]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("cannot create"));
    let output = check(&[&file, "--export", &path("other"), "--change", "99"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("nothing is exported"));
    assert!(!directory.path().join("other").exists());
}

/// Two steps with a product, attention, an all-gather and gaps, in the columns of Kineto.
fn trace() -> String {
    let mut events = Vec::new();
    for step in 0..2_u64 {
        let at = 1_000_000 * step;
        let kernels = [
            ("nvjet_tst_128x256", 0, 300_000),
            ("flash_fwd_kernel", 310_000, 100_000),
            ("ncclDevKernel_AllGather_RING", 500_000, 200_000),
        ];
        for (name, start, duration) in kernels {
            events.push(serde_json::json!({
                "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + start, "dur": duration
            }));
        }
        events.push(serde_json::json!({
            "ph": "X", "cat": "user_annotation", "name": format!("ProfilerStep#{step}"), "pid": 9, "tid": 1, "ts": at, "dur": 999_990
        }));
    }
    serde_json::json!({ "traceEvents": events }).to_string()
}

#[test]
fn a_trace_is_compared_with_predicted_operators() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rank3.json");
    std::fs::write(&path, trace()).unwrap();
    let path = path.to_string_lossy();
    let arguments = ["check", "-", "--gpus", "8", "--device", "h100", "--trace", &path];
    let output = planscope(&[&arguments[..], &["--json"]].concat(), &job("full"));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: planner::trace_prediction::TracePrediction = serde_json::from_value(report["trace"].clone()).unwrap();
    assert_eq!((found.rank, found.steps), (3, 2));
    let measured = |kind: &str| {
        let row = found.kernels.iter().find(|row| row.kind.title() == kind).unwrap();
        ((1e6 * row.measured_s).round(), row.predicted_s.is_some())
    };
    assert_eq!(measured("matrix products"), (300_000.0, true));
    assert_eq!(measured("attention"), (100_000.0, true));
    assert_eq!(measured("all-gather"), (200_000.0, false));
    let idle: f64 = found.idle.iter().map(|row| row.time_s).sum();
    let part = found.parts.iter().find(|part| part.part.title() == "idle").unwrap();
    assert!((idle - part.measured_s).abs() < 1e-6, "{:?} {part:?}", found.idle);

    let output = planscope(&arguments, &job("full"));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in
        ["trace rank3.json: rank 3, pipeline rank 0, mean of 2 steps", "exposed communication", "idle time by cause"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    // A job that does not fit has no operators to compare.
    let output = planscope(&arguments, &job("none"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("The measurement is not compared."));
}
