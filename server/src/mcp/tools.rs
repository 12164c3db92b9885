//! The tools. Each one returns text and JSON with a schema, or an error that names the wrong field.

use ingest::job_config::Hardware;
use planner::certainty::probability_faster;
use planner::outcome::{Budget, Planned};
use planner::slowness::Measured;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};

use super::glossary;
use super::host::{Host, blocking};
use super::structured::{CheckAnswer, CompareAnswer, PlanAnswer, SlowAnswer};
use crate::check_command::text::{best, changes, describe, explanation, outcome, percent};
use crate::check_command::{JobFiles, Parts, Report};
use crate::checks;
use crate::error::values::without_values;
use crate::fit_command::memory_table;
use crate::observation::Log;

/// A configuration of a training job.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigurationArguments {
    /// Content of the configuration: torchtitan TOML, Megatron-LM arguments or script, `config.json` of a Hugging Face
    /// model, YAML of axolotl, LLaMA-Factory, GPT-NeoX, nanotron, NeMo, MaxText, Primus, verl, litgpt, torchtune or
    /// Levanter, a command of the Hugging Face Trainer, TRL, ms-swift, OpenRLHF, torchtune, litgpt or MaxText, a task of
    /// SkyPilot or a workload of Kubernetes with such a command, or a Planscope scenario.
    text: String,
    /// Contents of further files of the same job, for example DeepSpeed JSON next to a `config.json`.
    #[serde(default)]
    further: Vec<String>,
    /// Total number of devices, 1 to 131,072. Default: as the text states, or an assumed number, which the answer names.
    #[serde(default)]
    devices: Option<u32>,
    /// Device type, for example `h100`. Default: as the text states, or `h100`.
    #[serde(default)]
    device: Option<String>,
    /// Tokens of the whole run, more than 0: adds its days and device hours to the answer.
    #[serde(default)]
    tokens: Option<f64>,
    /// Price of a device for an hour, 0 or more: adds the cost of the run over `tokens`.
    #[serde(default)]
    price_per_hour: Option<f64>,
    /// Share of the time of the run over `tokens` that computes useful steps, more than 0 and at most 1. Default: 1.
    #[serde(default)]
    goodput: Option<f64>,
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

