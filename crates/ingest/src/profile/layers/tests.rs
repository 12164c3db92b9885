//! Tests with profiles in the format of each planner's profiler.

use proptest::prelude::*;

use super::*;

fn read_named(text: &str, name: &str) -> LayerProfile {
    let hints = Hints { name: name.to_owned(), ..Hints::default() };
    read(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn dflop_times() {
    let text =
        ",seq_len,model_time,fwd_times,bwd_times,num_layers,tp_size\n0,1024,30.5,10.25,20.5,4,2\n1,2048,60,20,-1,4,2\n";
    let profile = read_named(text, "thr_llava_qwen_7b_skip_attn.csv");
    let shape = Shape {
        part: Part::Language,
        batch: None,
        tokens: Some(1024),
        decoder_tokens: None,
        layers: Some(4),
        tensor_parallel: Some(2),
    };
    let timing = Timing { shape, forward_s: Some(0.01025), backward_s: Some(0.0205), with_attention: false };
    assert_eq!((profile.format, profile.timings), (Format::DflopTimes, vec![timing]));
    assert_eq!((profile.report.values, profile.report.used), (2, 1));
    assert_eq!(profile.report.refused[0].first, "row 3, column bwd_times: -1");
    let vision =
        read_named("batch_size,model_time,fwd_times,bwd_times,num_layers,tp_size\n8,3,1,2,4,1\n", "thr_vit.csv");
    let Timing { shape, with_attention, .. } = vision.timings[0];
    assert_eq!((shape.part, shape.batch, shape.tokens, with_attention), (Part::Vision, Some(8), None, true));
}

/// 2 GiB are 2,147,483,648 bytes and 2048 MiB.
#[test]
fn dflop_memory_says_its_unit_by_its_size() {
    let header = "batch_size,seq_len,model_mem,fwd_peak,model_state_peak,num_layers,tp_size\n";
    for (row, unit) in
        [("1,1024,1073741824,2147483648,,4,1", "bytes"), ("1,1024,1024,2048,,4,1", "MiB"), ("1,1024,1,2,,4,1", "GiB")]
    {
        let profile = read_named(&format!("{header}{row}\n"), "mem_a_b_7b.csv");
        let seen: Vec<_> = profile.footprints.iter().map(|found| (found.purpose, found.bytes)).collect();
        assert_eq!(seen, [(Purpose::State, 1 << 30), (Purpose::Peak, 2 << 30)]);
        assert!(profile.report.assumptions[0].starts_with(&format!("memory is in {unit},")), "{:?}", profile.report);
    }
}

#[test]
fn dynapipe() {
    let text = "forward_encoder 12.5\nbackward_encoder 25.0\nforward_postprocess 1\nencoder_activation 100.0\n\
                peak_encoder_activation 150\nmodel_encoder 1024\nunknown 3\nforward_encoder x\n";
    let profile = read_named(text, "rc_selective/microbench_tp2_hs4096_ah32_kv128_ffhs16384_sl2048_mbs4.txt");
    assert_eq!((profile.timings.len(), profile.footprints.len()), (3, 3));
    let Timing { shape, forward_s, .. } = profile.timings[0];
    assert_eq!(
        (shape.tensor_parallel, shape.tokens, shape.batch, forward_s),
        (Some(2), Some(2048), Some(4), Some(0.0125))
    );
    assert_eq!((profile.timings[1].backward_s, profile.footprints[2].bytes), (Some(0.025), 1 << 30));
    assert_eq!((profile.report.values, profile.report.used, profile.report.refused[0].count), (8, 6, 2));
    let decoder = read_named(text, "2_4096_32_128_16384_2048_512_4.txt");
    assert_eq!(decoder.timings[0].shape.decoder_tokens, Some(512));
    let unnamed = read_named(text, "profile.txt");
    assert!(
        unnamed.timings[0].shape.tokens.is_none()
            && unnamed.report.assumptions.iter().any(|assumption| assumption.contains("neither seven"))
    );
}

#[test]
fn galvatron() {
    let times = read_named(
        r#"{"layernum[2]_bsz1_seq2048": 15.0, "layertype_0_bsz1_seq2048": 5.1, "layernum[2]_bsz2_seq2048": null, "x": 1}"#,
        "",
    );
    let Timing { shape, forward_s, .. } = times.timings[0];
    assert_eq!((shape.layers, shape.batch, shape.tokens, forward_s), (Some(2), Some(1), Some(2048), Some(0.015)));
    assert_eq!((times.report.values, times.report.used, times.report.refused.len()), (4, 1, 3));
    let memory = read_named(
        r#"{"1_2_4_sp": {"layernum[1]_bsz8_seq2048_rank0_ms": 1024.0, "layernum[1]_bsz8_seq2048_rank7_act_peak": 512}, "layertype_0_sp": {"2048": {"parameter_size": 5}}}"#,
        "",
    );
    let [state, peak] = &memory.footprints[..] else { panic!("{memory:?}") };
    assert_eq!(
        (state.purpose, state.bytes, state.rank, state.shape.tensor_parallel),
        (Purpose::State, 1 << 30, Some(0), Some(2))
    );
    assert_eq!((peak.purpose, peak.rank, memory.format), (Purpose::Peak, Some(7), Format::GalvatronMemory));
}

#[test]
fn non_profiles_are_rejected_by_name() {
    for (text, message) in [
        ("", "empty"),
        ("a,b\n1,2\n", "columns a, b"),
        ("{\"a\": 1}", "keys a"),
        ("{\"layernum[2]", "JSON"),
        ("{\"layernum[2]_bsz1_seq2048\": -1}", "none of the 1 values"),
        ("seq_len,fwd_times,bwd_times,num_layers,tp_size\n", "no measured value"),
        ("seq_len,fwd_times,bwd_times,num_layers\n1,1,1,1\n", "no column tp_size"),
        ("fwd_times,bwd_times,num_layers,tp_size\n1,1,1,1\n", "no column seq_len or batch_size"),
    ] {
        let error = read(text.as_bytes(), &Hints::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
    let error =
        super::super::read(b"seq_len,fwd_times\n1,2\n", &Hints::default()).expect_err("not kernels").to_string();
    assert!(error.contains("DFLOP"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_rejected(rest in "[-0-9a-z_.,{}\\[\\]\": \n]{0,120}", name in "[a-z0-9_/]{0,40}") {
        let hints = Hints { name, ..Hints::default() };
        for start in ["", "forward_encoder 1\n", "seq_len,fwd_times,bwd_times,num_layers,tp_size\n", "{\"layernum[2]_bsz1_seq2\":",
            "seq_len,model_mem,fwd_peak,model_state_peak,num_layers,tp_size\n"] {
            let text = format!("{start}{rest}");
            if let Ok(profile) = read(text.as_bytes(), &hints) {
                let rejected: u64 = profile.report.refused.iter().map(|refusal| refusal.count).sum();
                prop_assert_eq!(profile.report.values, profile.report.used + rejected);
                prop_assert_eq!(profile.report.used, (profile.timings.len() + profile.footprints.len()) as u64);
            }
        }
    }
}
