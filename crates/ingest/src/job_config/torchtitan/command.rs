//! Command lines of torchtitan: arguments `--section.key value` in a script, alone or next to the text of a job file.
//!
//! Values of arguments replace those of the job file. As in torchtitan, `--section.flag` is true and `--section.no-flag`
//! is false, and hyphens and underscores are equal.

use super::configurations;
use crate::job_config::arguments::{commands, words};
use crate::job_config::keys::Keys;
use crate::job_config::{JobConfigError, document, launcher};

/// Key of a command line without the text of a job file. Reports leave it out.
const COMMAND: &str = "#command";
const OPTION: &str = "activation_checkpoint.selective_ac_option";
const CONFIG_FILE: &str = "job.config_file";

/// Arguments of the launcher and variables that state devices, the job file, or a configuration in torchtitan's code.
const LAUNCHER: [&str; 6] = ["nnodes", "nproc-per-node", "$NGPU", "$NNODES", "$GPUS_PER_NODE", "$NPROC_PER_NODE"];
/// Arguments and variables that state the job file.
const FILES: [&str; 3] = ["config", "$CONFIG_FILE", "$CONFIG"];

/// Name of an argument that only torchtitan has; `None` if there is none.
pub(in crate::job_config) fn argument(keys: &Keys) -> Option<String> {
    let sections = ["training.", "parallelism.", "activation-checkpoint.", "job.config-file", "model.flavor"];
    let own = sections.into_iter().find_map(|section| keys.first_below(section));
    own.or_else(|| keys.peek("config").is_some_and(|path| path.contains(".toml")).then(|| "config".to_owned()))
}

/// True if arguments are those of torchtitan. `text` is the script.
pub(in crate::job_config) fn is_command(keys: &Keys, text: &str) -> bool {
    let sections = ["training.", "parallelism.", "activation-checkpoint."];
    let is_launched = text.contains("torchtitan") || text.contains("run_train.sh");
    let names_file = keys.peek("$CONFIG_FILE").is_some_and(|path| path.trim().to_lowercase().ends_with("toml"));
    sections.iter().any(|section| keys.has_section(section))
        || keys.has("job.config-file")
        || (keys.has("model.name") && keys.has("model.flavor"))
        || (is_launched && (names_file || keys.has("$CONFIG") || keys.has("module")))
}

/// Reads the arguments of a script, over the job file in its text, if there is one.
pub(in crate::job_config) fn read(arguments: Keys, text: &str) -> Result<Keys, JobConfigError> {
    let mut command = arguments.converted(setting);
    subcommands(&mut command, text);
    configurations::add(&mut command);
    let Some(job_file) = job_file(text) else {
        command.derive(COMMAND, "", COMMAND);
        return Ok(command);
    };
    let mut keys = document::toml(&job_file)?;
    keys.override_with(command)?;
    Ok(keys)
}

/// Reads the subcommands of tyro, `section:kind`, which select the kind of a section. Only those of recomputation change a plan.
fn subcommands(command: &mut Keys, text: &str) {
    let commands = commands(text);
    for word in commands.iter().flatten() {
        let Some((section, kind)) = word.split_once(':') else { continue };
        let is_name = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_lowercase())
                && name.chars().all(|letter| letter.is_ascii_lowercase() || matches!(letter, '-' | '_' | '.'))
        };
        if !is_name(section) || !is_name(kind) {
            continue;
        }
        if section.replace('-', "_") != "activation_checkpoint" {
            command.assume(format!("The subcommand {word} is not read."));
            continue;
        }
        match ["full", "selective", "none"].into_iter().find(|mode| kind.contains(mode)) {
            Some(mode) => {
                command.translate("activation_checkpoint.mode", mode, (section, kind));
                // Versions with subcommands select by operator.
                if mode == "selective" && !command.has(OPTION) {
                    command.derive(OPTION, "op", "");
                }
            }
            None => command.not_modelled(format!("The recomputation of the subcommand {word} is not applied.")),
        }
    }
}

