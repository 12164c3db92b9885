//! Decides conditions of a script: `[ -n "$X" ]`, `[[ $A == 1 && $B != 2 ]]`, `(( N > 4 ))` and patterns of `case`. A
//! condition with an operand that the script does not state is not decided, except for tests whether a variable is set: the
//! script sets a default there.

use super::expand::{Variables, evaluate, replace};

/// True if the text is a condition, not a command.
pub(super) fn is_condition(text: &str) -> bool {
    let text = text.trim_start_matches(['!', ' ']);
    text.starts_with('[')
        || text.starts_with("((")
        || text.starts_with("test ")
        || matches!(text, "true" | "false" | ":")
}

/// Returns the value of a condition; `None` if it is not known.
pub(super) fn decide(text: &str, variables: &Variables) -> Option<bool> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('!').filter(|rest| rest.starts_with(' ')) {
        return decide(rest, variables).map(|value| !value);
    }
    if let Some(inner) = text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
        return expression(&tokens(inner, false, variables)?);
    }
    if let Some(inner) = text.strip_prefix("((").and_then(|rest| rest.strip_suffix("))")) {
        return arithmetic(inner, variables);
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).or_else(|| text.strip_prefix("test "));
    match (text, inner) {
        ("true" | ":", _) => Some(true),
        ("false", _) => Some(false),
        (_, Some(inner)) => expression(&tokens(inner, true, variables)?),
        _ => None,
    }
}

/// Returns whether a word matches the alternatives of a pattern; `None` if it is not known.
pub(super) fn matches_pattern(word: &str, pattern: &str) -> Option<bool> {
    let mut is_known = true;
    for alternative in pattern.split('|') {
        let alternative = alternative.trim().trim_matches(['"', '\'']);
        match matches_one(word, alternative) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

/// Matches a word with a pattern in which `*` is any text. Other special characters are not decided.
fn matches_one(word: &str, pattern: &str) -> Option<bool> {
    if pattern.contains(['?', '[', '$', '`', '\\', '(']) {
        return None;
    }
    let Some((start, rest)) = pattern.split_once('*') else { return Some(word == pattern) };
    let Some(mut rest_of_word) = word.strip_prefix(start) else { return Some(false) };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = rest_of_word.split_once(part).filter(|_| !part.is_empty()) else {
            if part.is_empty() {
                continue;
            }
            return Some(false);
        };
        rest_of_word = after;
    }
    Some(rest_of_word.ends_with(end))
}

/// Starts of the names of variables that schedulers and launchers set.
const OF_LAUNCHER: [&str; 22] = [
    "AMLT",
    "ARNOLD",
    "CUDA",
    "DLC",
    "GPU",
    "HOST",
    "JOB",
    "KUBERNETES",
    "LOCAL",
    "LSB",
    "MASTER",
    "METIS",
    "MLP",
    "NNODES",
    "NODE",
    "NUM",
    "OMPI",
    "PBS",
    "PET",
    "RANK",
    "SLURM",
    "WORLD",
];

/// Word of a condition after the expansion of variables.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    is_quoted: bool,
}

impl Token {
    /// True if the script states the word.
    fn is_known(&self) -> bool {
        !self.text.contains(['$', '`'])
    }

    /// True if the word is a variable that the script does not set, and that no launcher sets.
    fn is_unset(&self) -> bool {
        let Some(name) = self.text.strip_prefix('$') else { return false };
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_name && !OF_LAUNCHER.iter().any(|start| name.to_ascii_uppercase().starts_with(start))
    }
}

