//! Tests the output and exit codes of the program.

mod check;
mod execution_plan;
mod log_client;
mod mcp;
mod published_profiles;
mod sweeps;
mod trace;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

/// Runs the program with `input` as standard input.
fn planscope(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_planscope"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses the arguments closes standard input unread.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

fn scenario(nodes: u32) -> String {
    serde_json::json!({
        "schema": "scenario/1",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": nodes},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "uniform", "min": 100, "max": 2000},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 8,
            "context_length": 2048,
            "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 2},
        "planners": ["1f1b", "wait_free_cyclic"],
        "iterations": 2
    })
    .to_string()
}

#[test]
fn a_scenario_is_planned_and_its_timelines_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let timelines = folder.path().join("timelines");
    let output = planscope(&["plan", "-", "--timelines", timelines.to_str().unwrap()], &scenario(1));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: planner::outcome::Outcome = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome.results.len(), 2);
    for name in ["1f1b-0", "1f1b-1", "wait_free_cyclic-0", "wait_free_cyclic-1"] {
        let file = std::fs::read(timelines.join(format!("{name}.json"))).unwrap();
        let timeline: planner::timeline::Timeline = serde_json::from_slice(&file).unwrap();
        assert_eq!(timeline.ranks, 2, "{name}");
    }
}

#[test]
fn execution_plans_that_cannot_be_written_or_read_name_the_reason() {
    let refusal = |arguments: &[&str], input: &str| {
        let output = planscope(arguments, input);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let plan = |planner, iteration| {
        let arguments = ["plan", "-", "--execution-plan", "/dev/null", "--planner", planner, "--iteration", iteration];
        refusal(&arguments, &scenario(1))
    };
    assert!(plan("dhp", "0").contains("the scenario does not request dhp; it requests 1f1b, wait_free_cyclic"));
    assert!(plan("1f1b", "2").contains("the scenario has 2 iterations"));
    assert!(refusal(&["simulate", "-"], "{}").contains("the field \"format\" is missing"));
    assert!(refusal(&["simulate", "-"], &"[".repeat(1 << 20)).contains("recursion limit"));
}

#[test]
fn invalid_scenario_fields_are_reported() {
    let output = planscope(&["plan", "-"], &scenario(0));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.lines().any(|line| line.starts_with("planscope: cluster.nodes: ")), "{stderr}");
    assert_eq!(planscope(&["plan", "nowhere.json"], "").status.code(), Some(1));
}

#[test]
fn a_scenario_with_a_dataset_is_planned_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = folder.path().join("lengths.txt");
    std::fs::write(&lengths, "900\n1800\n120\n").unwrap();
    let arguments = ["plan", "-", "--dataset", lengths.to_str().unwrap()];
    let mut named: serde_json::Value = serde_json::from_str(&scenario(1)).unwrap();
    named["workload"]["samples"] = serde_json::json!({"kind": "dataset", "id": "unknown"});
    let rejected = planscope(&arguments, &named.to_string());
    let dataset_error = String::from_utf8(rejected.stderr).unwrap();
    assert!(dataset_error.contains("workload.samples.id: "), "{dataset_error}");
    let id = dataset_error.lines().find_map(|line| line.strip_prefix("dataset at hand: ")).unwrap();
    named["workload"]["samples"]["id"] = id.into();
    let output = planscope(&arguments, &named.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: planner::outcome::Outcome = serde_json::from_slice(&output.stdout).unwrap();
    assert!((outcome.workload.sample_tokens.max - 1800.0).abs() < 1e-9);
}

#[test]
fn configuration_table_is_answered_per_row() {
    let folder = tempfile::tempdir().unwrap();
    let [input, answered] = ["asked.csv", "answered.csv"].map(|name| folder.path().join(name));
    let table = "run,model,gpu,n_gpus,tp\na,llama-2-7b,h100,8,4\nb,llama-2-7b,h100,8,3\n";
    std::fs::write(&input, table).unwrap();
    let to_file = planscope(&["estimate", input.to_str().unwrap(), "--out", answered.to_str().unwrap()], "");
    let stderr = String::from_utf8(to_file.stderr).unwrap();
    assert!(to_file.status.success() && to_file.stdout.is_empty(), "{stderr}");
    assert!(stderr.starts_with("2 rows, 1 feasible, 1 infeasible; "), "{stderr}");
    assert!(stderr.contains("infeasible by n_gpus: 1, first in row 3: ") && stderr.contains("\"run\""), "{stderr}");
    let to_pipe = planscope(&["estimate", "-"], table);
    assert_eq!(to_pipe.stdout, std::fs::read(&answered).unwrap());
    let lines: Vec<String> = String::from_utf8(to_pipe.stdout).unwrap().lines().map(Into::into).collect();
    assert!(lines[0].starts_with("run,model,gpu,n_gpus,tp,iteration_time_s,") && lines.len() == 3, "{lines:?}");
    assert!(lines[1].starts_with("a,llama-2-7b,h100,8,4,") && lines[1].contains(",true,,"), "{lines:?}");
    assert!(lines[2].starts_with("b,llama-2-7b,h100,8,3,,,,,,,,,,,false,n_gpus: 8 "), "{lines:?}");
}

