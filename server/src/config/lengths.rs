//! Flags of `planscope lengths`.

use std::path::PathBuf;

use clap::Args;

/// Files to read lengths from, and the place of the result.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = super::help::LENGTHS)]
pub struct LengthsArguments {
    /// Files of a dataset: Parquet, Arrow, CSV, JSONL (plain, .gz, .zst), JSON, .npy, .npz, .idx.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Column or key with the lengths, texts or tokens; without it the table of names in docs/formats.md decides.
    #[arg(long)]
    pub column: Option<String>,
    /// Column whose lengths are added, for example the tokens of the completion.
    #[arg(long, requires = "column")]
    pub add: Option<String>,
    /// Column with the number of samples of each row.
    #[arg(long)]
    pub weight: Option<String>,
    /// Unit of the numbers of the column: tokens, characters or bytes.
    #[arg(long)]
    pub unit: Option<String>,
    /// Characters per token of texts.
    #[arg(long, default_value_t = ingest::dataset::CHARACTERS_PER_TOKEN)]
    pub characters_per_token: f64,
    /// Tokenizer that counts the tokens of texts: a tokenizer.json of Hugging Face.
    #[arg(long, value_name = "tokenizer.json")]
    pub tokenizer: Option<PathBuf>,
    /// Name of the uploaded dataset; without it the name of the first file.
    #[arg(long, requires = "server")]
    pub name: Option<String>,
    /// File to write the histogram to.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Running server to upload the histogram to, for example http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File of the token.
    #[command(flatten)]
    pub token_file: super::TokenFile,
}
