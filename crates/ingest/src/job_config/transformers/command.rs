//! Command lines of the trainer of Hugging Face transformers, TRL, LLaMA-Factory, ms-swift, OpenRLHF and axolotl, with
//! the arguments of their launchers (torchrun, accelerate, DeepSpeed).
//!
//! An argument `--name value` is the key `name` of the job file of the same program. Arguments of `accelerate launch` are
//! the keys of its configuration.

use super::{COMMAND, programs};
use crate::job_config::arguments::{commands, words};
use crate::job_config::keys::Keys;
use crate::job_config::{ConfigFormat, JobConfigError, launcher};

/// Key of the job file that a command names.
const JOB_FILE: &str = "#job_file";
/// Key of the file of accelerate that a command names.
const LAUNCHER_FILE: &str = "#launcher_file";

/// Arguments of launchers and variables that state devices. They have the names of Megatron-LM.
const LAUNCHER: [&str; 11] = [
    "nnodes",
    "nproc-per-node",
    "num-gpus",
    "num-nodes",
    "include",
    "$NNODES",
    "$NPROC_PER_NODE",
    "$GPUS_PER_NODE",
    "$SLURM_NNODES",
    "$WORLD_SIZE",
    "$CUDA_VISIBLE_DEVICES",
];

/// Arguments of `accelerate launch` and their keys in its configuration, without the prefix.
const ACCELERATE: [(&str, &str); 8] = [
    ("num_processes", "num_processes"),
    ("num_machines", "num_machines"),
    ("mixed_precision", "mixed_precision"),
    ("zero_stage", "deepspeed_config.zero_stage"),
    ("deepspeed_config_file", "deepspeed_config.deepspeed_config_file"),
    ("offload_optimizer_device", "deepspeed_config.offload_optimizer_device"),
    ("offload_param_device", "deepspeed_config.offload_param_device"),
    ("use_parallelism_config", "use_parallelism_config"),
];

/// Further arguments of `accelerate launch`, which state neither devices nor settings of the job.
const ACCELERATE_ONLY: [&str; 8] =
    ["machine_rank", "main_process_", "main_training_", "rdzv_", "same_network", "dynamo_", "gpu_ids", "debug"];

/// Arguments whose value has several words.
const LISTS: [&str; 6] =
    ["fsdp", "lora_target_modules", "target_modules", "lora_target", "lora_modules_to_save", "modules_to_save"];

/// Arguments whose value is the name of a file or JSON.
const JSON: [&str; 2] = ["fsdp_config", "accelerator_config"];

/// Arguments of a job. Two different programs do not have one of these with another meaning.
const JOB: [&str; 6] = [
    "per-device-train-batch-size",
    "micro-train-batch-size",
    "model-name-or-path",
    "gradient-accumulation-steps",
    "finetuning-type",
    "cutoff-len",
];

/// Subcommands of programs that train.
const TRAINING: [&str; 14] =
    ["train", "sft", "pt", "rlhf", "dpo", "grpo", "kto", "rloo", "ppo", "reward", "cpo", "orpo", "gkd", "online_dpo"];

/// Program that a script runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    format: ConfigFormat,
    /// Kind of training.
    kind: String,
    /// True for the Megatron-LM of ms-swift.
    is_megatron: bool,
}

/// Name of an argument that only jobs of these programs have; `None` if there is none.
pub(in crate::job_config) fn argument(keys: &Keys) -> Option<&'static str> {
    JOB.into_iter().find(|name| keys.has(name))
}

/// Returns the format of a command line; `None` if it runs no known program and has no arguments of the trainer.
pub(in crate::job_config) fn recognise(keys: &Keys, text: &str) -> Option<ConfigFormat> {
    if let Some(program) = program(text) {
        return Some(program.format);
    }
    if keys.has("finetuning-type") || keys.has("cutoff-len") {
        return Some(ConfigFormat::LlamaFactory);
    }
    if keys.has("micro-train-batch-size") && keys.has("pretrain") {
        return Some(ConfigFormat::OpenRlhf);
    }
    let others = ["gradient-checkpointing", "output-dir", "num-train-epochs", "bf16", "fsdp", "deepspeed"];
    let count = others.iter().filter(|name| keys.has(name)).count();
    let is_job = keys.has("per-device-train-batch-size") || (argument(keys).is_some() && count >= 2);
    let is_accelerate = mentions(text, "accelerate", "launch");
    let is_launched = is_accelerate && (keys.has("num-processes") || keys.has("config-file"));
    // The job file of a script.
    let names_file = keys.peek("config").is_some_and(|path| path.contains(".y"));
    match (is_job || (is_accelerate && names_file), is_launched) {
        (true, _) => Some(ConfigFormat::TrainingArguments),
        (false, true) => Some(ConfigFormat::Accelerate),
        (false, false) => None,
    }
}

