//! Places settings among the arguments of a command line: in a script, in a list, or as YAML with dashes.

use api::check::{Edit, EditAction};
use regex::Regex;
use serde_json::Value;

use super::edit;
use super::quotes::{Parts, is_in_string, quoted, words, words_end};
use crate::checks::syntax::word;

/// Arguments after which new ones are added. Every job has one of them.
const ANCHORS: [&str; 17] = [
    "tensor-model-parallel-size",
    "pipeline-model-parallel-size",
    "micro-batch-size",
    "num-layers",
    "parallelism.tensor_parallel_degree",
    "training.local_batch_size",
    "training.seq_len",
    "model.flavor",
    "job.config_file",
    "per_device_train_batch_size",
    "micro_train_batch_size",
    "train_batch_size",
    "model_name_or_path",
    "pretrain",
    "model",
    "load",
    "config",
];

/// Arguments with several words.
const LISTS: [&str; 1] = ["recompute-modules"];

/// Returns the value of an argument; empty for a flag.
pub(super) fn value<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    find(file, name).map(|found| found.value.map_or("", |(_, value)| value))
}

/// Returns the edit that gives an argument a value, or `None` if it cannot be placed.
pub(super) fn place(file: &str, name: &str, value: &Value) -> Option<Edit> {
    match value {
        Value::Null => removed(file, name, false),
        Value::Bool(false) => removed(file, name, true),
        Value::Bool(true) => argument(file, name, None),
        value => argument(file, name, Some(&word(value))),
    }
}

/// Notation of an argument and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `--name value` or `--name=value`.
    Shell,
    /// `--name: value` on a line.
    Yaml,
    /// `"--name", "value",`.
    List,
}

/// An argument in the text. Offsets are bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found<'a> {
    /// Start of the name, with its dashes.
    start: usize,
    /// End of the name.
    name_end: usize,
    /// Value without quotes; `None` for a flag.
    value: Option<(usize, &'a str)>,
    notation: Notation,
}

impl Found<'_> {
    fn end(&self) -> usize {
        self.value.map_or(self.name_end, |(start, value)| start + value.len())
    }

    fn parts(&self) -> Parts {
        let value = self.value.map(|(start, value)| (start, start + value.len()));
        Parts { start: self.start, name_end: self.name_end, value }
    }
}

/// Finds an argument outside comments. Of several, the last one counts, as in argparse.
fn find<'a>(file: &'a str, name: &str) -> Option<Found<'a>> {
    let after = r#"(?P<list>["']?[ \t]*,\s*["']?)|(?P<pair>["']?[ \t]*[:=][ \t]*["']?)|(?P<space>["']?[ \t]+["']?)"#;
    let value = r#"(?P<value>[^\s\\,"'#\])])"#;
    let pattern = Regex::new(&format!(r"--{}(?:(?:{after}){value})?", pattern_of(name))).expect("a fixed pattern");
    let found = pattern.captures_iter(file).filter_map(|found| {
        let whole = found.get(0)?;
        let name_end = whole.start() + 2 + name.len();
        let line = &file[file[..whole.start()].rfind('\n').map_or(0, |at| at + 1)..whole.start()];
        let is_comment = line.trim_start().starts_with('#');
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
        let is_longer = file[..whole.start()].ends_with(is_word) || file[name_end..].starts_with(is_word);
        if is_comment || is_longer {
            return None;
        }
        // All arguments of a script and the items of an array are no value.
        let is_next = |value: &regex::Match<'_>| {
            let word = shell_word(&file[value.start()..]);
            let is_list =
                ["$@", "$*", "${@", "${*"].iter().any(|start| word.starts_with(start)) || word.contains("[@]");
            !word.starts_with("--") && !is_list
        };
        // The quote after a name ends a longer word, unless the name is a word in quotes.
        let is_apart = found.name("space").is_none_or(|space| {
            !space.as_str().starts_with(['"', '\''])
                || quoted(file, whole.start(), name_end).is_some_and(|it| it.is_word)
        });
        let value = found.name("value").filter(|value| is_next(value) && is_apart);
        let is_pair = found.name("pair").is_some_and(|pair| pair.as_str().contains(':'));
        let notation = match value {
            Some(_) if is_pair => Notation::Yaml,
            Some(_) if found.name("list").is_some() => Notation::List,
            _ => Notation::Shell,
        };
        let value = value.map(|value| (value.start(), shell_word(&file[value.start()..])));
        Some(Found { start: whole.start(), name_end, value, notation })
    });
    found.last()
}

