//! Parses shell statements: assignments, loops and here-documents. Nothing is executed.

use super::expand::is_name;

/// Commands that execute a here-document.
const SHELLS: [&str; 7] = ["bash", "sh", "zsh", "ssh", "sbatch", "srun", "qsub"];

/// A script without here-document bodies.
pub(super) struct Script {
    /// Script text. Here-document lines are replaced by empty lines.
    pub(super) text: String,
    /// First lines (from 1) of removed here-documents that contain arguments.
    pub(super) left_out: Vec<usize>,
}

/// Removes here-documents unless they are input to a shell.
pub(super) fn without_here_documents(text: &str) -> Script {
    let mut script = Script { text: String::with_capacity(text.len()), left_out: Vec::new() };
    let mut open: Option<(String, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some((end, begin)) = &open {
            let has_arguments = line.split_whitespace().any(|word| word.starts_with("--") && word.len() > 3);
            if has_arguments && script.left_out.last() != Some(begin) {
                script.left_out.push(*begin);
            }
            if line.trim() == end {
                open = None;
            }
        } else {
            script.text.push_str(line);
            let first = line.split_whitespace().next().unwrap_or_default();
            open = terminator(line).filter(|_| !SHELLS.contains(&first)).map(|end| (end, number + 1));
        }
        script.text.push('\n');
    }
    script
}

/// Returns the terminator for `<<EOF`, `<<-'EOF'` or `<< "EOF"`.
fn terminator(line: &str) -> Option<String> {
    let (before, after) = line.split_once("<<")?;
    if after.starts_with('<') || before.trim_start().starts_with('#') || before.ends_with('(') {
        return None;
    }
    let word = after.trim_start_matches('-').trim_start().trim_start_matches(['\'', '"', '\\']);
    let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
    is_name(&word[..end]).then(|| word[..end].to_owned())
}

/// A shell statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// Assigns a variable. `is_arithmetic` is true if the value is an expression.
    Set { name: String, value: String, is_arithmetic: bool },
    /// Modifies a variable with `+=` or a similar operator.
    Change { name: String },
    /// Starts a loop over words.
    Loop { name: String, list: String },
}

/// Parses a statement after removal of `then` and `do`.
pub(super) fn parse_statements(part: &str) -> Vec<Statement> {
    if let Some(rest) = part.strip_prefix("for ") {
        let mut terms = rest.trim_start().splitn(2, char::is_whitespace);
        let (name, rest) = (terms.next().unwrap_or_default(), terms.next().unwrap_or_default());
        let list = rest.trim_start().strip_prefix("in ").filter(|_| is_name(name));
        return list
            .map(|values| Statement::Loop { name: name.to_owned(), list: values.trim().to_owned() })
            .into_iter()
            .collect();
    }
    if let Some(expressions) = part.strip_prefix("let ") {
        let quoted: Vec<&str> = expressions.split(['"', '\'']).collect();
        let plain = expressions.split_whitespace().collect();
        let each: Vec<&str> = if quoted.len() > 1 { quoted } else { plain };
        return each.into_iter().filter_map(arithmetic_assignment).collect();
    }
    if let Some(expressions) = part.strip_prefix("((").and_then(|rest| rest.trim_end().strip_suffix("))")) {
        return expressions.split(',').filter_map(arithmetic_assignment).collect();
    }
    assignments(part)
        .into_iter()
        .map(|(name, value)| Statement::Set { name, value, is_arithmetic: part.starts_with("declare -i") })
        .collect()
}

/// Parses `TP = 8` and `TP *= 2` in `let` and `(( .. ))`.
fn arithmetic_assignment(expression: &str) -> Option<Statement> {
    let compact: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    let (name, value) = compact.split_once('=')?;
    if value.starts_with('=') || name.ends_with(['!', '<', '>']) {
        return None;
    }
    if is_name(name) {
        return Some(Statement::Set { name: name.to_owned(), value: value.to_owned(), is_arithmetic: true });
    }
    let changed = name.trim_end_matches(['+', '-', '*', '/', '%']);
    is_name(changed).then(|| Statement::Change { name: changed.to_owned() })
}

/// Returns the first word of the text that an assignment opens with a quote: `accelerate` of `LAUNCHER="accelerate`. Other
/// words stay as they are.
pub(super) fn quoted_command(word: &str) -> &str {
    let Some((name, value)) = word.split_once('=') else { return word };
    let Some(quote) = value.chars().next().filter(|letter| matches!(letter, '"' | '\'')) else { return word };
    // A value of a single word closes its quote. It is no command.
    if is_name(name) && !value[1..].contains(quote) { &value[1..] } else { word }
}

/// Parses `NAME=value`, also after `export` or `declare`, and YAML `NAME: value`.
fn assignments(part: &str) -> Vec<(String, String)> {
    let mut rest = part.trim_start();
    let keywords = ["export", "declare", "readonly", "local", "typeset"];
    if let Some((_, after)) = rest.split_once(char::is_whitespace).filter(|(first, _)| keywords.contains(first)) {
        rest = after.trim_start();
        // `declare -ix TP=8`
        while let Some((_, after)) = rest.split_once(char::is_whitespace).filter(|(flag, _)| flag.starts_with('-')) {
            rest = after.trim_start();
        }
    }
    let mut found = Vec::new();
    // `export TP=8 PP=4` sets two variables.
    while let Some((name, after)) = rest.split_once(['=', ':']).filter(|(name, _)| is_name(name)) {
        let after = after.trim_start_matches([' ', '\t']);
        if after.starts_with('=') {
            break;
        }
        // A quoted value may contain blanks. An unquoted value stops at the first blank.
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, length) = if let Some(quote) = quote {
            let value = after[1..].split(quote).next().unwrap_or_default();
            (value, value.len() + 2)
        } else {
            let value = after.split([' ', '\t', ';', '&']).next().unwrap_or_default();
            (value, value.len())
        };
        found.push((name.to_owned(), value.to_owned()));
        rest = after.get(length..).unwrap_or_default().trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_begin_with_commands() {
        for (word, command) in [
            ("LAUNCHER=\"accelerate", "accelerate"),
            ("CMD='/opt/bin/torchrun", "/opt/bin/torchrun"),
            ("NAME=\"value\"", "NAME=\"value\""),
            ("model.name=\"a", "model.name=\"a"),
            ("--name=\"a", "--name=\"a"),
            ("plain", "plain"),
        ] {
            assert_eq!(quoted_command(word), command);
        }
    }
}
