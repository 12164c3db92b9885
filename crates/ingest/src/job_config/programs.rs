//! Command lines of programs with a job file: torchtune, litgpt, MaxText, Megatron-Bridge, `NeMo`, llm-foundry, OLMo,
//! Levanter and nanotron. Their arguments are keys of the job file, as `key=value` or as `--key value`.

use super::arguments::{commands, words};
use super::keys::Keys;
use super::{ConfigFormat, JobConfigError};

/// Key of a command line; its value is the recipe or the kind of training. Reports leave it out.
pub(super) const COMMAND: &str = "#command";
/// Key of the job file that a command names.
pub(super) const JOB_FILE: &str = "#job_file";

/// Arguments of launchers, which have names of their own.
const LAUNCHER: [&str; 5] = ["nnodes", "nproc-per-node", "num-nodes", "num-gpus", "world-size"];

/// Kinds of training of litgpt.
const LITGPT: [&str; 7] = [
    "pretrain",
    "finetune",
    "finetune_full",
    "finetune_lora",
    "finetune_adapter",
    "finetune_adapter_v2",
    "finetune_full_sft",
];

/// A program in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    format: ConfigFormat,
    /// Recipe or kind of training.
    kind: String,
    /// Index of the word after the program.
    next: usize,
}

/// Returns the program that a command runs.
fn program(words: &[String]) -> Option<Program> {
    words.iter().enumerate().find_map(|(at, word)| {
        let of = |format, kind: &str, next| Some(Program { format, kind: kind.to_owned(), next });
        let next = words.get(at + 1).map(String::as_str).unwrap_or_default();
        match base_name(word) {
            "tune" if next == "run" => return of(ConfigFormat::Torchtune, recipe(&words[at + 2..]), at + 2),
            "litgpt" if LITGPT.contains(&next) => {
                let method = words.get(at + 2).map(String::as_str).unwrap_or_default();
                // Older versions: `litgpt finetune lora`.
                return match (next, method) {
                    ("finetune", "lora" | "full" | "adapter" | "adapter_v2") => {
                        of(ConfigFormat::Litgpt, &format!("finetune_{method}"), at + 3)
                    }
                    ("finetune", _) => of(ConfigFormat::Litgpt, "finetune_lora", at + 2),
                    _ => of(ConfigFormat::Litgpt, next, at + 2),
                };
            }
            "composer" => {
                let is_job =
                    words[at..].iter().any(|word| is_file(word)) && words[at..].iter().any(|word| is_train(word));
                return if is_job { of(ConfigFormat::LlmFoundry, "", at + 1) } else { None };
            }
            _ => {}
        }
        let path = word.replace('/', ".").to_lowercase();
        let is = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        if is(&["maxtext.train", "maxtext.sft"]) {
            of(ConfigFormat::Maxtext, "", at + 1)
        } else if is(&NEMO_SCRIPTS) {
            let is_llama = words[at..].iter().any(|word| word.contains("megatron_llama"));
            of(ConfigFormat::Nemo, if is_llama { LLAMA } else { "" }, at + 1)
        } else if base_name(word) == "train.py" && words[at + 1..].iter().any(|word| is_file(word) && is_olmo(word)) {
            of(ConfigFormat::Olmo, "", at + 1)
        } else if is(&["levanter.main.train"]) {
            of(ConfigFormat::Levanter, "", at + 1)
        } else if base_name(word) == "run_train.py" && words.iter().any(|word| word.starts_with("--config-file")) {
            of(ConfigFormat::Nanotron, "", at + 1)
        } else if words.iter().any(|word| is_bridge_key(word)) && is_python(word) {
            of(ConfigFormat::MegatronBridge, "", at + 1)
        } else {
            None
        }
    })
}

/// Training scripts of NeMo 1.
const NEMO_SCRIPTS: [&str; 4] = [
    "megatron_gpt_pretraining.py",
    "megatron_llama_pretraining.py",
    "megatron_gpt_finetuning.py",
    "megatron_gpt_sft.py",
];
/// Kind of a script of NeMo 1 with the configuration of Llama.
const LLAMA: &str = "llama";

/// Adds the settings of `megatron_llama_config.yaml` of NeMo 1 that the command does not replace.
fn llama(keys: &mut Keys) {
    let defaults = [
        ("model.activation", "fast-swiglu"),
        ("model.normalization", "rmsnorm"),
        ("model.bias", "false"),
        ("model.share_embeddings_and_output_weights", "false"),
        ("model.position_embedding_type", "rope"),
    ];
    for (key, value) in defaults {
        if !keys.has(key) {
            keys.derive(key, value, "");
        }
    }
    keys.assume("The layers are those of NeMo's configuration of Llama: gated activation, RMS norms, no biases.");
}

