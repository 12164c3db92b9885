//! Arguments of `planscope check`.

use std::path::PathBuf;

use clap::Args;
use planner::outcome::Budget;
use planner::slowness::Measured;

use crate::checks::{MAX_DEVICES, preset};

/// Exit codes, for the help.
pub(super) const EXIT_CODES: &str =
    "Exit codes: 0 if the job fits, also at risk, 1 for an error, 3 if it does not fit or does not start.";

/// Arguments of `planscope check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArguments {
    /// Configuration of a job: torchtitan TOML, Megatron-LM arguments in a script, list or YAML, `config.json` of a
    /// Hugging Face model, DeepSpeed JSON, TrainingArguments, accelerate, LLaMA-Factory, axolotl, GPT-NeoX, nanotron,
    /// llm-foundry, NeMo, MaxText, Primus, verl, litgpt, torchtune or Levanter YAML, a script with a command of the
    /// Hugging Face Trainer, accelerate, TRL, LLaMA-Factory, ms-swift, OpenRLHF, torchtune, litgpt or MaxText, a task of
    /// `SkyPilot` or a workload of Kubernetes with such a command, or a scenario. Several files belong to one job, for
    /// example `config.json` and DeepSpeed JSON. - for standard input.
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
    /// Highest probability in % of running out of memory that the best plan may have, 1 to 50. 0: no limit.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, requires = "best", value_parser = clap::value_parser!(u8).range(0..=50))]
    pub max_risk: u8,
    /// Measured time of a step in seconds: explain why the run is slower than predicted.
    #[arg(long, value_name = "SECONDS", value_parser = positive, group = "measured")]
    pub step_time: Option<f64>,
    /// Measured tokens per second and device, instead of a step time.
    #[arg(long, value_name = "RATE", value_parser = positive, group = "measured")]
    pub tokens_per_s: Option<f64>,
    /// Measured model TFLOP/s per device, instead of a step time.
    #[arg(long, value_name = "TFLOPS", value_parser = positive, group = "measured")]
    pub tflops: Option<f64>,
    /// Log of the run: compare its steps, and its timers by phase, and explain why it is slower than predicted.
    #[arg(long, value_name = "FILE", group = "measured")]
    pub log: Option<PathBuf>,
    /// Profiler trace of the run: compare kernels by type with predicted operators, exposed communication, and idle time
    /// by cause. Kineto and other Chrome trace events, Perfetto, SQLite export of Nsight Systems.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Rank of the trace, or of one of its devices. Default: as the trace or its file name states, otherwise 0.
    #[arg(long, value_name = "RANK", requires = "trace")]
    pub rank: Option<u32>,
    /// Write the files with a change applied into this folder, which must not have them yet. Text outside of the changed
    /// settings is unchanged.
    #[arg(long, value_name = "FOLDER")]
    pub export: Option<PathBuf>,
    /// Number of the exported change in the list. Default: the changes that are best together, or the first change that
    /// the files have a setting for.
    #[arg(long, value_name = "NUMBER", requires = "export", value_parser = clap::value_parser!(u32).range(1..))]
    pub change: Option<u32>,
    /// Tokens of the whole run, for example 15T or 300e9: its days, device hours and cost.
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub tokens: Option<f64>,
    /// Price of a device for an hour, for the cost of the run.
    #[arg(long, value_name = "PRICE", default_value_t = 0.0, requires = "tokens")]
    pub price: f64,
    /// Share of the time that is spent in steps that count, at most 1. The rest are restarts, repeated steps, checkpoints
    /// and evaluation.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, requires = "tokens")]
    pub goodput: f64,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
    /// Worker threads per search. Default: number of cores.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

impl CheckArguments {
    /// Returns the measured throughput.
    pub(crate) fn measured(&self) -> Option<Measured> {
        let rate = self.tokens_per_s.map(Measured::TokensPerSPerDevice);
        self.step_time.map(Measured::StepS).or(rate).or(self.tflops.map(Measured::TflopsPerDevice))
    }

    /// Returns the budget of the run.
    ///
    /// # Errors
    /// Price or goodput are out of range.
    pub(crate) fn budget(&self) -> anyhow::Result<Option<Budget>> {
        let Some(tokens) = self.tokens else { return Ok(None) };
        let budget = Budget { tokens, goodput: self.goodput, price_per_hour: self.price };
        if let Some((field, rule)) = budget.out_of_range() {
            anyhow::bail!("{field}: {rule}");
        }
        Ok(Some(budget))
    }
}

/// Reads a number of tokens. The suffixes K, M, B and T multiply by 10³, 10⁶, 10⁹ and 10¹².
fn tokens(text: &str) -> Result<f64, String> {
    let suffixes = [('K', 1e3), ('M', 1e6), ('B', 1e9), ('T', 1e12)];
    let found = suffixes.into_iter().find(|(suffix, _)| text.ends_with([*suffix, suffix.to_ascii_lowercase()]));
    let (number, factor) = found.map_or((text, 1.0), |(_, factor)| (&text[..text.len() - 1], factor));
    let number =
        positive(number.trim()).map_err(|_| "a number greater than 0, with K, M, B or T for 10³ to 10¹²".to_owned());
    number.map(|number| number * factor)
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("it must be a number greater than 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tokens_have_suffixes() {
        let read = |text| tokens(text).map(f64::to_bits);
        assert_eq!(read("15T"), Ok(15e12_f64.to_bits()));
        assert_eq!(read("1.5b"), Ok(1.5e9_f64.to_bits()));
        assert_eq!(read("3e11"), Ok(3e11_f64.to_bits()));
        assert!(tokens("T").is_err() && tokens("0").is_err() && tokens("").is_err());
    }
}
