//! Size of a job, from what training programs print before the first step.

mod device;
mod layout;
mod parts;
mod precision;
#[cfg(test)]
mod tests;
mod words;

pub use parts::JobSetups;

use planner::run_comparison::{DeviceName, StatedLayout, StatedPrecision};

use words::{flag, is_none, named};

/// Names of the number of processes.
const DEVICES: [&str; 3] = ["world size", "world_size", "num_processes"];
/// Names of the number of devices in a row of JSON; on a command line they count those of a node.
const ROW_DEVICES: [&str; 3] = ["num_gpus", "n_gpus", "num_devices"];
/// Names of the tokens of a sequence.
const LENGTHS: [&str; 6] =
    ["seq_length", "seq-length", "sequence length", "seq_len", "max_seq_len", "encoder_seq_length"];
/// Names of the transformer layers.
const LAYERS: [&str; 4] = ["num_layers", "num-layers", "n_layers", "num_hidden_layers"];
/// Names of the width of the residual stream.
const HIDDEN: [&str; 3] = ["hidden_size", "hidden-size", "hidden size"];
/// Names of the samples of a step.
const BATCHES: [&str; 3] = ["global_batch_size", "global-batch-size", "global batch size"];
/// Names of the width inside the MLP, and inside that of an expert.
const FEED_FORWARD: [&str; 2] = ["ffn_hidden_size", "ffn-hidden-size"];
const EXPERT_FEED_FORWARD: [&str; 2] = ["moe_ffn_hidden_size", "moe-ffn-hidden-size"];
/// Names of the query heads.
const HEADS: [&str; 2] = ["num_attention_heads", "num-attention-heads"];
/// Names of the experts of a layer.
const EXPERTS: [&str; 2] = ["num_experts", "num-experts"];
/// Names of the vocabulary with its padding.
const VOCABULARY: [&str; 1] = ["padded_vocab_size"];
/// Names of the key and value heads; Megatron-LM uses the first two only with the switch below.
const KV_HEADS: [&str; 3] = ["num_query_groups", "num-query-groups", "num_key_value_heads"];
const GROUPED: [&str; 1] = ["group_query_attention"];
/// In front of the parameters that are trained.
const TRAINED: [&str; 2] = ["number of trainable parameters", "trainable params"];
/// Lightning: "Starting with 64 processes".
const STARTING: &str = "starting with ";

/// Size of a job, as far as its log states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobSetup {
    /// Processes, one for each device.
    pub devices: Option<u32>,
    /// Tokens of a sequence.
    pub sequence_length: Option<u32>,
    /// Transformer layers of the model.
    pub layers: Option<u32>,
    /// Width of the residual stream.
    pub hidden_size: Option<u32>,
    /// Samples of a step.
    pub global_batch: Option<u32>,
    /// Width inside the MLP.
    pub feed_forward_size: Option<u32>,
    /// Width inside the MLP of an expert.
    pub expert_feed_forward_size: Option<u32>,
    /// Query heads.
    pub attention_heads: Option<u32>,
    /// Key and value heads of grouped-query attention.
    pub query_groups: Option<u32>,
    /// Whether attention is grouped.
    pub is_grouped: Option<bool>,
    /// Experts of a layer; 0 for a dense model.
    pub experts: Option<u32>,
    /// Vocabulary with its padding.
    pub padded_vocabulary: Option<u32>,
    /// Parameters that are trained.
    pub trained_parameters: Option<u64>,
    /// Number format of products.
    pub precision: StatedPrecision,
    /// Parallel layout.
    pub layout: StatedLayout,
    /// The device.
    pub device: Option<DeviceName>,
}

impl JobSetup {
    /// Key and value heads. Without grouped attention every query head has its own.
    pub fn kv_heads(&self) -> Option<u32> {
        if self.is_grouped == Some(false) { self.attention_heads } else { self.query_groups }
    }

