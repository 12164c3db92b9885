//! Commands of the performance scripts of Megatron-Bridge: `setup_experiment.py -m llama -mr llama3_70b -g h100 -ng 64 -tp 4`.
//!
//! The scripts take a model by name and replace settings of its recipe, which is Python code.

use planner::training::Fp8Recipe;

use super::arguments::commands;
use super::keys::Keys;
use super::{JobConfigError, programs};

/// Short and long argument with the key of a Megatron-Bridge override.
const ARGUMENTS: [(&str, &str, &str); 16] = [
    ("-mr", "--model_recipe_name", RECIPE),
    ("-ng", "--num_gpus", "world-size"),
    ("-gn", "--gpus_per_node", "nproc-per-node"),
    ("-g", "--gpu", "#SBATCH constraint"),
    ("-c", "--compute_dtype", "mixed_precision"),
    ("-gb", "--global_batch_size", "train.global_batch_size"),
    ("-mb", "--micro_batch_size", "train.micro_batch_size"),
    ("-sl", "--seq_length", "dataset.seq_length"),
    ("-tp", "--tensor_model_parallel_size", "model.tensor_model_parallel_size"),
    ("-pp", "--pipeline_model_parallel_size", "model.pipeline_model_parallel_size"),
    ("-cp", "--context_parallel_size", "model.context_parallel_size"),
    ("-vp", "--virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"),
    ("-ep", "--expert_model_parallel_size", "model.expert_model_parallel_size"),
    ("-et", "--expert_tensor_parallel_size", "model.expert_tensor_parallel_size"),
    ("-rl", "--recompute_num_layers", RECOMPUTE_LAYERS),
    ("", "--recompute_modules", "model.recompute_modules"),
];
const RECIPE: &str = "recipe";
const SEQUENCE: &str = "dataset.seq_length";
const RECOMPUTE_LAYERS: &str = "model.recompute_num_layers";
/// Degrees of a job.
const DEGREES: [(&str, &str); 3] = [
    ("model.tensor_model_parallel_size", "-tp"),
    ("model.pipeline_model_parallel_size", "-pp"),
    ("model.context_parallel_size", "-cp"),
];
const SEQUENCE_PARALLEL: &str = "model.sequence_parallel";
/// Sections of a recipe.
const SECTIONS: [&str; 5] = ["model.", "train.", "ddp.", "optimizer.", "comm_overlap."];
/// Models with two layers less than a multiple of their stages.
const ENDS_AS_LAYERS: [&str; 2] = ["llama31_405b", "qwen3_235b"];
/// Arguments that change what the overrides do not state.
const NOT_APPLIED: [(&str, &str, &str); 3] = [
    ("", "--num_layers", "Another number of layers than that of the recipe is not applied."),
    ("", "--hidden_size", "Another width than that of the recipe is not applied."),
    ("-ol", "--activation_offload_layers", "Offload of activations to the host is not applied."),
];

/// Keys of a row of the performance tables with the key of an override.
const ROW: [(&str, &str); 22] = [
    ("system", "#SBATCH constraint"),
    ("gpus", "world-size"),
    ("model", RECIPE),
    ("precision", "mixed_precision"),
    ("global_batch_size", "train.global_batch_size"),
    ("micro_batch_size", "train.micro_batch_size"),
    ("seq_length", "dataset.seq_length"),
    ("tensor_model_parallel_size", "model.tensor_model_parallel_size"),
    ("pipeline_model_parallel_size", "model.pipeline_model_parallel_size"),
    ("context_parallel_size", "model.context_parallel_size"),
    ("expert_model_parallel_size", "model.expert_model_parallel_size"),
    ("virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"),
    ("gbs", "train.global_batch_size"),
    ("mbs", "train.micro_batch_size"),
    ("sequence_length", "dataset.seq_length"),
    ("tp", "model.tensor_model_parallel_size"),
    ("pp", "model.pipeline_model_parallel_size"),
    ("cp", "model.context_parallel_size"),
    ("ep", "model.expert_model_parallel_size"),
    ("vp", "model.virtual_pipeline_model_parallel_size"),
    ("sequence_parallel", SEQUENCE_PARALLEL),
    ("tp_comm_overlap", "comm_overlap.tp_comm_overlap"),
];

/// Returns the overrides of a row of the performance tables, written as lines `key=value`; `None` for other texts.
pub(super) fn recognise_row(text: &str) -> Option<Keys> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry =
        |line: &'_ str| line.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    let entries: Vec<(String, String)> = lines().map(entry).collect::<Option<_>>()?;
    let has = |name: &str| entries.iter().any(|(key, _)| key == name);
    let is_row = ["system", "gpus", "model"].into_iter().all(has);
    if !is_row || !(has("global_batch_size") || has("gbs")) {
        return None;
    }
    let mut keys = Keys::default();
    for (name, value) in &entries {
        let name_in_row = name.to_lowercase();
        match ROW.into_iter().find(|(key, _)| *key == name_in_row) {
            Some((_, key)) => keys.translate(key, &meaning(key, value), (name, value)),
            // The degree of FSDP of the tables, 0 without it.
            None if matches!(&*name_in_row, "fsdp" | "use_megatron_fsdp") => {
                let is_on = !matches!(&*value.to_lowercase(), "0" | "false" | "none" | "");
                let switch = if is_on { "true" } else { "false" };
                keys.translate("ddp.use_megatron_fsdp", switch, (name, value));
                if is_on {
                    keys.derive("ddp.data_parallel_sharding_strategy", "optim_grads_params", "");
                }
            }
            None => keys.push(name.clone(), value.clone()).ok()?,
        }
    }
    keys.assume("The recomputation is not stated. It is read as none.");
    recipe_defaults(&mut keys);
    keys.derive(programs::COMMAND, "", programs::COMMAND);
    Some(keys)
}

