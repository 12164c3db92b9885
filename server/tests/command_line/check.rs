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
    assert!(text.contains("torchtitan job file, llama3 8B on 8 H100"), "{text}");
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
    assert!(text.contains("ds.json, line 2: \"stage\": 2"), "{text}");
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
