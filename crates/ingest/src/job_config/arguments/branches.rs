//! Branches of a script: which parts of a line run. Parts whose condition is not decided are read as if they run.

use super::conditions::{and, decide, is_condition, matches_pattern, or};
use super::expand::{Variables, braced, replace};

/// Nesting state for branches.
#[derive(Debug, Clone, Default)]
pub(super) struct Branches {
    open: Vec<Branch>,
    /// Value of the conditions before `then`, while they are read.
    condition: Chain,
    /// Value of the commands before `&&` or `||`.
    chain: Chain,
}

/// An open `if`, `case` or group.
#[derive(Debug, Clone)]
struct Branch {
    kind: Kind,
    /// Whether an earlier part of the branch runs; `None` if it is not known.
    ran: Option<bool>,
    /// Whether the current part runs.
    runs: Option<bool>,
    /// The word of `case`, if it is known.
    word: Option<String>,
    /// The next text of `case` is a pattern.
    expects_pattern: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    If,
    Case,
    Group,
}

/// Value of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Chain {
    /// No condition: each command runs.
    #[default]
    Open,
    Tested(Option<bool>),
}

/// Operator before a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// The start of a line, or `;`.
    Next,
    /// `;;`
    NextCase,
    And,
    Or,
}

/// Returns the parts of a line with the operators before them. Operators in quotes, brackets and substitutions are no
/// separators.
pub(super) fn parts(line: &str) -> Vec<(Separator, &str)> {
    let mut found = Vec::new();
    let (mut quote, mut depth, mut start, mut separator) = (None, 0_u32, 0, Separator::Next);
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let rest = &line[at..];
        match quote {
            Some(mark) => {
                if letter == mark {
                    quote = None;
                }
                continue;
            }
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                continue;
            }
            None => {}
        }
        if rest.starts_with("[[") || rest.starts_with("((") || rest.starts_with("$(") {
            depth += 1;
            letters.next();
            continue;
        }
        if depth > 0 {
            if rest.starts_with("]]") || rest.starts_with("))") {
                depth -= 1;
                letters.next();
            } else if letter == ')' {
                depth -= 1;
            }
            continue;
        }
        let next = match letter {
            ';' if rest.starts_with(";;") => (Separator::NextCase, 2),
            ';' => (Separator::Next, 1),
            '&' if rest.starts_with("&&") => (Separator::And, 2),
            '|' if rest.starts_with("||") => (Separator::Or, 2),
            _ => continue,
        };
        found.push((separator, &line[start..at]));
        separator = next.0;
        start = at + next.1;
        if next.1 == 2 {
            letters.next();
        }
    }
    found.push((separator, &line[start..]));
    found
}

impl Branches {
    /// Advances to a part of a line. Returns its text without keywords, and whether it is in a branch that is not decided;
    /// `None` if it does not run.
    pub(super) fn enter<'a>(
        &mut self,
        separator: Separator,
        part: &'a str,
        variables: &Variables,
    ) -> Option<(&'a str, bool)> {
        let mut part = part.trim();
        if matches!(separator, Separator::Next | Separator::NextCase) {
            self.chain = Chain::Open;
        }
        if let Some(branch) = self.open.last_mut().filter(|_| separator == Separator::NextCase) {
            branch.expects_pattern = branch.kind == Kind::Case;
        }
        if let Chain::Tested(value) = &mut self.condition
            && matches!(separator, Separator::And | Separator::Or)
        {
            let next = decide(part, variables);
            *value = if separator == Separator::And { and(*value, next) } else { or(*value, next) };
            return self.live(part);
        }
        loop {
            let (first, after) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let after = after.trim_start();
            match first {
                "if" | "elif" => {
                    if first == "if" {
                        self.open.push(Branch::new(Kind::If, None));
                    } else if let Some(branch) = self.open.last_mut() {
                        branch.runs = if branch.ran == Some(true) { Some(false) } else { None };
                    }
                    self.condition = Chain::Tested(decide(after, variables));
                    return self.live(after);
                }
                "then" => {
                    let value =
                        if let Chain::Tested(value) = std::mem::take(&mut self.condition) { value } else { None };
                    if let Some(branch) = self.open.last_mut() {
                        branch.select(value);
                    }
                    part = after;
                }
                "else" => {
                    if let Some(branch) = self.open.last_mut() {
                        branch.select(Some(true));
                    }
                    part = after;
                }
                "fi" | "esac" => {
                    self.open.pop();
                    return None;
                }
                "case" => {
                    let (word, rest) = after.split_once(" in").unwrap_or((after, ""));
                    let word = replace(word.trim().trim_matches(['"', '\'']), variables);
                    let word = Some(word).filter(|word| !word.contains(['$', '`', ' ']));
                    self.open.push(Branch { word, expects_pattern: true, ..Branch::new(Kind::Case, None) });
                    part = rest.trim_start();
                    if part.is_empty() {
                        return None;
                    }
                }
                "do" => part = after,
                "{" => {
                    if self.chain != Chain::Open {
                        let runs = self.runs_after(separator);
                        self.open.push(Branch::new(Kind::Group, runs));
                        self.chain = Chain::Open;
                    }
                    part = after;
                }
                "}" if self.open.last().is_some_and(|branch| branch.kind == Kind::Group) => {
                    self.open.pop();
                    return None;
                }
                _ => match self.pattern(part) {
                    Some(rest) => part = rest,
                    None => break,
                },
            }
            if part.is_empty() {
                return None;
            }
        }
        self.command(separator, part, variables)
    }

    /// Enters the pattern of a `case` at the start of a part, for example `7b|7B) LAYERS=32`. Returns the text after it.
    fn pattern<'a>(&mut self, part: &'a str) -> Option<&'a str> {
        let branch = self.open.last_mut().filter(|branch| branch.expects_pattern)?;
        let (pattern, after) = part.trim_start_matches('(').split_once(')')?;
        if pattern.contains(['(', '=', '$']) {
            return None;
        }
        let value = branch.word.as_deref().and_then(|word| matches_pattern(word, pattern));
        branch.select(value);
        branch.expects_pattern = false;
        Some(after.trim_start())
    }

    /// Enters a command or a condition of a list.
    fn command<'a>(&mut self, separator: Separator, part: &'a str, variables: &Variables) -> Option<(&'a str, bool)> {
        let runs = self.runs_after(separator);
        if is_condition(part) {
            let value = decide(part, variables);
            self.chain = Chain::Tested(match (self.chain, separator) {
                (Chain::Tested(before), Separator::And) => and(before, value),
                (Chain::Tested(before), Separator::Or) => or(before, value),
                _ => value,
            });
        } else if part.starts_with('!') {
            self.chain = Chain::Tested(None);
        }
        if runs == Some(false) {
            return None;
        }
        self.live(part).map(|(part, is_branch)| (part, is_branch || runs.is_none()))
    }

    /// Returns whether a command after `separator` runs, by the values before it.
    const fn runs_after(&self, separator: Separator) -> Option<bool> {
        match (self.chain, separator) {
            (Chain::Tested(value), Separator::And) => value,
            (Chain::Tested(Some(value)), Separator::Or) => Some(!value),
            (Chain::Tested(None), Separator::Or) => None,
            _ => Some(true),
        }
    }

    /// Returns a part, and whether it is in a branch that is not decided; `None` if a branch around it does not run.
    fn live<'a>(&self, part: &'a str) -> Option<(&'a str, bool)> {
        let is_dead = self.open.iter().any(|branch| branch.runs == Some(false));
        (!is_dead).then_some((part, self.open.iter().any(|branch| branch.runs.is_none())))
    }
}