/// Returns the overrides that a command of a performance script states; `None` if the text has no such command. `variables` are
/// those of the text.
///
/// # Errors
/// The command states no degree, so that all of them are in Python code.
pub(super) fn recognise(variables: &Keys, text: &str) -> Result<Option<Keys>, JobConfigError> {
    let commands = commands(text);
    let is_script = |words: &&Vec<String>| {
        words.iter().any(|word| word.ends_with("setup_experiment.py") || word.ends_with("run_script.py"))
            && words.iter().any(|word| is_argument(word, "-mr", "--model_recipe_name"))
    };
    let Some(words) = commands.iter().find(is_script) else { return Ok(None) };
    let mut keys = Keys::default();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(String::as_str).unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or((word, next));
        let variable = value.strip_prefix('$').map(|name| format!("${}", name.trim_matches(['{', '}'])));
        let value = variable.and_then(|name| variables.peek(&name)).unwrap_or(value);
        let is_stated = !matches!(value, "" | "None" | "none") && !value.starts_with('-');
        let found = ARGUMENTS.into_iter().find(|(short, long, _)| is_argument(name, short, long));
        if let Some((.., key)) = found.filter(|_| is_stated) {
            keys.translate(key, &meaning(key, value), (name, value));
        }
        if is_argument(name, "", "--use_megatron_fsdp") && value.eq_ignore_ascii_case("true") {
            keys.translate("ddp.use_megatron_fsdp", "true", (name, value));
            keys.derive("ddp.data_parallel_sharding_strategy", "optim_grads_params", "");
        }
        // Overrides of the recipe, in the form of Hydra.
        if SECTIONS.iter().any(|section| name.trim_start_matches('+').starts_with(section)) && word.contains('=') {
            keys.translate(name.trim_start_matches('+'), value, (name, value));
        }
        let not_applied = NOT_APPLIED.into_iter().find(|(short, long, _)| is_argument(name, short, long));
        if let Some((.., sentence)) = not_applied.filter(|_| !matches!(value, "0" | "false" | "False" | "None")) {
            keys.not_modelled(sentence);
        }
        if name == "--task" && value == "lora" {
            keys.not_modelled("The adapters of a recipe are Python code. Fine-tuning is read as that of all weights.");
        }
    }
    let open: Vec<&str> = DEGREES.into_iter().filter(|(key, _)| !keys.has(key)).map(|(_, short)| short).collect();
    if open.len() == DEGREES.len() && !keys.has("model.expert_model_parallel_size") {
        let detail = "the degrees of this recipe are Python code; state -tp, -pp, -cp, -ep, -gb and -mb".to_owned();
        return Err(JobConfigError::Value { key: "-mr".to_owned(), detail });
    }
    if !open.is_empty() {
        let listed = open.join(", ");
        keys.assume(format!("The command does not state {listed}. The recipe may: the degrees are read as 1."));
    }
    recipe_defaults(&mut keys);
    if keys.has(RECOMPUTE_LAYERS) {
        keys.derive("model.recompute_granularity", "full", "");
        keys.derive("model.recompute_method", "block", "");
    } else if keys.has("model.recompute_modules") {
        keys.derive("model.recompute_granularity", "selective", "");
    }
    keys.derive(programs::COMMAND, "", programs::COMMAND);
    Ok(Some(keys))
}

/// Adds what the performance recipes set and the job does not state.
fn recipe_defaults(keys: &mut Keys) {
    if keys.peek(DEGREES[0].0).is_some_and(|degree| degree != "1") && !keys.has(SEQUENCE_PARALLEL) {
        keys.derive(SEQUENCE_PARALLEL, "true", "");
        keys.assume("The performance scripts use sequence parallelism with tensor parallelism.");
    }
    let recipe = keys.peek(RECIPE).unwrap_or_default().to_lowercase();
    if recipe.starts_with("llama3") && !keys.has(SEQUENCE) && !keys.has("model.seq_length") {
        keys.derive(SEQUENCE, "8192", "");
        keys.derive("mixed_precision.grad_reduce_in_fp32", "false", "");
        keys.assume("The performance recipes of Llama 3 set sequences of 8192 tokens and gradients in bf16.");
    }
    if ENDS_AS_LAYERS.iter().any(|model| recipe.contains(model)) {
        keys.derive("model.account_for_embedding_in_pipeline_split", "true", "");
        keys.derive("model.account_for_loss_in_pipeline_split", "true", "");
        keys.assume("The recipe counts the embedding and the loss as a layer each of the first and last stage.");
    }
}

fn is_argument(word: &str, short: &str, long: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    (!short.is_empty() && name == short) || name.replace('-', "_") == long.replace('-', "_")
}

/// Returns the value of an override.
fn meaning(key: &str, value: &str) -> String {
    match key {
        // The tables have remarks after a name, for example "DeepSeekV3 (w/o MTP)".
        RECIPE => {
            let name = value.split(" (").next().unwrap_or(value);
            format!("{}_pretrain", name.replace("DeepSeekV", "deepseek_v"))
        }
        "mixed_precision" if value.to_lowercase().contains("fp8") => {
            let recipe = Fp8Recipe::named(value).map_or(String::new(), |recipe| format!("_{}", recipe.id()));
            format!("bf16_with_fp8{recipe}_mixed")
        }
        "mixed_precision" if value.eq_ignore_ascii_case("nvfp4") => "bf16_with_fp4_mixed".to_owned(),
        "mixed_precision" => "bf16_mixed".to_owned(),
        _ => value.to_owned(),
    }
}
