//! Sizes of published models by their names on the Hugging Face hub.

use planner::model::{Model, presets};
use serde_json::Value;

use super::keys::Keys;
use super::{JobConfigError, document, model_config, torchtitan};

/// `config.json` dimensions by family and size.
const SIZES: &str = include_str!("models.json");

/// Families in this file or in `flavors.json`, by the start of a name. A longer start precedes a shorter one.
const FAMILIES: [(&str, &str); 26] = [
    ("gemma-2-", "gemma-2"),
    ("mistral-small-", "mistral-small"),
    ("deepseek-r1-distill-qwen-", "qwen2.5"),
    ("deepseek-r1-distill-llama-", "llama3"),
    ("qwen2.5-vl-", "qwen2.5-vl"),
    ("qwen2.5-", "qwen2.5"),
    ("qwen2-", "qwen2"),
    ("qwen3-", "qwen3"),
    ("llama-2-", "llama-2"),
    ("llama-3.1-", "llama3"),
    ("llama-3.2-", "llama-3.2"),
    ("llama-3.3-", "llama3"),
    ("llama-3-", "llama3"),
    ("llama2-", "llama-2"),
    ("llama3.1-", "llama3"),
    ("llama3.2-", "llama-3.2"),
    ("llama3.3-", "llama3"),
    ("llama3-", "llama3"),
    ("mistral-", "mistral"),
    ("mixtral-", "mixtral"),
    ("pythia-", "pythia"),
    ("tiny-llama-", "tinyllama"),
    ("tinyllama-", "tinyllama"),
    ("vicuna-", "llama-2"),
    ("deepseek-llm-", "deepseek-llm"),
    ("deepseek3-", "deepseek_v3"),
];

/// Names of models without a size in their name, and those that are presets, by the start of a name.
const PRESETS: [(&str, &str); 23] = [
    ("deepseek-v3", "deepseek-v3"),
    ("deepseek-v3.1", "deepseek-v3"),
    ("deepseek-r1", "deepseek-v3"),
    ("kimi-k2", "kimi-k2"),
    ("glm-4.5-air", "glm-4.5-air"),
    ("glm-4.5", "glm-4.5"),
    ("minimax-m2", "minimax-m2"),
    ("minimax-m2.5", "minimax-m2"),
    ("llama-4-scout-17b-16e", "llama-4-scout"),
    ("llama-4-maverick-17b-128e", "llama-4-maverick"),
    ("gpt-oss-20b", "gpt-oss-20b"),
    ("gpt-oss-120b", "gpt-oss-120b"),
    ("gemma-3-12b", "gemma-3-12b"),
    ("gemma-3-27b", "gemma-3-27b"),
    ("nemotron-h-8b", "nemotron-h-8b"),
    ("qwen3-next-80b-a3b", "qwen3-next-80b-a3b"),
    ("qwen3-vl-2b", "qwen3-vl-2b"),
    ("qwen3-vl-4b", "qwen3-vl-4b"),
    ("qwen3-vl-8b", "qwen3-vl-8b"),
    ("qwen3-vl-32b", "qwen3-vl-32b"),
    ("qwen3-vl-30b-a3b", "qwen3-vl-30b-a3b"),
    ("qwen3-vl-235b-a22b", "qwen3-vl-235b-a22b"),
    ("internvl3-5-8b", "internvl3.5-8b"),
];

/// Models without a size in their name, by the start of a name, with family and size. A longer start precedes a shorter one.
const WITHOUT_SIZE: [(&str, &str, &str); 3] =
    [("phi-4-mini", "phi-4", "3.8b"), ("phi-4", "phi-4", "14b"), ("mistral-nemo", "mistral-nemo", "12b")];

/// Words of a name that change no sizes.
const VARIANTS: [&str; 33] = [
    "1m", "2501", "mixture", "dpo", "rlhf", "instruct", "base", "chat", "hf", "it", "pt", "v0.1", "v0.2", "v0.3",
    "2507", "thinking", "bnb", "4bit", "8bit", "nf4", "bf16", "fp8", "awq", "gptq", "int4", "int8", "coder", "math",
    "unsloth", "v1.0", "v1.5", "deduped", "sft",
];

/// Returns the model of a name such as `meta-llama/Llama-3.1-8B-Instruct`. `None` if its sizes are not known.
pub(super) fn find(name: &str, keys: &mut Keys) -> Result<Option<Model>, JobConfigError> {
    if let Some(id) = preset(name) {
        return Ok(presets::model(id));
    }
    let Some((family, size)) = family_and_size(name) else { return Ok(None) };
    let title = format!("{family} {size}");
    let Some(sizes) = sizes(SIZES, family, &size)?.or(torchtitan::flavor(family, &size.to_uppercase())?) else {
        return Ok(None);
    };
    let mut sizes = document::json(&sizes.to_string())?;
    let (mut model, _) = model_config::read(&mut sizes)?;
    model.name.clone_from(&title);
    if let Some(module) = model.modules.last_mut() {
        module.name = title;
    }
    keys.absorb_report(sizes);
    Ok(Some(model))
}

/// Returns an object of a table by family and size.
fn sizes(table: &str, family: &str, size: &str) -> Result<Option<Value>, JobConfigError> {
    let table: Value = serde_json::from_str(table)
        .map_err(|error| JobConfigError::Malformed { format: "JSON", detail: error.to_string() })?;
    Ok(table.get(family).and_then(|sizes| sizes.get(size)).cloned())
}

