//! The top-level modules of every crate form an acyclic graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::none;
use crate::source::sources;
use crate::uses::paths;

/// Imports between the top-level modules of a crate, with one place for each.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the crate and the top-level module of a source file.
fn source_module(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.split_once("/src/")?;
    let module = file.split('/').next()?.trim_end_matches(".rs");
    (!matches!(module, "lib" | "main")).then_some((folder, module))
}

/// Returns a cycle of modules, first module repeated at the end.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    fn visit<'i>(
        module: &'i str,
        imports: &'i Imports,
        path: &mut Vec<&'i str>,
        done: &mut BTreeSet<&'i str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|&other| other == module) {
            return Some(path[start..].iter().chain([&module]).map(|&name| name.to_owned()).collect());
        }
        if !done.contains(module) {
            path.push(module);
            for other in imports.get(module).into_iter().flat_map(BTreeMap::keys) {
                if let found @ Some(_) = visit(other, imports, path, done) {
                    return found;
                }
            }
            path.pop();
            done.insert(module);
        }
        None
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| visit(module, imports, &mut Vec::new(), &mut done))
}

#[test]
fn modules_have_no_import_cycles() {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for source in sources(".rs").iter().filter(|source| !source.is_tests()) {
        let Some((folder, module)) = source_module(&source.path) else { continue };
        let imports = crates.entry(folder.to_owned()).or_default();
        for (number, line) in source.program() {
            for path in paths(&line, &source.path) {
                let Some(other) = path.strip_prefix("crate::").and_then(|path| path.split("::").next()) else {
                    continue;
                };
                let is_module = other.starts_with(|letter: char| letter.is_ascii_lowercase());
                if is_module && other != module {
                    let location = format!("{}:{number}", source.path);
                    imports.entry(module.to_owned()).or_default().entry(other.to_owned()).or_insert(location);
                }
            }
        }
    }
    assert!(crates["server"].len() > 10, "the modules were not found");
    let offences: Vec<String> = crates
        .iter()
        .filter_map(|(folder, imports)| {
            let cycle = cycle(imports)?;
            let steps: Vec<String> =
                cycle.windows(2).map(|pair| format!("{} ({})", pair[0], imports[&pair[0]][&pair[1]])).collect();
            Some(format!("{folder}: {} -> {}", steps.join(" -> "), cycle[cycle.len() - 1]))
        })
        .collect();
    none(&offences, "modules import each other in a cycle");
}

#[test]
fn a_cycle_is_found() {
    let imports = |pairs: &[(&str, &str)]| {
        let mut all = Imports::new();
        for (from, to) in pairs {
            all.entry((*from).to_owned()).or_default().insert((*to).to_owned(), String::new());
        }
        all
    };
    assert_eq!(cycle(&imports(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    assert_eq!(cycle(&imports(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap(), ["b", "c", "b"]);
}
