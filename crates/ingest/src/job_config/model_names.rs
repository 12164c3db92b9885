//! Sizes of published models by their names on the Hugging Face hub.

use std::collections::BTreeMap;

use planner::model::{Model, presets};

use super::keys::Keys;
use super::{JobConfigError, model_config};

/// Names and `config.json` values by section.
const MODELS: &str = include_str!("models.txt");

/// Section of models with the identifier of a preset.
const PRESET: &str = "preset";

/// Keys of the first values of a line.
const SIZES: [&str; 5] =
    ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size"];

/// Starts of names that change no sizes.
const STARTS: [&str; 3] = ["meta-", "nvidia-", "c4ai-"];

/// Words of a name that change no sizes.
const VARIANTS: &str = "\
    4bit 8bit abliterated awq base bf16 block bnb chat code coder deduped dpo dynamic fp16 fp8 ft full gptq grpo hf \
    instruct int4 int8 intermediate it lora math mixture mt mxfp4 nf4 nvfp4 orpo ppo pretrain preview pt python qat \
    qlora quantized reasoning rl rlhf sft sharded step terminus think thinking unsloth w4a16 w8a16 w8a8 zero";

/// Returns the model of a name such as `meta-llama/Llama-3.1-8B-Instruct`. `None` if its sizes are not known.
pub(super) fn find(name: &str, keys: &mut Keys) -> Result<Option<Model>, JobConfigError> {
    let Some((name, section, values)) = spellings(name).into_iter().find_map(line) else { return Ok(None) };
    if section == PRESET {
        return Ok(presets::model(values));
    }
    let mut sizes = config(section, values)?;
    let (mut model, _) = model_config::read(&mut sizes)?;
    model.name.clone_from(&name);
    if let Some(module) = model.modules.last_mut() {
        module.name = name;
    }
    keys.absorb_report(sizes);
    Ok(Some(model))
}

/// Returns the line with this name: the name, the section and the values.
fn line(name: String) -> Option<(String, &'static str, &'static str)> {
    let mut section = "";
    for line in MODELS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        } else if let Some((names, values)) = line.split_once(": ")
            && names.split(' ').any(|known| known == name)
        {
            return Some((name, section, values));
        }
    }
    None
}

/// Returns the keys of `config.json`.
fn config(section: &'static str, values: &'static str) -> Result<Keys, JobConfigError> {
    let (kind, shared) = section.split_once(' ').unwrap_or((section, ""));
    let own = values.split(' ').skip(SIZES.len());
    let pairs = shared.split(' ').chain(own).filter_map(|pair| pair.split_once('='));
    let pairs: BTreeMap<&str, &str> =
        [("model_type", kind)].into_iter().chain(SIZES.into_iter().zip(values.split(' '))).chain(pairs).collect();
    let mut keys = Keys::default();
    for (key, value) in pairs {
        keys.push(key.to_owned(), value.to_owned())?;
    }
    Ok(keys)
}

/// Returns the names that the table may have for a name or path, the most exact first.
fn spellings(name: &str) -> Vec<String> {
    let name = name.trim().trim_end_matches('/').to_lowercase().replace('_', "-");
    // The cache of the hub has paths such as models--Qwen--Qwen2.5-7B/snapshots/1a2b3c.
    let name = match name.split_once("models--") {
        Some((_, path)) => path.split('/').next().and_then(|name| name.rsplit("--").next()),
        None => name.rsplit('/').next(),
    };
    let name =
        STARTS.into_iter().fold(name.unwrap_or_default(), |name, start| name.strip_prefix(start).unwrap_or(name));
    let words: Vec<&str> = name.split('-').filter(|word| !is_variant(word)).collect();
    let undated: Vec<&str> = words.iter().copied().filter(|word| !is_date_or_version(word)).collect();
    [words, undated].iter().flat_map(|words| [true, false].map(|has_minor| joined(words, has_minor))).collect()
}

/// Joins words by hyphens, and digits of versions and sizes by points. `llama`, `3`, `1`, `8b` are `llama3.1-8b`. Without
/// `has_minor`, a second digit belongs to the size: `qwen3`, `1`, `7b` are `qwen3-1.7b`.
fn joined(words: &[&str], has_minor: bool) -> String {
    let is_digit = |word: &str| word.len() == 1 && is_number(word);
    let mut name = String::new();
    for word in words {
        let last = name.rsplit('-').next().unwrap_or_default();
        let family = last.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or_default();
        let word = word.strip_suffix(".0").unwrap_or(word);
        let is_version =
            word.len() < 4 && word.starts_with(|c: char| ('1'..='9').contains(&c)) && is_number(&word.replace('.', ""));
        let separator = if last.is_empty() || (is_alphabetic(last) && is_version) {
            ""
        } else if (has_minor && is_alphabetic(family) && is_digit(word))
            || (is_digit(last) && word.strip_suffix('b').is_some_and(is_number))
        {
            "."
        } else {
            "-"
        };
        name = format!("{name}{separator}{word}");
    }
    name
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

fn is_alphabetic(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic())
}