    /// These facts; those that are absent come from `other`.
    fn or(self, other: Self) -> Self {
        Self {
            devices: self.devices.or(other.devices),
            sequence_length: self.sequence_length.or(other.sequence_length),
            layers: self.layers.or(other.layers),
            hidden_size: self.hidden_size.or(other.hidden_size),
            global_batch: self.global_batch.or(other.global_batch),
            feed_forward_size: self.feed_forward_size.or(other.feed_forward_size),
            expert_feed_forward_size: self.expert_feed_forward_size.or(other.expert_feed_forward_size),
            attention_heads: self.attention_heads.or(other.attention_heads),
            query_groups: self.query_groups.or(other.query_groups),
            is_grouped: self.is_grouped.or(other.is_grouped),
            experts: self.experts.or(other.experts),
            padded_vocabulary: self.padded_vocabulary.or(other.padded_vocabulary),
            trained_parameters: self.trained_parameters.or(other.trained_parameters),
            precision: self.precision.or(other.precision),
            layout: self.layout.or(other.layout),
            device: self.device.or(other.device),
        }
    }

    /// Adds what a line states. The first value of a name counts.
    fn read(&mut self, line: &str) {
        let line = line.to_ascii_lowercase();
        let layout = StatedLayout { microbatch: self.local_batch(&line), ..StatedLayout::default() };
        *self = self.or(Self {
            devices: devices(&line),
            sequence_length: named(&line, &LENGTHS),
            layers: named(&line, &LAYERS),
            hidden_size: named(&line, &HIDDEN),
            global_batch: named(&line, &BATCHES).or_else(|| train_batch(&line)),
            feed_forward_size: named(&line, &FEED_FORWARD),
            expert_feed_forward_size: named(&line, &EXPERT_FEED_FORWARD),
            attention_heads: named(&line, &HEADS),
            query_groups: named(&line, &KV_HEADS),
            is_grouped: flag(&line, &GROUPED),
            experts: named(&line, &EXPERTS).or_else(|| is_none(&line, &EXPERTS).then_some(0)),
            padded_vocabulary: named(&line, &VOCABULARY),
            trained_parameters: trained(&line),
            precision: precision::read(&line),
            layout: layout::read(&line).or(layout),
            device: device::read(&line),
        });
    }

    /// The sequences of a microbatch of torchtitan without a pipeline: its local batch.
    fn local_batch(&self, line: &str) -> Option<u32> {
        named(line, &["local batch size"]).filter(|_| self.layout.pipeline.is_none_or(|degree| degree == 1))
    }
}

/// The devices of a job, by their number or by the degrees of the device mesh.
fn devices(line: &str) -> Option<u32> {
    let row = || named(line, &ROW_DEVICES).filter(|_| line.trim_start().starts_with('{'));
    named(line, &DEVICES).or_else(|| layout::mesh_devices(line)).or_else(|| starting(line)).or_else(row)
}

/// Reads the size of a job from the first bytes of its log. Of several values of one name the first counts.
pub fn job_setup(head: &[u8]) -> JobSetup {
    let mut setup = JobSetup::default();
    for line in String::from_utf8_lossy(head).lines() {
        setup.read(line);
    }
    setup
}

/// The samples of a step in `Total train batch size (w. parallel, distributed & accumulation) = 64` of the Hugging Face trainer,
/// and in `train_batch_size ............. 64` of DeepSpeed. Without the points, that name is a batch of one device.
fn train_batch(line: &str) -> Option<u32> {
    match line.split_once("total train batch size") {
        Some((_, after)) => {
            let word = after[after.rfind('=')? + 1..].split_whitespace().next()?;
            word.replace(',', "").parse().ok()
        }
        None => named(line, &["train_batch_size"]).filter(|_| line.contains("...")),
    }
}

/// Parameters in `Number of trainable parameters = 20,277,248`, `trainable params: 20,971,520 || all params: ...` and
/// `Model llama3 8B size: 8,030,261,248 total parameters` of torchtitan, which trains them all.
fn trained(line: &str) -> Option<u64> {
    let titan =
        || Some(line.split_once("model ")?.1.split_once(" size: ")?.1).filter(|text| text.contains("total parameters"));
    let after = TRAINED.iter().find_map(|name| Some(line.split_once(name)?.1)).or_else(titan)?;
    let digits = after.trim_start_matches([' ', '=', ':', '.']);
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(digits.len());
    digits[..end].replace(',', "").parse().ok().filter(|count| *count > 0)
}

/// The count in "All distributed processes registered. Starting with 64 processes".
fn starting(line: &str) -> Option<u32> {
    let (_, after) = line.split_once(STARTING)?;
    let (count, rest) = after.split_once(' ')?;
    rest.starts_with("processes").then(|| count.parse().ok()).flatten().filter(|count| *count > 0)
}
