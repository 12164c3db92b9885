//! Build tool for developers and CI: `cargo xtask
//! setup|build|serve|test|bench|accuracy|papers|measurements|dist|lint`.
//!
//! The commands install missing tools, print each command before running it, and skip steps without
//! work.

mod apt;
mod bench;
mod chromium;
mod deny;
mod dist;
mod lint;
mod node;
mod serve;
mod setup;
mod step;
mod suite;
mod web;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::step::Step;
use crate::web::Profile;
use crate::workspace::Workspace;

/// Setup, build, serve, test and benchmark commands for developers and CI.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install build and test dependencies: the wasm target, the npm packages, Chromium
    Setup,
    /// Build the web files into target/web
    Build(BuildArguments),
    /// Set up, build, and run the dashboard
    Serve(ServeArguments),
    /// Set up and run all tests, browser tests included
    Test(TestArguments),
    /// Run all benchmarks and compare them with their targets in a table
    Bench {
        /// Only benchmarks with this text in their name: estimate, ranking, live, browser and so on
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Write the table to docs/performance.md
        #[arg(long)]
        write: bool,
    },
    /// Compare the simulator with published measurements and write docs/accuracy.md
    Accuracy(AccuracyArguments),
    /// Plan the setups from papers and write published and computed figures to docs/papers.md and
    /// docs/papers.json
    Papers {
        /// Arguments for the papers program, for example `--paper pipeweaver --dry-run`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Compare measured devices with the simulator and write docs/measurements.md
    Measurements {
        /// Outputs of `planscope measure` to store first, for example `h100-80gb=profile.json`
        #[arg(value_name = "FOLDER=FILE")]
        profiles: Vec<String>,
    },
    /// Build a self-contained executable with embedded web files and its SHA-256 into target/dist
    Dist,
    /// Check formatting, clippy for both targets, repository rules, licences and sources of
    /// dependencies
    Lint {
        /// Only check dependencies against the RustSec database, which requires github.com
        #[arg(long)]
        advisories: bool,
    },
}

#[derive(Debug, Args)]
struct BuildArguments {
    /// Fast build, larger download (the default)
    #[arg(long, conflicts_with = "release")]
    dev: bool,
    /// Small download: fat LTO and wasm-opt, takes minutes
    #[arg(long)]
    release: bool,
}

#[derive(Debug, Args)]
struct ServeArguments {
    /// Build server and web files in release mode instead of development mode
    #[arg(long)]
    release: bool,
    /// Arguments for `planscope serve`, for example `--address 127.0.0.1:9000`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
struct TestArguments {
    /// Skip the browser tests
    #[arg(long)]
    no_browser: bool,
    /// Run only the browser tests
    #[arg(long, conflicts_with = "no_browser")]
    only_browser: bool,
    /// Update the screenshots in docs/images from the browser tests
    #[arg(long, conflicts_with = "no_browser")]
    update_screenshots: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct AccuracyArguments {
    /// Folder with `truth/`
    #[arg(long, value_name = "DIR", env = "PLANSCOPE_DATA")]
    data: PathBuf,
    /// Only compare with docs/accuracy.json, write nothing
    #[arg(long)]
    check: bool,
    /// Write docs/accuracy.md, docs/accuracy.json and the plots (the default)
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
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Setup => setup::everything(&workspace),
        Command::Build(build) => {
            setup::web(&workspace)?;
            web::build(&workspace, if build.release { Profile::Release } else { Profile::Dev })
        }
        Command::Serve(arguments) => {
            let profile = if arguments.release { Profile::Release } else { Profile::Dev };
            serve::serve(&workspace, profile, &arguments.rest)
        }
        Command::Test(arguments) => {
            let scope = match (arguments.no_browser, arguments.only_browser) {
                (true, _) => suite::Scope::WithoutBrowser,
                (_, true) => suite::Scope::OnlyBrowser,
                _ => suite::Scope::Everything,
            };
            let pictures = if arguments.update_screenshots { suite::Pictures::Renew } else { suite::Pictures::Keep };
            suite::run(&workspace, scope, pictures)
        }
        Command::Bench { only, write } => bench::run(&workspace, &bench::Wanted { only, write }),
        Command::Accuracy(arguments) => {
            let flags = [
                ("--check", arguments.check),
                ("--write", arguments.write),
                ("--accept", arguments.accept),
                ("--write-intervals", arguments.write_intervals),
                ("--fit-host", arguments.fit_host),
            ];
            Step::cargo(&workspace)
                .args(["run", "--release", "--package", "planscope-accuracy", "--", "--data"])
                .arg(&arguments.data)
                .args(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag))
                .run()
        }
        Command::Papers { rest } => Step::cargo(&workspace)
            .args(["run", "--release", "--package", "planscope-accuracy", "--bin", "planscope-papers", "--"])
            .args(rest)
            .run(),
        Command::Measurements { profiles } => Step::cargo(&workspace)
            .args(["run", "--release", "--package", "planscope-accuracy", "--bin", "planscope-measurements", "--"])
            .args(profiles)
            .run(),
        Command::Dist => {
            setup::web(&workspace)?;
            dist::run(&workspace)
        }
        Command::Lint { advisories: true } => deny::advisories(&workspace),
        Command::Lint { advisories: false } => lint::run(&workspace),
    }
}