#[test]
fn strict_estimates_fail_for_rejected_rows_and_unknown_columns() {
    for (table, is_clean) in [
        ("model,gpu,n_gpus\nllama-2-7b,h100,8\n", true),
        ("model,gpu,n_gpus,tp\nllama-2-7b,h100,8,3\n", false),
        ("model,gpu,n_gpus,microbach\nllama-2-7b,h100,8,1\n", false),
        ("model,gpu,n_gpus,top_k,cp_exchange\nllama-2-7b,h100,8,0,ring\n", true),
        ("model,gpu,n_gpus,cp,cp_exchange\nllama-2-7b,h100,8,1,all_to_all\nllama-2-7b,h100,8,2,all_to_all\n", true),
        ("model,gpu,n_gpus,tensor_overlap\nllama-2-7b,h100,8,0.5\n", false),
    ] {
        assert!(planscope(&["estimate", "-"], table).status.success());
        let strict = planscope(&["estimate", "-", "--strict"], table);
        assert_eq!(strict.status.success(), is_clean, "{table}");
        let messages = String::from_utf8(strict.stderr).unwrap();
        assert_eq!(table.contains("microbach"), messages.contains("did you mean microbatch?"), "{messages}");
        let has_idle = table.contains("top_k") || table.contains("cp_exchange") || table.contains("tensor_overlap");
        assert_eq!(has_idle, messages.contains("cells without effect: "), "{messages}");
    }
}

#[test]
fn invalid_tables_are_rejected_in_a_single_line() {
    for input in ["", "1,2\n3,4\n", "tp,tp\n1,1\n"] {
        let output = planscope(&["estimate", "-", "--out", "never-made.csv"], input);
        assert_eq!(output.status.code(), Some(1), "{input:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("planscope: ") && stderr.lines().count() == 1, "{stderr}");
    }
    assert!(!std::path::Path::new("never-made.csv").exists());
    let help = String::from_utf8(planscope(&["estimate", "--help"], "").stdout).unwrap();
    assert!(help.contains("global_batch") && help.contains("exposed_comm_fraction"), "{help}");
}

#[test]
fn schedules_are_printed_checked_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [sound, times] = ["sound.csv", "times.json"].map(|name| folder.path().join(name));
    let line = ["schedule", "zbv", "--ranks", "4", "--microbatches", "8", "--forward", "1", "--backward", "2"];
    let printed = planscope(&[&line[..], &["--csv"]].concat(), "");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    std::fs::write(&sound, &printed.stdout).unwrap();
    let checked = planscope(&["schedule", "check", sound.to_str().unwrap()], "");
    let sound_text = String::from_utf8(checked.stdout).unwrap();
    assert!(
        checked.status.success() && sound_text.contains("sound: 4 ranks, 8 stages, 8 microbatches, 192 actions"),
        "{sound_text}"
    );

    let spoilt = String::from_utf8(printed.stdout).unwrap().replacen("0F1", "0X1", 1).replacen("1F1", "-1F1", 1);
    let checked = planscope(&["schedule", "check", "-"], &spoilt);
    let problems = String::from_utf8(checked.stdout).unwrap();
    assert_eq!((checked.status.code(), problems.lines().count()), (Some(1), 2), "{problems}");
    assert!(
        problems.contains("-: row 1, column 2 (B1): ") && problems.contains("a stage cannot be negative"),
        "{problems}"
    );

    std::fs::write(&times, r#"{"forward": [1, 1, 2, 1], "input_grad": 1, "weight_grad": 1, "per": "rank"}"#).unwrap();
    let arguments = ["schedule", "1f1b", "zb_h2", "dual_pipe", "--ranks", "4", "--microbatches", "8"];
    let files = ["--times", times.to_str().unwrap(), "--import", sound.to_str().unwrap()];
    let compared = planscope(&[&arguments[..], &files, &["--draw"]].concat(), "");
    let table_text = String::from_utf8(compared.stdout).unwrap();
    let lines: Vec<&str> = table_text.lines().collect();
    assert!(compared.status.success() && lines[0].starts_with("schedule "), "{table_text}");
    assert!(lines[4].starts_with("sound.csv ") && table_text.contains("\nDualPipe\n0 FF"), "{table_text}");
    let json = planscope(&[&arguments[..], &files, &["--json"]].concat(), "").stdout;
    let response: planner::schedule_comparison::ScheduleResponse = serde_json::from_slice(&json).unwrap();
    assert_eq!(response.entries.len(), 4);
    let single = planscope(&["schedule", "--import", sound.to_str().unwrap(), "--forward", "1", "--backward", "2"], "");
    assert!(single.status.success() && single.stderr.is_empty(), "{}", String::from_utf8_lossy(&single.stderr));
}

#[test]
fn impossible_schedules_fail_and_others_are_printed() {
    let line = ["schedule", "1f1b", "dual_pipe", "--ranks", "5", "--microbatches", "20", "--forward", "1"];
    let output = planscope(&[&line[..], &["--backward", "2"]].concat(), "");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), stderr.as_str()),
        (Some(1), "planscope: DualPipe needs an even number of ranks, 5 given\n")
    );
    assert!(String::from_utf8(output.stdout).unwrap().contains("\n1F1B "));
    let wrong = planscope(&[&line[..], &["--backward", "-2", "--memory-cap", "-1"]].concat(), "");
    let invalid_text = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!((wrong.status.code(), invalid_text.lines().count()), (Some(2), 3), "{invalid_text}");
}