/// Pattern of a name. Underscores and hyphens are equal, as in torchtitan and transformers.
fn pattern_of(name: &str) -> String {
    name.split(['-', '_']).map(regex::escape).collect::<Vec<_>>().join("[-_]")
}

/// Words of a switch in the parser of transformers.
const SWITCH: [&str; 2] = ["True", "False"];

/// Returns the word at the start of a text, without a closing quote. Expressions in `$(( .. ))`, `$( .. )` and `${ .. }`
/// are part of it, with their blanks and quotes.
fn shell_word(text: &str) -> &str {
    let (mut open, mut last) = (Vec::new(), ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '\n' => return &text[..at],
            '(' if last == '$' || open.last() == Some(&')') => open.push(')'),
            '{' if last == '$' => open.push('}'),
            _ if open.last() == Some(&letter) => {
                open.pop();
            }
            _ if open.is_empty() && (letter.is_whitespace() || "\\,\"'#])&|;".contains(letter)) => return &text[..at],
            _ => {}
        }
        last = letter;
    }
    text
}

/// Arguments, and keys of a document in the text with the same meaning.
const SAME: [(&str, &str); 3] = [
    ("zero-stage", "stage"),
    ("micro-batch-size", "train_micro_batch_size_per_gpu"),
    ("global-batch-size", "train_batch_size"),
];

/// Counts the uses of a variable as the value of an argument, and of a key with the same meaning.
fn uses_as_value(file: &str, variable: &str, name: &str) -> usize {
    let same = SAME.into_iter().find(|(argument, key)| *argument == name || *key == name);
    let (argument, key) = same.unwrap_or((name, name));
    let (argument, key) = (pattern_of(argument), regex::escape(key));
    let pattern =
        format!(r#"(?:--{argument}[ \t]*[ \t=:][ \t]*["']?|\\?"{key}\\?"\s*:\s*)\$(?:{variable}\b|\{{{variable}\}})"#);
    let pattern = Regex::new(&pattern).expect("a fixed pattern");
    pattern.find_iter(file).count()
}

/// Returns the value of a shell variable, if `value` is a reference to one that the script assigns once and that has no
/// other use than the value of `argument`. A variable with other uses may be one of the launcher.
pub(super) fn assignment<'a>(file: &'a str, value: &str, argument: &str) -> Option<Assignment<'a>> {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| value.strip_prefix('$'))?;
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return None;
    }
    let pattern = format!(r#"(?m)^[ \t]*(?:export[ \t]+)?{name}=["']?(?P<value>[^\s"'#;])"#);
    let pattern = Regex::new(&pattern).expect("a fixed pattern");
    let mut assignments = pattern.captures_iter(file).filter_map(|found| found.name("value"));
    let first = assignments.next()?;
    let uses = Regex::new(&format!(r"\b{name}\b")).expect("a fixed pattern");
    let code = |line: &&str| !line.trim_start().starts_with('#');
    // The assignment, and the values.
    let known = 1 + uses_as_value(file, name, argument).max(1);
    let is_shared = file.lines().filter(code).flat_map(|line| uses.find_iter(line)).nth(known).is_some();
    let is_single = assignments.next().is_none() && !is_shared;
    is_single.then(|| Assignment {
        name: name.to_owned(),
        start: first.start(),
        value: shell_word(&file[first.start()..]),
    })
}

/// Assignment of a shell variable.
pub(super) struct Assignment<'a> {
    pub(super) name: String,
    /// Start of the value, without a quote.
    pub(super) start: usize,
    pub(super) value: &'a str,
}

