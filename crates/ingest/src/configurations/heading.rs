//! Finds the column that a header cell names.

use super::column::COLUMNS;

/// A known column at a position of the header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Heading {
    /// Name of the column.
    pub column: &'static str,
    /// Factor from the unit of the header to the unit of the column.
    pub factor: f64,
    /// Another name of a column whose exact name is in the table too.
    pub is_copy: bool,
}

impl Heading {
    const fn new(column: &'static str, factor: f64) -> Self {
        Self { column, factor, is_copy: false }
    }
}

/// Meaning of a header cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Known(Heading),
    /// The name stands for one of several columns.
    Ambiguous(&'static [&'static str]),
    Unknown,
}

/// Other usual names of columns, as [`key`] returns them: (column, names).
pub const ALIASES: [(&str, &[&str]); 55] = [
    ("gpu", &["accelerator", "device", "gputype", "gpumodel", "gpuname", "devicetype", "acceleratortype", "hardware"]),
    ("n_gpus", &["devices", "accelerators", "gpucount", "worldsize", "totalgpus"]),
    ("gpus_per_node", &["gpupernode", "gpusnode", "gpuspernodes", "devicespernode", "nprocpernode"]),
    ("model", &["modelname", "modelid", "modelnameorpath"]),
    ("layers", &["hiddenlayers"]),
    ("hidden", &["dmodel", "hiddendim", "modeldim"]),
    ("heads", &["attentionheads", "attnheads"]),
    ("kv_heads", &["keyvalueheads", "querygroups"]),
    ("ffn", &["intermediate", "ffnhidden", "ffndim", "dff", "mlpdim", "mlphidden"]),
    ("vocab", &["vocabulary", "paddedvocab"]),
    ("seq_len", &["seqlength", "sequencelength", "sequencelen", "maxseqlen", "maxseqlength", "contextlength"]),
    ("n_experts", &["moeexperts", "routedexperts"]),
    ("top_k", &["expertspertok", "expertspertoken", "moeroutertopk", "moetopk", "routertopk"]),
    ("expert_ffn", &["moeintermediate", "moeffnhidden", "expertintermediate"]),
    ("shared_expert_ffn", &["moesharedexpertintermediate", "sharedexpertintermediate"]),
    ("dense_layers", &["firstkdensereplace"]),
    ("head_size", &["headdim", "attentionheaddim", "kvchannels"]),
    ("window", &["slidingwindow"]),
    ("q_lora_rank", &["queryrank"]),
    ("kv_lora_rank", &["kvrank"]),
    ("qk_nope_head_size", &["qknopeheaddim", "qkheaddim"]),
    ("qk_rope_head_size", &["qkropeheaddim", "qkposembheaddim"]),
    ("v_head_size", &["vheaddim"]),
    ("mtp_layers", &["nextnpredictlayers"]),
    ("lora_rank", &["lorar"]),
    ("lora_targets", &["loratargetmodules"]),
    ("cp_exchange", &["cpcommtype"]),
    ("fp8_activation_input", &["activationfuncfp8inputstore"]),
    ("fp8_weights", &["fp8params", "fp8paramgather", "fp8allgather"]),
    ("tp", &["tensorparallel", "tensormodelparallel", "tensorparallelism"]),
    ("pp", &["pipelineparallel", "pipelinemodelparallel", "pipelineparallelism", "pipelinestages"]),
    ("dp", &["dataparallel", "dataparallelism", "dpreplicas"]),
    ("cp", &["contextparallel", "contextparallelism"]),
    ("ep", &["expertparallel", "expertmodelparallel", "expertparallelism"]),
    ("etp", &["experttensorparallel"]),
    ("vpp", &["virtualpipeline", "virtualpipelinemodelparallel", "vppchunks", "virtualstages"]),
    ("microbatch", &["mbs", "perdevicetrainbatch", "trainmicrobatchsizepergpu", "microbatchpergpu"]),
    ("global_batch", &["gbs", "globalbatchsequences", "globaltrainbatch"]),
    (
        "recompute",
        &[
            "activationcheckpointing",
            "gradientcheckpointing",
            "activationrecomputation",
            "activationrecompute",
            "recomputation",
            "recomputegranularity",
        ],
    ),
    ("recompute_layers", &["recomputenumlayers"]),
    ("sequence_parallel", &["sequenceparallelism"]),
    ("zero", &["zerostage", "deepspeedstage", "zerolevel"]),
    ("shard_degree", &["dpshard", "hsdp"]),
    ("precision", &["dtype", "trainingprecision", "computeprecision", "mixedprecision"]),
    ("framework", &["trainingframework", "trainer", "library"]),
    ("execution", &["compiled", "executionmode"]),
    ("attention", &["attentionkernel", "attentionbackend", "attnimplementation", "attentionimplementation"]),
    ("tied_embeddings", &["tiedwordvectors", "tiewordembeddings", "tieembeddings", "tiedwordembeddings"]),
    ("optimizer", &["optim"]),
    ("gradients", &["gradientdtype", "graddtype"]),
    ("parameter_offload", &["offloadparams", "paramoffload", "offloadparam"]),
    ("link_gb_per_s", &["linkbandwidth", "nvlinkbandwidth", "intranodebandwidth"]),
    ("network_gb_per_s", &["networkgbperspergpu", "networkbandwidth", "internodebandwidth"]),
    ("host_memory_gib", &["hostmemory", "cpumemory", "hostram"]),
    ("memory_reserve_gib", &["memoryreserve", "reservedmemory"]),
];

