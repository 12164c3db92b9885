//! Paths imported by `use` statements, and paths in a line.

use crate::source::Line;

/// Replaces each `use` statement by a line per path, with the line number of the statement.
pub(crate) fn split_uses(lines: Vec<(usize, &str)>) -> Vec<Line> {
    let mut expanded = Vec::new();
    let mut lines = lines.into_iter();
    while let Some((number, line)) = lines.next() {
        let Some(start) = use_tree(line) else {
            expanded.push((number, line.to_owned()));
            continue;
        };
        let mut tree = start.to_owned();
        while !tree.ends_with(';') {
            let Some((_, next)) = lines.next() else { break };
            tree.push_str(next.trim());
        }
        let mut paths = Vec::new();
        leaves("", tree.trim_end_matches(';'), &mut paths);
        expanded.extend(paths.into_iter().map(|path| (number, format!("use {path};"))));
    }
    expanded
}

/// Returns the tree after `use`, for any visibility.
fn use_tree(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (seen, tree) = line.split_once("use ")?;
    let visible = seen.is_empty() || seen.starts_with("pub") && !seen.contains([';', '{', '=']);
    visible.then(|| tree.trim())
}

fn leaves(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    match tree.split_once('{') {
        None if tree.is_empty() => {}
        None if tree == "self" => paths.push(prefix.trim_end_matches("::").to_owned()),
        None => paths.push(format!("{prefix}{tree}")),
        Some((head, inside)) => {
            let prefix = format!("{prefix}{}", head.trim());
            let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
            let (mut depth, mut from) = (0, 0);
            for (at, sign) in inside.char_indices() {
                match sign {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        leaves(&prefix, &inside[from..at], paths);
                        from = at + 1;
                    }
                    _ => {}
                }
            }
            leaves(&prefix, &inside[from..], paths);
        }
    }
}

/// Returns the paths in a line. Paths with `crate`, `self` or `super` are resolved to the crate
/// root.
pub(crate) fn paths(line: &str, file: &str) -> Vec<String> {
    let signs = |sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | ':' | '*'));
    let named = line.split(signs).filter(|word| word.contains("::"));
    named.map(|path| resolved(path.trim_matches(':'), file)).collect()
}

fn resolved(path: &str, file: &str) -> String {
    let (_, module) = file.split_once("/src/").unwrap_or(("", file));
    let module = module.trim_end_matches(".rs");
    let mut inside: Vec<&str> = module.split('/').filter(|part| !matches!(*part, "lib" | "main")).collect();
    let mut rest: Vec<&str> = path.split("::").collect();
    let is_relative = matches!(rest[0], "self" | "super");
    while let Some(word @ ("self" | "super")) = rest.first().copied() {
        rest.remove(0);
        if word == "super" {
            inside.pop();
        }
    }
    if !is_relative {
        return rest.join("::");
    }
    ["crate"].into_iter().chain(inside).chain(rest).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiline_use_becomes_separate_paths() {
        let text =
            "use a::{\n    b::{self, C},\n    d as e,\n};\npub(crate) use f::*;\nlet x = a::use_it();\nuse std::env;";
        let lines = split_uses(text.lines().enumerate().collect());
        let lines: Vec<_> = lines.iter().map(|(number, line)| format!("{number} {line}")).collect();
        assert_eq!(
            lines,
            [
                "0 use a::b;",
                "0 use a::b::C;",
                "0 use a::d as e;",
                "4 use f::*;",
                "5 let x = a::use_it();",
                "6 use std::env;"
            ]
        );
    }

    #[test]
    fn relative_paths_begin_at_the_crate() {
        let joined_paths = |line: &str, file: &str| paths(line, file).join(" ");
        assert_eq!(joined_paths("use super::super::plan::Plan;", "crates/check/src/check/run.rs"), "crate::plan::Plan");
        assert_eq!(joined_paths("use super::plan::Plan;", "crates/check/src/check.rs"), "crate::plan::Plan");
        assert_eq!(
            joined_paths("f(self::x::y(), Kind::all())", "crates/check/src/check.rs"),
            "crate::check::x::y Kind::all"
        );
        assert_eq!(joined_paths("use api::planner::plan::*;", "frontend/src/app.rs"), "api::planner::plan::*");
    }
}
