//! Arguments of a command line, wherever they are: a script, a list with one argument a line, or the YAML of a test.
//!
//! Quotes count as blanks, so that `ARGS="--num-layers 24"` and `ARGS=(--num-layers 24)` are read alike. Variables are replaced
//! by the values that the file gives them, `${NAME:-default}` by its default. Nothing is executed.

use std::collections::BTreeMap;

use super::keys::Keys;
use super::{JobConfigError, document};

/// Replacements of one value, against variables that contain each other.
const MAX_REPLACEMENTS: usize = 64;
/// Longest value after replacements, in bytes.
const MAX_VALUE: usize = 4096;

/// Arguments without their dashes, underscores as dashes; environment variables with a `$`, SLURM directives with `#SBATCH`.
pub(super) fn read(text: &str) -> Result<Keys, JobConfigError> {
    let mut keys = Keys::default();
    let mut variables = BTreeMap::new();
    for line in lines(text) {
        if let Some(directive) = line.trim_start().strip_prefix("#SBATCH") {
            // Short options have a long form: -N 4 is --nodes=4.
            let directive = directive.replace(" -N ", " --nodes=");
            read_words(without_comment(&directive), "#SBATCH ", &variables, &mut keys)?;
            if let Some(nodes) = keys.peek("#SBATCH nodes") {
                for name in ["SLURM_NNODES", "SLURM_JOB_NUM_NODES"] {
                    variables.insert(name.to_owned(), nodes.to_owned());
                }
            }
            continue;
        }
        let line = compact_arithmetic(without_comment(&line));
        let line = line.as_str();
        for (name, value) in line.split(';').flat_map(assignments) {
            let value = replace(&value, &variables);
            // A value with arguments is a list of them; they are read below.
            if !value.contains("--") {
                keys.push(format!("${name}"), value.clone())?;
            }
            variables.insert(name, value);
        }
        read_words(line, "", &variables, &mut keys)?;
    }
    if let Some(block) = json_block(text) {
        // A block that is no JSON, for example an awk program, is not the script's DeepSpeed configuration.
        if let Ok(configuration) = document::json(&replace_all(block, &variables)) {
            keys.adopt("deepspeed.", configuration)?;
        }
    }
    Ok(keys)
}

/// The lines from the last one that is `{` to the next one that is `}`.
fn json_block(text: &str) -> Option<&str> {
    let start = text.rfind("\n{").map(|start| start + 1)?;
    let end = text[start..].find("\n}")? + 2;
    Some(&text[start..start + end])
}

fn replace_all(text: &str, variables: &BTreeMap<String, String>) -> String {
    text.lines().map(|line| replace(line, variables)).collect::<Vec<_>>().join("\n")
}

/// Lines, with those joined that end in a backslash.
fn lines(text: &str) -> Vec<String> {
    let mut joined = vec![String::new()];
    for line in text.lines() {
        let continued = line.trim_end().strip_suffix('\\');
        if let Some(last) = joined.last_mut() {
            last.push_str(continued.unwrap_or(line));
            last.push(' ');
        }
        if continued.is_none() {
            joined.push(String::new());
        }
    }
    joined
}

fn without_comment(line: &str) -> &str {
    let start = line
        .char_indices()
        .find(|&(index, c)| c == '#' && line[..index].chars().next_back().is_none_or(char::is_whitespace));
    start.map_or(line, |(index, _)| &line[..index])
}

/// The line with the blanks in `$(( 4 * 8 ))` removed, so that it is one word.
fn compact_arithmetic(line: &str) -> String {
    let mut compact = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("$((") {
        let end = rest[start..].find("))").map_or(rest.len(), |end| start + end);
        compact.push_str(&rest[..start]);
        compact.extend(rest[start..end].chars().filter(|c| !c.is_whitespace()));
        rest = &rest[end..];
    }
    compact.push_str(rest);
    compact
}

/// `NAME=value` and, in YAML, `NAME: value` at the start of a line, also behind `export`.
fn assignments(line: &str) -> Vec<(String, String)> {
    let mut rest = line.trim_start();
    for word in ["export ", "declare -i ", "declare ", "readonly ", "local ", "typeset "] {
        rest = rest.strip_prefix(word).map_or(rest, str::trim_start);
    }
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut found = Vec::new();
    // `export TP=8 PP=4` sets two variables.
    while let Some((name, behind)) = rest.split_once(['=', ':']).filter(|(name, _)| is_name(name)) {
        let behind = behind.trim_start_matches([' ', '\t']);
        // A quoted value may hold blanks; another ends at the first blank.
        let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, length) = if let Some(quote) = quote {
            let value = behind[1..].split(quote).next().unwrap_or_default();
            (value, value.len() + 2)
        } else {
            let value = behind.split([' ', '\t', ';', '&']).next().unwrap_or_default();
            (value, value.len())
        };
        found.push((name.to_owned(), value.to_owned()));
        rest = behind.get(length..).unwrap_or_default().trim_start();
    }
    found
}

