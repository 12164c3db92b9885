//! Table of all performance targets: target, measured value, ratio.
//!
//! The benchmarks are in the crates that they measure. This module runs them sequentially and
//! compares their medians with [`targets::TARGETS`].

mod divan;
mod targets;

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::step::Step;
use crate::web::{self, Profile};
use crate::workspace::Workspace;
use crate::{chromium, node, setup};
use targets::{Better, Source, TARGETS, Target};

const PAGE: &str = "docs/performance.md";
/// Prefix of a benchmark output line: `measured NAME: VALUE UNIT`.
const MEASURED: &str = "measured ";

/// Options of the bench command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Runs only benchmarks whose source name contains this text.
    pub(crate) only: Option<String>,
    /// True to write the table to docs/performance.md.
    pub(crate) write: bool,
}

/// Measured value: source, name, value in ms, MB, kB or per second, in the unit of the target.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    source: &'static str,
    name: String,
    value: f64,
}

/// Runs the benchmarks and prints the table.
pub(crate) fn run(workspace: &Workspace, wanted: &Wanted) -> Result<()> {
    let (mut measurements, mut ran) = (Vec::new(), Vec::new());
    for source in Source::ALL {
        if wanted.only.as_ref().is_some_and(|only| !source.name().contains(only.as_str())) {
            continue;
        }
        let printed = match source {
            Source::Browser => browser(workspace)?,
            _ => Step::cargo(workspace).args(["bench", "--workspace", "--bench", source.name()]).run_and_read()?,
        };
        measurements.extend(read(source, &printed));
        ran.push(source);
    }
    println!("\n{}", table(&measurements, |_| None));
    if wanted.write {
        let page = workspace.at(PAGE);
        let old = fs::read_to_string(&page).with_context(|| format!("cannot read {PAGE}"))?;
        // A benchmark that ran without output loses its row. Rows of other benchmarks are retained.
        let existing_row = |target: &Target| if ran.contains(&target.source) { None } else { find_row(target, &old) };
        let renewed = replaced(&old, &table(&measurements, existing_row))?;
        fs::write(&page, renewed).with_context(|| format!("cannot write {PAGE}"))?;
        println!("bench: {PAGE} is written");
    }
    Ok(())
}

/// Browser benchmark with the release server and web files.
fn browser(workspace: &Workspace) -> Result<String> {
    setup::web(workspace)?;
    let chromium = chromium::ensure(workspace)?;
    web::build(workspace, Profile::Release)?;
    Step::cargo(workspace).args(["build", "--release", "--workspace", "--bin", "planscope"]).run()?;
    node::node(workspace)
        .arg("tests/e2e/bench/main.mjs")
        .env("CHROMIUM", chromium)
        .env("PLANSCOPE_WEB", workspace.web())
        .env("PLANSCOPE_PROGRAM", workspace.program("release", "planscope"))
        .run_and_read()
}

fn read(source: Source, printed: &str) -> Vec<Figure> {
    let figure = |(name, value)| Figure { source: source.name(), name, value };
    let measured_lines = printed.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix(MEASURED)?.rsplit_once(": ")?;
        Some((name.to_owned(), value.split_whitespace().next()?.parse().ok()?))
    });
    measured_lines.chain(divan::medians_ms(printed)).map(figure).collect()
}

/// Returns the beginning of a target's row.
fn beginning(target: &Target) -> String {
    let Target { issue, title, .. } = target;
    format!("| {issue} | {title} | ")
}

/// Returns the existing row of a target from the page.
fn find_row(target: &Target, page: &str) -> Option<String> {
    let begins = beginning(target);
    page.lines().find(|line| line.starts_with(&begins)).map(|line| format!("{line}\n"))
}

/// Formats the row of a target with its measured value.
fn row(target: &Target, measurements: &[Figure]) -> String {
    let Target { limit, unit, source, name, better, .. } = target;
    let begins = beginning(target);
    let found = measurements.iter().find(|figure| figure.source == source.name() && figure.name == *name);
    let (measured, ratio) = match found {
        None => ("not run".to_owned(), "–".to_owned()),
        Some(figure) => {
            let value = figure.value * target.factor();
            let ratio = match better {
                Better::Less => value / limit,
                Better::More => limit / value,
            };
            (
                format!("{} {unit}", three_digits(value)),
                format!("{}{}", three_digits(ratio), if ratio <= 1.0 { "" } else { " **missed**" }),
            )
        }
    };
    let sign = if *better == Better::Less { "≤" } else { "≥" };
    format!("{begins}{sign} {} {unit} | {measured} | {ratio} |\n", three_digits(*limit))
}

/// Formats the table. Rows returned by `kept` are retained.
fn table(measurements: &[Figure], existing_row: impl Fn(&Target) -> Option<String>) -> String {
    let mut table = "| issue | what | target | measured | of the target |\n|---|---|---:|---:|---:|\n".to_owned();
    for target in TARGETS {
        table.push_str(&existing_row(target).unwrap_or_else(|| row(target, measurements)));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // `write!` to a string cannot fail.
    let _ = writeln!(table, "\nMedians, release builds, {cores} cores. A ratio of 1 or less meets the target.");
    table
}

fn three_digits(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else if value.abs() >= 0.1 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

const FROM: &str = "<!-- measured: cargo xtask bench --write -->";
const TO: &str = "<!-- end -->";

/// Replaces the table between the markers in the page.
fn replaced(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(FROM).with_context(|| format!("{PAGE} has no {FROM}"))?;
    let (_, after) = rest.split_once(TO).with_context(|| format!("{PAGE} has no {TO}"))?;
    Ok(format!("{before}{FROM}\n{table}{TO}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurement_is_read_and_compared_with_its_target() {
        let printed = "noise\nmeasured what-if p95: 80.5 ms\n  measured a: b: 3 kB\n";
        let measurements = read(Source::Browser, printed);
        assert_eq!(measurements[0], Figure { source: "browser", name: "what-if p95".to_owned(), value: 80.5 });
        assert_eq!((measurements[1].name.as_str(), measurements[1].value), ("a: b", 3.0));
        let target = Target {
            issue: 8,
            title: "what if",
            limit: 100.0,
            unit: "ms",
            source: Source::Browser,
            name: "what-if p95",
            better: Better::Less,
        };
        assert_eq!(row(&target, &measurements), "| 8 | what if | ≤ 100 ms | 80.5 ms | 0.81 |\n");
        assert!(row(&target, &[]).contains("not run"));
        let page = "head\n| 8 | what if then | ≤ 9 ms | 8 ms | 0.89 |\n| 8 | what if | ≤ 100 ms | 70.0 ms | 0.70 |\n";
        assert_eq!(find_row(&target, page).unwrap(), "| 8 | what if | ≤ 100 ms | 70.0 ms | 0.70 |\n");
        assert_eq!(find_row(&target, "nothing"), None);
        let more = Target { limit: 161.0, better: Better::More, ..target };
        assert!(row(&more, &measurements).ends_with("| 2.00 **missed** |\n"));
    }

    #[test]
    fn target_names_are_unique() {
        let mut names: Vec<_> =
            TARGETS.iter().map(|target| (target.source.name(), target.name, target.title)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn table_replaces_the_previous_table() {
        let page = format!("head\n{FROM}\nold\n{TO}\ntail");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("head\n{FROM}\nnew\n{TO}\ntail"));
        assert!(replaced("nothing", "new").is_err());
    }
}