#[test]
fn a_server_open_to_everyone_refuses_to_start() {
    let output = planscope(&["serve", "--address", "0.0.0.0:0", "--database", "never-made.db"], "");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("PLANSCOPE_TOKEN"), "{stderr}");
    assert!(!std::path::Path::new("never-made.db").exists());
}

#[test]
fn openapi_description_is_printed() {
    let output = planscope(&["openapi"], "");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["paths"]["/api/v1/scenarios/{id}/plan"]["post"].is_object());
}

#[test]
fn health_reports_the_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("planscope.db");
    let mut server = Command::new(env!("CARGO_BIN_EXE_planscope"))
        .args(["serve", "--address", "127.0.0.1:0", "--token", "0123456789abcdef", "--database"])
        .arg(&database)
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = said.by_ref().map(Result::unwrap).find(|line| line.contains("http://")).unwrap();
    let address: String = line.rsplit("http://").next().unwrap().chars().take_while(|c| !c.is_whitespace()).collect();
    let health = |address: &str| planscope(&["health", "--address", address, "--token", "0123456789abcdef"], "");
    let well = health(&address);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(well.status.success(), "{}", String::from_utf8_lossy(&well.stderr));
    assert!(!health(&address).status.success(), "a stopped server is not well");
}

/// Returns an H100 cluster with two modified parameters, and matching matrix product timings in the
/// Planscope format.
fn products() -> (planner::cluster::Cluster, String) {
    use std::fmt::Write;

    use planner::cost::kernel::{Format, Kernel, MatMul, Product};
    let mut device = planner::cluster::presets::cluster("h100").unwrap();
    device.device.matmul_efficiency = 0.61;
    device.device.launch_us = 7.0;
    // Kernels in a profile are timed separately, below the power limit.
    device.device.curves.as_mut().unwrap().sustained = 1.0;
    let rates = planner::cost::operator::Rates::new(&device.device);
    let mut table = "kernel,m,k,n,product,time_us\n".to_owned();
    for m in [64.0, 512.0, 1024.0, 4096.0] {
        for (k, n) in [(1024.0, 1024.0), (4096.0, 6144.0), (8192.0, 24_576.0)] {
            for (name, product) in [
                ("forward", Product::Forward),
                ("input_grad", Product::InputGrad),
                ("weight_grad", Product::WeightGrad),
            ] {
                let product = MatMul { batch: 1.0, m, k, n, product, format: Format::Bf16 };
                let time = rates.time(&Kernel::MatMul(product)).secs() * 1e6;
                writeln!(table, "matmul,{m},{k},{n},{name},{time}").unwrap();
            }
        }
    }
    (device, table)
}

fn calibrate(arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["calibrate"].into_iter().chain(arguments.iter().copied()).collect();
    planscope(&arguments, "")
}

