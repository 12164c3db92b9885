//! Frameworks whose files are not read, with what to give instead.

use super::JobConfigError;

const CONFIG_JSON: &str = "give config.json of the model, and set the degrees, the batch and the sharding in the page or \
                           with options";
const COMMAND: &str = "give the command line with its arguments (torchrun, accelerate or deepspeed), or config.json of the \
                       model with DeepSpeed JSON or the file of accelerate";

/// Framework, texts of which a file has all of one entry, and the remedy.
const FRAMEWORKS: [(&str, &[&[&str]], &str); 18] = [
    ("xtuner", &[&["xtuner"], &["mmengine"]], CONFIG_JSON),
    ("ColossalAI", &[&["colossalai"]], CONFIG_JSON),
    ("fairseq", &[&["fairseq-train"], &["fairseq-hydra-train"], &["fairseq_cli"]], CONFIG_JSON),
    (
        "NeMo 2",
        &[&["nemo.collections import llm"], &["import nemo_run"], &["nemo.lightning"], &["nemo llm "]],
        "a recipe of NeMo 2 is Python code; give config.json of the model with the degrees and the batch as YAML of \
         Megatron-Bridge (model.tensor_model_parallel_size, train.global_batch_size)",
    ),
    (
        "Megatron-Bridge recipes",
        &[&["megatron.bridge"]],
        "a recipe is Python code; give its YAML overrides or its command with config.json of the model",
    ),
    ("NeMo AutoModel", &[&["nemo_automodel"], &["NeMoAutoModel"], &["automodel finetune"]], CONFIG_JSON),
    ("NeMo RL", &[&["nemo_rl"], &["policy:", "dtensor_cfg:"], &["policy:", "megatron_cfg:"]], CONFIG_JSON),
    ("picotron", &[&["\"pp_engine\"", "\"distributed\""]], CONFIG_JSON),
    (
        "composer",
        &[&["from composer import"], &["import composer"]],
        "Python code is not read; give the YAML of llm-foundry, or config.json of the model",
    ),
    ("unsloth", &[&["from unsloth import"], &["FastLanguageModel"]], COMMAND),
    ("veScale", &[&["vescale"]], CONFIG_JSON),
    (
        "VeOmni",
        &[&["veomni"], &["ulysses_parallel_size:"], &["data_parallel_mode:"], &["ulysses_size:", "accelerator:"]],
        CONFIG_JSON,
    ),
    ("prime-rl", &[&["prime_rl"], &["prime-rl"], &["[orchestrator"], &["[trainer.model]"]], CONFIG_JSON),
    ("torchforge", &[&["hf_assets_path:", "trainer:"], &["apps.sft"], &["apps/sft"]], CONFIG_JSON),
    (
        "Megatron-Bridge performance scripts",
        &[&["--model_recipe_name"], &["setup_experiment.py", "-mr "]],
        "the degrees of a recipe are Python code; state model, devices, batch and degrees in the command (-mr, -ng, -gb, -mb, \
         -tp, -pp, -cp, -vp, -ep)",
    ),
    (
        "OLMo-core scripts",
        &[&["olmo_core"], &["src/scripts/train/"]],
        "a script of OLMo-core is Python code; give config.json that the run saves in its folder",
    ),
    ("Lightning", &[&["import lightning"], &["pytorch_lightning"], &["lightning.pytorch"]], CONFIG_JSON),
    (
        "Hugging Face in Python",
        &[&["TrainingArguments("], &["SFTConfig("], &["from transformers import"], &["from accelerate import"]],
        COMMAND,
    ),
];

/// Returns the error of a framework whose files are not read; `None` if none is recognised.
pub(super) fn find(text: &str) -> Option<JobConfigError> {
    let has = |words: &&[&str]| words.iter().all(|word| text.contains(word));
    let found = FRAMEWORKS.into_iter().find(|(_, marks, _)| marks.iter().any(has));
    found.map(|(framework, _, remedy)| JobConfigError::Unsupported { framework, remedy })
}
