//! Tests with realistic profiles and with malformed files.

mod aiconfigurator;
mod benchmarks;
mod measurements;

use planner::calibration::Sample;
use planner::cost::kernel::{
    Attention, Collective, Format as Number, Kernel, MatMul, Operation, Product, Streaming, StreamingClass,
};
use proptest::prelude::*;

use super::{Format, Hints, Kinds, MAX_BYTES, Profile, ProfileError, read};

/// Llama-2-70b on 2 devices: 64 heads with size 128, 8 key heads. One row has 4,096 tokens, another
/// omits two times.
const VIDUR_COMPUTE: &str = "\
time_stats.emb.median,time_stats.input_layernorm.median,time_stats.attn_pre_proj.median,time_stats.attn_rope.median,\
time_stats.attn_post_proj.median,time_stats.post_attention_layernorm.median,time_stats.mlp_up_proj.median,\
time_stats.mlp_act.median,time_stats.mlp_down_proj.median,time_stats.add.median,n_head,n_kv_head,n_embd,\
n_expanded_embd,vocab_size,use_gated_mlp,num_tokens,num_tensor_parallel_workers
0.4,0.19,1.4,0.1,1.2,0.19,8.0,0.3,4.0,0.11,64,8,8192,28672,32768,True,4096,2
0.4,0.19,1.4,0.1,1.2,nan,8.0,0.3,4.0,-0.3,64,8,8192,28672,32768,True,4096,2
";
const VIDUR_NETWORK: &str = "\
,time_stats.all_reduce.median,rank,num_workers,size,collective,devices_per_node,max_devices_per_node
0,0.675,0,8,67108864,all_reduce,8,8
1,8.49,0,4,67108864,all_reduce,2,8
2,0.1,0,4,1024,broadcast,2,8
";
/// 8 GPUs: 1.75 bytes of bus traffic per byte.
const VTRAIN: &str = "\
size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)
67108864,16777216,float,579900,202.52,579600,202.61
134217728,33554432,float,1162400,202.06,1160000,202.47
1073741824,268435456,float,8193000,120.35,8196400,229.25
";
const SIMUMAX: &str = r#"{
 "sys_name": "a100_pcie", "num_per_node": 8,
 "accelerator": {
  "op": {
   "default": {"tflops": 312, "efficient_factor": 0.75},
   "matmul": {"tflops": 312, "efficient_factor": 0.75, "accurate_efficient_factor": {
     "b=1, m=4096, k=5120, n=1536, layout=TN, accumulate=False, out_dtype=bf16": 0.8,
     "b=1, m=4096, k=1536, n=5120, layout=NN, accumulate=False, out_dtype=bf16": 0.7,
     "b=2, m=1536, k=4096, n=5120, layout=NT, accumulate=True, out_dtype=fp32": 0.6,
     "b=1, m=1536, k=4096, n=5120, layout=TT, accumulate=True, out_dtype=fp32": 0.6,
     "b=1, m=64, k=64, n=64, layout=TN, accumulate=False, out_dtype=bf16": 1.3}},
   "group_matmul": {"tflops": 312, "accurate_efficient_factor": {
     "ng=40, M=616, N=3072, K=5120, dtype=bf16, stage=fwd, grad=False": 0.6,
     "ng=40, M=616, N=3072, K=5120, dtype=bf16, stage=bwd_grad_act, grad=True": 0.6,
     "ng=40, M=616, N=3072, K=5120, dtype=bf16, stage=bwd_grad_w, grad=True": 0.5}},
   "sdp_fwd": {"tflops": 312, "accurate_efficient_factor": {
     "batch=1, seq_len=4096, head_num=32, kv_head_num=8, qk_head_dim=128, v_head_dim=128, qkv_contiguous=True": 1.1}},
   "sdp_bwd": {"tflops": 312, "accurate_efficient_factor": {
     "batch=1, seq_len=4096, head_num=32, kv_head_num=8, qk_head_dim=128, v_head_dim=128, qkv_contiguous=True": 0.9}}},
  "bandwidth": {"default": {"efficient_factor": 0.91, "gbps": 1600, "latency_us": 40}}},
 "networks": {"intra_with_pcie": true, "inter_node": {}}}"#;