#[test]
fn calibrated_cluster_is_valid_in_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let [measured, fitted] = ["measured.csv", "fitted.json"].map(|name| folder.path().join(name));
    let (device, table) = products();
    // One value in a different unit, and three invalid times.
    let bad = "matmul,64,64,64,forward,0\nmatmul,64,64,64,forward,-3\nmatmul,64,64,64,forward,NaN\n\
               matmul,8192,8192,8192,forward,0.9\n";
    std::fs::write(&measured, table + bad).unwrap();
    let (measured, fitted) = (measured.to_str().unwrap(), fitted.to_str().unwrap());
    let to_file = calibrate(&[measured, "--device", "h100", "--out", fitted]);
    let stderr = String::from_utf8(to_file.stderr).unwrap();
    assert!(to_file.status.success() && to_file.stdout.is_empty(), "{stderr}");
    for line in [
        "measured.csv: Planscope table of measurements; 40 values, 36 read (36 matrix products), 4 refused",
        "  refused: 1 x faster than any device: is the time in another unit?; first row 41, ",
        "  the file names no device; it is fitted to h100, as chosen",
        "matrix products: fitted to 36 timings; residual mean ",
        "fused attention: not fitted, 0 timings",
        "device.matmul_efficiency: 0.8",
    ] {
        assert!(stderr.lines().any(|found| found.starts_with(line)), "{line}: {stderr}");
    }
    let json = std::fs::read_to_string(fitted).unwrap();
    assert_eq!(calibrate(&[measured, "--device", "h100"]).stdout, json.as_bytes(), "a fit is deterministic");
    let cluster: planner::cluster::Cluster = serde_json::from_str(&json).unwrap();
    let calibration = &cluster.device.curves.as_ref().unwrap().calibration;
    assert!(calibration.source.ends_with("measured.csv") && calibration.matmul == 36, "{calibration:?}");
    assert!((cluster.device.matmul_efficiency / device.device.matmul_efficiency - 1.0).abs() < 0.05, "{stderr}");
    let mut request: serde_json::Value = serde_json::from_str(&scenario(1)).unwrap();
    request["cluster"] = serde_json::from_str(&json).unwrap();
    let planned = planscope(&["plan", "-"], &request.to_string());
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
}

#[test]
fn calibration_errors_are_reported_and_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.csv", &products().1);
    let head = "kernel,m,k,n,time_us,time_ms\n";
    for (bad, expected) in [
        (file("zero.csv", &format!("{head}matmul,64,64,64,0,\n")), "none of the 1 values"),
        (file("column.csv", "kernel,m,k,time_us\nmatmul,64,64,9\n"), "column.csv: error: "),
        (file("no_time.csv", "kernel,m,k,n\nmatmul,64,64,64\n"), "no_time.csv: error: "),
        (file("units.csv", &format!("{head}matmul,64,64,64,9,9\n")), "two time columns contradict each other"),
        (file("words.txt", "nothing measured"), "words.txt: error: no known profile"),
        (folder.path().join("nowhere.csv").to_str().unwrap().to_owned(), "nowhere.csv: error: cannot read"),
    ] {
        let out = folder.path().join("never.json");
        let output = calibrate(&[&bad, &good, "--device", "h100", "--out", out.to_str().unwrap()]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(output.stdout.is_empty() && !out.exists(), "{stderr}");
        assert!(stderr.contains(expected), "{expected}: {stderr}");
        assert!(stderr.contains("\ngood.csv: Planscope table of measurements; 36 values, 36 read"), "{stderr}");
        assert!(stderr.ends_with("\nplanscope: 1 of 2 files cannot be used, so nothing was fitted; correct these files or leave them out\n"), "{stderr}");
    }
    let single = file("one.csv", "kernel,m,k,n,time_us\nmatmul,4096,4096,4096,300\n");
    let output = calibrate(&[&single, "--device", "h100"]);
    let timing_error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{timing_error}");
    assert!(
        timing_error.contains("matrix products: not fitted, 1 timings; ") && timing_error.contains("too few"),
        "{timing_error}"
    );
    let again = format!("kernel,m,k,n,time_us\n{}", "matmul,4096,4096,4096,300\n".repeat(12));
    let output = calibrate(&[&file("again.csv", &again), "--device", "h100"]);
    let shapes_error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shapes_error}");
    assert!(shapes_error.contains("12 timings of 1 different shapes are too few: nothing changes"), "{shapes_error}");
}

