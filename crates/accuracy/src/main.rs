//! `planscope-accuracy`: measures, prints, compares with the committed results, and writes new
//! results.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use accuracy::certainty::{self, Certainty};
use accuracy::report::json::Document;
use accuracy::report::{self, compare, console, markdown, plot};
use accuracy::{Accuracy, fit_host};
use anyhow::{Context, Result, bail};
use clap::Parser;

/// Compare the simulator with published measurements.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask accuracy", bin_name = "cargo xtask accuracy")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Arguments {
    /// Folder with `truth/`
    #[arg(long, value_name = "DIR", env = "PLANSCOPE_DATA")]
    data: PathBuf,
    /// Folder with accuracy.md and accuracy.json
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
    /// Only compare with accuracy.json, write nothing
    #[arg(long)]
    check: bool,
    /// Write accuracy.md, accuracy.json and the plots (the default)
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Write even if the error of a set increased
    #[arg(long, conflicts_with = "check")]
    accept: bool,
    /// Also write the model of errors to crates/plan/src/certainty/errors.json
    #[arg(long, conflicts_with = "check")]
    write_intervals: bool,
    /// Only fit the host overhead and print it next to the current constants, write nothing
    #[arg(long, conflicts_with_all = ["check", "write", "accept", "write_intervals"])]
    fit_host: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if arguments.fit_host {
        return fit_host(&arguments.data);
    }
    let accuracy = accuracy::measure(&arguments.data)?;
    print!("{}", console::table(&accuracy));
    let page = existing(&arguments.docs.join("accuracy.md"))?.unwrap_or_default();
    let remarks = markdown::remarks(&page);
    let Certainty { coefficients, evaluation } = certainty::fit(&accuracy);
    print!("{}", report::certainty::section(&evaluation));
    let now = Document::from_accuracy(&accuracy, Some(evaluation), &remarks);
    let committed_at = arguments.docs.join("accuracy.json");
    let committed: Option<Document> = match existing(&committed_at)? {
        Some(text) => Some(serde_json::from_str(&text).with_context(|| committed_at.display().to_string())?),
        None if arguments.check => bail!("{}: nothing to compare with", committed_at.display()),
        None => None,
    };
    let worse = committed.map_or_else(Vec::new, |committed| compare::worse(&committed, &now));
    for set in &worse {
        eprintln!("worse: {set}");
    }
    if !worse.is_empty() && !arguments.accept {
        bail!(
            "{} set(s) got worse by more than {} percentage point; nothing was written",
            worse.len(),
            compare::ALLOWED_POINTS
        );
    }
    if arguments.write_intervals {
        std::fs::write(ERRORS, certainty::to_json(&coefficients)?).with_context(|| ERRORS.to_owned())?;
        println!("wrote {ERRORS}");
    }
    if arguments.check { Ok(()) } else { write(&arguments.docs, &accuracy, &now, &remarks) }
}

/// Committed model of errors.
const ERRORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/src/certainty/errors.json");

fn fit_host(data: &Path) -> Result<()> {
    println!("fitted to {} rows of vtrain_single", accuracy::truth::FITTED_ROWS.len());
    println!("best:     {}", fit_host::fit_host(data)?);
    println!("current:  {}", fit_host::in_force(data)?);
    Ok(())
}

/// Returns the file content, or `None` if the file does not exist.
fn existing(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn write(docs: &Path, accuracy: &Accuracy, document: &Document, remarks: &BTreeMap<String, String>) -> Result<()> {
    let plots = docs.join("accuracy");
    std::fs::create_dir_all(&plots).with_context(|| plots.display().to_string())?;
    let put = |path: PathBuf, text: String| {
        println!("wrote {}", path.display());
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    };
    println!();
    for set in &accuracy.sets {
        if let Some(svg) = plot::scatter(set) {
            put(plots.join(format!("{}.svg", set.id)), svg)?;
        }
    }
    put(docs.join("accuracy.md"), markdown::page(accuracy, document.intervals.as_ref(), remarks))?;
    put(docs.join("accuracy.json"), document.to_json()?)
}
