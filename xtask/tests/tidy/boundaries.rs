//! Allowed dependencies between modules.

use crate::none;
use crate::source::sources;
use crate::uses::paths;

/// Modules that compute plans. The checker must not use their functions.
const PLANNING_MODULES: [&str; 14] = [
    "action",
    "analysis",
    "compare",
    "engine",
    "estimate",
    "exact",
    "execution_plan",
    "lower_bound",
    "plan",
    "planners",
    "schedule",
    "schedule_comparison",
    "simulate",
    "solve",
];

/// Returns the module of a path into another library crate of the planner, and the remaining path.
fn library(path: &str) -> Option<(&str, &str)> {
    let (_, behind) = path.strip_prefix("planscope_")?.split_once("::")?;
    Some(behind.split_once("::").unwrap_or((behind, "")))
}

/// Returns the first module of a path in `root` and the remaining path.
fn inside<'p>(path: &'p str, root: &str) -> Option<(&'p str, &'p str)> {
    let behind = path.strip_prefix(root)?.strip_prefix("::")?;
    Some(behind.split_once("::").unwrap_or((behind, "")))
}

#[test]
fn checker_shares_no_code_with_the_planners() {
    let mut offences = Vec::new();
    for source in sources(".rs") {
        // Checker tests need plans to check.
        if !source.is_under("crates/check/src/") || source.is_tests() {
            continue;
        }
        for (number, line) in source.program() {
            for path in paths(&line, &source.path) {
                let Some((module, behind)) = library(&path) else { continue };
                // The checker may use the types that it receives, but must not call functions in
                // these modules.
                if PLANNING_MODULES.contains(&module)
                    && !behind.split("::").any(|name| name.starts_with(char::is_uppercase))
                {
                    offences.push(format!("{}:{number}: {path}", source.path));
                }
            }
        }
    }
    none(&offences, "the checker uses more than the types of what it judges");
}

#[test]
fn pages_do_not_compute_domain_values() {
    const DOMAIN: [&str; 9] =
        ["check", "compare", "cost", "engine", "estimate", "lower_bound", "planners", "simulate", "solve"];
    // Scenario and outcome types located next to their formulas.
    const ALLOWED: [&str; 1] = ["cost::overrides::"];
    let mut offences = Vec::new();
    for source in sources(".rs").iter().filter(|source| source.is_under("frontend/src/") && !source.is_tests()) {
        for (number, line) in source.program() {
            for path in paths(&line, &source.path) {
                let path = path.strip_prefix("api::").unwrap_or(&path);
                let Some((module, behind)) = inside(path, "planner") else { continue };
                let full = format!("{module}::{behind}");
                if DOMAIN.contains(&module) && !ALLOWED.iter().any(|word| full.starts_with(word)) {
                    offences.push(format!("{}:{number}: {path}", source.path));
                }
            }
        }
    }
    none(&offences, "the frontend calls formulas, planners, simulator or checker");
}

/// Only commands with an explicit server address connect to a server.
#[test]
fn the_server_fetches_nothing_that_users_name() {
    let mut offences = Vec::new();
    for source in sources(".rs")
        .iter()
        .filter(|source| source.is_under("server/src/") && source.path != "server/src/remote.rs" && !source.is_tests())
    {
        for (number, line) in source.program() {
            if ["ureq", "reqwest", "hyper::client", "TcpStream::connect("].iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{number}", source.path));
            }
        }
    }
    none(&offences, "the server asks other machines");
}
