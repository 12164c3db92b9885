//! Quotes of the words of a shell.

/// Quotes around a range of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quoted {
    /// True if the quotes start a word. Otherwise they are part of a longer one, for example of an assignment.
    pub(super) is_word: bool,
}

const QUOTES: [char; 2] = ['"', '\''];

/// Returns the quotes around a range; `None` if it has none, or two different ones.
pub(super) fn quoted(file: &str, start: usize, end: usize) -> Option<Quoted> {
    let quote = file[..start].chars().next_back().filter(|letter| QUOTES.contains(letter))?;
    let before = file[..start - 1].chars().next_back();
    let is_word = before.is_none_or(|letter| letter.is_whitespace() || letter == '(');
    file[end..].starts_with(quote).then_some(Quoted { is_word })
}

/// Name and value of an argument: its first byte, the end of its name, and the range of its value without quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub(super) start: usize,
    pub(super) name_end: usize,
    pub(super) value: Option<(usize, usize)>,
}

/// Returns the range of the words of an argument, with their quotes. Quotes of a string with several arguments are not
/// part of it. `None` if the end of the value is not known: a quoted value with blanks, or parts with different quotes.
pub(super) fn words(file: &str, parts: Parts) -> Option<(usize, usize)> {
    let Parts { mut start, name_end, value } = parts;
    let name = quoted(file, start, name_end);
    let mut end = match value {
        Some((from, to)) => value_end(file, name_end, (from, to))?,
        None => flag_end(file, name_end, name),
    };
    if let Some(name) = name {
        start -= 1;
        // The quotes of a name that is a string of its own, for example `ARGS="--bf16"`.
        end = end.max(name_end + 1);
        if !name.is_word && value.is_some() {
            return None;
        }
    } else if value.is_some() && quoted(file, start, end).is_some_and(|all| all.is_word) {
        // `"--name=value"`
        start -= 1;
        end += 1;
    }
    is_end(file, end).then_some((start, end))
}

/// Returns the byte after an argument with a value, at which another argument can follow. Arguments of a string follow in
/// the string.
pub(super) fn words_end(file: &str, parts: Parts) -> Option<usize> {
    let Parts { start, name_end, value } = parts;
    let end = value_end(file, name_end, value?)?;
    let is_pair = file[name_end..].starts_with('=');
    let is_word = quoted(file, start, end).is_some_and(|all| all.is_word);
    Some(end + usize::from(is_pair && is_word))
}

/// Returns the end of a value, with the quote that opened before it.
fn value_end(file: &str, name_end: usize, (start, end): (usize, usize)) -> Option<usize> {
    let opened = file[name_end..start].chars().next_back().filter(|letter| QUOTES.contains(letter));
    match opened {
        None => Some(end),
        Some(quote) => file[end..].starts_with(quote).then_some(end + 1),
    }
}

/// Returns the end of an argument without a value. An empty text in quotes is a value.
fn flag_end(file: &str, name_end: usize, name: Option<Quoted>) -> usize {
    let end = name_end + usize::from(name.is_some());
    let after = file[end..].trim_start_matches([' ', '\t', '=']);
    let empty = ["\"\"", "''"].iter().find(|empty| after.starts_with(**empty));
    empty.map_or(end, |empty| file.len() - after.len() + empty.len())
}

/// True if a word can end at a byte: at a blank, an operator of the shell, or the quote that ends its string.
fn is_end(file: &str, at: usize) -> bool {
    let next = file[at..].chars().next();
    next.is_none_or(|letter| {
        letter.is_whitespace() || ")&|;`\\<>,".contains(letter) || open_quote(file, at) == Some(letter)
    })
}

/// True if a byte is inside a string in double quotes. The text of such a string is split into words later.
pub(super) fn is_in_string(file: &str, at: usize) -> bool {
    open_quote(file, at) == Some('"')
}

/// Returns the quote of the string around a byte of a script; `None` outside of strings.
fn open_quote(file: &str, at: usize) -> Option<char> {
    let (mut open, mut last) = (None, '\n');
    let mut letters = file[..at].chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (None | Some('"'), '\\') => {
                letters.next();
            }
            (None, '#') if last.is_whitespace() => {
                // A comment ends with its line.
                letters.by_ref().find(|letter| *letter == '\n');
            }
            (None, '"' | '\'') => open = Some(letter),
            (Some(quote), _) if letter == quote => open = None,
            _ => {}
        }
        last = letter;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of `--name` in a text, with the value `full`, if the text has it.
    fn words_of(text: &str) -> Option<&str> {
        let start = text.find("--name").unwrap();
        let value = text.find("full").map(|at| (at, at + 4));
        words(text, Parts { start, name_end: start + 6, value }).map(|(start, end)| &text[start..end])
    }

    #[test]
    fn words_have_their_quotes() {
        for (text, expected) in [
            ("x --name full --b", "--name full"),
            ("x --name 'full' --b", "--name 'full'"),
            ("x --name=\"full\" \\\n", "--name=\"full\""),
            ("x \"--name\" \"full\" --b", "\"--name\" \"full\""),
            ("x \"--name\" full", "\"--name\" full"),
            ("(\"--name=full\" \"--b\")", "\"--name=full\""),
            ("A=\"--b 1 --name full\"", "--name full"),
            ("A=\"--name full --b\"", "--name full"),
            ("A=\"--name full\"", "--name full"),
            ("A=\"--name 'full' --b\"", "--name 'full'"),
            ("x --name --b", "--name"),
            ("x '--name' --b", "'--name'"),
            ("x --name \"\" --b", "--name \"\""),
            ("A=\"--b --name\"", "--name"),
        ] {
            assert_eq!(words_of(text), Some(expected), "{text}");
        }
        for text in ["x --name \"full of words\"", "x --name=full'er'x", "x --name=fuller"] {
            assert_eq!(words_of(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_follow_in_their_string() {
        fn end(text: &str) -> Option<&str> {
            let (start, value) = (text.find("--name").unwrap(), text.find("full").unwrap());
            let parts = Parts { start, name_end: start + 6, value: Some((value, value + 4)) };
            words_end(text, parts).map(|end| &text[..end])
        }
        assert_eq!(end("A=\"--name full\""), Some("A=\"--name full"));
        assert_eq!(end("--name \"full\" --b"), Some("--name \"full\""));
        assert_eq!(end("(\"--name\" \"full\")"), Some("(\"--name\" \"full\""));
        assert_eq!(end("(\"--name=full\")"), Some("(\"--name=full\""));
    }

    #[test]
    fn strings_end_at_their_quotes() {
        let text = "# don't\nA=\"--a \\\"1\\\" 'b' HERE\"\nx --c 'it \"is' HERE";
        let first = text.find("HERE").unwrap();
        assert!(is_in_string(text, first) && !is_in_string(text, text.rfind("HERE").unwrap()));
    }
}