fn argument(file: &str, argument: &str, value: Option<&str>) -> Option<Edit> {
    let name = argument;
    let setting = value.map_or_else(|| format!("--{name}"), |value| format!("--{name} {value}"));
    let edit = |action, start, end, text: String| edit(file, action, &setting, (start, end), text);
    if let Some(found) = find(file, name) {
        // Further words of a list are not found.
        if LISTS.contains(&name) {
            return None;
        }
        let is_bare = found.notation == Notation::Shell
            && found.value.is_some_and(|(start, old)| quoted(file, start, start + old.len()).is_none())
            && !is_in_string(file, found.start);
        let text = match (value, found.notation) {
            (Some(value), _) if is_bare && value.contains(is_special) => format!("'{value}'"),
            (Some(value), _) => value.to_owned(),
            (None, Notation::Yaml) => "true".to_owned(),
            // The flag is set.
            (None, _) => return Some(edit(EditAction::Replace, found.start, found.start, String::new())),
        };
        let Some((start, old)) = found.value else {
            // A switch without a value gets one.
            let is_switch = SWITCH.contains(&text.as_str()) && found.notation == Notation::Shell;
            let is_word = quoted(file, found.start, found.name_end).is_some_and(|it| it.is_word);
            let at = found.name_end + usize::from(is_word);
            return is_switch.then(|| edit(EditAction::Replace, at, at, format!(" {text}")));
        };
        if let Some(Assignment { name, start, value }) = assignment(file, old, argument) {
            let setting = format!("{name}={text}");
            let range = (start, start + value.len());
            return Some(super::edit(file, EditAction::Replace, &setting, range, text));
        }
        return Some(edit(EditAction::Replace, start, start + old.len(), text));
    }
    let anchor = ANCHORS.iter().find_map(|name| find(file, name).filter(|found| found.value.is_some()))?;
    let quote = file[anchor.end()..].chars().next().filter(|letter| *letter == '"' || *letter == '\'');
    let at = match anchor.notation {
        Notation::Shell => words_end(file, anchor.parts())?,
        Notation::Yaml | Notation::List => anchor.end() + quote.map_or(0, char::len_utf8),
    };
    // Quotes of a value would end the string. An odd number of quotes before the place can be an open one.
    let is_open = |quote: char| !file[..at].matches(quote).count().is_multiple_of(2);
    let is_quoted = value.is_some_and(|value| value.contains('"'));
    if is_quoted && (is_in_string(file, at) || is_open('"') || is_open('\'')) {
        return None;
    }
    let text = match anchor.notation {
        // The words of a string have no quotes of their own.
        Notation::Shell => match value.filter(|value| value.contains(is_special) && !LISTS.contains(&name)) {
            Some(value) if !is_in_string(file, at) => format!(" --{name} '{value}'"),
            _ => format!(" {setting}"),
        },
        Notation::Yaml => {
            let line = file[..anchor.start].rfind('\n').map_or(0, |at| at + 1);
            format!("\n{}--{name}: {}", &file[line..anchor.start], value.unwrap_or("true"))
        }
        Notation::List => {
            let quote = quote.map(String::from).unwrap_or_default();
            let items = [Some(format!("--{name}")), value.map(str::to_owned)];
            items.iter().flatten().map(|item| format!(", {quote}{item}{quote}")).collect::<Vec<_>>().concat()
        }
    };
    Some(edit(EditAction::Add, at, at, text))
}

/// True for letters that a shell does not pass on unchanged.
fn is_special(letter: char) -> bool {
    !(letter.is_ascii_alphanumeric() || "-_.,:/=+@%".contains(letter))
}

/// Returns the edit that removes an argument; `None` if the end of its words is not known.
fn removed(file: &str, name: &str, is_switch: bool) -> Option<Edit> {
    let mut found = find(file, name).filter(|_| !LISTS.contains(&name))?;
    // What follows a switch is its value only if it is a word for on or off.
    let is_word = |value: &str| ["true", "false", "1", "0"].contains(&value.to_lowercase().as_str());
    if is_switch && found.notation == Notation::Shell {
        found.value = found.value.filter(|(_, value)| is_word(value));
    }
    // An item of a YAML list is a line of its own, and its value another one.
    let line = file[..found.start].rfind('\n').map_or(0, |at| at + 1);
    if file[line..found.start].trim().trim_end_matches(['"', '\'']) == "-" {
        return None;
    }
    let (start, end) = match found.notation {
        Notation::List => return None,
        Notation::Shell => words(file, found.parts())?,
        Notation::Yaml => {
            let start = file[..found.start].rfind('\n').map_or(0, |at| at + 1);
            (start, file[found.end()..].find('\n').map_or(file.len(), |at| found.end() + at + 1))
        }
    };
    // The blank before an argument goes with it.
    let blank = usize::from(found.notation == Notation::Shell && file[..start].ends_with(' '));
    Some(edit(file, EditAction::Remove, &format!("--{name}"), (start - blank, end), String::new()))
}
