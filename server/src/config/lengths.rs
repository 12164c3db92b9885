//! Flags of `planscope lengths`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `planscope lengths`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = super::help::LENGTHS)]
pub struct LengthsArguments {
    /// Dataset files: Parquet, Arrow, CSV, JSONL (plain, .gz, .zst), JSON, .npy, .npz, .idx.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Column or key with the lengths, texts or tokens. Default: selected by name, see
    /// docs/formats.md.
    #[arg(long)]
    pub column: Option<String>,
    /// Column with additional lengths to sum, for example the tokens of the completion.
    #[arg(long, requires = "column")]
    pub add: Option<String>,
    /// Column with the number of samples per row.
    #[arg(long)]
    pub weight: Option<String>,
    /// Unit of the column values: tokens, characters or bytes.
    #[arg(long)]
    pub unit: Option<String>,
    /// Characters per token for texts.
    #[arg(long, default_value_t = ingest::dataset::CHARACTERS_PER_TOKEN)]
    pub characters_per_token: f64,
    /// Tokenizer for counting tokens in texts: a Hugging Face tokenizer.json.
    #[arg(long, value_name = "tokenizer.json")]
    pub tokenizer: Option<PathBuf>,
    /// Name of the uploaded dataset. Default: name of the first file.
    #[arg(long, requires = "server")]
    pub name: Option<String>,
    /// Output file for the histogram.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Running server that receives the histogram, for example http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token.
    #[command(flatten)]
    pub token_file: super::TokenFile,
}