fn is_train(word: &str) -> bool {
    matches!(base_name(word), "train.py" | "train_llm.py") || word == "llmfoundry"
}

fn is_olmo(file: &str) -> bool {
    file.to_lowercase().contains("olmo")
}

fn is_python(word: &str) -> bool {
    std::path::Path::new(word).extension().is_some_and(|end| end == "py")
}

/// True for an override of a recipe of Megatron-Bridge.
fn is_bridge_key(word: &str) -> bool {
    let starts = [
        "train.micro_batch_size=",
        "train.global_batch_size=",
        "train.train_iters=",
        "model.tensor_model_parallel_size=",
    ];
    let word = word.trim_start_matches('+');
    starts.iter().any(|start| word.starts_with(start))
}

/// Returns the recipe after the arguments of torchrun.
fn recipe(words: &[String]) -> &str {
    let mut is_value = false;
    for word in words {
        if word.starts_with('-') {
            is_value = !word.contains('=') && word != "--standalone";
        } else if is_value {
            is_value = false;
        } else {
            return word;
        }
    }
    ""
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

fn is_file(word: &str) -> bool {
    let name = word.to_lowercase();
    !name.starts_with('-') && !name.contains('=') && [".yaml", ".yml"].iter().any(|end| name.ends_with(end))
}

/// Returns the words of a command with variables replaced that contain the file of a program: `MaxText/$EXECUTABLE`.
fn with_programs(words: &[String], arguments: &Keys) -> Vec<String> {
    let replaced = |word: &String| {
        let (before, name) = word.split_once('$')?;
        let value = arguments.peek(&format!("${}", name.trim_matches(['{', '}'])))?;
        let file = value.split_whitespace().next()?;
        is_python(file).then(|| format!("{before}{file}"))
    };
    words.iter().map(|word| replaced(word).unwrap_or_else(|| word.clone())).collect()
}

/// Returns the format of a command line and its keys; `None` if it runs none of the programs.
pub(super) fn recognise(arguments: &Keys, text: &str) -> Result<Option<(ConfigFormat, Keys)>, JobConfigError> {
    let commands = commands(text);
    let found = commands.iter().find_map(|words| Some((words.clone(), program(words)?)));
    let found = found.or_else(|| {
        commands.iter().find_map(|words| {
            let words = with_programs(words, arguments);
            program(&words).map(|program| (words, program))
        })
    });
    let Some((words, program)) = found else { return Ok(None) };
    let format = program.format;
    let is_dashed = matches!(format, ConfigFormat::Litgpt | ConfigFormat::Levanter | ConfigFormat::Olmo);
    let mut keys = arguments.clone().converted(|argument, value| setting(argument, value, is_dashed));
    let value = |text: &str| {
        let name = text.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
        name.and_then(|name| arguments.peek(&format!("${name}"))).unwrap_or(text).to_owned()
    };
    let rest = || words[program.next..].iter().take_while(|word| !is_end(word));
    if !is_dashed {
        for (key, text) in rest().filter_map(|word| overridden(word)) {
            if text != "null" && text != "None" {
                keys.push(key.to_owned(), value(text))?;
            }
        }
    }
    let first = words.get(program.next).filter(|word| !word.starts_with('-') && !word.contains('='));
    if format == ConfigFormat::LlmFoundry
        && let Some(number) = words.windows(2).find(|pair| pair[0] == "-n" || pair[0] == "--nproc").map(|pair| &pair[1])
        && number.parse::<u32>().is_ok()
        && !keys.has("nproc-per-node")
    {
        keys.translate("nproc-per-node", number, ("-n", number));
    }
    if let (ConfigFormat::Litgpt, Some(model)) = (format, first) {
        let name = if program.kind == "pretrain" { "model_name" } else { "checkpoint_dir" };
        keys.push(name.to_owned(), value(model))?;
    }
    let names = ["config", "config-path", "config-file", "config-name", "recipe"];
    let named = names.iter().find_map(|name| {
        let file = arguments.peek(name)?.split_whitespace().next()?;
        // The folder of a configuration of Hydra.
        let is_folder = *name == "config-path" && !is_file(file);
        (!is_folder).then_some((*name, file))
    });
    let named = named.map(|(name, file)| (name, value(file))).or_else(|| {
        let file = rest().find(|word| is_file(word)).filter(|_| format != ConfigFormat::Torchtune)?;
        Some(("", value(file)))
    });
    match named {
        Some(("recipe", recipe)) => keys.translate("recipe", &recipe, ("--recipe", &recipe)),
        Some((_, file)) => keys.derive(JOB_FILE, &file, JOB_FILE),
        None => {}
    }
    if program.kind == LLAMA {
        llama(&mut keys);
    }
    keys.derive(COMMAND, &program.kind, COMMAND);
    Ok(Some((format, keys)))
}

fn is_end(word: &str) -> bool {
    matches!(word, "|" | "||" | "&&" | ";" | ">" | ">>" | "&" | "2>&1")
}

/// Returns key and value of an override.
fn overridden(word: &str) -> Option<(&str, &str)> {
    let (key, text) = word.trim_start_matches('+').split_once('=')?;
    let is_key = key.starts_with(|letter: char| letter.is_ascii_lowercase())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.');
    is_key.then(|| (key, text.trim_matches(['"', '\''])))
}

/// Returns key, name in reports and value of an argument; `None` for one without effect.
fn setting(argument: &str, value: &str, is_dashed: bool) -> Option<(String, String, String)> {
    let same = |value: &str| Some((argument.to_owned(), argument.to_owned(), value.to_owned()));
    if argument.starts_with(['$', '#']) {
        return same(value);
    }
    let key = argument.replace('-', "_");
    let name = format!("--{key}");
    let value = words(value);
    let first = value.split_whitespace().next().unwrap_or_default();
    let is_launched = LAUNCHER.contains(&argument) && !(is_dashed && argument == "num-nodes");
    if is_launched {
        let is_number = first.contains('$') || first.parse::<u32>().is_ok();
        return is_number.then(|| (argument.to_owned(), name, first.to_owned()));
    }
    if !is_dashed || matches!(argument, "config" | "config-path") {
        return None;
    }
    let value = if value.is_empty() { "true" } else { first };
    Some((key, name, value.to_owned()))
}

/// Configurations of torchtune are named by model, size and kind: `llama3_1/70B_lora`.
fn component(file: &str) -> Option<String> {
    let (family, rest) = file.trim_end_matches(".yaml").rsplit_once('/')?;
    let family = base_name(family);
    let rest = rest.to_lowercase();
    let (size, kind) = rest.split_once('_')?;
    // A size such as `0_5B` has two parts.
    let (size, kind) = match kind.split_once('_') {
        Some((second, kind)) if size.parse::<u32>().is_ok() => (format!("{size}_{second}"), kind),
        _ => (size.to_owned(), kind),
    };
    let start = if kind.starts_with("qlora") {
        "qlora_"
    } else if kind.starts_with("lora") || kind.starts_with("dora") {
        "lora_"
    } else {
        ""
    };
    let is_size = size.ends_with('b') && size.starts_with(|letter: char| letter.is_ascii_digit());
    is_size.then(|| format!("torchtune.models.{family}.{start}{family}_{size}"))
}

/// Adds the command lines of a job to the keys of its files, which they replace. `names` are the names of all files.
pub(super) fn apply(
    format: ConfigFormat,
    keys: &mut Keys,
    commands: Vec<Keys>,
    (has_file, names): (bool, &[&str]),
) -> Result<(), JobConfigError> {
    for command in commands {
        keys.override_with(command)?;
    }
    let file = keys.peek(JOB_FILE).map(str::to_owned);
    keys.ignore(|key| key == JOB_FILE);
    let Some(file) = file else { return Ok(()) };
    let name = base_name(&file).to_owned();
    if has_file || names.iter().any(|given| base_name(given) == name) {
        return Ok(());
    }
    if format == ConfigFormat::Maxtext {
        // base.yml has the defaults.
        if name != "base.yml" {
            keys.assume(format!(
                "The command names the job file {name}, which is not given. Its settings are not read."
            ));
        }
        return Ok(());
    }
    let built_in = (format == ConfigFormat::Torchtune).then(|| component(&file)).flatten();
    if let Some(component) = built_in.filter(|_| !keys.has("model._component_")) {
        keys.translate("model._component_", &component, ("--config", &file));
        keys.assume(format!(
            "The configuration {file} is not given. Its model is read by name. Settings that the command does not state \
             are not those of the file: 1 sequence, no accumulation and no recomputation are read. Add the file (tune cp \
             {file} .)."
        ));
        return Ok(());
    }
    let models = [
        "model.name",
        "model_name",
        "checkpoint_dir",
        "model._component_",
        "model.num_layers",
        "model.hidden_dim",
        "recipe",
    ];
    if models.iter().any(|name| keys.has(name)) {
        keys.assume(format!("The command names the job file {name}, which is not given. Its settings are not read."));
        return Ok(());
    }
    let detail = format!("the command names the job file {name}, which is not given; add the file");
    Err(JobConfigError::Value { key: "command".to_owned(), detail })
}
