//! Arguments of `planscope mcp`.

use clap::Args;

/// Arguments of `planscope mcp`.
#[derive(Debug, Clone, Args)]
pub struct McpArguments {
    /// Worker threads per search. Default: number of cores.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}
