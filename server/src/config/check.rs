//! Arguments of `planscope check`.

use std::path::PathBuf;

use clap::Args;

use crate::checks::{MAX_DEVICES, preset};

/// Arguments of `planscope check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    /// Configuration of a job: torchtitan TOML, Megatron-LM arguments in a script, list or YAML, `config.json` of a
    /// Hugging Face model, DeepSpeed JSON, TrainingArguments, accelerate, LLaMA-Factory, axolotl, nanotron, llm-foundry,
    /// NeMo, MaxText, Primus or verl YAML, or a scenario. Several files belong to one job, for example `config.json` and
    /// DeepSpeed JSON. - for standard input.
    #[arg(required = true, num_args = 1..=8, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Number of devices. Default: as the file states, or the fewest for its layout.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEVICES)))]
    pub gpus: Option<u32>,
    /// Device type, for example h100. Default: as the file states, or h100.
    #[arg(long, value_parser = preset)]
    pub device: Option<&'static str>,
    /// Also search the best plan, with free layout and settings.
    #[arg(long)]
    pub best: bool,
    /// Measured time of a step in seconds: explain why the run is slower than predicted.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub step_time: Option<f64>,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
    /// Worker threads per search. Default: number of cores.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("it must be a number greater than 0".to_owned()),
    }
}
