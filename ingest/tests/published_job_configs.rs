//! Tests with published configurations in the folder `PLANSCOPE_DATA`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingest::job_config::{self, JobConfig};
use planner::training::{Precision, Recompute};

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
        values.extend([("experts", moe.experts), ("top_k", moe.top_k), ("moe_ffn", module.ffn)]);
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
        Recompute::Selective => &["selective"],
        Recompute::Full => &["full"],
    };
    let precision: &[&str] = match training.precision {
        Precision::Fp8 => &["float8", "fp8"],
        Precision::Bf16 => &["bf16", "fp16"],
        Precision::Fp32 => &["fp32"],
    };
    let zero: &[&str] = match training.zero_stage() {
        0 => &["zero 0"],
        1 => &["zero 1"],
        2 => &["fsdp2"],
        _ => &["fsdp2", "optim_grads_params"],
    };
    [("recompute", recompute), ("precision", precision), ("zero_fsdp", zero)]
}

#[test]
fn training_configurations_are_read_without_a_wrong_field() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    let mut checked = 0;
    for row in rows(&folder.join("training.csv")) {
        let (file, framework) = (&row["file"], row["framework"].as_str());
        let is_read = matches!(framework, "megatron-lm" | "megatron-deepspeed")
            || framework == "torchtitan" && Path::new(file).extension().is_some_and(|extension| extension == "toml");
        if !is_read {
            continue;
        }
        let config = read(&folder.join("training").join(file));
        for (column, figure) in numeric_values(&config) {
            let expected = row[column].as_str();
            if !expected.is_empty() && expected != figure.to_string() {
                wrong.push(format!("{file}: {column} is {figure}, not {expected}"));
            }
            checked += usize::from(!expected.is_empty());
        }
        for (column, word) in accepted_terms(&config) {
            let expected = row[column].as_str();
            if !expected.is_empty() && !word.iter().any(|word| expected.contains(word)) {
                wrong.push(format!("{file}: {column} is {word:?}, not {expected}"));
            }
            checked += usize::from(!expected.is_empty());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 230, "{checked} fields checked");
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
    assert!(exact >= 20, "{exact} models within half a per cent");
}
