//! Output of `planscope measure`.

use std::collections::BTreeMap;

use super::*;

/// Every kind of row that the program writes, a few of each.
const MEASURED: &str = r#"{"format":"planscope-measurements","version":1,
 "header":{"date":"2026-01-02T03:04:05+00:00","device":"NVIDIA H100 80GB HBM3","torch":"2.11.0","hip":null,"arguments":{"minutes":1.0}},
 "sections":[
 {"name":"collectives","fitted":true,"notes":[],"results":[
  {"kernel":"collective","operation":"all_reduce","bytes":67108864,"ranks":8,"ranks_per_node":8,"time_us":580.0,"calls":3}],
  "skipped":[],"left_out":{}},
 {"name":"products","fitted":true,"results":[
  {"kernel":"matmul","op":"linear","product":"forward","format":"bf16","accumulate":"none","m":4096,"k":4096,"n":28672,"time_us":1222.1},
  {"kernel":"matmul","op":"linear","product":"weight_grad","format":"bf16","accumulate":"none","m":28672,"k":4096,"n":4096,"time_us":1300.5},
  {"kernel":"matmul","op":"linear","product":"weight_grad","format":"bf16","accumulate":"fp32_fused","m":28672,"k":4096,"n":4096,"time_us":1400.5},
  {"kernel":"matmul","op":"linear","product":"weight_grad","format":"bf16","accumulate":"fp32_add","m":28672,"k":4096,"n":4096,"time_us":1900.5},
  {"kernel":"matmul","op":"linear","product":"weight_grad","format":"bf16","accumulate":"fp32_fused","m":1024,"k":2048,"n":512,"time_us":20},
  {"kernel":"matmul","op":"linear","product":"forward","format":"bf16","m":-4096,"k":4096,"n":28672,"time_us":1222.1}],
  "skipped":[{"kernel":"matmul","m":1,"reason":"no"}],"left_out":{"linear forward":2}},
 {"name":"attention","fitted":true,"results":[
  {"kernel":"attention","backend":"flash","tokens":16384,"squared":67108864,"heads":16,"kv_heads":4,"qk_dim":128,"v_dim":128,"causal":true,"backward":false,"time_us":900},
  {"kernel":"attention","backend":"cudnn","tokens":16384,"squared":67108864,"heads":16,"kv_heads":4,"qk_dim":128,"v_dim":128,"causal":true,"backward":true,"queries":4096,"note":[1,[2]],"time_us":1600},
  {"kernel":"attention","backend":"cudnn","tokens":16384,"squared":33554432,"heads":16,"kv_heads":16,"qk_dim":128,"v_dim":128,"causal":true,"backward":false,"lengths":[8192,8192],"time_us":69290},
  {"kernel":"attention","backend":"math","tokens":1024,"squared":1048576,"heads":16,"kv_heads":16,"qk_dim":128,"v_dim":128,"causal":true,"backward":false,"time_us":900}]},
 {"name":"validation","fitted":false,"results":[
  {"op":"layer","model":"llama-8b","attention":"cudnn","tokens":4096,"time_us":10802.9},
  {"kernel":"matmul","m":64,"k":64,"n":64,"time_us":9}]},
 {"name":"experts","fitted":true,"results":[
  {"kernel":"matmul","op":"grouped_linear","product":"forward","format":"bf16","m":1024,"k":4096,"n":14336,"function":"bmm","batch":8,"time_us":1500},
  {"kernel":"matmul","op":"grouped_linear","product":"forward","format":"bf16","m":1024,"k":4096,"n":14336,"function":"_grouped_mm","batch":8,"time_us":1271},
  {"op":"grouped_linear","routing":"power","rows":[2528,1456],"time_us":1408}]},
 {"name":"pointwise","fitted":true,"results":[
  {"op":"rms_norm","class":"norm","bytes":134217728,"time_us":60.28},
  {"op":"residual","class":"elementwise","kernel":"streaming","bytes":201326592,"time_us":68.9}]},
 {"name":"memory","fitted":true,"results":[{"op":"memory","peak_allocated_bytes":null,"parameters":5}]}]}
"#;

fn changed(from: &str, to: &str) -> String {
    assert!(MEASURED.contains(from), "{from}");
    MEASURED.replacen(from, to, 1)
}

