//! The planscope program.

use std::process::ExitCode;

use clap::Parser;
use server::config::{Cli, Command};
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Serve(arguments) => {
            let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
            tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(server::serve::run(arguments))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Plan(arguments) => server::plan_command::run(&arguments),
        Command::Schedule(arguments) => server::schedule_command::run(&arguments),
        Command::Openapi => {
            println!("{}", server::openapi::document().to_pretty_json()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}
