//! Plans the scenarios of papers, prints published values next to computed values, writes
//! docs/papers.json, docs/papers.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use accuracy::papers::{PublishedPaper, Seeds, compare, console, fill};
use anyhow::{Context, Result, bail};
use api::papers::{Paper, Papers};
use clap::Parser;
use planner::outcome::ENGINE;

/// Compare published results with Planscope results.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask papers", bin_name = "cargo xtask papers")]
struct Arguments {
    /// Compare only this paper, for example pipeweaver
    #[arg(long, value_name = "ID")]
    paper: Option<String>,
    /// Seeds per scenario: its own and the numbers after it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Threads that plan the other seeds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Folder with the prepared scenarios and published/
    #[arg(long, value_name = "DIR", default_value = "examples")]
    examples: PathBuf,
    /// Folder with papers.md and papers.json
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
    /// Plan nothing, and write the tables of papers.md from papers.json
    #[arg(long, conflicts_with_all = ["paper", "dry_run"])]
    tables: bool,
    /// Print only, write nothing
    #[arg(long)]
    dry_run: bool,
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
    if arguments.tables {
        return write(&arguments.docs, Vec::new());
    }
    let published = published(&arguments.examples, arguments.paper.as_deref())?;
    let mut papers = Vec::with_capacity(published.len());
    for paper in &published {
        let began = Instant::now();
        let starts = |set: &str| eprintln!("{:7.1} s  {set}", began.elapsed().as_secs_f64());
        let seeds = Seeds { count: arguments.seeds, threads: arguments.threads };
        papers.push(compare(&arguments.examples, paper, seeds, &starts)?);
        starts("done");
    }
    for paper in &papers {
        print!("{}", console(paper));
    }
    if arguments.dry_run { Ok(()) } else { write(&arguments.docs, papers) }
}

/// Parses the published figures of all papers, or of the paper `only`, sorted by name.
fn published(examples: &Path, only: Option<&str>) -> Result<Vec<PublishedPaper>> {
    let folder = examples.join("published");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    let mut papers = Vec::new();
    for path in paths {
        let paper = PublishedPaper::read(&path)?;
        if only.is_none_or(|only| only == paper.id) {
            papers.push(paper);
        }
    }
    if papers.is_empty() {
        bail!("{}: no paper {}", folder.display(), only.unwrap_or_default());
    }
    Ok(papers)
}

/// Replaces the entries of these papers in the documents. Entries of other papers stay unchanged.
fn write(docs: &Path, papers: Vec<Paper>) -> Result<()> {
    let data = docs.join("papers.json");
    let earlier: Option<Papers> = match std::fs::read_to_string(&data) {
        Ok(text) => Some(serde_json::from_str(&text).with_context(|| data.display().to_string())?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| data.display().to_string()),
    };
    let page = docs.join("papers.md");
    let mut text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let mut all = earlier.map_or_else(Vec::new, |earlier| earlier.papers);
    for paper in papers {
        match all.iter_mut().find(|candidate| candidate.id == paper.id) {
            Some(slot) => *slot = paper,
            None => all.push(paper),
        }
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    for paper in &all {
        text = fill(&text, paper)?;
    }
    let document = Papers { engine: ENGINE.to_owned(), papers: all };
    for (path, text) in [(data, serde_json::to_string_pretty(&document)? + "\n"), (page, text)] {
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("wrote {}", path.display());
    }
    Ok(())
}
