//! Experts and vocabulary in the arguments of Megatron-LM.

use planner::model::Moe;

use super::JobConfigError;
use super::keys::Keys;
use super::settings::Settings;
use super::tokenizers;

/// Vocabulary size if the file gives only a tokenizer: GPT-2, padded to a multiple of 1,024.
const VOCABULARY: u32 = 51_200;

/// Reads the experts of a layer; `None` if the model has none.
pub(super) fn experts(keys: &mut Keys) -> Result<Option<Moe>, JobConfigError> {
    let experts = keys.count(&["num-experts", "moe-num-experts"], "experts")?.filter(|&experts| experts > 1);
    let is_deepspeed = keys.has("deepspeed") || keys.has("zero-stage") || keys.has("moe-expert-parallel-size");
    let top_k = keys.count(&["moe-router-topk", "moe-top-k", "topk"], "experts of a token")?;
    let top_k = top_k.unwrap_or(if is_deepspeed { 1 } else { 2 });
    let every = keys.count(&["expert-interval"], "layers with experts")?.or(is_deepspeed.then_some(2));
    Ok(experts.map(|experts| Moe { every: every.unwrap_or(1), ..Moe::new(experts, top_k) }))
}

/// Reads the expert parallelism of `MegaBlocks`: as many ranks as there are data-parallel ones, at most one for each expert.
pub(super) fn read_megablocks(keys: &mut Keys, settings: &mut Settings) {
    let is_on = keys.flag(&["moe-expert-model-parallelism"], "expert parallelism").unwrap_or(false);
    let experts = keys.peek("moe-num-experts").and_then(|text| text.trim().parse::<u32>().ok());
    let Some(experts) = experts.filter(|_| is_on && settings.expert.is_none()) else { return };
    let replica = settings.tensor.unwrap_or(1).saturating_mul(settings.pipeline.unwrap_or(1)).max(1);
    let degree = settings.stated_devices().map_or(1, |devices| (devices / replica).clamp(1, experts));
    keys.assume(format!("MegaBlocks divides the {experts} experts over {degree} data-parallel ranks."));
    settings.expert = Some(degree);
}

/// Reports that the default exchange gathers all tokens, which moves more bytes than the all-to-all of the simulation.
pub(super) fn report_gathered_tokens(keys: &mut Keys, expert: u32) {
    let is_deepspeed = keys.has("deepspeed") || keys.has("zero-stage");
    let number = |name: &str| {
        keys.peek(name).and_then(|value| value.split_whitespace().next().unwrap_or_default().parse::<u32>().ok())
    };
    let Some(experts) = number("num-experts").filter(|&experts| experts > 1) else { return };
    let top_k = number("moe-router-topk").unwrap_or(2).clamp(1, experts);
    if is_deepspeed || expert <= top_k {
        return;
    }
    let times = f64::from(expert) / f64::from(top_k);
    keys.not_modelled(format!(
        "moe-token-dispatcher-type allgather, the default, gathers the tokens of all {expert} expert-parallel ranks: {times:.1} \
         times the bytes of the all-to-all that is simulated, so the time is a lower bound."
    ));
}

/// Returns the vocabulary size padded as in Megatron-LM: to a multiple of
/// `make-vocab-size-divisible-by` times TP.
pub(super) fn vocabulary(keys: &mut Keys) -> Result<u32, JobConfigError> {
    let names = ["padded-vocab-size", "vocab-size", "$VOCAB_SIZE"];
    let stated = keys.count(&names, "vocabulary")?;
    if let Some(padded) = keys.count(&["pad-vocab-size-to"], "vocabulary")? {
        return Ok(padded);
    }
    let divisor = keys.count(&["make-vocab-size-divisible-by"], "padding of the vocabulary")?.unwrap_or(128);
    let named = keys.peek("tokenizer-model");
    let named = named.and_then(|name| vocabulary_in_name(name).or_else(|| tokenizers::vocabulary(name)));
    // The class of a tokenizer can have a single vocabulary.
    let kind = keys.peek("tokenizer-type").and_then(|kind| kind.split_whitespace().next());
    let named = named.or(kind.filter(|kind| *kind == "Llama2Tokenizer").map(|_| 32_000));
    let stated = stated.unwrap_or_else(|| {
        let (vocabulary, origin) = match named {
            Some(named) => (named, ", from the name of the tokenizer"),
            None => (VOCABULARY, ""),
        };
        keys.assume(format!(
            "The vocabulary comes from the tokenizer, which the file does not hold. It is read as {vocabulary}{origin}."
        ));
        vocabulary
    });
    let tensor = keys.peek("tensor-model-parallel-size").and_then(|value| value.trim().parse().ok()).unwrap_or(1_u32);
    let multiple = divisor.saturating_mul(tensor.max(1));
    Ok(stated.checked_next_multiple_of(multiple).unwrap_or(stated))
}

/// Returns the size in the file name of a tokenizer: 256,000 in `nemotron_2_256k.model`.
fn vocabulary_in_name(path: &str) -> Option<u32> {
    let name = path.trim().rsplit('/').next()?.strip_suffix(".model")?;
    let thousands = name.split(['_', '-', '.']).find_map(|word| word.strip_suffix(['k', 'K'])?.parse::<u32>().ok())?;
    (10..1000).contains(&thousands).then(|| thousands * 1000)
}