/// True if a script runs Megatron-LM through ms-swift.
pub(in crate::job_config) fn is_megatron(text: &str) -> bool {
    program(text).is_some_and(|program| program.is_megatron)
}

/// Reads the arguments of a script.
pub(in crate::job_config) fn read(format: ConfigFormat, arguments: Keys, text: &str) -> Result<Keys, JobConfigError> {
    let program = program(text).unwrap_or_else(|| Program {
        format,
        kind: script_kind(text).unwrap_or_default().to_owned(),
        is_megatron: false,
    });
    // The command of TRL also takes arguments of accelerate.
    let is_accelerate = mentions(text, "accelerate", "launch") || program.format == ConfigFormat::Trl;
    let (job_file, overrides) = job_file(&arguments, text);
    let processes = mason_processes(&arguments, text);
    let mut keys = arguments.converted(|argument, value| {
        let (key, name, value) = setting(argument, value)?;
        let launched = is_accelerate.then(|| launcher_key(&key)).flatten();
        match launched {
            Some((_, Some(fixed))) if value != "false" => {
                Some(("accelerate.distributed_type".to_owned(), name, fixed.to_owned()))
            }
            Some((_, Some(_))) => None,
            Some((key, None)) => Some((key, name, value)),
            None => Some((key, name, value)),
        }
    });
    for (key, value) in overrides {
        keys.push(key, value)?;
    }
    if let Some(processes) = processes {
        keys.push("accelerate.num_processes".to_owned(), processes.to_string())?;
        keys.assume(format!("mason.py starts {processes} processes, one for each device of num_nodes x gpus."));
    }
    if program.is_megatron {
        keys.rename(|key| (!key.starts_with(['$', '#'])).then(|| key.replace('_', "-")));
        keys.derive("#megatron", "true", "#megatron");
    }
    if let Some(file) = job_file {
        keys.derive(JOB_FILE, &file, JOB_FILE);
    }
    keys.derive(COMMAND, &program.kind, COMMAND);
    Ok(keys)
}

/// Returns the processes that mason.py of open-instruct starts in place of those of `accelerate launch`.
fn mason_processes(arguments: &Keys, text: &str) -> Option<u32> {
    let is_mason = commands(text).iter().flatten().any(|word| base_name(word) == "mason.py");
    let count = |name: &str| arguments.peek(name)?.split_whitespace().next()?.parse::<u32>().ok();
    count("num-nodes")?.checked_mul(count("gpus")?).filter(|&processes| is_mason && processes > 0)
}

/// Returns key, name in reports and value of an argument; `None` for one without effect.
fn setting(argument: &str, value: &str) -> Option<(String, String, String)> {
    let same = |value: &str| Some((argument.to_owned(), argument.to_owned(), value.to_owned()));
    if launcher::is_directive(argument) || argument == "$MAX_PIXELS" || programs::VIDEO.contains(&argument) {
        return same(value);
    }
    if LAUNCHER.contains(&argument) {
        let word = value.split_whitespace().next().unwrap_or_default();
        if matches!(argument, "include" | "$CUDA_VISIBLE_DEVICES") {
            let count = if word.contains('$') { 0 } else { launcher::included(word).1 };
            return (count > 0).then(|| (argument.to_owned(), shown(argument), count.to_string()));
        }
        let same = |value: &str| Some((argument.to_owned(), shown(argument), value.to_owned()));
        // torchrun also takes ranges of nodes, and "gpu" or "auto" devices.
        return if word.contains('$') || word.parse::<u32>().is_ok() { same(word) } else { None };
    }
    if argument.starts_with("deepspeed.") {
        return same(value);
    }
    if argument.starts_with(['$', '#']) {
        return None;
    }
    let key = argument.replace('-', "_");
    let name = format!("--{key}");
    let mut value = words(value);
    let is_json = JSON.contains(&key.as_str()) && value.starts_with('{');
    if !is_json && !LISTS.contains(&key.as_str()) {
        value.truncate(value.find(char::is_whitespace).unwrap_or(value.len()));
    }
    // The launcher of DeepSpeed has a switch of the same name.
    if key == "deepspeed" && (value.is_empty() || is_program(&value)) {
        return None;
    }
    let is_switch = value.is_empty() || is_program(&value);
    if let Some(positive) = key.strip_prefix("no_").filter(|_| is_switch) {
        return Some((positive.to_owned(), name, "false".to_owned()));
    }
    let value = if is_switch { "true".to_owned() } else { value };
    let key = match key.as_str() {
        "config" => JOB_FILE.to_owned(),
        "config_file" => LAUNCHER_FILE.to_owned(),
        "accelerate_config" if value.contains('.') => LAUNCHER_FILE.to_owned(),
        _ => key,
    };
    Some((key, name, value))
}