/// Returns the last part of a path in lower case, without the prefix `meta-`.
fn normalized(name: &str) -> Option<String> {
    let name = name.trim().trim_end_matches('/').rsplit('/').next()?.to_lowercase().replace('_', "-");
    Some(name.strip_prefix("meta-").map_or_else(|| name.clone(), str::to_owned))
}

/// Returns the preset of a name that has only words without effect on sizes after it.
fn preset(name: &str) -> Option<&'static str> {
    let name = normalized(name)?;
    let name = name.strip_prefix("nvidia-").unwrap_or(&name);
    PRESETS.into_iter().find_map(|(start, id)| {
        let rest = name.strip_prefix(start)?;
        let is_variant = |word: &str| {
            word.is_empty() || VARIANTS.contains(&word) || word.chars().all(|c| c.is_ascii_digit()) || word == "8k"
        };
        rest.split('-').all(is_variant).then_some(id)
    })
}

fn family_and_size(name: &str) -> Option<(&'static str, String)> {
    let name = normalized(name)?;
    let is_variant =
        |word: &str| VARIANTS.contains(&word) || matches!(word, "" | "12b" | "14b" | "2407" | "reasoning" | "plus");
    let mut without_size = WITHOUT_SIZE.into_iter().filter_map(|(start, family, size)| {
        let rest = name.strip_prefix(start)?;
        rest.split('-').all(is_variant).then(|| (family, size.to_owned()))
    });
    if let Some(found) = without_size.next() {
        return Some(found);
    }
    let (start, family) = FAMILIES.into_iter().find(|(start, _)| name.starts_with(start))?;
    let mut words = name[start.len()..].split('-').filter(|word| !VARIANTS.contains(word));
    let size = words.next().filter(|word| is_size(word))?;
    let size = match words.next() {
        // Total and active parameters of a mixture of experts.
        Some(active) if active.starts_with('a') && is_size(&active[1..]) => format!("{size}-{active}"),
        Some(_) => return None,
        None => size.to_owned(),
    };
    words.next().is_none().then_some((family, size))
}

/// True for `7b`, `0.5b` and `8x7b`.
fn is_size(word: &str) -> bool {
    let digits = word.strip_suffix('b').unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 'x')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published parameter counts, in millions.
    #[test]
    fn names_have_their_sizes() {
        for (name, millions) in [
            ("meta-llama/Meta-Llama-3-8B-Instruct", 8_030.3),
            ("hugging-quants/Meta-Llama-3.1-405B-BNB-NF4-BF16", 405_853.4),
            ("meta-llama/Llama-3.2-1B-Instruct", 1_235.8),
            ("NousResearch/Llama-2-7b-hf", 6_738.4),
            ("Qwen/Qwen2.5-7B-Instruct", 7_615.6),
            ("Qwen/Qwen2.5-0.5B-Instruct", 494.0),
            ("Qwen/Qwen2.5-72B", 72_706.2),
            ("Qwen/Qwen2-7B-Instruct", 7_615.6),
            ("Qwen/Qwen3-4B-Instruct-2507", 4_022.5),
            ("Qwen/Qwen3-30B-A3B-Base", 30_532.1),
            ("mistralai/Mistral-7B-v0.1", 7_241.7),
            ("mistralai/Mixtral-8x7B-v0.1", 46_702.8),
            ("deepseek-ai/deepseek-llm-7b-chat", 6_910.4),
            ("EleutherAI/pythia-1b", 1_011.8),
            ("EleutherAI/pythia-1.4b-deduped", 1_414.6),
            ("pythia-2.8b", 2_775.2),
            ("EleutherAI/pythia-6.9b", 6_857.3),
            ("EleutherAI/pythia-12b", 11_846.1),
            ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1_100.0),
            ("lmsys/vicuna-7b-v1.5", 6_738.4),
            ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292.2),
            ("Qwen/Qwen2.5-7B-Instruct-1M", 7_615.6),
            ("google/gemma-2-9b-it", 9_241.7),
            ("google/gemma-2-2b", 2_614.3),
            ("google/gemma-2-27b", 27_227.1),
            ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572.4),
            ("mistralai/Mistral-Nemo-Instruct-2407", 12_247.8),
            ("microsoft/phi-4", 14_659.5),
            ("microsoft/Phi-4-reasoning-plus", 14_659.5),
            ("microsoft/Phi-4-mini-instruct", 3_836.0),
            ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8_030.3),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7_615.6),
        ] {
            let model = find(name, &mut Keys::default()).unwrap().unwrap_or_else(|| panic!("{name}"));
            let counted = model.parameters() as f64 / 1e6;
            assert!((counted / millions - 1.0).abs() < 3e-3, "{name}: {counted}");
        }
        for (name, billions) in [
            ("deepseek-ai/DeepSeek-V3-Base", 682.6),
            ("deepseek-ai/DeepSeek-R1-0528", 682.6),
            ("Qwen/Qwen3-Next-80B-A3B-Instruct", 79.67),
            ("openai/gpt-oss-20b", 20.91),
            ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 107.77),
            ("google/gemma-3-27b-it", 27.01),
        ] {
            let model = find(name, &mut Keys::default()).unwrap().unwrap_or_else(|| panic!("{name}"));
            let counted = model.parameters() as f64 / 1e9;
            assert!((counted / billions - 1.0).abs() < 5e-3, "{name}: {counted}");
        }
        for name in [
            "Llama-3.2-11B-Vision",
            "DeepSeek-V3.2-Exp",
            "GLM-4.5-V",
            "my-model",
            "Qwen3-8B-pruned",
            "",
            "Llama-2-9b",
            "Phi-4-multimodal-instruct",
        ] {
            assert!(find(name, &mut Keys::default()).unwrap().is_none(), "{name}");
        }
    }
}