const GALVATRON: &str = r#"{
 "allreduce_size_8_64MB_time": 0.6519, "all2all_size_8_64MB_time": 0.3997, "all2all_size_8_0MB_time": 0.1,
 "allreduce_size_16_consec_1": 44.682, "pp_size_2": 163.671, "note": "x", "allreduce_size_16_64MB_time": 3.5}"#;
const NATIVE: &str = "\
# of one device
kernel,time_us,m,k,n,product,tokens,squared,heads,qk_dim,causal,class,bytes,operation,ranks
matmul,850,4096,8192,3072,weight_grad,,,,,,,,,
attention,1000,,,,,8192,33554432,32,128,true,,,,
streaming,100,,,,,,,,,,norm,67108864,,
collective,580,,,,,,,,,,,67108864,all_reduce,8
collective,300,,,,,,,,,,,67108864,send_receive,
";

fn read_named(file: &str, name: &str) -> Result<Profile, ProfileError> {
    read(file.as_bytes(), &Hints { name: name.to_owned(), ..Hints::default() })
}

fn profile(file: &str) -> Profile {
    read_named(file, "").unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn refusal(file: &str) -> String {
    read_named(file, "").map(|profile| profile.report).expect_err(file).to_string()
}

fn rejections(profile: &Profile) -> Vec<(&str, u64, &str)> {
    let rejected = profile.report.refused.iter();
    rejected.map(|refusal| (refusal.reason.as_str(), refusal.count, refusal.first.as_str())).collect()
}

fn forward(m: f64, k: f64, n: f64) -> Kernel {
    Kernel::MatMul(MatMul { batch: 1.0, m, k, n, product: Product::Forward, format: Number::Bf16 })
}

fn streaming(class: StreamingClass, bytes: f64) -> Kernel {
    Kernel::Streaming(Streaming { class, bytes })
}

fn collective(operation: Operation, mebibytes: f64, ranks: u32, ranks_per_node: u32) -> Kernel {
    Kernel::Collective(Collective { operation, bytes: mebibytes * 1_048_576.0, ranks, ranks_per_node })
}

fn kernels(profile: &Profile) -> Vec<Kernel> {
    profile.samples.iter().map(|sample| sample.kernel).collect()
}

fn micros(sample: &Sample) -> f64 {
    sample.time.secs() * 1e6
}

/// On 2 devices: query width 4,096, key width 4 x 128 = 512, MLP width 14,336, up projection width
/// twice that.
#[test]
fn vidur_operators_have_device_shapes() {
    let profile = profile(VIDUR_COMPUTE);
    assert_eq!(profile.format, Format::VidurCompute);
    let m = 4096.0;
    let first = [
        streaming(StreamingClass::Embedding, 2.0 * 2.0 * m * 8192.0),
        streaming(StreamingClass::Norm, 2.0 * 2.0 * m * 8192.0),
        forward(m, 8192.0, 5120.0),
        streaming(StreamingClass::Activation, 2.0 * 2.0 * m * 4608.0),
        forward(m, 4096.0, 8192.0),
        streaming(StreamingClass::Norm, 2.0 * 2.0 * m * 8192.0),
        forward(m, 8192.0, 28672.0),
        streaming(StreamingClass::Activation, 2.0 * 3.0 * m * 14336.0),
        forward(m, 14336.0, 8192.0),
        streaming(StreamingClass::Elementwise, 2.0 * 3.0 * m * 8192.0),
    ];
    assert_eq!(kernels(&profile)[..10], first);
    assert!((micros(&profile.samples[6]) - 8000.0).abs() < 1e-6);
    assert_eq!((profile.report.rows, profile.report.used), (20, 18));
    assert_eq!(
        rejections(&profile),
        [
            ("a number is not finite", 1, "row 3, column time_stats.post_attention_layernorm.median: nan"),
            ("a number is zero or negative", 1, "row 3, column time_stats.add.median: -0.3"),
        ]
    );
    let Kinds { matmul, attention, streaming, collective } = profile.report.by_kind;
    assert_eq!((matmul, attention, streaming, collective), (8, 0, 10, 0));
}

#[test]
fn invalid_shape_rejects_every_operator_in_its_row() {
    let profile = profile(&format!("{VIDUR_COMPUTE}1,1,1,1,1,1,1,1,1,1,64,8,8192,28672,32768,True,4096,3\n"));
    assert_eq!(
        rejections(&profile)[2],
        ("sizes do not divide evenly", 10, "row 4, column num_tensor_parallel_workers: 3, n_head by workers")
    );
}

#[test]
fn vidur_collectives_count_bytes() {
    let profile = profile(VIDUR_NETWORK);
    assert_eq!(
        kernels(&profile),
        [collective(Operation::AllReduce, 64.0, 8, 8), collective(Operation::AllReduce, 64.0, 4, 2)]
    );
    assert_eq!(
        rejections(&profile),
        [("a collective that training plans do not hold", 1, "row 4, column collective: broadcast")]
    );
    let file = VIDUR_NETWORK.replace("all_reduce", "all_gather");
    assert_eq!(kernels(&self::profile(&file))[1], collective(Operation::AllGather, 256.0, 4, 2));
}

#[test]
fn the_bus_bandwidth_tells_the_devices_and_must_agree() {
    let profile = read_named(VTRAIN, "nccl_a100_GPU4").unwrap();
    assert_eq!(profile.device.as_deref(), Some("A100"));
    assert_eq!(
        kernels(&profile),
        [collective(Operation::AllReduce, 64.0, 8, 8), collective(Operation::AllReduce, 128.0, 8, 8)]
    );
    assert!((micros(&profile.samples[0]) - 579.9).abs() < 1e-9, "out of place");
    // 1 GiB in 8.193 ms is 131.06 GB/s; bus bandwidth among 8 devices is 229.35 GB/s.
    assert_eq!(
        rejections(&profile),
        [(
            "time and bus bandwidth contradict each other",
            1,
            "row 4, column time(ns): 8193000: 120.35 GB/s, but 229.35 follow from the time and 8 devices"
        )]
    );

    let given = |ranks| read(VTRAIN.as_bytes(), &Hints { ranks: Some(ranks), ..Hints::default() });
    assert_eq!(given(8).unwrap().report.used, 2);
    assert!(matches!(given(7), Err(ProfileError::NothingUsable { .. })), "202.5 is not the bus bandwidth of 7");
}

#[test]
fn without_bus_bandwidths_the_name_tells_the_devices() {
    let file = "size(B),time(ns)\n1048576,52000\n2097152,60000\n";
    let profile = read_named(file, "AR_GPU4_1M_1024M_LUT").unwrap();
    assert_eq!(kernels(&profile)[0], collective(Operation::AllReduce, 1.0, 4, 4));
    assert!(profile.report.assumptions.contains(&"4 devices took part, by the file's name".to_owned()));
    assert_eq!(read_named(file, "lut"), Err(ProfileError::NoRanks));
    let hints = Hints { ranks: Some(16), ranks_per_node: Some(8), ..Hints::default() };
    assert_eq!(kernels(&read(file.as_bytes(), &hints).unwrap())[0], collective(Operation::AllReduce, 1.0, 16, 8));
}

#[test]
fn simumax_efficiencies_become_times() {
    let profile = profile(SIMUMAX);
    assert_eq!((profile.format, profile.device.as_deref()), (Format::SimuMax, Some("a100_pcie")));
    let product = |batch: f64, product, [m, k, n]: [f64; 3]| {
        Kernel::MatMul(MatMul { batch, m, k, n, product, format: Number::Bf16 })
    };
    let attention = |backward| {
        Kernel::Attention(Attention {
            tokens: 4096.0,
            squared: 16_777_216.0,
            heads: 32.0,
            kv_heads: 8.0,
            qk_dim: 128.0,
            v_dim: 128.0,
            causal: true,
            backward,
        })
    };
    assert_eq!(
        kernels(&profile),
        [
            product(1.0, Product::Forward, [4096.0, 5120.0, 1536.0]),
            product(1.0, Product::InputGrad, [4096.0, 1536.0, 5120.0]),
            product(1.0, Product::WeightGrad, [1536.0, 8192.0, 5120.0]),
            product(40.0, Product::Forward, [616.0, 5120.0, 3072.0]),
            product(40.0, Product::InputGrad, [616.0, 3072.0, 5120.0]),
            product(40.0, Product::WeightGrad, [3072.0, 616.0, 5120.0]),
            attention(false),
            attention(true),
        ]
    );
    // 2 x 4096 x 5120 x 1536 = 64.42 GFLOP at 249.6 TFLOP/s.
    assert!((micros(&profile.samples[0]) - 258.11).abs() < 0.01);
    // 2 x 4096^2 x 32 x 256 = 274.88 GFLOP at 343.2 TFLOP/s; backward 687.19 at 280.8.
    assert!((micros(&profile.samples[6]) - 800.93).abs() < 0.01);
    assert!((micros(&profile.samples[7]) - 2447.27).abs() < 0.01);
    assert_eq!(
        rejections(&profile).iter().map(|(reason, count, _)| (*reason, *count)).collect::<Vec<_>>(),
        [
            ("an efficiency without a shape", 1),
            ("an operator or a shape that is not understood", 1),
            ("faster than the peak that the file gives", 1),
            ("a bandwidth and a latency, not a measured time", 2),
        ]
    );
}

#[test]
fn galvatron_times_and_bandwidths_become_timings() {
    let profile = read_named(GALVATRON, "sp_time_2nodes_8gpus_per_node.json").unwrap();
    assert_eq!(
        kernels(&profile),
        [
            collective(Operation::AllReduce, 64.0, 8, 8),
            collective(Operation::AllToAll, 64.0, 8, 8),
            collective(Operation::AllReduce, 128.0, 16, 8),
            collective(Operation::SendReceive, 128.0, 2, 1),
            collective(Operation::AllReduce, 64.0, 16, 8),
        ]
    );
    assert!((micros(&profile.samples[0]) - 651.9).abs() < 1e-9);
    // 2 x 15 / 16 x 134,217,728 bytes at 44.682 GB/s.
    assert!((micros(&profile.samples[2]) - 5632.2).abs() < 0.1, "{}", micros(&profile.samples[2]));
    assert_eq!(
        rejections(&profile),
        [("a message without bytes", 1, "all2all_size_8_0MB_time"), ("a key that is not understood", 1, "note"),]
    );
}

/// `consec_0` distributes a group of 8 over 2 nodes, `consec_1` uses a single node. With one node,
/// both use it.
#[test]
fn galvatron_groups_use_the_nodes_in_the_file_name() {
    let file = r#"{"allreduce_size_8_consec_1": 155.658, "allreduce_size_8_consec_0": 20.7724, "allreduce_size_16_consec_1": 44.682}"#;
    let profile = read_named(file, "allreduce_bandwidth_2nodes_8gpus_per_node.json").unwrap();
    let group = |ranks, on_a_node| collective(Operation::AllReduce, 128.0, ranks, on_a_node);
    assert_eq!(kernels(&profile), [group(8, 8), group(8, 4), group(16, 8)]);
    let profile = read_named(file, "allreduce_bandwidth_1nodes_8gpus_per_node.json").unwrap();
    assert_eq!(kernels(&profile)[1], group(8, 8));
}

#[test]
fn native_rows_need_only_kernel_columns() {
    let profile = profile(NATIVE);
    let product = Product::WeightGrad;
    assert_eq!(
        kernels(&profile),
        [
            Kernel::MatMul(MatMul { batch: 1.0, m: 4096.0, k: 8192.0, n: 3072.0, product, format: Number::Bf16 }),
            Kernel::Attention(Attention {
                tokens: 8192.0,
                squared: 33_554_432.0,
                heads: 32.0,
                kv_heads: 32.0,
                qk_dim: 128.0,
                v_dim: 128.0,
                causal: true,
                backward: false,
            }),
            streaming(StreamingClass::Norm, 67_108_864.0),
            collective(Operation::AllReduce, 64.0, 8, 8),
            collective(Operation::SendReceive, 64.0, 2, 2),
        ]
    );
    assert!((micros(&profile.samples[0]) - 850.0).abs() < 1e-9);
    for assumption in
        ["batch is 1", "format is bf16", "kv_heads is as heads", "ranks is 2", "ranks_per_node is as ranks"]
    {
        assert!(profile.report.assumptions.iter().any(|line| line.starts_with(assumption)), "{assumption}");
    }
    let json = serde_json::to_value(&profile.report).unwrap();
    assert_eq!(json["by_kind"]["collective"], 2);
}

/// Tables as written by data frames and spreadsheets.
#[test]
fn native_tables_may_be_formatted_differently() {
    for file in [
        "kernel;m;k;n;time_ms\nmatmul;4096;8192;3072;0.85\nmatmul;4096;8192;3072;0.85\n",
        "\u{feff}n,k,m,time_s,Kernel\r\n3072.0,8192.0,4096.0,0.00085,MatMul\r\n3072,8192,4096,850e-6,matmul\r\n",
        "\"kernel\",\"m\",\"k\",\"n\",\"time_ns\"\n\"matmul\",4096,8192,3072,850000\nmatmul,4096,8192,\"3072\",850000,\n",
        "kernel,m,k,n,time_us,time_ns\nmatmul,4096,8192,3072,850,850100\nmatmul,4096,8192,3072,,850000\n",
    ] {
        let profile = profile(file);
        assert_eq!(kernels(&profile), [forward(4096.0, 8192.0, 3072.0); 2], "{file}");
        assert!((micros(&profile.samples[1]) - 850.0).abs() < 1e-6, "{file}");
    }
}

/// 2 x 4096 x 8192 x 3072 = 206 GFLOP.
#[test]
fn every_rejected_row_has_a_reason() {
    for (row, reason, first) in [
        ("matmul,4096,8192,3072,0,", "a number is zero or negative", "row 3, column time_us: 0"),
        ("matmul,4096,8192,3072,inf,", "a number is not finite", "row 3, column time_us: inf"),
        ("matmul,4096,8192,3072,1e999,", "a number is not finite", "row 3, column time_us: 1e999"),
        ("matmul,4096,8192,3072,fast,", "a cell holds no number", "row 3, column time_us: fast"),
        ("matmul,4096,8192,3072,,", "a needed cell is empty", "row 3, column time_us"),
        ("matmul,4096,,3072,850,", "a needed cell is empty", "row 3, column k"),
        ("matmul,4096.5,8192,3072,850,", "a size is not a whole number in range", "row 3, column m: 4096.5"),
        ("matmul,4096,8192,3072,850,,9", "a row has more cells than the header", "row 3: 7 cells below 6 names"),
        ("matmul,4", "a needed cell is empty", "row 3, column k"),
        (
            "gemm,4096,8192,3072,850,",
            "an unknown kernel: known are matmul, attention, streaming, collective",
            "row 3, column kernel: gemm",
        ),
        ("attention,4096,8192,3072,850,", "a needed cell is empty", "row 3, column tokens"),
        (
            "matmul,4096,8192,3072,4,",
            "faster than any device: is the time in another unit?",
            "row 3, column time_us: 4: implies 51,540 TFLOP/s",
        ),
        (
            "matmul,4096,8192,3072,85000000,",
            "longer than a minute: is the time in another unit?",
            "row 3, column time_us: 85000000: takes 85 s",
        ),
        (
            "matmul,4096,8192,3072,850000,",
            "slower than any device: is the time in another unit?",
            "row 3, column time_us: 850000: implies 0.243 TFLOP/s",
        ),
        (
            "matmul,4096,8192,3072,850,8.5",
            "two time columns contradict each other: one is in another unit",
            "row 3, column time_us: 850, but row 3, column time_ms: 8.5",
        ),
    ] {
        let file = format!("kernel,m,k,n,time_us,time_ms\nmatmul,4096,8192,3072,850,0.85\n{row}\n");
        let profile = profile(&file);
        assert_eq!(rejections(&profile), [(reason, 1, first)], "{row}");
        assert_eq!((profile.report.rows, profile.report.used), (2, 1));
        assert!(profile.report.assumptions.iter().any(|line| line.starts_with("1 row only")));
    }
}

#[test]
fn links_and_memory_have_limits_too() {
    let file = "kernel,class,bytes,operation,ranks,ranks_per_node,time_us\n\
        streaming,norm,67108864,,,,1\ncollective,,67108864,all_reduce,8,8,1\ncollective,,64,all_reduce,1,1,9\n\
        collective,,64,all_reduce,8,16,9\n";
    let error = refusal(file);
    assert!(error.contains("implies 67,109 GB/s of memory"), "{error}");
    let error = refusal(&file.replace("streaming,norm", "streaming,nrm"));
    assert!(error.contains("implies 117,441 GB/s of bus bandwidth"), "{error}");
    assert!(error.contains("none of the 4 values"), "{error}");
    assert!(error.contains("(2, first row 4, column time_us: 9: 1 devices, 1 on a node)"), "{error}");
}

#[test]
fn files_are_rejected_with_a_reason() {
    let cases: [(&[u8], &str); 23] = [
        (b"", "file is empty"),
        (b" \n\t\n", "file is empty"),
        (b"# only a comment\n", "file is empty"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\xff\xfek\0", "UTF-16"),
        (b"kernel,\xe9\n", "byte 7 is not"),
        (b"kernel\0", "byte 6 is zero"),
        (b"{\"accelerator\": {\"op\": {\"matmul\": {\"tfl", "not readable as JSON: EOF"),
        (b"{\"accelerator\": 3}", "not readable as JSON: invalid type"),
        (b"{\"accelerator\": {\"op\": {}}}", "this SimuMax system description holds no measured value"),
        (b"{\"pp_size_2\": -7.65}", "the value is zero or negative"),
        (b"PAR1broken", "not readable as a table: Parquet"),
        (b"{\"layernum[2]_bsz1_seq2048\": 15.07}", "the time of a layer is not the time of an operator"),
        (b"{\"layertype_0_sp\": {}}", "Galvatron profile of whole layers"),
        (b"{\"overlap_coe\": 1.12}", "Planscope has no such coefficient"),
        (b"{\"a\": 1, \"b\": 2}", "no known profile: JSON with the keys a, b."),
        (b"[1, 2]", "JSON with no keys"),
        (b"Size,1 Node(NVLinkx),2Node-16GPU(NIC )\n16777216,0.44,0.52\n", "a ratio of achieved to peak"),
        (b"a,b\n1,2\n", "a table with the columns a, b."),
        (b"kernel,m,k,n\nmatmul,1,1,1\n", "has no column time_us"),
        (b"m,k,n,time_us\n1,1,1,1\n", "has no column kernel"),
        (b"kernel,m,m,time_us\nmatmul,1,1,1\n", "has two columns m"),
        (b"kernel,time_us\n", "this Planscope table of measurements holds no measured value"),
    ];
    for (file, message) in cases {
        let error = read(file, &Hints::default()).expect_err(message).to_string();
        assert!(error.contains(message), "{:?}: {error}", String::from_utf8_lossy(file));
    }
}

#[test]
fn missing_columns_are_named() {
    for (file, column) in [
        (VIDUR_COMPUTE, "num_tokens"),
        (VIDUR_COMPUTE, "n_kv_head"),
        (VIDUR_NETWORK, "devices_per_node"),
        (VIDUR_NETWORK, "size"),
        (VTRAIN, "time(ns)"),
    ] {
        let error = refusal(&file.replacen(&format!(",{column}"), ",renamed", 2).replace(",time(ns)", ",renamed"));
        assert!(error.contains(&format!("has no column {column}")), "{error}");
    }
    let error = refusal(&VIDUR_NETWORK.replace(".median", ".mean"));
    assert!(error.contains("time_stats.<collective>.median"), "{error}");
    let fewer = profile(&VIDUR_COMPUTE.replace("time_stats.add.median", "other"));
    assert_eq!(fewer.report.rows, 18);
    assert!(fewer.report.assumptions.iter().any(|line| line.contains("no column time_stats.add.median")));
}

#[test]
fn deep_nesting_and_size_are_answers_and_not_crashes() {
    let deep = "{\"a\":".repeat(100_000);
    assert!(refusal(&deep).contains("not readable as JSON"));
    let deep = format!("{{\"accelerator\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refusal(&deep).contains("not readable as JSON"));
    let deep =
        format!("{{\"pp_size_2\": {}1{}, \"allreduce_size_8_64MB_time\": 0.65}}", "[".repeat(9000), "]".repeat(9000));
    assert_eq!(profile(&deep).report.rows, 2);
    let huge = vec![b' '; MAX_BYTES + 1];
    assert_eq!(read(&huge, &Hints::default()), Err(ProfileError::TooLarge { bytes: MAX_BYTES + 1 }));
    let many = format!("kernel,time_us\n{}", "x\n".repeat(super::MAX_VALUES + 1));
    assert_eq!(read_named(&many, ""), Err(ProfileError::TooManyValues));
}

/// A duplicate key is not dropped, and an unclosed quote consumes no rows.
#[test]
fn nothing_is_lost_in_silence() {
    let twice = r#"{"allreduce_size_8_64MB_time": 0.65, "allreduce_size_8_64MB_time": 0.66}"#;
    assert_eq!(profile(twice).report.used, 2);
    let open = profile("kernel,m,k,n,time_us\nmatmul,\"64,64,64,9\nmatmul,64,64,64,9\n");
    assert_eq!((open.report.rows, open.report.used), (2, 1));
}

/// Checks that values are counted once, and that all samples have a finite time and a positive
/// shape.
fn holds(result: Result<Profile, ProfileError>) -> Result<(), TestCaseError> {
    let report = match result {
        Ok(profile) => {
            prop_assert_eq!(profile.samples.len() as u64, profile.report.used);
            for sample in &profile.samples {
                prop_assert!(sample.time.secs() > 0.0 && sample.time.secs().is_finite());
            }
            let Kinds { matmul, attention, streaming, collective } = profile.report.by_kind;
            prop_assert_eq!(matmul + attention + streaming + collective, profile.report.used);
            profile.report
        }
        Err(ProfileError::NothingUsable { report, .. }) => *report,
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    let rejected: u64 = report.refused.iter().map(|refusal| refusal.count).sum();
    prop_assert_eq!(report.rows, report.used + rejected);
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), name in ".{0,20}") {
        holds(read(&bytes, &Hints { name, ..Hints::default() }))?;
    }

    #[test]
    fn arbitrary_grammar_text_never_panics(text in "[\\[\\]{}\",;:\\t\\n0-9a-e.\\-kernel time_us ]{0,120}") {
        holds(read_named(&text, ""))?;
    }

    #[test]
    fn damaged_profiles_never_panic(
        file in prop::sample::select(vec![VIDUR_COMPUTE, VIDUR_NETWORK, VTRAIN, SIMUMAX, GALVATRON, NATIVE]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6),
        ranks in proptest::option::of(any::<u32>()),
    ) {
        let mut bytes = file.as_bytes().to_vec();
        for (at, byte, kind) in damage {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b"0123456789-e,.\n\""[usize::from(byte) % 16]),
                2 if bytes.len() > 1 => { bytes.remove(at); }
                _ if bytes.len() > 40 => bytes.truncate(bytes.len() - 1 - at % 30),
                _ => {}
            }
        }
        holds(read(&bytes, &Hints { name: "AR_GPU8".to_owned(), ranks, ranks_per_node: ranks }))?;
    }

    /// Each table line is either used or rejected, for arbitrary content.
    #[test]
    fn rows_are_counted(rows in prop::collection::vec("[a-z0-9.,\"-]{1,30}", 1..20)) {
        let file = format!("kernel,m,k,n,time_us\nmatmul,64,64,64,9\n{}\n", rows.join("\n"));
        prop_assert_eq!(profile(&file).report.rows, rows.len() as u64 + 1);
    }
}
