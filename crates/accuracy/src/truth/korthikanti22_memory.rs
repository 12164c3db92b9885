//! Memory from Korthikanti et al. (2022), figures 1 and 7: activations, and weights with optimizer
//! state.

use std::collections::BTreeMap;
use std::path::Path;

use planner::cost::{LayerModel, ModuleLoad};
use planner::estimate::{Configuration, Estimate};
use planner::model::Module;
use planner::outcome::Layout;
use planner::training::{AttentionKernel, Recompute, Training};

use super::Error;
use super::setting::{Gpt, given, machine};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set};

const SOURCE: &str = "Korthikanti et al. (arXiv 2205.05198), figures 1 and 7, as transcribed by calculon";
const GIB: f64 = 1_073_741_824.0;
const TOKENS: u32 = 2048;

/// Predicts three sets from the table: activation memory, activation memory relative to no savings,
/// model state.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "korthikanti22_memory.csv")?;
    let (mut activations, mut shares, mut states) = (Vec::new(), Vec::new(), Vec::new());
    let mut everything: BTreeMap<&str, f64> = BTreeMap::new();
    for line in table.lines() {
        let stand = Stand::from_line(line)?;
        let activation_bytes = stand.activation_bytes();
        let (model, mode) = (line.text("model"), line.text("mode"));
        if mode == "none" {
            everything.insert(model, activation_bytes);
        }
        let row = |measured, predicted, note| Row {
            label: format!("{model}, {mode}"),
            measured,
            predicted,
            note,
            facets: vec![Facet::new("model", model), Facet::new("mode", mode)],
            setup: vec![],
            left_out: None,
            step: None,
        };
        if line.lacks("activations_gib") {
            let all = *everything.get(model).ok_or_else(|| Error::row(model, &"no row without savings before it"))?;
            let trivial = (mode == "none").then_some("the whole that the others are shares of");
            let share = row(line.number("activations_pct_of_none")?, 100.0 * activation_bytes / all, String::new());
            shares.push(Row { left_out: trivial, ..share });
        } else {
            let note = format!("{} chunks of {} layers in flight", stand.in_flight(), stand.layers_per_stage());
            activations.push(row(line.number("activations_gib")?, activation_bytes / GIB, note));
            let state = row(line.number("params_and_optimizer_gib")?, stand.state() / GIB, String::new());
            let again = (mode != "none").then_some("the same figure as without savings");
            states.push(Row { left_out: again, ..state });
        }
    }
    Ok(vec![
        set("korthikanti22_memory", "Activation memory of GPT, 22B to 1T", "GiB", "calculon: mean 2.1 %", activations),
        set(
            "korthikanti22_memory_share",
            "Activation memory in percent of the memory without recomputation and sequence parallelism",
            "%",
            "calculon: mean 6.7 %",
            shares,
        ),
        Set {
            assumptions: vec![
                "The paper counts 18 bytes for each of 12 h² parameters per layer. The comparison uses weights, fp32 \
                 gradients and optimizer of the first rank, without embeddings and final norm. The engine also counts \
                 biases and norms (13 h per layer).",
            ],
            ..set("korthikanti22_state", "Weights, gradients and optimizer of GPT, 22B to 1T", "GiB", "none", states)
        },
    ])
}

fn set(id: &'static str, title: &'static str, unit: &'static str, peer: &'static str, rows: Vec<Row>) -> Set {
    Set {
        id,
        title,
        source: SOURCE,
        unit,
        goal: Goal { mean: 2.0, largest: None },
        peer,
        assumptions: vec![
            "The paper counts the activations of transformer layers, without embedding and output head. So the \
             comparison uses the engine's activations of one layer x layers of a chunk x chunks in flight on the first \
             rank: L (1 + (p-1)/(p v)) layers in total, as in the paper.",
            "Attention in separate kernels with dropout. Modes: none; seq: sequence parallelism; sel: the attention core \
             recomputed; seqsel: both; full: every layer recomputed, no sequence parallelism.",
        ],
        rows,
        variants: vec![],
        findings: vec![
            "The paper's figures are values of its formulas, not readings of a device. Agreement shows that the engine \
             counts the same tensors, not what an allocator reports."
                .to_owned(),
        ],
        listing: Listing::Rows,
    }
}

/// Configuration of a line and its estimate.
struct Stand {
    configuration: Configuration,
    estimate: Estimate,
}

impl Stand {
    fn from_line(line: Line<'_>) -> Result<Self, Error> {
        let (model, mode) = (line.text("model"), line.text("mode"));
        let number = |column| line.number::<u32>(column);
        let (hidden, layers, heads) = match model {
            "megatron-22B" => (6144, 48, 64),
            "gpt3-175B" => (12_288, 96, 96),
            "turing-530B" => (20_480, 105, 128),
            "megatron-1T" => (25_600, 128, 160),
            _ => return Err(Error::row(model, &"unknown model")),
        };
        let gpt = Gpt { hidden, layers, heads, vocab: 51_200, sequence_length: TOKENS, dropout: true };
        let training = Training {
            recompute: match mode {
                "full" => Recompute::Full,
                "sel" | "seqsel" => Recompute::Selective,
                _ => Recompute::None,
            },
            attention: AttentionKernel::Unfused,
            sequence_parallel: mode.starts_with("seq"),
            distributed_optimizer: false,
            ..Training::default()
        };
        let configuration = Configuration {
            model: gpt.model(model),
            cluster: machine("a100-80gb", number("n_gpus")?)?,
            training,
            layout: Layout {
                tensor: number("tp")?,
                pipeline: number("pp")?,
                data: number("dp")?,
                chunks: number("vpp")?,
                microbatch: number("microbatch")?,
                group: None,
            },
            layers_per_stage: Vec::new(),
            global_batch: number("global_batch")?,
            sequence_length: TOKENS,
            items: 0,
        };
        let estimate = given(model, &configuration)?;
        Ok(Self { configuration, estimate })
    }

    fn module(&self) -> &Module {
        &self.configuration.model.modules[0]
    }

    fn in_flight(&self) -> u32 {
        self.estimate.first_rank_memory.in_flight
    }

    fn layers_per_stage(&self) -> u32 {
        let layout = self.configuration.layout;
        self.module().layers / (layout.pipeline * layout.chunks)
    }

    /// Activation bytes stored by the layers on the first rank.
    fn activation_bytes(&self) -> f64 {
        let Configuration { cluster, training, layout, .. } = &self.configuration;
        let (b, s) = (f64::from(layout.microbatch), f64::from(TOKENS));
        let load = ModuleLoad::unpadded(b * s, b * s * s);
        let layer = LayerModel::new(self.module(), cluster, training, layout.tensor).layer(load);
        layer.activation * f64::from(self.layers_per_stage()) * f64::from(self.in_flight())
    }

    /// Model state bytes on the first rank, without embeddings and final norm.
    fn state(&self) -> f64 {
        let memory = self.estimate.first_rank_memory;
        let all = memory.weights + memory.gradients + memory.optimizer;
        let module = self.module();
        let layer_parameters =
            f64::from(module.layers / self.configuration.layout.pipeline) * module.layer_parameters() as f64;
        let behind = if self.configuration.layout.pipeline == 1 { module.output_parameters() } else { 0 };
        let outside = (module.input_parameters() + behind) as f64;
        all * layer_parameters / (layer_parameters + outside)
    }
}