/// Names that stand for several columns.
const AMBIGUOUS: [(&[&str], &[&str]); 6] = [
    (&["batch", "bs", "trainbatch", "localbatch", "batches"], &["microbatch", "global_batch"]),
    (&["modelparallel", "mp"], &["tp", "pp"]),
    (&["sp"], &["sequence_parallel", "cp"]),
    (&["bandwidth"], &["link_gb_per_s", "network_gb_per_s"]),
    (&["offload", "cpuoffload"], &["optimizer_offload", "parameter_offload"]),
    (&["overlap"], &["tensor_overlap", "data_overlap", "expert_overlap"]),
];

/// Units in brackets after a name: (unit, columns, factor to the unit of the column).
const UNITS: [(&str, &[&str], f64); 11] = [
    ("tokens", &["seq_len", "window"], 1.0),
    ("sequences", &["microbatch", "global_batch"], 1.0),
    ("samples", &["microbatch", "global_batch"], 1.0),
    ("sequences/gpu", &["microbatch"], 1.0),
    ("gib", &["host_memory_gib", "memory_reserve_gib"], 1.0),
    ("gb", &["host_memory_gib", "memory_reserve_gib"], 1e9 / 1_073_741_824.0),
    ("gb/s", &["link_gb_per_s", "network_gb_per_s"], 1.0),
    ("gbps", &["link_gb_per_s", "network_gb_per_s"], 0.125),
    ("gbit/s", &["link_gb_per_s", "network_gb_per_s"], 0.125),
    ("gpus", &["n_gpus", "tp", "pp", "dp", "cp", "ep"], 1.0),
    ("degree", &["tp", "pp", "dp", "cp", "ep", "etp", "vpp"], 1.0),
];

/// Returns the meaning of a header cell such as `#GPUs`, `Micro Batch Size` or `Network bandwidth (Gbit/s)`.
pub(super) fn meaning(text: &str) -> Meaning {
    let text = text.trim();
    if let Some(column) = exact(text) {
        return Meaning::Known(Heading::new(column, 1.0));
    }
    let (name, unit) = split_unit(text);
    let plain = key(name);
    // `# micro batch` is a number of microbatches, not their size.
    if plain == "microbatch" && is_count(name) {
        return Meaning::Unknown;
    }
    let Some(column) = column(&plain) else {
        let several = AMBIGUOUS.iter().find(|(names, _)| names.contains(&plain.as_str()));
        return several.map_or(Meaning::Unknown, |(_, columns)| Meaning::Ambiguous(columns));
    };
    let Some(unit) = unit else { return Meaning::Known(Heading::new(column, 1.0)) };
    // Gb/s and GB/s differ by a factor of 8. Only the case of the letters distinguishes them.
    let unit = match unit {
        "Gb/s" => "gbit/s".to_owned(),
        "GBps" => "gb/s".to_owned(),
        _ => unit.replace(' ', "").to_ascii_lowercase(),
    };
    let known = UNITS.iter().find(|(name, columns, _)| *name == unit && columns.contains(&column));
    known.map_or(Meaning::Unknown, |&(_, _, factor)| Meaning::Known(Heading::new(column, factor)))
}

/// True if the text is the name of a column.
pub(super) fn is_exact(text: &str) -> bool {
    exact(text.trim()).is_some()
}

fn exact(text: &str) -> Option<&'static str> {
    COLUMNS.iter().map(|column| column.name).find(|name| name.eq_ignore_ascii_case(text))
}

fn column(plain: &str) -> Option<&'static str> {
    let own = COLUMNS.iter().map(|column| column.name).find(|name| key(name) == plain);
    own.or_else(|| ALIASES.iter().find(|(_, names)| names.contains(&plain)).map(|(column, _)| *column))
}

/// Splits `Seq Len (tokens)` into name and unit.
fn split_unit(text: &str) -> (&str, Option<&str>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, unit)) = text.strip_suffix(close).and_then(|text| text.rsplit_once(open))
            && !name.trim().is_empty()
        {
            return (name, Some(unit.trim()));
        }
    }
    (text, None)
}

/// True if a name starts with a word of counts and does not end with `size`, for example `# micro batch`.
fn is_count(name: &str) -> bool {
    let lower = name.trim().to_lowercase();
    (lower.starts_with('#') || lower.starts_with("n ") || lower.starts_with("n_") || lower.starts_with("num"))
        && !lower.contains("size")
}