/// Returns the words of a condition. `is_split` is true if an empty word without quotes vanishes, as between single
/// brackets. `None` if a quote is open.
fn tokens(text: &str, is_split: bool, variables: &Variables) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let (mut word, mut quote, mut is_quoted, mut is_open) = (String::new(), None, false, false);
    for letter in text.chars().chain([' ']) {
        match quote {
            Some(mark) if letter == mark => quote = None,
            Some(_) => word.push(letter),
            None if letter == '"' || letter == '\'' => (quote, is_quoted, is_open) = (Some(letter), true, true),
            None if letter.is_whitespace() => {
                if is_open {
                    let text = replace(&std::mem::take(&mut word), variables);
                    if is_quoted || !text.is_empty() || !is_split {
                        found.push(Token { text, is_quoted });
                    }
                }
                (is_quoted, is_open) = (false, false);
            }
            None => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    quote.is_none().then_some(found)
}

/// Evaluates `a && b || c`, also with `-a` and `-o`.
fn expression(tokens: &[Token]) -> Option<bool> {
    let is_sign =
        |signs: [&'static str; 2]| move |token: &Token| !token.is_quoted && signs.contains(&token.text.as_str());
    let any = tokens.split(is_sign(["||", "-o"])).map(|all| {
        let values = all.split(is_sign(["&&", "-a"])).map(comparison);
        values.reduce(and).flatten()
    });
    any.reduce(or).flatten()
}

/// Returns the conjunction of two values, each of which may be unknown.
pub(super) const fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Returns the disjunction of two values, each of which may be unknown.
pub(super) const fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn comparison(tokens: &[Token]) -> Option<bool> {
    let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    match texts.as_slice() {
        ["!", ..] => comparison(&tokens[1..]).map(|value| !value),
        [_] | ["-n", _] if tokens.last().is_some_and(Token::is_unset) => Some(false),
        ["-z", _] if tokens.last().is_some_and(Token::is_unset) => Some(true),
        _ if !tokens.iter().all(Token::is_known) => None,
        [word] | ["-n", word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        [left, operator, right] => {
            let is_quoted = tokens[2].is_quoted;
            let text = || if is_quoted { Some(left == right) } else { matches_one(left, right) };
            let numbers = || Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
            match *operator {
                "=" | "==" => text(),
                "!=" => text().map(|value| !value),
                "-eq" => numbers().map(|(left, right)| left == right),
                "-ne" => numbers().map(|(left, right)| left != right),
                "-gt" => numbers().map(|(left, right)| left > right),
                "-ge" => numbers().map(|(left, right)| left >= right),
                "-lt" => numbers().map(|(left, right)| left < right),
                "-le" => numbers().map(|(left, right)| left <= right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Evaluates `N > 4`, or whether an expression is not zero.
fn arithmetic(text: &str, variables: &Variables) -> Option<bool> {
    if text.contains(['&', '|', '?', ',']) {
        return None;
    }
    let text = replace(text, variables);
    for operator in ["==", "!=", ">=", "<=", ">", "<"] {
        if let Some((left, right)) = text.split_once(operator) {
            let (left, right) = (evaluate(left, variables)?, evaluate(right, variables)?);
            return Some(match operator {
                "==" => left == right,
                "!=" => left != right,
                ">=" => left >= right,
                "<=" => left <= right,
                ">" => left > right,
                _ => left < right,
            });
        }
    }
    // An assignment is a statement.
    if text.contains('=') { None } else { evaluate(&text, variables).map(|value| value != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_with_known_operands_are_decided() {
        let variables: Variables = [("A", "1"), ("EMPTY", ""), ("NAME", "llama-8b"), ("N", "8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        for (text, value) in [
            ("[ -n \"$EMPTY\" ]", Some(false)),
            ("[ -z \"$EMPTY\" ]", Some(true)),
            ("[ -n \"${EMPTY}\" ]", Some(false)),
            // Without quotes the word vanishes, and `-n` is the only word.
            ("[ -n $EMPTY ]", Some(true)),
            ("[[ -n $EMPTY ]]", Some(false)),
            ("[ \"$A\" = 1 ]", Some(true)),
            ("[ $A == \"0\" ]", Some(false)),
            ("! [ $A = 1 ]", Some(false)),
            ("[ ! $A = 1 ]", Some(false)),
            ("[ $N -gt 4 ]", Some(true)),
            ("[[ $NAME == llama* ]]", Some(true)),
            ("[[ $NAME == \"llama*\" ]]", Some(false)),
            ("[[ $A == 1 && $N == 4 ]]", Some(false)),
            ("[[ $A == 1 || $UNSET == 4 ]]", Some(true)),
            ("[[ $A == 0 || $UNSET == 4 ]]", None),
            ("[ \"$A\" = 1 -a \"$N\" = 8 ]", Some(true)),
            ("[ \"${UNSET:-1}\" = 1 ]", Some(true)),
            ("[ -f file ]", None),
            ("[ $UNSET = 1 ]", None),
            ("[ -z $UNSET ]", Some(true)),
            ("[[ -n \"${UNSET:-}\" ]]", Some(false)),
            ("[ -z ${UNSET+x} ]", None),
            ("[ $UNSET ]", Some(false)),
            // Arguments of the script and variables of launchers are not known.
            ("[ -z $1 ]", None),
            ("[ -n \"$SLURM_JOB_ID\" ]", None),
            ("[ -z \"$UNSET/log\" ]", None),
            ("(( N > 4 ))", Some(true)),
            ("(( A ))", Some(true)),
            ("(( N = 4 ))", None),
            ("((", None),
            ("[", None),
            ("[ ]", None),
            ("test \"$A\" = 1", Some(true)),
            ("false", Some(false)),
            ("nvidia-smi", None),
        ] {
            assert_eq!(decide(text, &variables), value, "{text}");
        }
        for (word, pattern, value) in [
            ("8b", "8b|8B", Some(true)),
            ("8b", "\"70b\"", Some(false)),
            ("8b", "*", Some(true)),
            ("llama-8b", "*8b", Some(true)),
            ("llama-8b", "l*-*b", Some(true)),
            ("llama-8b", "[a-z]*", None),
        ] {
            assert_eq!(matches_pattern(word, pattern), value, "{word} {pattern}");
        }
    }
}
