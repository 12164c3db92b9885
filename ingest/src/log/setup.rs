//! Size of a job, from what training programs print before the first step.

mod parts;
#[cfg(test)]
mod tests;

pub use parts::JobSetups;

use planner::observed::DeviceName;

/// Longest gap between a name and its value, in bytes: Megatron-LM fills it with dots.
const MAX_GAP: usize = 80;
/// Names of the number of processes.
const DEVICES: [&str; 3] = ["world size", "world_size", "num_processes"];
/// Names of the tokens of a sequence.
const LENGTHS: [&str; 5] = ["seq_length", "seq-length", "sequence length", "seq_len", "max_seq_len"];
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
/// Names of the format of fp8.
const FP8: [&str; 3] = ["fp8", "fp8_format", "fp8-format"];
/// In front of the parameters that are trained.
const TRAINED: [&str; 2] = ["number of trainable parameters", "trainable params"];
/// In front of the degrees of torchtitan's device mesh.
const MESH: &str = "device mesh with";
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
    /// Experts of a layer; 0 for a dense model.
    pub experts: Option<u32>,
    /// Vocabulary with its padding.
    pub padded_vocabulary: Option<u32>,
    /// Parameters that are trained.
    pub trained_parameters: Option<u64>,
    /// Whether products are in fp8.
    pub is_fp8: Option<bool>,
    /// The device.
    pub device: Option<DeviceName>,
}

impl JobSetup {
    /// These facts, and for what they do not state the others.
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
            experts: self.experts.or(other.experts),
            padded_vocabulary: self.padded_vocabulary.or(other.padded_vocabulary),
            trained_parameters: self.trained_parameters.or(other.trained_parameters),
            is_fp8: self.is_fp8.or(other.is_fp8),
            device: self.device.or(other.device),
        }
    }

    /// Takes over what a line states, where nothing is stated yet.
    fn read(&mut self, line: &str) {
        let line = line.to_ascii_lowercase();
        *self = self.or(Self {
            devices: named(&line, &DEVICES).or_else(|| mesh(&line)).or_else(|| starting(&line)),
            sequence_length: named(&line, &LENGTHS),
            layers: named(&line, &LAYERS),
            hidden_size: named(&line, &HIDDEN),
            global_batch: named(&line, &BATCHES).or_else(|| train_batch(&line)),
            feed_forward_size: named(&line, &FEED_FORWARD),
            expert_feed_forward_size: named(&line, &EXPERT_FEED_FORWARD),
            attention_heads: named(&line, &HEADS),
            experts: named(&line, &EXPERTS).or_else(|| none(&line, &EXPERTS)),
            padded_vocabulary: named(&line, &VOCABULARY),
            trained_parameters: trained(&line),
            is_fp8: fp8(&line),
            device: device(&line),
        });
    }
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
        Some((_, behind)) => {
            let word = behind[behind.rfind('=')? + 1..].split_whitespace().next()?;
            word.replace(',', "").parse().ok()
        }
        None => named(line, &["train_batch_size"]).filter(|_| line.contains("...")),
    }
}

/// Parameters in `Number of trainable parameters = 20,277,248` and `trainable params: 20,971,520 || all params: ...`.
fn trained(line: &str) -> Option<u64> {
    let (_, behind) = TRAINED.iter().find_map(|name| line.split_once(name))?;
    let digits = behind.trim_start_matches([' ', '=', ':', '.']);
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(digits.len());
    digits[..end].replace(',', "").parse().ok().filter(|count| *count > 0)
}

/// The word behind one of the names.
fn word<'a>(line: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        line.match_indices(name).find_map(|(at, _)| {
            let before = line[..at].chars().next_back();
            let is_own = before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            let behind = &line[at + name.len()..];
            let text = behind.trim_start_matches([' ', '.', ':', '=', '"', '\'', '\t']);
            let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
            (is_own && text.len() < behind.len() && end > 0).then(|| &text[..end])
        })
    })
}

/// 0 where an argument of Megatron-LM is `None`.
fn none(line: &str, names: &[&str]) -> Option<u32> {
    (line.contains("...") && word(line, names) == Some("none")).then_some(0)
}

/// Whether products are in fp8, by the name of their format.
fn fp8(line: &str) -> Option<bool> {
    match word(line, &FP8)? {
        "hybrid" | "e4m3" | "e5m2" | "true" => Some(true),
        "none" | "false" => Some(false),
        _ => None,
    }
}

/// The device in `CUDA capacity: NVIDIA H100 with 94.99GiB memory` of torchtitan, and in `GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...`.
fn device(line: &str) -> Option<DeviceName> {
    if let Some((_, behind)) = line.split_once("capacity: ") {
        return behind.split_once(" with ").and_then(|(name, _)| DeviceName::find(name));
    }
    let (before, _) = line.split_once("(uuid:")?;
    let (_, name) = before.split_once("gpu ")?.1.split_once(':')?;
    DeviceName::find(name)
}

/// The whole number behind one of the names: "using world size: 64,", "seq_length ........ 2048", "world_size=8".
fn named(line: &str, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| {
        line.match_indices(name).find_map(|(at, _)| {
            let before = line[..at].chars().next_back();
            // "data_parallel_world_size" and "decoder_seq_length" are other quantities; "--seq-length" is an argument.
            let is_own = before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            is_own.then(|| number(&line[at + name.len()..])).flatten()
        })
    })
}

/// A number behind blanks, dots and signs only.
fn number(text: &str) -> Option<u32> {
    let gap = text.find(|c: char| !matches!(c, ' ' | '.' | ':' | '=' | '"' | '\'' | '(' | '\t'))?;
    let digits = text[gap..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - gap);
    let value: u32 = text[gap..gap + digits].parse().ok()?;
    // "8.5" is no count, and neither is "8k".
    let mut behind = text[gap + digits..].chars();
    let is_whole = match (behind.next(), behind.next()) {
        (Some('.'), Some(next)) => !next.is_ascii_digit(),
        (next, _) => next.is_none_or(|c| !c.is_alphanumeric() && c != '_'),
    };
    (gap > 0 && gap <= MAX_GAP && value > 0 && is_whole).then_some(value)
}

/// Product of the degrees in `Building 2-D device mesh with ['dp', 'tp'], [4, 2]`.
fn mesh(line: &str) -> Option<u32> {
    let (_, behind) = line.split_once(MESH)?;
    let degrees = behind.rsplit_once('[')?.1.split_once(']')?.0;
    degrees
        .split(',')
        .map(|degree| degree.trim().parse::<u32>().ok())
        .try_fold(1_u32, |product, degree| product.checked_mul(degree?).filter(|product| *product > 0))
}

/// The count in "All distributed processes registered. Starting with 64 processes".
fn starting(line: &str) -> Option<u32> {
    let (_, behind) = line.split_once(STARTING)?;
    let (count, rest) = behind.split_once(' ')?;
    rest.starts_with("processes").then(|| count.parse().ok()).flatten().filter(|count| *count > 0)
}
