//! Names of columns that contain totals over several samples, or that denote a group of samples.

use super::{last, letters};

/// Returns whether a name may count tokens over any number of samples: `num_tokens`,
/// `total_tokens`, `tokens`.
pub(in super::super) fn may_be_total(name: &str) -> bool {
    let totals = [
        "tokens",
        "numtokens",
        "ntokens",
        "tokencount",
        "tokenscount",
        "numberoftokens",
        "counttokens",
        "numtok",
        "numtoks",
        "ntok",
        "ntoks",
        "tokcount",
        "tokcnt",
        "tokencnt",
        "nbtokens",
        "totaltokens",
        "numtotaltokens",
        "totaltokencount",
    ];
    totals.contains(&letters(name).as_str())
}

/// Returns whether a database generated the name for an unnamed query column: `f0_`, `_col1`,
/// `EXPR$1`, `?column?`.
pub(in super::super) fn is_anonymous(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let base = name.trim_end_matches('_').trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(base, "f" | "_col" | "_c" | "expr" | "expr$" | "?column?" | "(no column name)") && base != name
        || matches!(name.as_str(), "?column?" | "(no column name)")
}

/// Returns whether a name counts the samples of a batch: `batch_size`, `micro_batch_size`.
pub(in super::super) fn is_batch_size(name: &str) -> bool {
    let name = letters(last(name));
    name == "bs" || name == "mbs" || name == "gbs" || name.ends_with("batchsize") || name == "seqsperbatch"
}

/// Returns whether a name counts training steps.
pub(in super::super) fn is_steps(name: &str) -> bool {
    ["steps", "numsteps", "nsteps", "trainsteps", "iterations", "iters", "untilstep"].contains(&letters(name).as_str())
}

/// Returns whether a name numbers the training step of a row.
pub(in super::super) fn is_step(name: &str) -> bool {
    let name = letters(last(name));
    ["step", "globalstep", "iteration", "iter", "update", "numupdates", "trainglobalstep"].contains(&name.as_str())
}

/// Returns whether a name is a metric of a training step.
pub(in super::super) fn is_training_metric(name: &str) -> bool {
    let name = letters(last(name));
    ["loss", "trainloss", "lmloss", "learningrate", "lr", "gradnorm"].contains(&name.as_str())
}

/// Returns whether a name denotes the total tokens of a sample.
pub(in super::super) fn is_total_tokens(name: &str) -> bool {
    ["totaltokens", "numtotaltokens", "totaltokencount"].contains(&letters(last(name)).as_str())
}

/// Returns whether a name denotes a group of samples: `shard`, `batch_id`, `source`.
pub(in super::super) fn is_group(name: &str) -> bool {
    let groups = [
        "shard", "shards", "batch", "part", "chunk", "file", "source", "dataset", "subset", "domain", "worker", "rank",
        "step",
    ];
    let name = letters(name);
    let base = ["id", "idx", "index", "name"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    groups.contains(&base)
}

/// Returns whether a name denotes a group whose tokens a table may sum up, row by row: `split`,
/// `language`, `user`, `day`, `file`.
pub(in super::super) fn names_rows(name: &str) -> bool {
    const GROUPS: [&str; 39] = [
        "shard",
        "file",
        "filename",
        "source",
        "dataset",
        "datasetname",
        "subset",
        "subsetname",
        "domain",
        "corpus",
        "collection",
        "split",
        "language",
        "lang",
        "locale",
        "country",
        "region",
        "user",
        "username",
        "customer",
        "tenant",
        "team",
        "organization",
        "org",
        "project",
        "day",
        "date",
        "week",
        "weekday",
        "month",
        "quarter",
        "year",
        "category",
        "topic",
        "license",
        "crawl",
        "snapshot",
        "dump",
        "model",
    ];
    let name = letters(last(name));
    let base = ["id", "name"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    GROUPS.contains(&base) || GROUPS.contains(&name.as_str())
}