#[test]
fn a_calibration_starts_from_a_known_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let [named, start] = ["b200_products.csv", "start.json"].map(|name| folder.path().join(name));
    std::fs::write(&named, products().1).unwrap();
    let (named, from) = (named.to_str().unwrap(), start.to_str().unwrap());
    let stderr = |output: Output| String::from_utf8(output.stderr).unwrap();
    let unknown = stderr(calibrate(&[named, "--device", "h1000"]));
    assert!(unknown.starts_with("planscope: no device preset \"h1000\"; there are a100-80gb, "), "{unknown}");
    let other = stderr(calibrate(&[named, "--device", "h100"]));
    assert!(other.contains("b200_products.csv was measured on B200, but it is to be fitted to h100"), "{other}");
    let confirmed = calibrate(&[named, "--device", "h100", "--confirm-device"]);
    assert!(confirmed.status.success());
    assert!(stderr(confirmed).contains("  confirmed: measured on B200, fitted to h100"));
    assert_eq!(calibrate(&[named]).status.code(), Some(2));
    assert_eq!(calibrate(&[named, "--device", "h100", "--from", from]).status.code(), Some(2));
    for (text, expected) in [
        ("{", "start.json: EOF"),
        (r#"{"preset": "h100", "nodes": 0}"#, "/cluster/nodes: 0 is out of range"),
        (r#"{"name": "H100"}"#, "/cluster/nodes: is missing"),
    ] {
        std::fs::write(&start, text).unwrap();
        let output = calibrate(&[named, "--from", from]);
        assert_eq!(output.status.code(), Some(1));
        let message = stderr(output);
        assert!(
            message.starts_with("planscope: ") && message.contains(expected) && message.lines().count() == 1,
            "{message}"
        );
    }
    std::fs::write(&start, r#"{"preset": "b200", "nodes": 2}"#).unwrap();
    let output = calibrate(&[named, "--from", from]);
    let cluster: planner::cluster::Cluster = serde_json::from_slice(&output.stdout).unwrap();
    assert!(cluster.nodes == 2 && cluster.name == "B200");
    assert!(stderr(output).contains("  measured on B200, fitted to B200"));
}

fn uneven_pipeline() -> serde_json::Value {
    serde_json::json!({
        "kind": "uneven-pipeline",
        "ranks": 2,
        "forward": [[1, 1], [1, 1]],
        "backward": [[1, 1], [1, 1]],
    })
}

/// p = 2, m = 2, F = B = 1 s: the last rank idles for 1 s and works for 4 s. The last gradient adds
/// 1 s.
#[test]
fn a_raw_problem_is_solved_from_standard_input_or_a_file() {
    let problem = uneven_pipeline().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("problem.json");
    std::fs::write(&file, &problem).unwrap();
    for (path, input) in [("-", problem.as_str()), (file.to_str().unwrap(), "")] {
        let output = planscope(&["solve", path], input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let response: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&response["kind"], &response["status"]), (&"uneven-pipeline".into(), &"optimal".into()));
        assert_eq!((response["makespan_s"].as_f64(), response["gap"].as_f64()), (Some(6.0), Some(0.0)));
        assert_eq!(response["orders"][0].as_array().map(Vec::len), Some(4));
        assert!(response["wall_s"].as_f64().is_some_and(|seconds| seconds > 0.0));
    }
    assert_eq!(planscope(&["solve", "nowhere.json"], "").status.code(), Some(1));
}

/// Non-uniform microbatches. The optimal order has a makespan of 69 s, and the initial solution is
/// 3 s slower.
#[test]
fn no_time_still_gives_an_order_that_says_so() {
    let mut problem = uneven_pipeline();
    let forward = [[3, 1, 2], [1, 4, 2], [9, 2, 5], [2, 6, 1], [5, 3, 7], [1, 8, 3]];
    problem["ranks"] = 3.into();
    problem["forward"] = serde_json::json!(forward);
    problem["backward"] = serde_json::json!(forward.map(|[first, _, third]| [2 * first, third, first + 3]));
    problem["budget_s"] = 0.into();
    let output = planscope(&["solve", "-"], &problem.to_string());
    let response: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&response["status"], &response["nodes"]), (&"time".into(), &0.into()));
    assert!(response["lower_bound_s"].as_f64() < response["makespan_s"].as_f64());
    assert!(response["orders"].as_array().unwrap().iter().all(|order| order.as_array().unwrap().len() == 12));
}

#[test]
fn invalid_problem_fields_are_reported() {
    let mut problem = uneven_pipeline();
    problem["backward"] = serde_json::json!([[1, -1], [1]]);
    let output = planscope(&["solve", "-"], &problem.to_string());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("planscope: /backward/0/1: -1"), "{stderr}");
    assert!(lines[1].starts_with("planscope: /backward/1: has 1 stages"), "{stderr}");
    let unknown = planscope(&["solve", "-"], r#"{"kind": "knapsack"}"#);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("/kind: \"knapsack\" is no kind"));
}
