//! Values of a JSON document in the text of a script, for example a here-document with the configuration of DeepSpeed.

use api::check::{Edit, EditAction};
use regex::Regex;

use super::arguments::{Assignment, assignment};
use super::edit;

/// Prefix of the keys of such documents in the tables of settings.
const PREFIX: &str = "inline.";

/// Returns the path of a key of such a document.
pub(super) fn path(key: &str) -> Option<&str> {
    key.strip_prefix(PREFIX)
}

/// A value in the text: its start, and a number or the reference to a variable.
type Found<'a> = (usize, &'a str);

/// Returns the first value of a path.
pub(super) fn value<'a>(file: &'a str, path: &str) -> Option<&'a str> {
    find(file, path).first().map(|(_, value)| *value)
}

/// Returns the edit that gives the path a value; `None` if the script has several such documents, or if its value is a
/// variable with other uses.
pub(super) fn replace(file: &str, path: &str, value: &str) -> Option<Edit> {
    let found = find(file, path);
    let &[(start, old)] = found.as_slice() else { return None };
    let (_, leaf) = split(path);
    if !old.starts_with('$') {
        let setting = format!("\"{leaf}\": {value}");
        return Some(edit(file, EditAction::Replace, &setting, (start, start + old.len()), value.to_owned()));
    }
    let Assignment { name, start, value: old } = assignment(file, old, leaf)?;
    let setting = format!("{name}={value}");
    Some(edit(file, EditAction::Replace, &setting, (start, start + old.len()), value.to_owned()))
}

/// Finds the values of a path with at most one section, outside comments.
fn find<'a>(file: &'a str, path: &str) -> Vec<Found<'a>> {
    let (section, leaf) = split(path);
    let quoted = |name: &str| format!(r#"\\?"{}\\?"\s*:\s*"#, regex::escape(name));
    // A section has sections and references to variables.
    let body = r"(?:[^{}]|\$?\{[^{}]*\})*?";
    let before = if section.is_empty() { String::new() } else { format!(r"{}\{{{body}", quoted(section)) };
    let pattern = format!(r"{before}{}(?P<value>\d+|\$\w+|\$\{{\w+\}})", quoted(leaf));
    let pattern = Regex::new(&pattern).expect("a fixed pattern");
    let values = pattern.captures_iter(file).filter_map(|found| found.name("value"));
    let is_code = |at: usize| !file[file[..at].rfind('\n').map_or(0, |at| at + 1)..].trim_start().starts_with('#');
    values.filter(|value| is_code(value.start())).map(|value| (value.start(), value.as_str())).collect()
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"ZERO_STAGE=1
MICRO=4
cat <<EOT > ds.json
{
  "train_micro_batch_size_per_gpu": $MICRO,
  "zero_optimization": {
    "reduce_bucket_size": 5e8, "offload_optimizer": { "device": "none" },
    "stage": ${ZERO_STAGE}
  }
}
EOT
deepspeed pretrain_gpt.py --zero-stage=$ZERO_STAGE --micro-batch-size $MICRO
"#;

    fn applied(file: &str, path: &str, value: &str) -> Option<String> {
        let Edit { start, end, text, .. } = replace(file, path, value)?;
        Some(format!("{}{text}{}", &file[..start as usize], &file[end as usize..]))
    }

    #[test]
    fn values_and_their_variables_change() {
        let stage = "zero_optimization.stage";
        assert_eq!(value(SCRIPT, stage), Some("${ZERO_STAGE}"));
        assert!(applied(SCRIPT, stage, "2").unwrap().starts_with("ZERO_STAGE=2\n"));
        let micro = applied(SCRIPT, "train_micro_batch_size_per_gpu", "2").unwrap();
        assert!(micro.contains("\nMICRO=2\n"), "{micro}");
        let plain = SCRIPT.replace("${ZERO_STAGE}", "1");
        assert!(applied(&plain, stage, "2").unwrap().contains("\"stage\": 2\n"));
        let escaped = r#"echo "{\"zero_optimization\": {\"stage\": 1}}" > ds.json"#;
        assert!(applied(escaped, stage, "0").unwrap().contains(r#"{\"stage\": 0}"#));
    }

    #[test]
    fn ambiguous_values_do_not_change() {
        let stage = "zero_optimization.stage";
        let other = format!("{SCRIPT}echo stage $ZERO_STAGE\n");
        assert_eq!(replace(&other, stage, "2"), None, "the variable has another use");
        let twice = format!("{SCRIPT}{{\"zero_optimization\": {{\"stage\": 3}}}}\n");
        assert_eq!(replace(&twice, stage, "2"), None, "two documents");
        assert_eq!(value("# {\"zero_optimization\": {\"stage\": 3}}\n", stage), None);
        assert_eq!(value("{\"stage\": 3}", stage), None, "another section");
    }
}