/// Returns letters and digits in lower case, without words of counts: `# of GPUs`, `num_gpus` and `n_gpus` are `gpus`.
/// `size` and `degree` at the end are left out too.
pub(super) fn key(text: &str) -> String {
    const COUNTS: [&str; 8] = ["n", "num", "number", "no", "nr", "of", "the", "count"];
    let lower = text.to_lowercase();
    let mut words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    while words.len() > 1 && COUNTS.contains(&words[0]) {
        words.remove(0);
    }
    // `hidden_size` is the hidden width, but `model size` is not the name of a model.
    let is_whole = words == ["model", "size"] || words == ["world", "size"];
    if words.len() > 1 && matches!(words.last(), Some(&("size" | "degree"))) && !is_whole {
        words.pop();
    }
    words.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column_of(text: &str) -> Option<&'static str> {
        match meaning(text) {
            Meaning::Known(heading) => Some(heading.column),
            Meaning::Ambiguous(_) | Meaning::Unknown => None,
        }
    }

    #[test]
    fn headers_of_engineers_name_columns() {
        for (texts, column) in [
            (
                &["#GPUs", "Num GPUs", "# of GPUs", "Number of GPUs", "num_gpus", "N-GPUs", "GPUs", "World Size"][..],
                "n_gpus",
            ),
            (&["GPU type", "gpu_type", "Accelerator", "Device"], "gpu"),
            (
                &["Micro Batch Size", "micro-batch-size", "MBS", "microbatch size", "per_device_train_batch_size"],
                "microbatch",
            ),
            (&["train_micro_batch_size_per_gpu"], "microbatch"),
            (&["Global Batch Size", "GBS", "global batch", "Global Batch (sequences)"], "global_batch"),
            (&["Seq Len", "Sequence length", "seq_length", "Max Seq Len", "Seq Len (tokens)", "SeqLen"], "seq_len"),
            (&["TP", "TP size", "tensor_model_parallel_size", "Tensor Parallel", "TP degree"], "tp"),
            (&["pipeline-model-parallel-size", "PP Size"], "pp"),
            (&["DP", "data parallel size"], "dp"),
            (&["Zero stage", "ZeRO", "zero_stage", "ZeRO Stage"], "zero"),
            (&["# Layers", "num_hidden_layers", "n_layers", "Number of layers"], "layers"),
            (&["Hidden Size", "hidden", "hidden_size"], "hidden"),
            (&["num_attention_heads", "# heads", "n_heads"], "heads"),
            (&["num_key_value_heads", "num_query_groups", "KV heads"], "kv_heads"),
            (&["GPUs per node", "gpus/node", "nproc_per_node"], "gpus_per_node"),
            (&["Activation checkpointing", "gradient_checkpointing"], "recompute"),
            (&["Vocab Size", "vocab_size"], "vocab"),
            (&["num_experts_per_tok", "moe_router_topk", "Top-K"], "top_k"),
        ] {
            for text in texts {
                assert_eq!(column_of(text), Some(column), "{text}");
            }
        }
    }

    #[test]
    fn unclear_headers_name_no_column() {
        for text in [
            "# micro batch",
            "num_microbatch",
            "step time (s)",
            "Memory (GB)",
            "Model size",
            "notes",
            "",
            "#",
            "n",
            "Seq Len (s)",
            "tokens/s",
        ] {
            assert_eq!(meaning(text), Meaning::Unknown, "{text}");
        }
        for (text, columns) in [
            ("Batch Size", &["microbatch", "global_batch"][..]),
            ("bs", &["microbatch", "global_batch"]),
            ("Bandwidth (GB/s)", &["link_gb_per_s", "network_gb_per_s"]),
            ("model parallel size", &["tp", "pp"]),
        ] {
            assert_eq!(meaning(text), Meaning::Ambiguous(columns), "{text}");
        }
    }

    #[test]
    fn units_scale_numbers() {
        let factor = |text| match meaning(text) {
            Meaning::Known(heading) => heading.factor,
            other => panic!("{text}: {other:?}"),
        };
        assert!((factor("Network bandwidth (Gb/s)") - 0.125).abs() < 1e-12);
        assert!((factor("Network bandwidth (GB/s)") - 1.0).abs() < 1e-12);
        assert!((factor("Network bandwidth (GBps)") - 1.0).abs() < 1e-12);
        assert!((factor("Network bandwidth (Gbps)") - 0.125).abs() < 1e-12);
        assert!((factor("Host memory [GB]") - 0.931_322_6).abs() < 1e-6);
    }

    /// Each name has one meaning.
    #[test]
    fn names_are_keys_of_one_column() {
        let mut all: Vec<&str> = ALIASES.iter().flat_map(|(_, names)| *names).copied().collect();
        all.extend(AMBIGUOUS.iter().flat_map(|(names, _)| *names));
        for name in &all {
            assert_eq!(&key(name), name);
            assert_eq!(all.iter().filter(|other| *other == name).count(), 1, "{name}");
            assert!(COLUMNS.iter().all(|column| key(column.name) != *name), "{name}");
        }
        for (column, _) in ALIASES {
            assert!(exact(column).is_some(), "{column}");
        }
    }
}
