//! `planscope mcp`: checks of training configurations as tools of the Model Context Protocol, on standard input and output.

mod glossary;
mod tools;

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::stdio;

use crate::config::McpArguments;
use tools::Tools;

/// Serves the tools until the client closes standard input.
pub fn run(arguments: &McpArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = Tools::new(arguments.search_threads).serve(stdio()).await?;
        service.waiting().await?;
        Ok(ExitCode::SUCCESS)
    })
}
