//! The tools. Each one returns text, or an error that names the wrong field.

use ingest::job_config::Hardware;
use planner::certainty::probability_faster;
use planner::slowness::Measured;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;

use super::glossary;
use crate::check_command::text::{best, changes, describe, outcome, slowness};
use crate::check_command::{Parts, Report, report};
use crate::checks;
use crate::fit_command::memory_table;

/// A configuration of a training job.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigurationArguments {
    /// Content of the configuration: torchtitan TOML, Megatron-LM arguments or script, `config.json` of a Hugging Face
    /// model, YAML of axolotl, LLaMA-Factory, nanotron, NeMo, MaxText, Primus or verl, or a Planscope scenario.
    text: String,
    /// Contents of further files of the same job, for example DeepSpeed JSON next to a `config.json`.
    #[serde(default)]
    further: Vec<String>,
    /// Total number of devices. Default: as the text states, or the fewest for its layout.
    #[serde(default)]
    devices: Option<u32>,
    /// Device type, for example `h100`. Default: as the text states, or `h100`.
    #[serde(default)]
    device: Option<String>,
}

/// Two configurations.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareArguments {
    /// First configuration.
    a: ConfigurationArguments,
    /// Second configuration.
    b: ConfigurationArguments,
}

/// A configuration and the measured throughput of its run. One of the measurements is required.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhySlowArguments {
    configuration: ConfigurationArguments,
    /// Measured time of a step in s.
    #[serde(default)]
    step_s: Option<f64>,
    /// Measured tokens per second and device.
    #[serde(default)]
    tokens_per_s_per_device: Option<f64>,
    /// Measured model TFLOP/s per device.
    #[serde(default)]
    tflops_per_device: Option<f64>,
}

/// A term.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainArguments {
    /// A term of the field or of Planscope, for example "virtual pipeline".
    term: String,
}

/// Tools of Planscope.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    search_threads: Option<usize>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Tools {
    /// Creates the tools.
    pub(super) fn new(search_threads: Option<usize>) -> Self {
        Self { search_threads, tool_router: Self::tool_router() }
    }

    #[tool(
        description = "Check a training configuration: whether it fits the device memory, memory by rank and term, step time, tokens/s, \
                       MFU with 80 % intervals, what was assumed, and the changes that help most as lines of the configuration."
    )]
    async fn check(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        self.answer(arguments, Parts::default(), |report| describe("configuration", report)).await
    }

    #[tool(
        description = "List the single changes that make a training configuration fit, or that save most time, each simulated; if none \
                       helps, the fewest devices of every device type."
    )]
    async fn fit(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        self.answer(arguments, Parts::default(), |report| {
            joined(&[outcome(&report.check), memory_table(&report.check.fit), changes(report)])
        })
        .await
    }

    #[tool(
        description = "Search the best plan of a job: degrees of parallelism, recomputation, offload, ZeRO stage and schedule are free. \
                       Takes seconds to minutes."
    )]
    async fn plan(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        let parts = Parts { best: true, ..Parts::default() };
        self.answer(arguments, parts, |report| joined(&[outcome(&report.check), best(report)])).await
    }

    #[tool(
        description = "Compare two training configurations: memory, step time, tokens/s, MFU, and the probability that the first is faster."
    )]
    async fn compare(&self, Parameters(CompareArguments { a, b }): Parameters<CompareArguments>) -> CallToolResult {
        let (a, b) = match (self.report(a, Parts::default()).await, self.report(b, Parts::default()).await) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(error), _) => return failed(format!("a: {error}")),
            (_, Err(error)) => return failed(format!("b: {error}")),
        };
        let plans = a.check.plan.as_ref().zip(b.check.plan.as_ref());
        let faster = plans.map(|(a, b)| {
            format!("a is faster than b with {:.0} %, if both are the same job", 100.0 * probability_faster(a, b))
        });
        let (a, b) = (outcome(&a.check), outcome(&b.check));
        succeeded(joined(&[vec!["a:".to_owned()], a, vec!["b:".to_owned()], b, faster.into_iter().collect()]))
    }

    #[tool(
        description = "Explain why a run is slower than predicted: causes, each simulated alone, the seconds that they explain, and the \
                       counter or trace that confirms them."
    )]
    async fn why_slow(&self, Parameters(arguments): Parameters<WhySlowArguments>) -> CallToolResult {
        let WhySlowArguments { configuration, step_s, tokens_per_s_per_device, tflops_per_device } = arguments;
        let measurements = [
            step_s.map(Measured::StepS),
            tokens_per_s_per_device.map(Measured::TokensPerSPerDevice),
            tflops_per_device.map(Measured::TflopsPerDevice),
        ];
        let mut measurements = measurements.into_iter().flatten();
        let (Some(measured), None) = (measurements.next(), measurements.next()) else {
            return failed("give one of step_s, tokens_per_s_per_device and tflops_per_device".to_owned());
        };
        let (Measured::StepS(value) | Measured::TokensPerSPerDevice(value) | Measured::TflopsPerDevice(value)) =
            measured;
        if !(value.is_finite() && value > 0.0) {
            return failed("the measurement must be greater than 0".to_owned());
        }
        let parts = Parts { measured: Some(measured), ..Parts::default() };
        self.answer(configuration, parts, |report| {
            let explained = report.slowness.iter().flat_map(slowness).collect();
            joined(&[outcome(&report.check), explained])
        })
        .await
    }

    #[tool(description = "Explain a term of the field or of Planscope, with its source.")]
    async fn explain(&self, Parameters(ExplainArguments { term }): Parameters<ExplainArguments>) -> CallToolResult {
        let found = glossary::definitions(&term);
        if found.is_empty() { failed("the glossary has no such term".to_owned()) } else { succeeded(found.join("\n")) }
    }
}

impl Tools {
    /// Checks a configuration and describes the report.
    async fn answer(
        &self,
        arguments: ConfigurationArguments,
        parts: Parts,
        describe: impl FnOnce(&Report) -> String,
    ) -> CallToolResult {
        match self.report(arguments, parts).await {
            Ok(report) => succeeded(describe(&report)),
            Err(error) => failed(error),
        }
    }

    async fn report(&self, arguments: ConfigurationArguments, parts: Parts) -> Result<Report, String> {
        let parts = Parts { search_threads: self.search_threads, ..parts };
        let computed = tokio::task::spawn_blocking(move || {
            let ConfigurationArguments { text, further, devices, device } = arguments;
            if devices.is_some_and(|devices| !(1..=checks::MAX_DEVICES).contains(&devices)) {
                return Err(format!("devices is out of range: 1 to {}", checks::MAX_DEVICES));
            }
            let preset =
                device.as_deref().map(checks::preset).transpose().map_err(|error| format!("device: {error}"))?;
            let files: Vec<(&str, &str)> =
                std::iter::once(("", text.as_str())).chain(further.iter().map(|text| ("", text.as_str()))).collect();
            report(&files, Hardware { preset, devices }, parts).map_err(|error| format!("{error:#}"))
        });
        computed.await.map_err(|error| format!("the check stopped unexpectedly: {error}"))?
    }
}

fn joined(sections: &[Vec<String>]) -> String {
    sections.concat().join("\n")
}

fn succeeded(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[tool_handler(
    router = self.tool_router,
    name = "planscope",
    instructions = "Planscope predicts memory and step time of training jobs of large models. Start with `check`. Texts are not stored."
)]
impl ServerHandler for Tools {}