/// Returns key, name in reports and value of an argument; `None` for arguments without effect.
fn setting(argument: &str, value: &str) -> Option<(String, String, String)> {
    let same = || Some((argument.to_owned(), argument.to_owned(), value.to_owned()));
    if launcher::is_directive(argument) || FILES.contains(&argument) {
        return same();
    }
    if LAUNCHER.contains(&argument) {
        let word = value.split_whitespace().next().unwrap_or_default();
        // torchrun also takes ranges of nodes, and "gpu" or "auto" devices.
        return if word.contains('$') || word.parse::<u32>().is_ok() { same() } else { None };
    }
    if argument.starts_with(['$', '#']) || argument.starts_with("deepspeed.") || !argument.contains('.') {
        return None;
    }
    let path = argument.replace('-', "_");
    let (name, value) = (format!("--{path}"), words(value));
    match path.rsplit_once(".no_") {
        Some((section, flag)) if value.is_empty() => Some((format!("{section}.{flag}"), name, "false".to_owned())),
        _ => Some((path, name, value)),
    }
}

/// Returns the sections of a job file in a text that also has commands; `None` if there are none.
fn job_file(text: &str) -> Option<String> {
    let (mut file, mut is_inside, mut depth) = (String::new(), false, 0_i32);
    for line in text.lines() {
        let content = line.trim();
        if depth <= 0 {
            is_inside = is_header(content) || (is_inside && is_entry(content));
            depth = 0;
        }
        if is_inside {
            file.push_str(line);
            // A list can have several lines.
            if !is_header(content) && !content.starts_with('#') {
                depth += brackets(content);
            }
        }
        file.push('\n');
    }
    (!file.trim().is_empty()).then_some(file)
}

/// True for a line such as `[training]`.
fn is_header(line: &str) -> bool {
    let line = line.split('#').next().unwrap_or_default().trim_end();
    let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().trim();
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-'))
}

/// True for an empty line, a comment and `key = value`. Variables of a shell have capital letters.
fn is_entry(line: &str) -> bool {
    let is_key = |key: &str| {
        let key = key.trim_end();
        let is_letter =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-.\"".contains(letter);
        !key.is_empty() && !key.starts_with('-') && key.chars().all(is_letter)
    };
    line.is_empty() || line.starts_with('#') || line.split_once('=').is_some_and(|(key, _)| is_key(key))
}

fn brackets(line: &str) -> i32 {
    line.chars().fold(0, |depth, letter| match letter {
        '[' => depth + 1,
        ']' => depth - 1,
        _ => depth,
    })
}

/// Joins the files of a job: job files, then the arguments of command lines. `names` are the names of all files.
pub(in crate::job_config) fn join(jobs: Vec<Keys>, names: &[&str]) -> Result<Keys, JobConfigError> {
    let (commands, files): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|keys| keys.has(COMMAND));
    let has_file = !files.is_empty();
    let mut files = files.into_iter();
    let mut keys = files.next().unwrap_or_default();
    for other in files {
        keys.adopt_file("", other)?;
    }
    for command in commands {
        keys.override_with(command)?;
    }
    report_config_file(&mut keys, has_file, names)?;
    Ok(keys)
}

/// Reports the job file that a command line names and that is not among the files.
fn report_config_file(keys: &mut Keys, has_file: bool, names: &[&str]) -> Result<(), JobConfigError> {
    let variable = "$CONFIG_FILE";
    let stated = [(CONFIG_FILE, "--job.config_file"), (variable, variable)]
        .into_iter()
        .find_map(|(key, name)| Some((name, base_name(keys.peek(key)?.split_whitespace().next()?).to_owned())));
    let in_code = configurations::named(keys).filter(|_| !has_file && !keys.has("model.name"));
    if let Some((_, argument, name)) = in_code {
        return Err(configurations::unknown(argument, &name));
    }
    keys.ignore(|key| matches!(key, "config" | "$CONFIG"));
    let Some((argument, file)) = stated else { return Ok(()) };
    if names.iter().any(|name| base_name(name) == file) {
        return Ok(());
    }
    let is_open = file.contains('$');
    let named = if is_open { "the job file".to_owned() } else { file };
    match (has_file, keys.has("model.name")) {
        (true, _) if is_open => {}
        (true, _) => keys.assume(format!("The given job file is read as {named}, which {argument} names.")),
        (false, true) => keys.assume(format!(
            "{argument} names {named}, which is not given. Settings that the command does not state have torchtitan's defaults."
        )),
        (false, false) => {
            let detail = format!("the command names {named}, which is not given; add the file");
            return Err(JobConfigError::Value { key: argument.to_owned(), detail });
        }
    }
    Ok(())
}

fn base_name(path: &str) -> &str {
    path.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default()
}
