//! Expands shell variables and arithmetic in text. Nothing is executed.

use std::collections::BTreeMap;

/// Variable values by name.
pub(super) type Variables = BTreeMap<String, String>;

/// Maximum replacements per value, a limit for variables that refer to each other.
const MAX_REPLACEMENTS: usize = 64;
/// Maximum value length after replacement, in bytes.
const MAX_VALUE: usize = 4096;
/// Maximum depth of parentheses in an expression, and of braces.
const MAX_DEPTH: u32 = 32;

/// Replaces variables by their values, `${NAME:-default}` by its default, and `$(( .. ))` by its
/// result.
pub(super) fn replace(value: &str, variables: &Variables) -> String {
    let mut text = value.to_owned();
    for _ in 0..MAX_REPLACEMENTS {
        let Some((start, end, replacement)) = first_variable(&text, variables) else { break };
        text.replace_range(start..end, &replacement);
        if text.len() > MAX_VALUE {
            let cut = text.char_indices().map(|(index, _)| index).take_while(|index| *index < MAX_VALUE).last();
            text.truncate(cut.unwrap_or(0));
            break;
        }
    }
    let mut from = 0;
    while let Some((start, end)) = arithmetic(&text, from) {
        from = match evaluate(&text[start + 3..end - 2], variables) {
            Some(result) => {
                text.replace_range(start..end, &result.to_string());
                start
            }
            None => end,
        };
    }
    text
}

/// Returns the byte range of the first `$(( .. ))` at or after `from`.
pub(super) fn arithmetic(text: &str, from: usize) -> Option<(usize, usize)> {
    let start = from + text.get(from..)?.find("$((")?;
    let mut depth = 0_i32;
    for (index, c) in text[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && c == ')' {
            let end = start + index + 1;
            return text[..end].ends_with("))").then_some((start, end));
        }
    }
    None
}

/// Returns name and default for each `${NAME:=default}`.
pub(super) fn defaults(text: &str) -> Vec<(String, String)> {
    let assigned = |(start, _): (usize, &str)| {
        let body = braced(&text[start + 2..])?;
        let (name, default) = body.split_once(":=").or_else(|| body.split_once('='))?;
        is_name(name).then(|| (name.to_owned(), default.to_owned()))
    };
    text.match_indices("${").filter_map(assigned).collect()
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the text before the matching closing brace, up to the maximum length of a value and depth of braces. The
/// limits bound the time for text with many open braces.
pub(super) fn braced(text: &str) -> Option<&str> {
    let mut depth = 1_u32;
    for (index, c) in text.char_indices().take_while(|(index, _)| *index <= MAX_VALUE) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[..index]);
        }
        if depth > MAX_DEPTH {
            return None;
        }
    }
    None
}

/// Returns the byte range and value of the first defined variable.
fn first_variable(text: &str, variables: &Variables) -> Option<(usize, usize, String)> {
    text.match_indices('$').find_map(|(start, _)| {
        let rest = &text[start + 1..];
        if let Some(inner) = rest.strip_prefix('{') {
            let body = braced(inner)?;
            let split = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
            let (name, operator) = body.split_at(split);
            let default = [":-", ":=", "-", "="].iter().find_map(|sign| operator.strip_prefix(sign));
            let is_plain = operator.is_empty() || default.is_some() || operator.starts_with(":?");
            let is_used = |value: &&String| is_plain && (!value.is_empty() || operator.is_empty());
            let value = variables.get(name).filter(is_used).cloned();
            let unquoted = |default: &str| default.trim().trim_matches(['"', '\'']).trim().to_owned();
            let value = value.or_else(|| default.map(unquoted))?;
            return Some((start, start + body.len() + 3, value));
        }
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let value = variables.get(&name).filter(|value| !value.contains(&format!("${name}")))?;
        Some((start, start + 1 + name.len(), value.clone()))
    })
}

/// Evaluates an arithmetic expression with integers and variables.
pub(super) fn evaluate(text: &str, variables: &Variables) -> Option<i64> {
    let mut expression = Expression { rest: text, variables, depth: 0 };
    let result = expression.sum()?;
    expression.next().is_none().then_some(result)
}

/// Recursive-descent parser state.
struct Expression<'a> {
    rest: &'a str,
    variables: &'a Variables,
    depth: u32,
}

impl Expression<'_> {
    /// Returns the next character that is not blank.
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    /// Consumes the next character if `signs` contains it.
    fn take(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.next().filter(|c| signs.contains(c))?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(sign)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut sum = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let term = self.product()?;
            sum = if sign == '+' { sum.checked_add(term)? } else { sum.checked_sub(term)? };
        }
        Some(sum)
    }

    fn product(&mut self) -> Option<i64> {
        let mut product = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let factor = self.factor()?;
            product = match sign {
                '*' => product.checked_mul(factor)?,
                '/' => product.checked_div(factor)?,
                _ => product.checked_rem(factor)?,
            };
        }
        Some(product)
    }

    fn factor(&mut self) -> Option<i64> {
        if self.take(&['(']).is_some() {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            let sum = self.sum()?;
            self.depth -= 1;
            return self.take(&[')']).map(|_| sum);
        }
        self.next()?;
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.variables.get(word).map_or(word, String::as_str).trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_expressions_are_replaced() {
        let variables: Variables =
            [("TP", "4"), ("PP", "2"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (text, value) in [
            ("$TP", "4"),
            ("${TP}x${PP:-8}", "4x2"),
            ("${EMPTY:-8}", "8"),
            ("${NONE:-${PP:-8}}", "2"),
            ("${NONE-16}", "16"),
            ("${NONE:-\"32\"}", "32"),
            ("${NONE:- 4 }", "4"),
            ("${TP:?not set}", "4"),
            ("${TP%x}", "${TP%x}"),
            ("$((TP*PP))", "8"),
            ("$(( 64 / (TP * $PP) * 2 - 1 ))", "15"),
            ("$(( ${NONE:-3} % 2 ))", "1"),
            ("a$((1+1))b$((2+2))", "a2b4"),
            ("$((TP/0))", "$((TP/0))"),
            ("$((NONE*2))", "$((NONE*2))"),
            ("$((2*3", "$((2*3"),
            ("$(nproc)", "$(nproc)"),
        ] {
            assert_eq!(replace(text, &variables), value, "{text}");
        }
        assert!(evaluate(&"(".repeat(10_000), &variables).is_none());
        assert_eq!(
            defaults(": ${GBS:=1024} \"${MBS=2}\" ${TP:-4}"),
            [("GBS".to_owned(), "1024".to_owned()), ("MBS".to_owned(), "2".to_owned())]
        );
    }
}