impl Branch {
    const fn new(kind: Kind, runs: Option<bool>) -> Self {
        Self { kind, ran: Some(false), runs, word: None, expects_pattern: false }
    }

    /// Starts the part with the condition `value`, which runs only if none before it did.
    fn select(&mut self, value: Option<bool>) {
        self.runs = and(self.ran.map(|ran| !ran), value);
        self.ran = or(self.ran, value);
    }
}

/// Line after the expansion of conditional texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) line: String,
    /// Texts whose condition is not decided.
    pub(super) undecided: Vec<String>,
}

/// Replaces `$([ "$X" = 1 ] && echo "--option")` and `${X:+--option}` by their texts if their condition is decided.
pub(super) fn expand_conditions(line: &str, variables: &Variables) -> Expanded {
    let mut expanded = Expanded { line: String::with_capacity(line.len()), undecided: Vec::new() };
    let mut rest = line;
    while let Some(start) = rest.find('$') {
        expanded.line.push_str(&rest[..start]);
        let text = &rest[start..];
        let Some((length, runs, content)) = conditional(text, variables) else {
            expanded.line.push('$');
            rest = &text[1..];
            continue;
        };
        match runs {
            Some(true) => expanded.line.push_str(&content),
            Some(false) => {}
            None => expanded.undecided.push(content),
        }
        rest = &text[length..];
    }
    expanded.line.push_str(rest);
    expanded
}

/// Returns the length, the value of the condition and the text of a conditional text at the start of `text`.
fn conditional(text: &str, variables: &Variables) -> Option<(usize, Option<bool>, String)> {
    if let Some(inner) = text.strip_prefix("${") {
        let body = braced(inner)?;
        let (name, content) = body.split_once(":+").or_else(|| body.split_once('+'))?;
        if !super::expand::is_name(name) || !content.contains("--") {
            return None;
        }
        return Some((body.len() + 3, variables.get(name).map(|value| !value.is_empty()), content.to_owned()));
    }
    let inner = text.strip_prefix("$(").filter(|inner| !inner.starts_with('('))?;
    let (body, length) = substitution(inner)?;
    let mut chain = None;
    let mut found = (Some(false), String::new());
    for (separator, part) in parts(body) {
        let part = part.trim();
        let echoed = part.strip_prefix("echo ").or_else(|| part.strip_prefix("printf "));
        match (chain, separator, echoed) {
            (None, Separator::Next, None) if is_condition(part) => chain = Some(decide(part, variables)),
            (Some(value), Separator::And, None) if is_condition(part) => {
                chain = Some(and(value, decide(part, variables)));
            }
            (Some(value), Separator::And | Separator::Or, Some(text)) => {
                let runs = if separator == Separator::And { value } else { value.map(|value| !value) };
                if runs != Some(false) {
                    found = (runs, text.trim_matches(['"', '\'']).to_owned());
                }
            }
            _ => return None,
        }
    }
    chain.map(|_| (length + 2, found.0, found.1))
}

/// Returns the text before the closing parenthesis, and its length with it.
fn substitution(text: &str) -> Option<(&str, usize)> {
    let (mut depth, mut quote) = (1_u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(mark), _) if letter == mark => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[..at], at + 1));
                }
            }
            _ => {}
        }
    }
    None
}