#[test]
fn kernels_become_samples_and_all_other_rows_are_counted() {
    let profile = profile(MEASURED);
    assert_eq!((profile.format, profile.device.as_deref()), (Format::Measurements, Some("NVIDIA H100 80GB HBM3")));
    let product = |product, m, k, n, batch| Kernel::MatMul(MatMul { batch, m, k, n, product, format: Number::Bf16 });
    let attention = Attention {
        tokens: 16_384.0,
        squared: 67_108_864.0,
        heads: 16.0,
        kv_heads: 4.0,
        qk_dim: 128.0,
        v_dim: 128.0,
        causal: true,
        backward: true,
    };
    let expected = [
        collective(Operation::AllReduce, 64.0, 8, 8),
        forward(4096.0, 4096.0, 28_672.0),
        product(Product::WeightGrad, 28_672.0, 4096.0, 4096.0, 1.0),
        // The only form of this shape.
        product(Product::WeightGrad, 1024.0, 2048.0, 512.0, 1.0),
        Kernel::Attention(attention),
        product(Product::Forward, 1024.0, 4096.0, 14_336.0, 8.0),
        streaming(StreamingClass::Elementwise, 201_326_592.0),
    ];
    assert_eq!(kernels(&profile), expected);
    let times: Vec<f64> = profile.samples.iter().map(micros).map(f64::round).collect();
    assert_eq!(times, [580.0, 1222.0, 1301.0, 20.0, 1600.0, 1271.0, 69.0]);
    let unfitted: BTreeMap<&str, u64> =
        profile.report.unfitted.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    let counts = [
        ("attention by flash", 1),
        ("attention by math", 1),
        ("attention over packed lengths", 1),
        ("experts", 1),
        ("memory", 1),
        ("other forms of fitted products", 2),
        ("pointwise", 1),
        ("products with a separate accumulation", 1),
        ("validation", 2),
    ];
    assert_eq!(unfitted, BTreeMap::from(counts));
    assert_eq!(rejections(&profile), [("a number is zero or negative", 1, "sections[1].results[5].m: -4096")]);
    assert_eq!((profile.report.rows, profile.report.used), (19, 7));
    let selected = "attention runs as cudnn, which PyTorch selects on this device";
    assert!(profile.report.assumptions.iter().any(|known| known == selected), "{:?}", profile.report.assumptions);
}

/// Without a layer the file does not say which kernel PyTorch selects. The fused kernels are fitted together.
#[test]
fn attention_without_a_selection_is_that_of_all_fused_kernels() {
    let profile = profile(&changed(r#""attention":"cudnn","#, ""));
    assert_eq!(profile.report.by_kind.attention, 2);
    assert_eq!(profile.report.unfitted["attention by math"], 1);
    assert!(!profile.report.unfitted.contains_key("attention by flash"));
}

/// Writers that sort keys put `sections` before `version`, and `fitted` before `name`.
#[test]
fn sorted_keys_are_read_alike() {
    let document: serde_json::Value = serde_json::from_str(MEASURED).unwrap();
    let sorted = profile(&document.to_string());
    assert_eq!(sorted, profile(MEASURED));
}

#[test]
fn problems_have_a_path() {
    for (from, to, expected) in [
        (r#""version":1"#, r#""version":2"#, r#"version: it is "2", and "1" is read"#),
        (r#""version":1,"#, "", "version: it is missing"),
        (
            r#""format":"planscope-measurements""#,
            r#""format":"other""#,
            r#"format: it is "other", and "planscope-measurements" is read"#,
        ),
        (r#"{"name":"products","fitted":true,"#, r"{", "sections[1].name: it does not precede results"),
        (r#""fitted":true,"notes":[],"results":["#, r#""results":5,"x":["#, "sections[0].results: it is not a list"),
        (
            r#"{"op":"memory","peak_allocated_bytes":null,"parameters":5}"#,
            "7",
            "sections[6].results[0]: it is not an object",
        ),
    ] {
        assert_eq!(refusal(&changed(from, to)), expected);
    }
    let cut = &MEASURED[..MEASURED.len() / 2];
    assert!(refusal(cut).starts_with("not readable as JSON"), "{}", refusal(cut));
    // A run that stopped early has the sections before it.
    let stopped = profile(&changed(r#""sections":["#, r#""interrupted":"DeviceLost in fp8: gone","sections":["#));
    let reason = "the measurement ended early: DeviceLost in fp8: gone";
    assert!(stopped.report.assumptions.iter().any(|known| known == reason));
}

#[test]
fn a_profile_without_kernels_lists_what_it_has() {
    let only = r#"{"format":"planscope-measurements","version":1,"header":{"device":"cpu"},"sections":[
        {"name":"memory","fitted":true,"results":[{"op":"memory","parameters":5}]}]}"#;
    let expected = "none of the 1 values of this Planscope measurements can be used: memory (1, not for a fit)";
    assert_eq!(refusal(only), expected);
}
