//! Values of keys: numbers, and errors that repeat no secrets.

use super::MAX_KEY_CHARS;
use crate::job_config::JobConfigError;

/// True if two values are equal, as numbers or as text.
pub(super) fn is_same(first: &str, second: &str) -> bool {
    match (first.trim().parse::<f64>(), second.trim().parse::<f64>()) {
        (Ok(first), Ok(second)) => first.total_cmp(&second).is_eq(),
        _ => first.trim().eq_ignore_ascii_case(second.trim()),
    }
}

/// Error for two keys that contradict each other. Words may be secrets, numbers are not.
pub(super) fn conflict((first, first_value): (&str, &str), (second, second_value): (&str, &str)) -> JobConfigError {
    let detail = if is_plain(first_value) && is_plain(second_value) {
        format!("{second_value} contradicts {first} = {first_value}; state one value")
    } else {
        format!("the value contradicts {first}; state one value")
    };
    JobConfigError::Value { key: second.to_owned(), detail }
}

/// True for numbers and configuration words, which messages may repeat.
pub(super) fn is_plain(value: &str) -> bool {
    const KEYWORDS: [&str; 9] = ["true", "false", "full", "selective", "uniform", "block", "hybrid", "e4m3", "none"];
    let is_number = value.len() <= 20 && value.parse::<f64>().is_ok();
    is_number || KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Returns the first word of a value. In a script, further words may follow an argument's number.
pub(super) fn first_word(value: &str) -> &str {
    value.split_whitespace().next().unwrap_or_default()
}

/// True for all arguments of a script (`$@`) and all items of an array, which are no value of a switch.
pub(super) fn is_list(word: &str) -> bool {
    ["$@", "$*", "${@", "${*"].iter().any(|start| word.starts_with(start))
        || word.starts_with("${") && ["[@]", "[*]"].iter().any(|items| word.contains(items))
}

pub(super) fn integer(key: &str, value: &str) -> Result<u32, JobConfigError> {
    let number = first_word(value).replace('_', "").parse::<f64>().ok();
    let number = number.filter(|number| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number));
    number.map_or_else(|| Err(refuse(key, value, "a whole number")), |number| Ok(number as u32))
}

/// Returns the name in `$NAME` or `${NAME}`, anywhere in the word.
fn variable(word: &str) -> Option<&str> {
    let (_, rest) = word.split_once('$')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (!name.is_empty() && name.len() <= MAX_KEY_CHARS).then_some(name)
}

/// Error for a value with the wrong type. Variables are named. Other text is omitted because it may
/// be a secret.
pub(super) fn refuse(key: &str, value: &str, wanted: &str) -> JobConfigError {
    let word = first_word(value);
    let is_number = word.len() <= 20 && word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let detail = if let Some(name) = variable(word).filter(|name| word.contains(&format!("{name}["))) {
        format!("${{{name}[..]}} is an item of an array, which is not read; replace it with {wanted}")
    } else if let Some(name) = variable(word) {
        format!("${name} is a variable that the file does not set; replace it with {wanted}")
    } else if word.contains(['$', '<', '{', '(']) {
        format!("the value is an expression or a placeholder; replace it with {wanted}")
    } else if is_number {
        format!("{word:?} is not {wanted}")
    } else {
        format!("the value is not {wanted}")
    };
    JobConfigError::Value { key: key.to_owned(), detail }
}
