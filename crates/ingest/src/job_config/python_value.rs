//! Values of Python code: literals, lists, and sums and products of them.

/// Maximum number of items of a list, with those of its lists.
const MAX_ITEMS: usize = 4096;
/// Maximum depth of lists and brackets.
const MAX_DEPTH: usize = 8;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(usize),
    List(Vec<Self>),
}

impl Value {
    fn items(&self) -> usize {
        match self {
            Self::List(list) => 1 + list.iter().map(Self::items).sum::<usize>(),
            Self::Text(_) | Self::Number(_) => 1,
        }
    }
}

/// Returns the value of an expression such as `[["embedding"] + ["decoder"] * 4] * 2`. `name` returns the value of a
/// variable. `None` for other expressions.
pub(super) fn evaluate(text: &str, name: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    let mut reader = Reader { rest: text, name };
    let value = reader.sum(0)?;
    reader.peek().is_none().then_some(value)
}

struct Reader<'t> {
    rest: &'t str,
    name: &'t dyn Fn(&str) -> Option<Value>,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, letter: char) -> Option<()> {
        (self.peek()? == letter).then(|| self.rest = &self.rest[letter.len_utf8()..])
    }

    fn sum(&mut self, depth: usize) -> Option<Value> {
        let mut value = self.product(depth)?;
        while self.take('+').is_some() {
            value = match (value, self.product(depth)?) {
                (Value::List(mut first), Value::List(second)) => {
                    first.extend(second);
                    Value::List(first)
                }
                (Value::Text(first), Value::Text(second)) => Value::Text(first + &second),
                (Value::Number(first), Value::Number(second)) => Value::Number(first.checked_add(second)?),
                _ => return None,
            };
        }
        (value.items() <= MAX_ITEMS).then_some(value)
    }

    fn product(&mut self, depth: usize) -> Option<Value> {
        let mut value = self.atom(depth)?;
        while self.take('*').is_some() {
            value = match (value, self.atom(depth)?) {
                (Value::List(list), Value::Number(times)) | (Value::Number(times), Value::List(list)) => {
                    let items = list.iter().map(Value::items).sum::<usize>().max(1);
                    if items.checked_mul(times)? > MAX_ITEMS {
                        return None;
                    }
                    Value::List(std::iter::repeat_n(list, times).flatten().collect())
                }
                (Value::Number(first), Value::Number(second)) => Value::Number(first.checked_mul(second)?),
                _ => return None,
            };
        }
        Some(value)
    }

    fn atom(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let first = self.peek()?;
        match first {
            '[' => {
                self.take('[')?;
                self.list(depth).map(Value::List)
            }
            '(' => {
                self.take('(')?;
                let value = self.sum(depth + 1)?;
                self.take(')')?;
                Some(value)
            }
            '"' | '\'' => {
                let (text, rest) = self.rest[1..].split_once(first)?;
                self.rest = rest;
                (!text.contains('\\')).then(|| Value::Text(text.to_owned()))
            }
            _ => {
                let end = self.rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_.".contains(letter)));
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                if first.is_ascii_digit() { word.parse().ok().map(Value::Number) } else { (self.name)(word) }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Value>> {
        let mut list = Vec::new();
        while self.peek()? != ']' {
            list.push(self.sum(depth + 1)?);
            if self.peek()? != ']' {
                self.take(',')?;
            }
        }
        self.take(']')?;
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_values() {
        let none = |_: &str| None;
        let texts = |words: &[&str]| Value::List(words.iter().map(|word| Value::Text((*word).to_owned())).collect());
        assert_eq!(evaluate("4 * 2 + 1", &none), Some(Value::Number(9)));
        assert_eq!(evaluate("['a'] + [\"b\"] * 2", &none), Some(texts(&["a", "b", "b"])));
        assert_eq!(evaluate("[['a'] * 2,]", &none), Some(Value::List(vec![texts(&["a", "a"])])));
        let name = |word: &str| (word == "last").then(|| texts(&["m", "L"]));
        assert_eq!(evaluate("['t'] + last", &name), Some(texts(&["t", "m", "L"])));
        for text in ["", "last", "[", "[1", "f(1)", "['a'] * 99999999", "1 if x else 2", "['a' 'b']", "\"a"] {
            assert_eq!(evaluate(text, &none), None, "{text}");
        }
        assert_eq!(evaluate(&"[".repeat(100_000), &none), None);
    }
}