/// Returns the name of an argument or variable in reports.
fn shown(argument: &str) -> String {
    if argument.starts_with('$') { argument.to_owned() } else { format!("--{}", argument.replace('-', "_")) }
}

/// True for the program after the arguments of a launcher.
fn is_program(word: &str) -> bool {
    std::path::Path::new(word).extension().is_some_and(|end| end.eq_ignore_ascii_case("py"))
}

/// Returns the key of an argument of `accelerate launch`, with the value that it stands for; `None` for other arguments.
fn launcher_key(key: &str) -> Option<(String, Option<&'static str>)> {
    let kinds = [("use_deepspeed", "DEEPSPEED"), ("use_fsdp", "FSDP"), ("multi_gpu", "MULTI_GPU")];
    if let Some((_, kind)) = kinds.into_iter().find(|(name, _)| *name == key) {
        return Some(("distributed_type".to_owned(), Some(kind)));
    }
    let own = ACCELERATE.into_iter().find(|(name, _)| *name == key).map(|(_, key)| key.to_owned());
    let section = |section: &str| Some(format!("{section}.{key}"));
    let is_of_trainer = ["fsdp_config", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap"].contains(&key);
    let key = own.or_else(|| match key {
        _ if key.starts_with("fsdp_") && !is_of_trainer => section("fsdp_config"),
        _ if key.starts_with("parallelism_config_") => section("parallelism_config"),
        _ if key.starts_with("zero3_") || key.starts_with("deepspeed_multinode") => section("deepspeed_config"),
        _ if ACCELERATE_ONLY.iter().any(|start| key.starts_with(start)) => Some(key.to_owned()),
        _ => None,
    });
    key.map(|key| (format!("{}{key}", super::ACCELERATE), None))
}

/// True if a script has two words, one after the other.
fn mentions(text: &str, first: &str, second: &str) -> bool {
    commands(text).iter().any(|words| words.windows(2).any(|pair| base_name(&pair[0]) == first && pair[1] == second))
}

/// Returns the first known program in a script.
fn program(text: &str) -> Option<Program> {
    commands(text).iter().find_map(|words| words.iter().enumerate().find_map(|(at, word)| of_word(words, at, word)))
}

/// Returns the kind of training that the name of a script states, for example `scripts/run_orpo.py`.
fn script_kind(text: &str) -> Option<&'static str> {
    const KINDS: [&str; 7] = ["dpo", "orpo", "cpo", "kto", "grpo", "rloo", "ppo"];
    let commands = commands(text);
    let mut scripts = commands.iter().flatten().filter(|word| is_program(word)).map(|word| base_name(word));
    scripts.find_map(|script| {
        let mut words = script.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.find_map(|word| KINDS.into_iter().find(|kind| *kind == word))
    })
}

fn of_word(words: &[String], at: usize, word: &str) -> Option<Program> {
    let next = words.get(at + 1).map(String::as_str).filter(|next| TRAINING.contains(next));
    let of = |format, kind: &str, is_megatron| Some(Program { format, kind: kind.to_owned(), is_megatron });
    match (base_name(word), next) {
        ("llamafactory-cli" | "lmf", Some(_)) => return of(ConfigFormat::LlamaFactory, "", false),
        ("swift", Some(kind)) => return of(ConfigFormat::Swift, kind, false),
        ("megatron", Some(kind)) => return of(ConfigFormat::Swift, kind, true),
        ("trl", Some(kind)) => return of(ConfigFormat::Trl, kind, false),
        ("axolotl", Some("train")) => return of(ConfigFormat::Axolotl, "", false),
        _ => {}
    }
    // A module or a file of the program.
    let path = word.replace('/', ".");
    let module = path.strip_suffix(".py").unwrap_or(&path);
    let kind = module.rsplit('.').next().unwrap_or_default();
    if path.contains("llamafactory.cli") || path.contains("llamafactory.launcher") {
        of(ConfigFormat::LlamaFactory, "", false)
    } else if path.contains("openrlhf.cli.train_") {
        of(ConfigFormat::OpenRlhf, kind.trim_start_matches("train_"), false)
    } else if path.contains("swift.cli._megatron.") {
        of(ConfigFormat::Swift, kind, true)
    } else if path.contains("swift.cli.") && TRAINING.contains(&kind) {
        of(ConfigFormat::Swift, kind, false)
    } else if path.contains("axolotl.cli.train") {
        of(ConfigFormat::Axolotl, "", false)
    } else if (path.contains("trl.scripts.") || path.contains("examples.scripts.")) && TRAINING.contains(&kind) {
        of(ConfigFormat::Trl, kind, false)
    } else {
        None
    }
}

