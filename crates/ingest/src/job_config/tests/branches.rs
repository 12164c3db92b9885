//! Scripts whose branches are decided by the variables that they set.

use super::*;

const COMMAND: &str = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
                       --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2 \
                       --pipeline-model-parallel-size 2 --bf16";

fn says(job: &JobConfig, text: &str) -> bool {
    job.assumed.iter().any(|sentence| sentence.contains(text))
}

#[test]
fn a_branch_that_does_not_run_is_not_read() {
    for (value, chunks) in [("", None), ("4", Some(4))] {
        for test in [
            format!("if [ -n \"$VPP\" ]; then\n  OPTS=\"$OPTS {VPP}\"\nfi"),
            format!("[ -n \"$VPP\" ] && OPTS=\"$OPTS {VPP}\""),
            format!("[[ -z \"$VPP\" ]] || OPTS+=\" {VPP}\""),
            format!("if [[ -z $VPP ]]; then\n  true\nelse\n  OPTS=\"{VPP}\"\nfi"),
            format!("case $VPP in\n  4) OPTS=\"{VPP}\" ;;\n  *) : ;;\nesac"),
            format!("[ -n \"$VPP\" ] && {{ X=1; OPTS=\"{VPP}\"; }}"),
        ] {
            let job = config(&format!("VPP=\"{value}\"\n{test}\n{COMMAND} $OPTS\n"));
            assert_eq!(job.scenario.layout.chunks, chunks, "VPP={value}: {test}");
            assert!(!says(&job, "in a branch"), "{test}: {:?}", job.assumed);
        }
    }
}

const VPP: &str = "--num-layers-per-virtual-pipeline-stage $VPP";

#[test]
fn texts_of_decided_conditions_are_read() {
    let recompute = |value: u32, text: &str| {
        let job = config(&format!("RECOMP={value}\n{COMMAND} {text}\n"));
        (job.scenario.training.recompute, says(&job, "in a branch"))
    };
    let text = "$( [ \"$RECOMP\" = 1 ] && echo \"--recompute-granularity full --recompute-method uniform\" )";
    assert_eq!(recompute(0, text), (Recompute::None, false));
    assert_eq!(recompute(1, text), (Recompute::Full, false));
    let other = "$([ \"$RECOMP\" = 1 ] && echo --recompute-granularity full || echo --recompute-granularity selective)";
    assert_eq!(recompute(0, other), (Recompute::Selective, false));
    let unknown = "$([ \"$UNKNOWN\" = 1 ] && echo --recompute-granularity full)";
    assert_eq!(recompute(0, unknown), (Recompute::Full, true));
    let set = config(&format!("VPP=4\n{COMMAND} ${{VPP:+--num-layers-per-virtual-pipeline-stage $VPP}}\n"));
    assert_eq!(set.scenario.layout.chunks, Some(4));
}

#[test]
fn a_known_word_selects_its_case() {
    let script = |word: &str| {
        format!(
            "MODEL={word}\ncase $MODEL in\n  8b|8B) ARGS=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32\" ;;\n  \
             70b) ARGS=\"--num-layers 80 --hidden-size 8192 --num-attention-heads 64\" ;;\n  *) echo unknown; exit 1 ;;\nesac\n\
             torchrun --nproc_per_node=8 pretrain_gpt.py $ARGS --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --bf16\n"
        )
    };
    for (word, layers) in [("${1:-8b}", 32), ("8B", 32), ("70b", 80)] {
        let job = config(&script(word));
        assert_eq!(job.scenario.model.layers(), layers, "{word}");
        assert!(!says(&job, "in a branch"), "{:?}", job.assumed);
    }
    // The last case counts if the word is not known.
    let job = config(&script("$1"));
    assert_eq!(job.scenario.model.layers(), 80);
    assert!(says(&job, "in a branch"), "{:?}", job.assumed);
}

#[test]
fn else_and_elif_follow_decided_conditions() {
    let precision = |value: &str| {
        let script = format!(
            "FP8={value}\nif [ \"$FP8\" = \"1\" ]; then\n  OPTS=\"--fp8-format hybrid\"\nelif [ \"$FP8\" = 2 ]; then\n  \
             OPTS=\"--fp8-format e4m3 --fp8-recipe blockwise\"\nelse\n  OPTS=\"--recompute-granularity full\"\nfi\n{COMMAND} $OPTS\n"
        );
        let training = config(&script).scenario.training;
        (training.precision, training.fp8_recipe.is_some(), training.recompute)
    };
    assert_eq!(precision("1"), (Precision::Fp8, false, Recompute::None));
    assert_eq!(precision("2"), (Precision::Fp8, true, Recompute::None));
    assert_eq!(precision("0"), (Precision::Bf16, false, Recompute::Full));
}

#[test]
fn an_option_with_an_empty_value_is_not_read() {
    let job = config(&format!("VPP=\n{COMMAND} {VPP}\n"));
    assert_eq!(job.scenario.layout.chunks, None);
    assert!(says(&job, "num-layers-per-virtual-pipeline-stage has an empty value"), "{:?}", job.assumed);
}

/// The script sets a default for a variable that its caller may set.
#[test]
fn a_variable_that_nobody_sets_is_unset() {
    for (test, tensor) in [
        (
            "if [ -z $TP ]\nthen T=\"--tensor-model-parallel-size 4\"\nelse T=\"--tensor-model-parallel-size $TP\"\nfi",
            4,
        ),
        ("[[ -n \"$TP\" ]] && T=\"--tensor-model-parallel-size $TP\" || T=\"--tensor-model-parallel-size 1\"", 1),
        ("T=\"--tensor-model-parallel-size 8\"\nif [ $TP ]; then T=\"--tensor-model-parallel-size $TP\"; fi", 8),
    ] {
        let command = COMMAND.replace("--tensor-model-parallel-size 2 ", "");
        let job = config(&format!("{test}\n{command} $T\n"));
        assert_eq!(job.scenario.layout.tensor, Some(tensor), "{test}");
    }
}
