//! Fuzz target functions. `tests/tests/fuzz` compiles this file too and calls the same functions.

pub mod answers;
pub mod configurations;
pub mod dataset;
pub mod dataset_stream;
pub mod execution_file;
pub mod job_config;
pub mod link;
pub mod log;
pub mod log_in_pieces;
pub mod log_setup;
pub mod log_table;
pub mod profile;
pub mod question;
pub mod scenario;
pub mod schedule_csv;
pub mod sweep;
pub mod tensorboard;
pub mod tokenizer;
pub mod trace;

/// Fuzz target function.
pub type Read = fn(&[u8]);

/// All readers by the name of their target, which is also the name of their seed folder.
pub const ALL: [(&str, Read); 19] = [
    ("answers", answers::read),
    ("configurations", configurations::read),
    ("dataset", dataset::read),
    ("dataset_stream", dataset_stream::read),
    ("execution_file", execution_file::read),
    ("job_config", job_config::read),
    ("link", link::read),
    ("log", log::read),
    ("log_in_pieces", log_in_pieces::read),
    ("log_setup", log_setup::read),
    ("log_table", log_table::read),
    ("profile", profile::read),
    ("question", question::read),
    ("scenario", scenario::read),
    ("schedule_csv", schedule_csv::read),
    ("sweep", sweep::read),
    ("tensorboard", tensorboard::read),
    ("tokenizer", tokenizer::read),
    ("trace", trace::read),
];
