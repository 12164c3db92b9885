//! Tests with published configurations in the folder `PLANSCOPE_DATA`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingest::job_config::{self, Hardware, JobConfig, JobConfigError, ReadSetting};
use planner::training::{Framework, Precision, Recompute};

/// Returns the configuration folder; `None` if the data is not available.
fn folder() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so data/configs is not read");
        return None;
    };
    Some(Path::new(&folder).join("data/configs"))
}

fn rows(table: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(table).expect("the table");
    reader.deserialize().collect::<Result<_, _>>().expect("rows")
}

fn read(path: &Path) -> JobConfig {
    let bytes = std::fs::read(path).expect("the file");
    job_config::read("job", &bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns numeric results by `training.csv` column.
fn numeric_values(config: &JobConfig) -> BTreeMap<&'static str, u32> {
    let scenario = &config.scenario;
    let module = scenario.model.backbone().expect("a backbone");
    let mut values = BTreeMap::from([
        ("layers", module.layers),
        ("hidden", module.hidden),
        ("heads", module.heads),
        ("kv_heads", module.kv_heads),
        ("vocab", module.vocab),
        ("seq_len", scenario.workload.context_length),
        ("tp", scenario.layout.tensor.unwrap_or(1)),
        ("pp", scenario.layout.pipeline.unwrap_or(1)),
        ("vpp", scenario.layout.chunks.unwrap_or(1)),
        ("cp", scenario.training.context_parallel),
        ("ep", scenario.training.expert_parallel),
        ("microbatch", scenario.layout.microbatch.unwrap_or(1)),
        ("global_batch", scenario.workload.global_batch),
    ]);
    if let Some(moe) = module.moe {
        values.extend([("experts", moe.experts), ("top_k", moe.top_k), ("moe_ffn", module.expert_width())]);
        if moe.dense_layers > 0 || moe.every > 1 {
            values.insert("ffn", module.ffn);
        }
    } else {
        values.insert("ffn", module.ffn);
    }
    values
}

/// Returns accepted words by `training.csv` column.
fn accepted_terms(config: &JobConfig) -> [(&'static str, &'static [&'static str]); 3] {
    let training = &config.scenario.training;
    let recompute: &[&str] = match training.recompute {
        Recompute::None => &["none"],
        Recompute::Selective | Recompute::Operators => &["selective", "minimal", "save_"],
        Recompute::Full => &["full", "one_in_"],
    };
    let precision: &[&str] = match training.precision {
        Precision::Fp8 => &["float8", "fp8", "MXFP8"],
        Precision::Bf16 => &["bf16", "bfloat16", "fp16"],
        Precision::Fp32 => &["fp32", "bf16 off"],
    };
    let zero: &[&str] = match training.zero_stage() {
        0 => &["zero 0", "MULTI_GPU", "ddp"],
        // In a pipeline, FSDP2 of torchtitan keeps gathered weights.
        1 if training.framework == Framework::Torchtitan => &["fsdp2"],
        // DeepSpeed's optimizer for bf16 shards its state at stage 0.
        1 if config.assumed.iter().any(|sentence| sentence.contains("at ZeRO stage 0 shards")) => &["zero 0"],
        1 => &["zero 1", "distributed optimizer"],
        2 => &["fsdp2", "zero 2", "zero2"],
        _ => {
            &["fsdp2", "optim_grads_params", "zero 3", "FULL_SHARD", "ds_z3", "fsdp=", "fsdp (default", "fsdp wrapping"]
        }
    };
    [("recompute", recompute), ("precision", precision), ("zero_fsdp", zero)]
}

/// Model whose `config.json` stands in where a job file states no model or one that is not known by name.
const STAND_IN: &str = "meta-llama--Meta-Llama-3.1-70B.json";

/// Returns the job file whose settings the arguments of a file replace.
fn base_file(bytes: &[u8]) -> Option<&str> {
    let first = std::str::from_utf8(bytes).ok()?.lines().next()?;
    first.split_once("base file as ").map(|(_, name)| name.trim())
}

/// Reads a job file, with a stand-in model if the file needs one. The flag is true with the stand-in.
/// Arguments have the devices of the row, which their files do not state.
fn read_job(folder: &Path, file: &str, devices: Option<u32>) -> (Result<JobConfig, JobConfigError>, bool) {
    let bytes = std::fs::read(folder.join("training").join(file)).expect("the file");
    let model = std::fs::read(folder.join("models").join(STAND_IN)).expect("the model");
    if let Some(base) = base_file(&bytes) {
        let base_bytes = std::fs::read(folder.join("training").join(base)).expect("the base file");
        let hardware = Hardware { preset: None, devices };
        return (job_config::read_files(&[("job", &bytes), (base, &base_bytes)], hardware), false);
    }
    let job = job_config::read("job", &bytes);
    let is_without_model = job.as_ref().is_err_and(|error| error.to_string().contains("config.json"));
    if is_without_model {
        let files: [(&str, &[u8]); 2] = [("job", &bytes), ("config.json", &model)];
        return (job_config::read_files(&files, Hardware::default()), true);
    }
    (job, false)
}

/// Files that are refused, with the key in the error. The first has fewer sequences than replicas, the second no
/// attention.
const REFUSED: [(&str, &str); 2] =
    [("nemo--launcher-falcon-7b.yaml", "global"), ("nanotron--mamba.yaml", "is_mamba_config")];

#[test]
fn training_configurations_are_read_without_a_wrong_field() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    let mut checked = 0;
    for row in rows(&folder.join("training.csv")) {
        let (file, framework) = (&row["file"], row["framework"].as_str());
        let (config, has_stand_in) = read_job(&folder, file, row["n_gpus"].parse().ok());
        let refused = REFUSED.into_iter().find(|(name, _)| name == file).map(|(_, key)| key);
        let config = match (config, refused) {
            (Ok(config), None) => config,
            (Err(error), Some(key)) if error.to_string().contains(key) => continue,
            (config, _) => {
                wrong.push(format!("{file}: {:?}", config.err()));
                continue;
            }
        };
        // The sequence length of MLPerf is that of the benchmark, not in the file.
        let mut of_model = vec!["layers", "hidden", "heads", "kv_heads", "vocab", "experts", "top_k", "moe_ffn", "ffn"];
        if framework == "mlperf" {
            of_model.push("seq_len");
        }
        let mut numbers = numeric_values(&config);
        let devices = config.scenario.cluster.devices();
        if framework == "verl" {
            // The column counts prompts.
            numbers.remove("global_batch");
            // With a limit of tokens, verl does not use the number of sequences, which the column has.
            let is_dynamic = |read: &ReadSetting| read.key.ends_with("actor.use_dynamic_bsz") && read.value == "True";
            if config.read.iter().any(is_dynamic) {
                numbers.remove("microbatch");
            }
        }
        if !framework.starts_with("megatron-") {
            numbers.insert("n_gpus", devices);
        }
        for (column, figure) in numbers {
            let expected = row[column].as_str();
            let is_stated = expected.parse::<f64>().is_ok() && !(has_stand_in && of_model.contains(&column));
            if is_stated && expected != figure.to_string() {
                wrong.push(format!("{file}: {column} is {figure}, not {expected}"));
            }
            checked += usize::from(is_stated);
        }
        for (column, word) in accepted_terms(&config) {
            let expected = row[column].as_str();
            let is_stated = !expected.is_empty() && !expected.contains("auto fp16=auto");
            if is_stated && !word.iter().any(|word| expected.contains(word)) {
                wrong.push(format!("{file}: {column} is {word:?}, not {expected}"));
            }
            checked += usize::from(is_stated);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 850, "{checked} fields checked");
}

/// The parameter count matches within 0.5 %, or the report contains an unsupported feature.
#[test]
fn model_configurations_have_their_parameters() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    let mut exact = 0;
    for row in rows(&folder.join("models.csv")) {
        let config = read(&folder.join("models").join(&row["config_file"]));
        let parameters: f64 = row["parameters"].parse().expect("a count");
        let error = config.scenario.model.parameters() as f64 / parameters - 1.0;
        if error.abs() < 0.005 {
            exact += 1;
        } else if config.not_modelled.is_empty() {
            wrong.push(format!(
                "{}: {:+.2} % without a reason {:?}",
                row["config_file"],
                100.0 * error,
                config.assumed
            ));
        }
        eprintln!(
            "{} {:+.2} % {:?} unknown {:?}",
            row["config_file"],
            100.0 * error,
            config.not_modelled,
            config.unknown
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(exact >= 34, "{exact} models within half a per cent");
}