/// Adds every `--name value...` of a line.
fn read_words(
    line: &str,
    prefix: &str,
    variables: &BTreeMap<String, String>,
    keys: &mut Keys,
) -> Result<(), JobConfigError> {
    let plain = line.replace(['"', '\''], " ").replace("=(", "= (");
    let mut words = plain.split_whitespace().map(without_array_brackets).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let Some(argument) = word.strip_prefix("--").filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            continue;
        };
        let (name, first) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
        let mut value: Vec<&str> = first.into_iter().collect();
        while let Some(next) = words.next_if(|next| !is_argument(next)) {
            value.push(next);
        }
        let name = name.trim_end_matches(':').replace('_', "-").to_lowercase();
        keys.push(format!("{prefix}{name}"), replace(&value.join(" "), variables))?;
    }
    Ok(())
}

/// A word without the brackets of a shell array around it; brackets inside a value are part of it.
fn without_array_brackets(word: &str) -> &str {
    let opened = word.strip_prefix('(').filter(|rest| rest.is_empty() || rest.starts_with("--"));
    let word = opened.unwrap_or(word);
    if word.contains('(') { word } else { word.trim_end_matches(')') }
}

fn is_argument(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        || matches!(word, "|" | "||" | "&&" | ";" | "\\")
}

/// Replaces variables by their values and products of numbers by their result.
fn replace(value: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = value.to_owned();
    for _ in 0..MAX_REPLACEMENTS {
        let Some((start, end, replacement)) = first_variable(&text, variables) else { break };
        text.replace_range(start..end, &replacement);
        if text.len() > MAX_VALUE {
            text.truncate(text.char_indices().take_while(|(index, _)| *index < MAX_VALUE).count());
            break;
        }
    }
    product(&text, variables).unwrap_or(text)
}

/// The first variable of a text that has a value: where it starts and ends, and the value.
fn first_variable(text: &str, variables: &BTreeMap<String, String>) -> Option<(usize, usize, String)> {
    let starts = text.match_indices('$').map(|(index, _)| index);
    starts.into_iter().find_map(|start| {
        let rest = &text[start + 1..];
        if let Some(inner) = rest.strip_prefix('{') {
            let close = inner.find('}')?;
            let body = &inner[..close];
            let (name, default) = body
                .split_once(":-")
                .or_else(|| body.split_once(":="))
                .map_or((body, None), |(name, default)| (name, Some(default)));
            let value = variables.get(name).filter(|value| !value.is_empty()).cloned();
            let value = value.or_else(|| default.map(str::to_owned))?;
            return Some((start, start + close + 3, value));
        }
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let value = variables.get(&name).filter(|value| !value.contains(&format!("${name}")))?;
        Some((start, start + 1 + name.len(), value.clone()))
    })
}

/// The result of `$(( NODES * 8 ))`.
fn product(text: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    let inner = text.trim().strip_prefix("$((")?.strip_suffix("))")?;
    let factor = |factor: &str| {
        let factor = factor.trim();
        variables.get(factor).map_or(factor, String::as_str).parse::<u64>().ok()
    };
    let factors: Option<Vec<u64>> = inner.split('*').map(factor).collect();
    factors?.into_iter().try_fold(1_u64, u64::checked_mul).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_in_every_dress() {
        for text in [
            "torchrun --nproc_per_node 8 pretrain.py --num-layers 24 --bf16 --lr 1e-4",
            "GPT_ARGS=\"\n  --num-layers 24 \\\n --bf16\n\"\ntorchrun --nproc_per_node=8 pretrain.py $GPT_ARGS",
            "ARGS=(--num-layers 24)\nMORE=(\n  --bf16 # a comment\n)\nexport N=8\ntorchrun --nproc_per_node $N x.py",
            "MODEL_ARGS:\n  --num-layers: 24\n  --bf16: true\n  --nproc-per-node: 8",
            "L=${LAYERS:-24}\nG=4\nN=$(( G * 2 ))\nN=$(($G*2))\n--num-layers ${L} --bf16 --nproc-per-node $N",
        ] {
            let mut keys = read(text).unwrap();
            assert_eq!(keys.whole(&["num-layers"], "layers"), Ok(Some(24)), "{text}");
            assert_eq!(keys.flag(&["bf16"], "precision"), Some(true), "{text}");
            assert_eq!(keys.whole(&["nproc-per-node"], "devices"), Ok(Some(8)), "{text}");
        }
    }

    #[test]
    fn variables_that_contain_themselves_end() {
        let mut keys = read("A=$B$B\nB=$A$A\nA=$B$B\n--num-layers $A").unwrap();
        assert!(keys.whole(&["num-layers"], "layers").is_err());
        assert!(read(&"A=$A$A\n".repeat(1000)).is_ok());
    }

    #[test]
    fn slurm_directives_are_read() {
        let script = "#SBATCH -N 4\n#SBATCH --gres=gpu:8 # 8 a node\nexport TP=2 PP=4\n--nnodes $SLURM_NNODES --tp $TP --gbs $(( 16 * PP ))";
        let mut keys = read(script).unwrap();
        assert_eq!(keys.whole(&["#SBATCH nodes"], "nodes"), Ok(Some(4)));
        assert_eq!(keys.text(&["#SBATCH gres"], "devices"), Some("gpu:8".to_owned()));
        for (name, value) in [("nnodes", 4), ("tp", 2), ("gbs", 64)] {
            assert_eq!(keys.whole(&[name], "a setting"), Ok(Some(value)), "{name}");
        }
    }
}
