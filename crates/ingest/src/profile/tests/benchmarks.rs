//! Tests for collective benchmark output: nccl-tests and all_reduce_bench.

use super::*;

const NCCL_TESTS: &str = "\
# nThread 1 nGpus 4 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  41 on      node1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  41 on      node1 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  77 on      node2 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  77 on      node2 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    38.45    0.00    0.00      0    37.92    0.00    0.00      0
    67108864      16777216     float     sum      -1    700.0   95.87  143.80      0    690.0   97.26  145.89      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 71.9
";

/// 64 MiB in 700 us: 95.87 GB/s. Factor 2 x 3 / 4 gives bus bandwidth 143.8 for 4 devices, so it is
/// an all-reduce.
#[test]
fn nccl_tests_text_is_read_from_separate_buffers() {
    let profile = profile(NCCL_TESTS);
    assert_eq!((profile.format, profile.device.as_deref()), (Format::NcclTests, Some("NVIDIA H100 80GB HBM3")));
    let Kernel::Collective(first) = profile.samples[0].kernel else { panic!("a collective") };
    assert_eq!((first.operation, first.bytes, first.ranks, first.ranks_per_node), (Operation::AllReduce, 8.0, 4, 2));
    assert_eq!(kernels(&profile)[1], collective(Operation::AllReduce, 64.0, 4, 2));
    assert!((micros(&profile.samples[1]) - 700.0).abs() < 1e-9);
    let tagged = NCCL_TESTS.lines().map(|line| format!("[1,0]<stdout>:{line}")).collect::<Vec<_>>().join("\n");
    assert_eq!(kernels(&super::profile(&tagged)), kernels(&profile));
}

/// The program name gives the collective. Without rank lines, the ratio of 71.9 to 95.87 GB/s is 3
/// / 4, so 4 devices gather.
#[test]
fn nccl_tests_find_the_collective_and_the_devices() {
    let gather = |named: &str| {
        let rows: Vec<&str> = NCCL_TESTS.lines().filter(|line| !line.contains("Rank")).collect();
        format!("{named}\n{}", rows.join("\n")).replace("sum", "none").replace("143.80", "71.90")
    };
    let profile = profile(&gather("# Collective test starting: all_gather_perf"));
    assert_eq!(kernels(&profile)[1], collective(Operation::AllGather, 64.0, 4, 4));
    assert!(profile.report.assumptions.iter().any(|line| line.starts_with("4 devices took part")));
    assert_eq!(
        kernels(&super::profile(&gather("$ mpirun ./build/alltoall_perf -b 8")))[1],
        collective(Operation::AllToAll, 64.0, 4, 4)
    );
    assert_eq!(read_named(&gather(""), "out.txt"), Err(ProfileError::NoCollective));
    let by_name = read_named(&gather(""), "all_gather_perf.txt").unwrap();
    assert_eq!(kernels(&by_name)[1], collective(Operation::AllGather, 64.0, 4, 4));
    assert!(
        refusal(&gather("# Collective test starting: broadcast_perf"))
            .contains("a collective that training plans do not hold")
    );
}

/// 95.87 GB/s with factor 2 x 15 / 16 is bus bandwidth 179.76 for 16 devices: more than a typical
/// node, without host names.
#[test]
fn multi_node_nccl_tests_need_hosts_or_a_name() {
    let rows: Vec<&str> = NCCL_TESTS.lines().filter(|line| !line.contains("Rank")).collect();
    let file = rows.join("\n").replace("143.80", "179.76");
    assert_eq!(read_named(&file, "all_reduce_perf.txt"), Err(ProfileError::NoNodes { ranks: 16 }));
    let named = read_named(&file, "all_reduce_perf_2nodes_8gpus_per_node.txt").unwrap();
    assert_eq!(kernels(&named)[1], collective(Operation::AllReduce, 64.0, 16, 8));
    assert!(named.report.assumptions.iter().any(|line| line == "a node has 8 devices, by the file's name"));
}