/// A configuration and the measured throughput of its run. One of the measurements, or the log, is required.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhySlowArguments {
    /// Configuration of the run.
    configuration: ConfigurationArguments,
    /// Measured time of a step in s, more than 0.
    #[serde(default)]
    step_s: Option<f64>,
    /// Measured tokens per second and device.
    #[serde(default)]
    tokens_per_s_per_device: Option<f64>,
    /// Measured model TFLOP/s per device.
    #[serde(default)]
    tflops_per_device: Option<f64>,
    /// Log of the run: its start, with the arguments of the job, and some hundred steps. Timers are compared by phase.
    #[serde(default)]
    log: Option<String>,
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
pub(crate) struct Tools {
    host: Host,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Tools {
    /// Creates the tools.
    pub(crate) fn new(host: Host) -> Self {
        Self { host, tool_router: Self::tool_router() }
    }

    #[tool(
        description = "Check a training configuration: whether it fits the device memory, memory by rank and term, step time, tokens/s, \
                       MFU with 80 % intervals, days and cost of a number of tokens, what was assumed, and the changes that help most as lines of the configuration.",
        output_schema = schema_for_output::<CheckAnswer>()
    )]
    async fn check(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        self.answer(arguments, Parts::default(), (describe, CheckAnswer::of)).await
    }

    #[tool(
        description = "List the single changes that make a training configuration fit, or that save most time, each simulated; if none \
                       helps, the fewest devices of every device type.",
        output_schema = schema_for_output::<CheckAnswer>()
    )]
    async fn fit(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        let text =
            |report: &Report| joined(&[outcome(&report.check), memory_table(&report.check.fit), changes(report)]);
        self.answer(arguments, Parts::default(), (text, CheckAnswer::of)).await
    }

    #[tool(
        description = "Search the best plan of a job: degrees of parallelism, recomputation, offload, ZeRO stage and schedule are free. \
                       Takes seconds to minutes.",
        output_schema = schema_for_output::<PlanAnswer>()
    )]
    async fn plan(&self, Parameters(arguments): Parameters<ConfigurationArguments>) -> CallToolResult {
        let report = match self.report(arguments, Parts::default()).await {
            Ok(report) => report,
            Err(error) => return failed(error),
        };
        let report = match self.host.plan(report.check.best_scenario.clone()).await {
            Ok(plan) => report.with_best(plan),
            Err(error) => return failed(error),
        };
        structured(joined(&[outcome(&report.check), best(&report)]), &PlanAnswer::of(&report))
    }

    #[tool(
        description = "Compare two training configurations: memory, step time, tokens/s, MFU, and the probability that \
                       the first is faster. With different batches, tokens/s are compared.",
        output_schema = schema_for_output::<CompareAnswer>()
    )]
    async fn compare(&self, Parameters(CompareArguments { a, b }): Parameters<CompareArguments>) -> CallToolResult {
        let (a, b) = match (self.report(a, Parts::default()).await, self.report(b, Parts::default()).await) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(error), _) => return failed(format!("a: {error}")),
            (_, Err(error)) => return failed(format!("b: {error}")),
        };
        let compared = a.check.plan.as_ref().zip(b.check.plan.as_ref()).map(|(a, b)| faster(a, b));
        let (probability, faster) = compared.unzip();
        let answer =
            CompareAnswer { a: CheckAnswer::of(&a), b: CheckAnswer::of(&b), probability_a_faster: probability };
        let (a, b) = (outcome(&a.check), outcome(&b.check));
        let text = joined(&[vec!["a:".to_owned()], a, vec!["b:".to_owned()], b, faster.into_iter().collect()]);
        structured(text, &answer)
    }

    #[tool(
        description = "Explain why a run is slower than predicted: whether a log is of the same job, measured and predicted time by \
                       phase, and causes, each simulated alone, with the seconds that they explain and the counter or trace that \
                       confirms them.",
        output_schema = schema_for_output::<SlowAnswer>()
    )]
    async fn why_slow(&self, Parameters(arguments): Parameters<WhySlowArguments>) -> CallToolResult {
        let WhySlowArguments { configuration, step_s, tokens_per_s_per_device, tflops_per_device, log } = arguments;
        let measurements = [
            step_s.map(Measured::StepS),
            tokens_per_s_per_device.map(Measured::TokensPerSPerDevice),
            tflops_per_device.map(Measured::TflopsPerDevice),
        ];
        let mut measurements = measurements.into_iter().flatten();
        let parts = match (log, measurements.next(), measurements.next()) {
            (Some(log), None, None) => match blocking(move || Ok(Log::read("", log.as_bytes())?)).await {
                Ok(log) => Parts { log: Some(log), ..Parts::default() },
                Err(error) => return failed(format!("log: {error}")),
            },
            (None, Some(measured), None) => {
                let (Measured::StepS(value) | Measured::TokensPerSPerDevice(value) | Measured::TflopsPerDevice(value)) =
                    measured;
                if !(value.is_finite() && value > 0.0) {
                    return failed("the measurement must be greater than 0".to_owned());
                }
                Parts { measured: Some(measured), ..Parts::default() }
            }
            _ => return failed("give one of step_s, tokens_per_s_per_device, tflops_per_device and log".to_owned()),
        };
        let text = |report: &Report| joined(&[outcome(&report.check), explanation(report)]);
        self.answer(configuration, parts, (text, SlowAnswer::of)).await
    }

    #[tool(description = "Explain a term of the field or of Planscope, with its source.")]
    async fn explain(&self, Parameters(ExplainArguments { term }): Parameters<ExplainArguments>) -> CallToolResult {
        let found = glossary::definitions(&term);
        if found.is_empty() { failed("the glossary has no such term".to_owned()) } else { succeeded(found.join("\n")) }
    }
}

impl Tools {
    /// Checks a configuration and describes the report.
    async fn answer<T: Serialize>(
        &self,
        arguments: ConfigurationArguments,
        parts: Parts,
        (text, answer): (impl FnOnce(&Report) -> String, impl FnOnce(&Report) -> T),
    ) -> CallToolResult {
        match self.report(arguments, parts).await {
            Ok(report) => structured(text(&report), &answer(&report)),
            Err(error) => failed(error),
        }
    }

