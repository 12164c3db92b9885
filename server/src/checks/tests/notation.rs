//! Edits keep comments, quotes, indentation and line ends of the files.

use super::*;

const LLAMA: &str = "model_config:\n    is_llama_config: true\n    hidden_size: 512\n    intermediate_size: 1536\n    \
                     num_attention_heads: 8\n    num_hidden_layers: 8\n    vocab_size: 32000\n";

/// Adds or changes one key of a file.
fn with(format: ConfigFormat, text: &str, key: &str, value: impl Into<Value>) -> Option<String> {
    let setting = Setting { keys: vec![key.to_owned()], value: value.into(), is_added: true };
    apply(text, &Job::new(format, &[text]).locate(&[setting])?)
}

/// A file with line ends of Windows, tabs, comments and quotes.
#[test]
fn unusual_files_keep_their_form() {
    let text = format!(
        "\u{feff}# größe\nmodel:\n  {}parallelism: {{dp: 16, pp: 1, tp: '1'}} # flow\ntokens:\n  \
         micro_batch_size: \"2\"   # sequences\n  sequence_length: 2048\n",
        LLAMA.replace('\n', "\n  ").trim_end_matches(' ')
    );
    let text = text.replace('\n', "\r\n");
    let (settings, file) = edited(&text, &change(layout(1, 1, 16, 1), &[("/layout/microbatch", json!(1))]));
    assert_eq!(settings, ["micro_batch_size: 1", "batch_accumulation_per_replica: 2"]);
    let changed = "micro_batch_size: \"1\"   # sequences\r\n  batch_accumulation_per_replica: 2\r\n  sequence_length";
    assert_eq!(file, text.replace("micro_batch_size: \"2\"   # sequences\r\n  sequence_length", changed));

    let (settings, file) = edited(&text, &change(layout(2, 1, 8, 2), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["tp: 2", "dp: 8", "batch_accumulation_per_replica: 2"]);
    assert!(file.contains("parallelism: {dp: 8, pp: 1, tp: '2'} # flow\r\n"), "{file}");
    // Keys are added inside braces as in JSON.
    let full = [("/training/recompute", json!("full")), ("/training/recompute_layers", Value::Null)];
    let (settings, file) = edited(&text, &change(layout(1, 1, 16, 2), &full));
    assert_eq!(settings, ["recompute_layer: true"]);
    assert_eq!(file, text.replace("tp: '1'}", "tp: '1', \"recompute_layer\": true}"));
}

#[test]
fn yaml_keys_are_added_beside_keys_of_their_section() {
    let format = ConfigFormat::Nanotron;
    let text = "parallelism:\n    dp: 2\n    tp: 1 # TP\n\ntokens:\n    micro_batch_size: 1\noptimizer:\n  # Adam\n  factory:\n    name: adam\n";
    let tokens = "tokens:\n    micro_batch_size: 1\n";
    assert_eq!(
        with(format, text, "tokens.batch_accumulation_per_replica", 4).unwrap(),
        text.replace(tokens, &format!("{tokens}    batch_accumulation_per_replica: 4\n"))
    );
    assert_eq!(
        with(format, text, "parallelism.recompute_layer", true).unwrap(),
        text.replace("tp: 1 # TP\n", "tp: 1 # TP\n    recompute_layer: true\n")
    );
    assert_eq!(
        with(format, text, "optimizer.zero_stage", 1).unwrap(),
        text.replace("  # Adam\n", "  # Adam\n  zero_stage: 1\n"),
        "a section without values"
    );
    let text = "global_train_batch_size: 4\nmodel:\n  d_model: 8";
    assert_eq!(
        with(ConfigFormat::Olmo, text, "fsdp.precision", "pure").unwrap(),
        "global_train_batch_size: 4\nfsdp:\n  precision: pure\nmodel:\n  d_model: 8",
        "a new section"
    );
    let text = "parallelism:\n  dp: 2\ntokens:\n  micro_batch_size: 1\noptimizer:\n";
    assert_eq!(with(format, text, "optimizer.zero_stage", 1), None, "an empty section");
    let text = "parallelism:\n  dp: 2\n  recompute_layer:\ntokens:\n  micro_batch_size: ~ # open\n";
    let file = with(format, text, "parallelism.recompute_layer", true).unwrap();
    assert_eq!(file, text.replace("recompute_layer:", "recompute_layer: true"));
    let file = with(format, text, "tokens.micro_batch_size", 2).unwrap();
    assert_eq!(file, text.replace("~ #", "2 #"));
}

#[test]
fn json_members_are_added_with_their_blanks() {
    let format = ConfigFormat::TrainingArguments;
    let texts = [
        "{\n\t\"per_device_train_batch_size\": 2,\n\t\"bf16\": true\n}",
        "{\"per_device_train_batch_size\":2,\"bf16\":true}",
        "\n{ \"bf16\": true, \"per_device_train_batch_size\": \"2\" }\r\n",
    ];
    let added = [
        "{\n\t\"per_device_train_batch_size\": 2,\n\t\"a\": 4,\n\t\"bf16\": true\n}",
        "{\"per_device_train_batch_size\":2,\"a\": 4,\"bf16\":true}",
        "\n{ \"bf16\": true, \"per_device_train_batch_size\": \"2\", \"a\": 4 }\r\n",
    ];
    for (text, added) in texts.into_iter().zip(added) {
        assert_eq!(with(format, text, "a", 4).unwrap(), added);
        let changed = with(format, text, "per_device_train_batch_size", 1).unwrap();
        assert_eq!(changed, text.replace("\"2\"", "1").replace(":2", ":1").replace(": 2", ": 1"));
    }
    let text = "{\"zero_optimization\": {\n  \"a\": {},\n  \"b\": {}},\n \"train_micro_batch_size_per_gpu\": 1}";
    assert_eq!(
        with(ConfigFormat::Deepspeed, text, "deepspeed.zero_optimization.stage", 1).unwrap(),
        text.replace("\"a\"", "\"stage\": 1,\n  \"a\"")
    );
    assert_eq!(
        with(ConfigFormat::Deepspeed, text, "deepspeed.data_types.x", "fp32").unwrap(),
        text.replace(": 1}", ": 1,\n \"data_types\": {\"x\":\"fp32\"}}")
    );
}

#[test]
fn keys_of_a_new_section_share_its_header() {
    let added = |format, text: &str, section: &str| {
        let setting = |name: &str| Setting { keys: vec![format!("{section}.{name}")], value: json!(1), is_added: true };
        apply(text, &Job::new(format, &[text]).locate(&[setting("a"), setting("b")])?)
    };
    let text = "global_train_batch_size: 4\r\nmodel:\r\n  d_model: 8\r\n";
    assert_eq!(
        added(ConfigFormat::Olmo, text, "fsdp").unwrap(),
        text.replace("4\r\n", "4\r\nfsdp:\r\n  a: 1\r\n  b: 1\r\n")
    );
    let titan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
    assert_eq!(
        added(ConfigFormat::Torchtitan, titan, "parallelism").unwrap(),
        format!("{titan}\n[parallelism]\na = 1\nb = 1\n")
    );
    let text = "{\"train_micro_batch_size_per_gpu\": 1, \"steps_per_print\": 1}";
    assert_eq!(added(ConfigFormat::Deepspeed, text, "deepspeed.data_types"), None);
}

/// The files of a job change together, each in its own syntax.
#[test]
fn edits_name_their_file() {
    let main = "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: full\ndeepspeed: z2.json\n";
    let deepspeed = "{\n\t\"train_micro_batch_size_per_gpu\": 2,\n\t\"zero_optimization\": {\"stage\": 2}\n}\n";
    let texts = [main, deepspeed];
    let (format, valid) = valid(&texts);
    let change = change(layout(1, 1, 16, 1), &[("/layout/microbatch", json!(1)), ("/training/zero", json!(1))]);
    let edits = edits_of(&Job::new(format, &texts), &texts, HARDWARE, valid.scenario(), &change).unwrap();
    let places: Vec<(u32, u32, &str)> =
        edits.iter().map(|edit| (edit.file, edit.line, edit.setting.as_str())).collect();
    let expected = [
        (1, 2, "\"train_micro_batch_size_per_gpu\": 1"),
        (1, 3, "\"stage\": 1"),
        (0, 4, "gradient_accumulation_steps: 2"),
    ];
    assert_eq!(places, expected);
}

/// Without devices of the caller, the file states them.
#[test]
fn devices_of_the_file_stay() {
    let text = include_str!("nemo.yaml").replace("devices: 8", "devices: 4");
    let configuration = read(&[("", &text)], Hardware::default()).unwrap();
    assert_eq!((configuration.scenario.cluster.nodes, configuration.scenario.cluster.devices_per_node), (2, 4));
    let job = Job::new(ConfigFormat::Nemo, &[&text]);
    let change = change(layout(4, 2, 1, 1), &[("/layout/microbatch", json!(1))]);
    let edits = edits_of(&job, &[&text], Hardware::default(), &configuration.scenario, &change).unwrap();
    assert_eq!(edits.iter().map(|edit| edit.line).collect::<Vec<_>>(), [6]);
}