/// NCCL_TESTS_SPLIT: two groups with two devices each, one per node. The factor for bus bandwidth
/// among 2 devices is 1.
#[test]
fn nccl_tests_groups_run_separate_collectives() {
    let split = NCCL_TESTS
        .replace("Rank  1 Group  0", "Rank  1 Group  1")
        .replace("Rank  3 Group  0", "Rank  3 Group  1")
        .replace("143.80", "95.87");
    let profile = profile(&split);
    assert_eq!(kernels(&profile)[1], collective(Operation::AllReduce, 64.0, 2, 1));
    let said = "2 groups of 2 devices run at the same time: a collective has the devices of one group";
    assert!(profile.report.assumptions.iter().any(|line| line == said), "{:?}", profile.report.assumptions);
    let unequal = NCCL_TESTS.replace("Rank  3 Group  0", "Rank  3 Group  1");
    assert_eq!(read_named(&unequal, "all_reduce_perf.txt"), Err(ProfileError::UnequalGroups));
}

#[test]
fn ranks_with_several_devices_are_rejected() {
    let mixed = NCCL_TESTS.replacen("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", 1);
    assert!(
        refusal(&mixed).contains("of several devices, NVIDIA A100-SXM4-80GB and NVIDIA H100"),
        "{}",
        refusal(&mixed)
    );
}

/// Four rank lines with ratio 1: two devices participated.
#[test]
fn bandwidth_ratio_gives_the_device_count() {
    let text = NCCL_TESTS.replace("143.80", "95.87");
    let profile = read_named(&text, "all_reduce_perf.txt").unwrap();
    assert_eq!(kernels(&profile)[1], collective(Operation::AllReduce, 64.0, 2, 2));
    let said =
        "2 devices took part, by the ratio of the two bandwidths; the lines of the ranks or the given number are 4";
    assert!(profile.report.assumptions.iter().any(|line| line == said), "{:?}", profile.report.assumptions);
}

/// 0.7 ms with `(ms)` in the header, and 0.7 us with `(us)`: 95.87 GB/s corresponds to 700 us.
#[test]
fn nccl_tests_unit_is_in_the_header() {
    let short = NCCL_TESTS.replace("700.0", "0.700").replace("38.45", "0.03845");
    let profile = profile(&short.replace("(us)", "(ms)"));
    assert!((micros(&profile.samples[1]) - 700.0).abs() < 1e-9);
    assert_eq!(profile.report.assumptions[0], "the out-of-place time is used, in the unit of the header");
    let wrong = read_named(&short, "all_reduce_perf.txt").unwrap();
    let [(reason, 1, _)] = rejections(&wrong)[..] else { panic!("{:?}", rejections(&wrong)) };
    assert_eq!(reason, "size over time is not the bandwidth of the row: the time has another unit");
    let tagged = NCCL_TESTS.lines().map(|line| format!("0: {line}")).collect::<Vec<_>>().join("\n");
    assert_eq!(kernels(&super::profile(&tagged)).len(), 2);
}

/// A send and receive has two ranks, for any bandwidth.
#[test]
fn sendrecv_has_two_ranks() {
    let rows: Vec<&str> = NCCL_TESTS.lines().filter(|line| !line.contains("Rank")).collect();
    let file = rows.join("\n").replace("95.87", "9.59").replace("143.80", "9.59").replace("sum", "none");
    let profile = read_named(&file, "sendrecv_perf.txt").unwrap();
    assert_eq!(kernels(&profile)[1], collective(Operation::SendReceive, 64.0, 2, 2));
}

/// 12 values at 64 MiB are wrong: the row is rejected, and the report includes the failed check.
#[test]
fn wrong_nccl_tests_results_are_rejected() {
    let text = NCCL_TESTS
        .replace("143.80      0", "143.80     12")
        .replace("Out of bounds values : 0 OK", "Out of bounds values : 12 FAILED");
    let profile = profile(&format!("# Collective test starting: all_reduce_perf\n{text}"));
    assert_eq!(kernels(&profile).len(), 1);
    let [(reason, 1, location)] = rejections(&profile)[..] else { panic!("{:?}", rejections(&profile)) };
    assert_eq!(reason, "a row whose results are wrong (#wrong is not 0)");
    assert!(location.starts_with("row 14: 67108864"), "{location}");
    assert!(profile.report.assumptions.iter().any(|line| line.contains("FAILED")), "{:?}", profile.report);
    // Unchecked results are accepted, and wrong in-place results are ignored.
    let unchecked = super::profile(&NCCL_TESTS.replace("143.80      0", "143.80    N/A"));
    assert_eq!((kernels(&unchecked).len(), rejections(&unchecked).len()), (2, 0));
    let same_buffer = super::profile(&NCCL_TESTS.replace("145.89      0", "145.89      7"));
    assert_eq!(kernels(&same_buffer).len(), 2);
    let json = r#"{"args": ["./all_reduce_perf"], "config": {"devices": [{"hostname": "a"}, {"hostname": "a"}]}, "results": [
        {"size": 67108864, "redop": "sum", "out_of_place": {"time": 500.5, "alg_bw": 134.1, "bus_bw": 134.1, "nwrong": 3}},
        {"size": 67108864, "redop": "sum", "out_of_place": {"time": 500.5, "alg_bw": 134.1, "bus_bw": 134.1, "nwrong": "N/A"}}]}"#;
    let profile = super::profile(json);
    assert_eq!(rejections(&profile), [("a row whose results are wrong (#wrong is not 0)", 1, "result 1")]);
    assert_eq!(kernels(&profile).len(), 1);
}