    async fn report(&self, arguments: ConfigurationArguments, parts: Parts) -> Result<Report, String> {
        let budget = arguments.budget()?;
        let job = blocking(move || arguments.read()).await?;
        self.host.report(job, Parts { budget, ..parts }).await
    }
}

impl ConfigurationArguments {
    /// Returns the budget of the run.
    fn budget(&self) -> Result<Option<Budget>, String> {
        let Some(tokens) = self.tokens else { return Ok(None) };
        let (goodput, price_per_hour) = (self.goodput.unwrap_or(1.0), self.price_per_hour.unwrap_or(0.0));
        let budget = Budget { tokens, goodput, price_per_hour };
        budget.out_of_range().map_or(Ok(Some(budget)), |(field, rule)| Err(format!("{field}: {rule}")))
    }

    /// Reads the files of the job.
    fn read(self) -> anyhow::Result<JobFiles> {
        let Self { text, further, devices, device, .. } = self;
        if devices.is_some_and(|devices| !(1..=checks::MAX_DEVICES).contains(&devices)) {
            anyhow::bail!("devices is out of range: 1 to {}", checks::MAX_DEVICES);
        }
        let preset = device.as_deref().map(checks::preset).transpose();
        let preset = preset.map_err(|error| anyhow::anyhow!("device: {error}"))?;
        let files = std::iter::once(text).chain(further).map(|text| (String::new(), text)).collect();
        JobFiles::read(files, Hardware { preset, devices })
    }
}

/// Relative difference of the tokens per step of the same batch.
const SAME_BATCH: f64 = 0.005;

/// Returns the probability that plan `a` processes tokens faster than plan `b`, and describes it.
fn faster(a: &Planned, b: &Planned) -> (f64, String) {
    let tokens = |plan: &Planned| plan.metrics.tokens_per_s * plan.metrics.iteration_s;
    let (a_tokens, b_tokens) = (tokens(a), tokens(b));
    if (a_tokens / b_tokens - 1.0).abs() <= SAME_BATCH {
        let probability = probability_faster(a, b);
        let text = format!("probability that a is faster: {}, if both are the same job", percent(probability));
        return (probability, text);
    }
    // The time of `b` for the tokens of `a`.
    let mut scaled = b.clone();
    scaled.metrics.iteration_s *= a_tokens / b_tokens;
    let probability = probability_faster(a, &scaled);
    let text = format!(
        "the batches differ: {a_tokens:.0} tokens per step in a, {b_tokens:.0} in b. Tokens/s are compared: {:.0} in \
         a, {:.0} in b; probability that a is faster: {}",
        a.metrics.tokens_per_s,
        b.metrics.tokens_per_s,
        percent(probability)
    );
    (probability, text)
}

fn joined(sections: &[Vec<String>]) -> String {
    sections.concat().join("\n")
}

fn succeeded(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Returns an answer as text and as JSON.
fn structured(text: String, answer: &impl Serialize) -> CallToolResult {
    let mut result = succeeded(text);
    result.structured_content = serde_json::to_value(answer).ok();
    result
}

fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[tool_handler(
    router = self.tool_router,
    name = "planscope",
    instructions = "Planscope predicts memory and step time of training jobs of large models. Start with `check`. Texts are not stored."
)]
impl ServerHandler for Tools {
    /// Calls a tool. Errors about arguments do not contain their values, which can be scripts with secrets.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.tool_router.has_route(&request.name) {
            let mut names: Vec<String> = self.tool_router.list_all().iter().map(|tool| tool.name.to_string()).collect();
            names.sort_unstable();
            return Err(ErrorData::invalid_params(format!("unknown tool; the tools are {}", names.join(", ")), None));
        }
        let mut response = self.tool_router.call(ToolCallContext::new(self, request, context)).await?;
        if let CallToolResponse::Complete(result) = &mut response
            && result.is_error == Some(true)
        {
            for content in &mut result.content {
                if let ContentBlock::Text(text) = content {
                    text.text = without_values(&text.text);
                }
            }
        }
        Ok(response)
    }
}