/// True for words that change no sizes, also for lengths in tokens such as `128k` and `3t`.
fn is_variant(word: &str) -> bool {
    word.is_empty()
        || VARIANTS.split(' ').any(|variant| variant == word)
        || word.strip_suffix(['k', 't']).is_some_and(is_number)
}

/// True for `2507`, `08`, `v0.3` and `1m`. A few models of one family differ only in these.
fn is_date_or_version(word: &str) -> bool {
    (word.len() > 1 && is_number(word)) || ["v0", "v1"].iter().any(|start| word.starts_with(start)) || word == "1m"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names with published parameter counts, in millions. Layers that predict further tokens are left out, except for
    /// DeepSeek-V3.
    const PUBLISHED: &[(&str, f64)] = &[
        ("huggyllama/llama-7b", 6_738.4),
        ("huggyllama/llama-13b", 13_015.9),
        ("huggyllama/llama-30b", 32_528.9),
        ("huggyllama/llama-65b", 65_285.7),
        ("NousResearch/Llama-2-7b-hf", 6_738.4),
        ("meta-llama/Llama-2-13b-chat-hf", 13_015.9),
        ("meta-llama/Llama-2-70b-chat-hf", 68_976.6),
        ("lmsys/vicuna-7b-v1.5", 6_738.4),
        ("codellama/CodeLlama-7b-Instruct-hf", 6_738.4),
        ("codellama/CodeLlama-34b-Python-hf", 33_744.0),
        ("openlm-research/open_llama_3b", 3_426.5),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1_100.0),
        ("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", 1_100.0),
        ("upstage/SOLAR-10.7B-Instruct-v1.0", 10_731.5),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8_030.3),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8_030.3),
        ("allenai/Llama-3.1-Tulu-3-8B-SFT", 8_030.3),
        ("NousResearch/Hermes-3-Llama-3.1-8B", 8_030.3),
        ("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", 8_030.3),
        ("meta-llama/Llama-3.3-70B-Instruct", 70_553.7),
        ("hugging-quants/Meta-Llama-3.1-405B-BNB-NF4-BF16", 405_853.4),
        ("meta-llama/Llama-3.2-1B-Instruct", 1_235.8),
        ("unsloth/Llama-3.2-3B-bnb-4bit", 3_212.7),
        ("nvidia/Llama-3.1-Minitron-4B-Width-Base", 4_512.6),
        ("nvidia/Llama-3.1-Minitron-4B-Depth-Base", 4_540.6),
        ("deepseek-ai/deepseek-llm-7b-chat", 6_910.4),
        ("deepseek-ai/deepseek-math-7b-instruct", 6_910.4),
        ("deepseek-ai/deepseek-coder-7b-base-v1.5", 6_910.4),
        ("deepseek-ai/deepseek-llm-67b-base", 67_424.7),
        ("deepseek-ai/deepseek-coder-1.3b-base", 1_346.5),
        ("deepseek-ai/deepseek-coder-6.7b-instruct", 6_740.5),
        ("deepseek-ai/deepseek-coder-33b-instruct", 33_343.0),
        ("LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct", 2_405.3),
        ("LGAI-EXAONE/EXAONE-3.0-7.8B-Instruct", 7_818.4),
        ("LGAI-EXAONE/EXAONE-Deep-32B", 32_003.2),
        ("01-ai/Yi-6B-200K", 6_061.0),
        ("01-ai/Yi-1.5-9B-Chat-16K", 8_829.4),
        ("01-ai/Yi-1.5-34B-Chat", 34_388.9),
        ("01-ai/Yi-Coder-1.5B-Chat", 1_476.5),
        ("baichuan-inc/Baichuan-7B", 7_000.6),
        ("baichuan-inc/Baichuan-13B-Chat", 13_264.9),
        ("baichuan-inc/Baichuan2-7B-Base", 7_506.0),
        ("baichuan-inc/Baichuan2-13B-Chat", 13_896.7),
        ("tiiuae/Falcon3-1B-Base", 1_669.4),
        ("tiiuae/Falcon3-3B-Instruct", 3_227.7),
        ("tiiuae/Falcon3-7B-Instruct", 7_455.6),
        ("tiiuae/Falcon3-10B-Base", 10_305.7),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 134.5),
        ("HuggingFaceTB/SmolLM2-360M", 361.8),
        ("HuggingFaceTB/SmolLM-1.7B", 1_711.4),
        ("HuggingFaceTB/SmolLM3-3B-Base", 3_075.1),
        ("ibm-granite/granite-3b-code-instruct-128k", 3_482.6),
        ("ibm-granite/granite-8b-code-base-4k", 8_054.9),
        ("ibm-granite/granite-20b-code-base-8k", 20_073.6),
        ("ibm-granite/granite-3.0-2b-instruct", 2_533.5),
        ("ibm-granite/granite-3.3-8b-instruct", 8_170.8),
        ("ibm-granite/granite-3.1-1b-a400m-base", 1_334.6),
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 3_298.9),
        ("ibm-granite/granite-4.0-micro-base", 3_402.8),
        ("BSC-LT/salamandra-2b", 2_253.5),
        ("BSC-LT/salamandra-7b-instruct", 7_768.1),
        ("mistralai/Mistral-7B-v0.1", 7_241.7),
        ("HuggingFaceH4/zephyr-7b-beta", 7_241.7),
        ("openchat/openchat_3.5", 7_241.7),
        ("mistralai/Mistral-Small-Instruct-2409", 22_247.3),
        ("mistralai/Codestral-22B-v0.1", 22_247.3),
        ("mistralai/Mistral-Large-Instruct-2411", 122_610.1),
        ("mistralai/Mistral-Nemo-Instruct-2407", 12_247.8),
        ("nvidia/Mistral-NeMo-Minitron-8B-Base", 8_414.5),
        ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572.4),
        ("mistralai/Devstral-Small-2507", 23_572.4),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24_011.4),
        ("mistralai/Ministral-8B-Instruct-2410", 8_019.8),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702.8),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", 140_630.1),
        ("databricks/dbrx-instruct", 131_596.5),
        ("microsoft/Phi-3.5-MoE-instruct", 41_873.2),
        ("Qwen/Qwen1.5-0.5B-Chat", 464.0),
        ("Qwen/Qwen1.5-1.8B-Chat", 1_836.8),
        ("Qwen/Qwen1.5-4B", 3_950.4),
        ("Qwen/Qwen-7B-Chat", 7_721.3),
        ("Qwen/Qwen1.5-14B", 14_167.3),
        ("Qwen/Qwen1.5-32B-Chat-AWQ", 32_512.2),
        ("Qwen/Qwen1.5-72B", 72_287.9),
        ("Qwen/Qwen1.5-110B", 111_209.9),
        ("Qwen/Qwen2.5-0.5B-Instruct", 494.0),
        ("Qwen/Qwen2.5-Math-1.5B", 1_543.7),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1_777.1),
        ("Qwen/Qwen2.5-Coder-3B-Instruct", 3_085.9),
        ("Qwen/Qwen2-7B-Instruct", 7_615.6),
        ("Qwen/Qwen2.5-7B-Instruct-1M", 7_615.6),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7_615.6),
        ("Qwen/Qwen2.5-14B-Instruct-GPTQ-Int4", 14_770.0),
        ("Qwen/QwQ-32B-Preview", 32_763.9),
        ("Qwen/Qwen2.5-Math-72B", 72_706.2),
        ("Qwen/Qwen1.5-MoE-A2.7B-Chat", 14_315.8),
        ("Qwen/Qwen2-57B-A14B-Instruct", 57_409.1),
        ("Qwen/Qwen3-0.6B-Base", 596.0),
        ("Qwen/Qwen3-1.7B", 1_720.6),
        ("Qwen/Qwen3-4B-Instruct-2507", 4_022.5),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", 8_190.7),
        ("Qwen/Qwen3-14B-FP8", 14_768.3),
        ("Qwen/Qwen3-32B-AWQ", 32_762.1),
        ("Qwen/Qwen3-30B-A3B-Base", 30_532.1),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 30_532.1),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", 235_093.6),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 480_154.9),
        ("inclusionAI/Ling-mini-2.0", 16_255.6),
        ("inclusionAI/Ling-lite-1.5-2507", 16_802.0),
        ("rednote-hilab/dots.llm1.inst", 142_774.4),
        ("Qwen/Qwen2-VL-2B-Instruct", 2_209.0),
        ("Qwen/Qwen2-VL-7B-Instruct-AWQ", 8_291.4),
        ("Qwen/QVQ-72B-Preview", 73_405.6),
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3_754.6),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292.2),
        ("Qwen/Qwen2.5-VL-32B-Instruct", 33_452.7),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 73_410.8),
        ("llava-hf/llava-1.5-7b-hf", 7_063.4),
        ("liuhaotian/llava-v1.5-13b", 13_350.8),
        ("OpenGVLab/InternVL2_5-4B", 3_712.6),
        ("OpenGVLab/InternVL2_5-8B", 8_075.4),
        ("OpenGVLab/InternVL3-8B", 7_944.4),
        ("OpenGVLab/InternVL3-14B-Instruct", 15_119.0),
        ("OpenGVLab/InternVL2_5-26B", 25_514.0),
        ("OpenGVLab/InternVL3-38B", 38_388.0),
        ("OpenGVLab/InternVL3-78B", 78_408.0),
        ("OpenGVLab/InternVL3_5-8B", 8_528.3),
        ("OpenGVLab/InternVL3_5-14B", 15_119.6),
        ("OpenGVLab/InternVL3_5-30B-A3B", 30_848.0),
        ("Qwen/Qwen3-VL-2B-Instruct", 2_127.5),
        ("Qwen/Qwen3-VL-8B-Thinking", 8_767.1),
        ("XiaomiMiMo/MiMo-7B-RL-0530", 7_623.0),
        ("google/gemma-1.1-2b-it", 2_506.2),
        ("google/codegemma-7b-it", 8_537.7),
        ("google/gemma-2-2b", 2_614.3),
        ("google/gemma-2-9b-it", 9_241.7),
        ("google/gemma-2-27b", 27_227.1),
        ("google/gemma-3-270m-it", 268.1),
        ("google/gemma-3-1b-pt", 999.9),
        ("google/gemma-3-4b-it", 4_300.1),
        ("microsoft/Phi-3-mini-128k-instruct", 3_821.1),
        ("microsoft/Phi-3-medium-4k-instruct", 13_960.2),
        ("microsoft/phi-4", 14_659.5),
        ("microsoft/Phi-4-reasoning-plus", 14_659.5),
        ("microsoft/Phi-4-mini-instruct", 3_836.0),
        ("microsoft/phi-1_5", 1_418.3),
        ("microsoft/phi-2", 2_779.7),
        ("deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", 15_706.5),
        ("deepseek-ai/DeepSeek-V2.5-1210", 235_741.4),
        ("deepseek-ai/deepseek-moe-16b-base", 16_375.7),
        ("deepseek3-671b", 671_026.4),
        ("moonshotai/Moonlight-16B-A3B-Instruct", 15_960.1),
        ("zai-org/GLM-4.7-Flash", 29_943.0),
        ("baidu/ERNIE-4.5-0.3B-PT", 360.7),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", 21_825.4),
        ("THUDM/glm-4-9b-chat-hf", 9_400.0),
        ("THUDM/glm-4-9b-chat-1m", 9_484.0),
        ("THUDM/GLM-Z1-32B-0414", 32_566.1),
        ("THUDM/chatglm3-6b-32k", 6_243.6),
        ("internlm/internlm2_5-1_8b-chat", 1_889.1),
        ("internlm/internlm2-chat-7b", 7_737.7),
        ("internlm/internlm2_5-20b-chat", 19_861.1),
        ("internlm/internlm3-8b-instruct", 8_804.2),
        ("allenai/OLMo-1B-hf", 1_176.8),
        ("allenai/OLMo-1B-0724-hf", 1_279.8),
        ("allenai/OLMo-7B-0424-hf", 6_888.1),
        ("allenai/OLMo-2-0425-1B", 1_484.9),
        ("allenai/OLMo-2-1124-7B-DPO", 7_298.6),
        ("allenai/OLMo-2-1124-13B-Instruct", 13_716.2),
        ("allenai/OLMo-2-0325-32B", 32_234.3),
        ("allenai/Olmo-3-7B-Think", 7_298.0),
        ("allenai/Olmo-3.1-32B-Instruct", 32_233.5),
        ("allenai/OLMoE-1B-7B-0924-Instruct", 6_919.2),
        ("CohereForAI/c4ai-command-r-v01", 34_980.8),
        ("CohereForAI/c4ai-command-r-08-2024", 32_296.5),
        ("CohereForAI/c4ai-command-r-plus-08-2024", 103_810.7),
        ("CohereForAI/aya-expanse-8b", 8_028.0),
        ("CohereForAI/c4ai-command-r7b-12-2024", 8_027.9),
        ("CohereForAI/c4ai-command-a-03-2025", 111_057.6),
        ("nvidia/Minitron-4B-Base", 4_190.9),
        ("nvidia/Minitron-8B-Base", 8_272.0),
        ("nvidia/Nemotron-4-340B-Instruct", 341_000.0),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 8_888.2),
        ("nvidia/NVIDIA-Nemotron-Nano-12B-v2-Base", 12_310.0),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31_577.9),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", 36_151.1),
        ("swiss-ai/Apertus-8B-Instruct-2509", 8_053.3),
        ("swiss-ai/Apertus-70B-2509", 70_598.0),
        ("stabilityai/stablelm-zephyr-3b", 2_795.4),
        ("stabilityai/stablelm-2-1_6b", 1_644.5),
        ("stabilityai/stablelm-2-12b-chat", 12_143.6),
        ("distilbert/distilgpt2", 81.9),
        ("openai-community/gpt2", 124.4),
        ("openai-community/gpt2-medium", 354.8),
        ("openai-community/gpt2-large", 774.0),
        ("openai-community/gpt2-xl", 1_557.6),
        ("EleutherAI/gpt-neo-125m", 125.2),
        ("EleutherAI/gpt-neo-1.3B", 1_315.6),
        ("EleutherAI/gpt-neo-2.7B", 2_651.3),
        ("EleutherAI/gpt-j-6b", 6_050.9),
        ("EleutherAI/pythia-14m", 14.1),
        ("EleutherAI/pythia-70m-deduped", 70.4),
        ("EleutherAI/pythia-160m", 162.3),
        ("EleutherAI/pythia-410m", 405.3),
        ("EleutherAI/pythia-1b", 1_011.8),
        ("EleutherAI/pythia-1.4b-deduped", 1_414.6),
        ("pythia-2.8b", 2_775.2),
        ("databricks/dolly-v2-7b", 6_857.3),
        ("EleutherAI/pythia-12b", 11_846.1),
        ("EleutherAI/gpt-neox-20b", 20_554.6),
        ("facebook/opt-125m", 125.2),
        ("facebook/opt-1.3b", 1_315.8),
        ("facebook/opt-2.7b", 2_651.6),
        ("facebook/opt-6.7b", 6_658.5),
        ("facebook/opt-13b", 12_853.5),
        ("facebook/opt-30b", 29_974.5),
        ("facebook/opt-66b", 65_718.3),
        ("bigscience/bloomz-560m", 559.2),
        ("bigscience/bloom-1b1", 1_065.3),
        ("bigscience/bloom-1b7", 1_722.4),
        ("bigscience/bloom-3b", 3_002.6),
        ("bigscience/bloomz-7b1-mt", 7_069.0),
        ("bigscience/bloom", 176_247.3),
        ("tiiuae/falcon-7b-instruct", 6_921.7),
        ("tiiuae/falcon-40b", 41_303.3),
        ("mosaicml/mpt-7b-8k", 6_649.3),
        ("mosaicml/mpt-30b-chat", 29_957.4),
        ("bigcode/starcoderbase-1b", 1_137.2),
        ("bigcode/starcoderbase-3b", 3_043.0),
        ("bigcode/starcoderbase-7b", 7_327.3),
        ("bigcode/starcoder", 15_517.5),
        ("bigcode/starcoder2-3b", 3_030.4),
        ("bigcode/starcoder2-7b", 7_173.9),
        ("bigcode/starcoder2-15b-instruct-v0.1", 15_957.9),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 32_003.2),
        ("LGAI-EXAONE/EXAONE-4.0-1.2B", 1_279.4),
        ("openbmb/MiniCPM-2B-sft-bf16", 2_724.9),
        ("deepseek-ai/DeepSeek-V3-Base", 682_600.0),
        ("deepseek-ai/DeepSeek-R1-0528", 682_600.0),
        ("moonshotai/Kimi-K2-Instruct-0905", 1_026_400.0),
        ("zai-org/GLM-4.6", 352_800.0),
        ("zai-org/GLM-4.5-Air-FP8", 106_900.0),
        ("MiniMaxAI/MiniMax-M2.5", 228_700.0),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 79_670.0),
        ("openai/gpt-oss-20b", 20_910.0),
        ("unsloth/gpt-oss-120b-BF16", 116_830.0),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 107_770.0),
        // Without the vision encoder.
        ("google/gemma-3-12b-it", 11_770.0),
        ("google/gemma-3-27b-it", 27_010.0),
    ];

    fn parameters(name: &str) -> Option<f64> {
        find(name, &mut Keys::default()).unwrap().map(|model| model.parameters() as f64)
    }

    #[test]
    fn names_have_their_sizes() {
        for (name, millions) in PUBLISHED {
            let counted = parameters(name).unwrap_or_else(|| panic!("{name}")) / 1e6;
            assert!((counted / millions - 1.0).abs() < 5e-3, "{name}: {counted}");
        }
    }

    /// A name that another spelling hides is never found.
    #[test]
    fn every_name_of_the_table_is_found() {
        for line in MODELS.lines().filter(|line| !line.starts_with(['#', '['])) {
            let (names, _) = line.split_once(": ").unwrap_or_default();
            for name in names.split(' ').filter(|name| !name.is_empty()) {
                let found = spellings(name).into_iter().find_map(super::line).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(found.0, name);
                assert!(find(name, &mut Keys::default()).unwrap().is_some(), "{name}");
            }
        }
    }

    #[test]
    fn spellings_of_a_name_are_the_same_model() {
        for (names, millions) in [
            (
                &[
                    "Llama-3.1-8B",
                    "llama3-8b",
                    "llama3_8b",
                    "Meta-Llama-3-8B",
                    "llama-3-8b-instruct",
                    "llama3_1_8b",
                    "/data/models/Llama-3.1-8B-Instruct/",
                    "/data/huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/d04e592bb4f6aa9c",
                ][..],
                8_030.3,
            ),
            (&["Llama3.1-70B", "llama-3.3-70b-instruct", "unsloth/Meta-Llama-3.1-70B-bnb-4bit"], 70_553.7),
            (&["./ckpt/Llama-2-7b-hf/", "llama2_7b", "LLaMA-2-7B-32K", "code_llama2_7b"], 6_738.4),
            (&["/data/models/Qwen2.5-7B-Instruct", "qwen2_5_7b_base", "Qwen-2.5-7B"], 7_615.6),
            (&["qwen2_5_1_5b_instruct", "Qwen/Qwen2.5-1.5B"], 1_543.7),
            (&["qwen3_1_7b_base", "qwen3-1.7b"], 1_720.6),
            (&["qwen2_0_5b", "qwen2.5-500m"], 494.0),
            (&["phi4_14b", "phi-4"], 14_659.5),
            (&["phi3_mini", "microsoft/Phi-3.5-mini-instruct"], 3_821.1),
            (&["gemma2_9b", "google/gemma-2-9b"], 9_241.7),
        ] {
            for name in names {
                let counted = parameters(name).unwrap_or_else(|| panic!("{name}")) / 1e6;
                assert!((counted / millions - 1.0).abs() < 5e-3, "{name}: {counted}");
            }
        }
    }

    #[test]
    fn other_models_are_unknown() {
        for name in [
            "",
            "-",
            "my-model",
            "models",
            "Llama-2-9b",
            "Llama-3.2-11B-Vision",
            "meta-llama/Llama-3.1-8B-Reward",
            "llama2_reward_7b",
            "nvidia/Llama-3.1-Nemotron-70B-Reward",
            "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
            "Qwen3-8B-pruned",
            "Qwen/Qwen3-Embedding-8B",
            "Qwen/Qwen2.5-Math-RM-72B",
            "Qwen/Qwen2.5-Math-PRM-7B",
            "Qwen/Qwen2.5-Omni-7B",
            "Qwen/Qwen2-Audio-7B",
            "Qwen/Qwen3.5-9B",
            "DeepSeek-V3.2-Exp",
            "deepseek-ai/deepseek-vl-7b-chat",
            "GLM-4.5-V",
            "THUDM/glm-4v-9b",
            "mistralai/Ministral-3-8B-Base-2512",
            "microsoft/Phi-3-small-8k-instruct",
            "Phi-3.5-vision-instruct",
            "Phi-4-multimodal-instruct",
            "llava-hf/llava-v1.6-mistral-7b-hf",
            "facebook/opt-350m",
            "ibm-granite/granite-4.0-h-small",
            "google/gemma-3n-E4B-it",
            "google/medgemma-27b-it",
        ] {
            assert!(parameters(name).is_none(), "{name}");
        }
    }
}