fn base_name(path: &str) -> &str {
    path.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the job file after the subcommand of LLaMA-Factory or axolotl, and the keys `name=value` after it.
fn job_file(keys: &Keys, text: &str) -> (Option<String>, Vec<(String, String)>) {
    for words in commands(text) {
        let found = words.iter().enumerate().find_map(|(at, word)| {
            let program = of_word(&words, at, word)?;
            let is_file = matches!(program.format, ConfigFormat::LlamaFactory | ConfigFormat::Axolotl);
            is_file.then_some(at)
        });
        let Some(at) = found else { continue };
        let is_end = |word: &&String| matches!(word.as_str(), "|" | "||" | "&&" | ";" | ">" | ">>" | "&");
        let after = words[at + 1..].iter().take_while(|word| !is_end(word));
        let is_file = |word: &&String| {
            let name = word.to_lowercase();
            !name.starts_with("--") && [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
        };
        let file = after.clone().find(is_file).map(|word| base_name(word).to_owned());
        // A file may also be the value of an argument, for example of `--deepspeed`.
        let file = file.filter(|name| {
            words.get(at + 2).or(words.get(at + 1)).is_some_and(|word| {
                base_name(word) == name || words.get(at + 1).is_some_and(|word| base_name(word) == name)
            })
        });
        let value = |text: &str| {
            let text = text.trim_matches(['"', '\'']);
            let name = text.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
            name.and_then(|name| keys.peek(&format!("${name}"))).unwrap_or(text).to_owned()
        };
        let overrides = after.filter_map(|word| {
            let (key, text) = word.split_once('=')?;
            let is_key = key.starts_with(|letter: char| letter.is_ascii_lowercase())
                && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.');
            is_key.then(|| (key.to_owned(), value(text)))
        });
        return (file, overrides.collect());
    }
    (None, Vec::new())
}

/// Adds the command lines of a job to the keys of its files, which they replace, and reports files that are named but
/// not given. `names` are the names of all files.
pub(super) fn apply(
    keys: &mut Keys,
    commands: Vec<Keys>,
    (has_job_file, names): (bool, &[&str]),
) -> Result<(), JobConfigError> {
    for command in commands {
        keys.override_with(command)?;
    }
    let is_given = |file: &str| names.iter().any(|name| base_name(name) == file);
    for (key, what, has_file) in [
        (JOB_FILE, "job file", has_job_file),
        (LAUNCHER_FILE, "file of accelerate", keys.has_section(super::ACCELERATE)),
    ] {
        let Some(file) = keys.peek(key).map(|path| base_name(path).to_owned()) else { continue };
        keys.ignore(|other| other == key);
        if is_given(&file) || (has_file && key == JOB_FILE) {
            continue;
        }
        let has_model = ["base_model", "model_name_or_path", "model"].iter().any(|name| keys.has(name));
        if key == JOB_FILE && !has_model {
            let detail = format!("the command names the {what} {file}, which is not given; add the file");
            return Err(JobConfigError::Value { key: "command".to_owned(), detail });
        }
        let is_named = key == LAUNCHER_FILE && programs::sharding_of(&file, "", keys);
        let rest = if is_named { "Its name states the sharding. Add the file." } else { "Its settings are not read." };
        keys.assume(format!("The command names the {what} {file}, which is not given. {rest}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_words() {
        for (text, format, kind) in [
            ("llamafactory-cli train x.yaml", ConfigFormat::LlamaFactory, ""),
            ("A=1 NPROC_PER_NODE=8 swift sft --model x", ConfigFormat::Swift, "sft"),
            ("megatron pt --load x", ConfigFormat::Swift, "pt"),
            ("torchrun /x/swift/cli/rlhf.py --rlhf_type dpo", ConfigFormat::Swift, "rlhf"),
            ("trl dpo --x", ConfigFormat::Trl, "dpo"),
            ("accelerate launch examples/scripts/sft.py --x", ConfigFormat::Trl, "sft"),
            ("deepspeed --module openrlhf.cli.train_sft --x", ConfigFormat::OpenRlhf, "sft"),
            ("ray job submit -- python3 -m openrlhf.cli.train_ppo_ray \\\n --x", ConfigFormat::OpenRlhf, "ppo_ray"),
            ("accelerate launch -m axolotl.cli.train x.yaml", ConfigFormat::Axolotl, ""),
        ] {
            let program = program(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((program.format, program.kind.as_str()), (format, kind), "{text}");
        }
        for text in ["# trl sft", "swift build", "pip install trl", "python trl.py sft", "megatron/training.py"] {
            assert_eq!(program(text), None, "{text}");
        }
    }

    #[test]
    fn visible_devices_are_counted() {
        let included = launcher::included;
        assert_eq!((included("0,1,2,3"), included("localhost:0,1@other:2"), included("")), ((1, 4), (2, 3), (1, 0)));
    }
}
