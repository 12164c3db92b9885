//! Arguments of `planscope simulate`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `planscope simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateArguments {
    /// Execution plan file, or - for standard input.
    pub file: PathBuf,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
}