#[test]
fn nccl_tests_json_is_read() {
    let json = r#"{"args": ["./build/all_reduce_perf", "-J", "o.json"], "config": {"devices": [
        {"rank": 0, "hostname": "n1", "device_info": "NVIDIA H200"}, {"rank": 1, "hostname": "n1", "device_info": "NVIDIA H200"}]},
        "results": [
        {"size": 67108864, "count": 16777216, "type": "float", "redop": "sum", "root": "-1",
         "out_of_place": {"time": 500.5, "alg_bw": 134.1, "bus_bw": 134.1, "nwrong": 0}, "in_place": {"time": 1, "alg_bw": 1, "bus_bw": 1}},
        {"size": 1024, "out_of_place": null}],
        "average_bus_bandwidth": {"bandwidth": 134.1, "okay": "unchecked"}}"#;
    let profile = profile(json);
    assert_eq!(
        (kernels(&profile), profile.device.as_deref()),
        (vec![collective(Operation::AllReduce, 64.0, 2, 2)], Some("NVIDIA H200"))
    );
    assert!((micros(&profile.samples[0]) - 500.5).abs() < 1e-9);
    assert_eq!(rejections(&profile), [("a row without an out-of-place time", 1, "result 2")]);
}

/// Two ranks, two trials; the first trial is warm-up. 4 GB counted twice in bits, 64e9 / 1.28e12
/// bps, is 50 ms; 0.64 / 1.28 is 1 / 2.
#[test]
fn all_reduce_bench_blocks_are_rank_trials() {
    let block = |rank: u32, bits: &str, bus: &str| {
        format!("{rank}:\n duration: 0.1 sec\n algo throughput: {bits} bps, 1 Gbps\n busbw: {bus}  Gbps\n")
    };
    let text = [
        "local_rank: 0\nlocal_rank: 1\n0 data size: 4.0 GB\n".to_owned(),
        block(1, "640000000000.0", "320.0"),
        block(0, "640000000000.0", "320.0"),
        "ignore me 2\n".to_owned(),
        block(0, "1280000000000.0", "640.0"),
        block(1, "1600000000000.0", "800.0"),
    ]
    .concat();
    let profile = profile(&text);
    let Kernel::Collective(group) = profile.samples[0].kernel else { panic!("a collective") };
    assert_eq!((group.bytes, group.ranks, group.ranks_per_node), (4e9, 2, 2));
    assert_eq!(profile.samples.iter().map(|sample| micros(sample).round()).collect::<Vec<_>>(), [50_000.0, 40_000.0]);
    assert_eq!(rejections(&profile), [("the first trial of a rank", 2, "row 7")]);
}

/// 1 GiB at bus bandwidth 161.06 GB/s among 4 devices takes 2 x 3 / 4 x 1,073,741,824 / 161.06e9 =
/// 10,000 us.
#[test]
fn all_reduce_bench_tables_are_payloads() {
    let text = "The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):\n
| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|    32KB |   0.85GBps |   0.56GBps |
|     1GB | 161.06GBps | 107.37GBps |
";
    let profile = profile(text);
    assert_eq!(kernels(&profile), [collective(Operation::AllReduce, 1024.0, 4, 4)]);
    assert!((micros(&profile.samples[0]) - 10_000.0).abs() < 1.0);
    assert_eq!(rejections(&profile).len(), 1);
}
