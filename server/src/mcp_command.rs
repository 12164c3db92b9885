//! `planscope mcp`: the tools of the Model Context Protocol on standard input and output.

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::stdio;

use crate::config::McpArguments;
use crate::mcp::{Host, Tools};
use crate::workers::Threads;

/// Serves the tools until the client closes standard input.
pub fn run(arguments: &McpArguments) -> anyhow::Result<ExitCode> {
    let threads = arguments.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = Tools::new(Host::Process(threads)).serve(stdio()).await?;
        service.waiting().await?;
        Ok(ExitCode::SUCCESS)
    })
}
