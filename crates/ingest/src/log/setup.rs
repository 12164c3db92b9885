//! Reads the job size from output before the first step.

mod device;
mod layout;
mod parts;
mod precision;
#[cfg(test)]
mod tests;
mod words;

pub use parts::JobSetups;

use planner::run_comparison::{DeviceName, StatedLayout, StatedPrecision};

use super::pace::sequences;
use words::{flag, is_none, named};

/// Keys for the process count.
const DEVICES: [&str; 3] = ["world size", "world_size", "num_processes"];
/// Keys for the device count in JSON rows. On a command line they mean devices per node.
const ROW_DEVICES: [&str; 3] = ["num_gpus", "n_gpus", "num_devices"];
/// Keys for tokens per sequence.
const LENGTHS: [&str; 6] =
    ["seq_length", "seq-length", "sequence length", "seq_len", "max_seq_len", "encoder_seq_length"];
/// Keys for the layer count.
const LAYERS: [&str; 4] = ["num_layers", "num-layers", "n_layers", "num_hidden_layers"];
/// Keys for the hidden size.
const HIDDEN: [&str; 3] = ["hidden_size", "hidden-size", "hidden size"];
/// Keys for samples per step.
const BATCHES: [&str; 3] = ["global_batch_size", "global-batch-size", "global batch size"];
/// Keys for the MLP width and the expert MLP width.
const FEED_FORWARD: [&str; 2] = ["ffn_hidden_size", "ffn-hidden-size"];
const EXPERT_FEED_FORWARD: [&str; 2] = ["moe_ffn_hidden_size", "moe-ffn-hidden-size"];
/// Keys for the query head count.
const HEADS: [&str; 2] = ["num_attention_heads", "num-attention-heads"];
/// Keys for experts per layer.
const EXPERTS: [&str; 2] = ["num_experts", "num-experts"];
/// Keys for the padded vocabulary size.
const VOCABULARY: [&str; 1] = ["padded_vocab_size"];
/// Keys for the key-value head count. Megatron-LM uses the first two only with grouped-query
/// attention enabled.
const KV_HEADS: [&str; 3] = ["num_query_groups", "num-query-groups", "num_key_value_heads"];
const GROUPED: [&str; 1] = ["group_query_attention"];
/// Text before the trainable parameter count.
const TRAINED: [&str; 2] = ["number of trainable parameters", "trainable params"];
/// Lightning: "Starting with 64 processes".
const STARTING: &str = "starting with ";

/// Job size, as far as the log contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobSetup {
    /// Process count, one process per device.
    pub devices: Option<u32>,
    /// Tokens per sequence.
    pub sequence_length: Option<u32>,
    /// Transformer layer count.
    pub layers: Option<u32>,
    /// Hidden size.
    pub hidden_size: Option<u32>,
    /// Samples per step.
    pub global_batch: Option<u32>,
    /// MLP width.
    pub feed_forward_size: Option<u32>,
    /// Expert MLP width.
    pub expert_feed_forward_size: Option<u32>,
    /// Query head count.
    pub attention_heads: Option<u32>,
    /// Key-value head count for grouped-query attention.
    pub query_groups: Option<u32>,
    /// True for grouped-query attention.
    pub is_grouped: Option<bool>,
    /// Experts per layer; 0 for a dense model.
    pub experts: Option<u32>,
    /// Padded vocabulary size.
    pub padded_vocabulary: Option<u32>,
    /// Trainable parameter count.
    pub trained_parameters: Option<u64>,
    /// Number format of matrix products.
    pub precision: StatedPrecision,
    /// Parallel layout.
    pub layout: StatedLayout,
    /// Device name.
    pub device: Option<DeviceName>,
}

impl JobSetup {
    /// Returns the key-value head count. Without grouped-query attention it equals the query head
    /// count.
    pub fn kv_heads(&self) -> Option<u32> {
        if self.is_grouped == Some(false) { self.attention_heads } else { self.query_groups }
    }

    /// Returns the setup with a batch in sequences. A batch that would otherwise have more tokens than
    /// any training counts tokens.
    fn with_sequences(self) -> Self {
        let sequences = self
            .global_batch
            .zip(self.sequence_length)
            .and_then(|(batch, sequence)| Some(sequences(u64::from(batch), u64::from(sequence), None)? as u32));
        Self { global_batch: sequences.or(self.global_batch), ..self }
    }

    /// Returns these values and fills missing ones from `other`.
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

    /// Reads the values in a line. For duplicate keys the first value is used.
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

    /// Returns sequences per microbatch for torchtitan without a pipeline, equal to the local
    /// batch.
    fn local_batch(&self, line: &str) -> Option<u32> {
        named(line, &["local batch size"]).filter(|_| self.layout.pipeline.is_none_or(|degree| degree == 1))
    }
}

/// Returns the device count, either stated or as product of device mesh degrees.
fn devices(line: &str) -> Option<u32> {
    let row = || named(line, &ROW_DEVICES).filter(|_| line.trim_start().starts_with('{'));
    named(line, &DEVICES).or_else(|| layout::mesh_devices(line)).or_else(|| starting(line)).or_else(row)
}

/// Reads the job size from the start of a log. For duplicate keys the first value is used.
pub fn job_setup(head: &[u8]) -> JobSetup {
    let mut setup = JobSetup::default();
    for line in String::from_utf8_lossy(head).lines() {
        setup.read(line);
    }
    setup.with_sequences()
}

/// Returns samples per step from `Total train batch size (w. parallel, distributed & accumulation)
/// = 64` (Hugging Face trainer) and `train_batch_size ............. 64` (DeepSpeed). Without the
/// dots, this key means the batch size per device.
fn train_batch(line: &str) -> Option<u32> {
    match line.split_once("total train batch size") {
        Some((_, after)) => {
            let word = after[after.rfind('=')? + 1..].split_whitespace().next()?;
            word.replace(',', "").parse().ok()
        }
        None => named(line, &["train_batch_size"]).filter(|_| line.contains("...")),
    }
}

/// Returns the parameter count from `Number of trainable parameters = 20,277,248`, `trainable
/// params: 20,971,520 || all params: ...` and `Model llama3 8B size: 8,030,261,248 total
/// parameters` (torchtitan, where all parameters are trainable).
fn trained(line: &str) -> Option<u64> {
    let titan =
        || Some(line.split_once("model ")?.1.split_once(" size: ")?.1).filter(|text| text.contains("total parameters"));
    let after = TRAINED.iter().find_map(|name| Some(line.split_once(name)?.1)).or_else(titan)?;
    let digits = after.trim_start_matches([' ', '=', ':', '.']);
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(digits.len());
    digits[..end].replace(',', "").parse().ok().filter(|count| *count > 0)
}

/// Returns the count in "All distributed processes registered. Starting with 64 processes".
fn starting(line: &str) -> Option<u32> {
    let (_, after) = line.split_once(STARTING)?;
    let (count, rest) = after.split_once(' ')?;
    rest.starts_with("processes").then(|| count.parse().ok()).flatten().filter(|count| *count > 0)
}
