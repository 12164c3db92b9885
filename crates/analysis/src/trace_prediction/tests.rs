use serde_json::{Value, json};

use super::*;
use crate::trace_comparison::{Activity, Call, RecordedStep};
use planscope_plan::outcome::PlanOutcome;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{Scenario, parse};
use planscope_planners::engine::{Unobserved, plan};

fn valid(layout: &Value, training: &Value) -> ValidScenario {
    let document = json!({
        "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 16, "context_length": 4096, "packing": "single"
        },
        "training": training, "layout": layout, "planners": ["1f1b"]
    });
    ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn planned(valid: &ValidScenario) -> Planned {
    let scenario = Scenario { iterations: 1, ..valid.scenario().clone() };
    let single = ValidScenario::new(scenario, valid).unwrap();
    match plan(&single, &mut Unobserved).unwrap().outcome.results.remove(0).answer {
        PlanOutcome::Planned(planned) => *planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

/// A kernel name, activity and operation of each predicted type.
fn kernel(kind: KernelType) -> (&'static str, Activity, Option<&'static str>) {
    match kind {
        KernelType::Matmul => ("nvjet_hsh_128x256", Activity::Compute, None),
        KernelType::Attention => ("flash_fwd_kernel", Activity::Compute, None),
        KernelType::MemoryBound => ("triton_poi_fused_0", Activity::Compute, None),
        KernelType::Optimizer => ("FusedAdam", Activity::Compute, None),
        KernelType::AllGather => ("nccl AllGather", Activity::Communication, Some("allgather")),
        KernelType::AllReduce => ("nccl AllReduce", Activity::Communication, Some("allreduce")),
        KernelType::ReduceScatter => ("nccl ReduceScatter", Activity::Communication, Some("reducescatter")),
        kind => panic!("{kind:?} is not predicted"),
    }
}

/// A trace with the predicted time of each type, in two steps of the predicted duration.
fn recorded(valid: &ValidScenario, planned: &Planned, rank: u32) -> Recorded {
    let times = predicted::by_type(valid, planned, rank, &mut Vec::new());
    let length_ns = (planned.metrics.iteration_s * 1e9) as u64;
    let mut recorded = Recorded { name: "rank0.json".to_owned(), ..Recorded::default() };
    for number in 0..2 {
        let mut at = number * length_ns;
        for (&kind, &seconds) in &times {
            let (name, activity, operation) = kernel(kind);
            let name = recorded.names.iter().position(|known| known == name).unwrap_or_else(|| {
                recorded.names.push(name.to_owned());
                recorded.names.len() - 1
            });
            let call = operation.map(|operation| {
                recorded.calls.push(Call {
                    operation: operation.to_owned(),
                    group: String::new(),
                    sequence: None,
                    waits_for_all: true,
                });
                recorded.calls.len() as u32 - 1
            });
            let duration_ns = (seconds * 1e9) as u64;
            recorded.slices.push(DeviceSlice {
                name: name as u32,
                activity,
                phase: None,
                start_ns: at,
                duration_ns,
                step: Some(number),
                call,
                launched_ns: Some(at),
            });
            at += duration_ns;
        }
        recorded.steps.push(RecordedStep { number, duration_ns: length_ns });
    }
    recorded
}

/// A trace as predicted has no differences, and the predicted operators add up to the computation of the rank.
#[test]
fn a_trace_as_predicted_has_no_differences() {
    for (layout, training) in [
        (
            json!({ "tensor": 2, "pipeline": 4, "microbatch": 1 }),
            json!({ "recompute": "full", "sequence_parallel": true }),
        ),
        (json!({ "tensor": 2, "pipeline": 2, "microbatch": 2 }), json!({ "recompute": "none" })),
        (
            json!({ "tensor": 1, "pipeline": 2, "microbatch": 1 }),
            json!({ "recompute": "full", "recompute_layers": 4, "zero": 1 }),
        ),
    ] {
        let valid = valid(&layout, &training);
        let planned = planned(&valid);
        let rank = planned.ranks.len() as u32 - 1;
        let found = compare(&valid, &planned, &recorded(&valid, &planned, rank), Some(7));
        assert_eq!((found.pipeline_rank, found.steps), (rank, 2), "{layout}");
        for row in &found.kernels {
            let difference = row.difference_s().expect("all types are predicted");
            assert!(difference.abs() < 1e-8, "{layout}: {row:?}");
        }
        let of = |kind: KernelType| {
            found.kernels.iter().find(|row| row.kind == kind).and_then(|row| row.predicted_s).unwrap_or(0.0)
        };
        let sum = of(KernelType::Matmul)
            + of(KernelType::Attention)
            + of(KernelType::MemoryBound)
            + of(KernelType::Optimizer);
        let compute = found.parts.iter().find(|part| part.part == StepPart::Compute).unwrap();
        assert!((sum / compute.predicted_s - 1.0).abs() < 0.02, "{layout}: {sum} s of operators, {compute:?}");
        // The parts add up to the step, on both sides.
        let (step, parts) = found.parts.split_last().unwrap();
        assert!((parts.iter().map(|part| part.measured_s).sum::<f64>() - step.measured_s).abs() < 1e-8);
        assert!((parts.iter().map(|part| part.predicted_s).sum::<f64>() - step.predicted_s).abs() < 1e-8);
        let idle = parts.iter().find(|part| part.part == StepPart::Idle).unwrap();
        let causes = found.idle.iter().map(|row| row.time_s).sum::<f64>();
        assert!((causes - idle.measured_s).abs() < 1e-8, "{layout}: {causes} {idle:?}");
    }
}

/// A slower attention kernel is the first row, and unknown kernels are named.
#[test]
fn the_largest_difference_comes_first() {
    let valid = valid(&json!({ "tensor": 2, "pipeline": 2, "microbatch": 1 }), &json!({ "recompute": "none" }));
    let planned = planned(&valid);
    let mut trace = recorded(&valid, &planned, 0);
    let slow = trace.names.iter().position(|name| name == "flash_fwd_kernel").unwrap() as u32;
    let attention = trace.slices.iter_mut().filter(|slice| slice.name == slow);
    attention.for_each(|slice| slice.duration_ns *= 3);
    trace.names.push("my_kernel".to_owned());
    let last = trace.slices[0];
    trace.slices.push(DeviceSlice { name: trace.names.len() as u32 - 1, ..last });
    // Outside of the steps.
    trace.slices.push(DeviceSlice { step: None, ..last });
    let found = compare(&valid, &planned, &trace, Some(0));
    let first = &found.kernels[0];
    assert_eq!(first.kind, KernelType::Attention);
    assert!((first.measured_s / first.predicted_s.unwrap() - 3.0).abs() < 1e-6, "{first:?}");
    assert_eq!(found.unassigned.len(), 1);
    assert_eq!(found.unassigned[0].name, "my_kernel");
    assert!(found.notes.iter().any(|note| note.starts_with("1 kernels and copies outside")), "{:?}", found.notes);
    assert_eq!(found.kernels.last().unwrap().predicted_s, None);
}

/// A trace with too little or too much work for the job is named as another job.
#[test]
fn a_trace_of_another_job_is_named() {
    let valid = valid(&json!({ "tensor": 2, "pipeline": 2, "microbatch": 1 }), &json!({ "recompute": "none" }));
    let planned = planned(&valid);
    let mut trace = recorded(&valid, &planned, 0);
    let named = |trace: &Recorded| compare(&valid, &planned, trace, Some(0)).other_job;
    assert_eq!(named(&trace), Vec::<String>::new());
    let devices = valid.scenario().cluster.devices();
    let cluster = |world_size, model: &str| Recorded {
        world_size: Some(world_size),
        model: Some(model.to_owned()),
        ..trace.clone()
    };
    assert_eq!(named(&cluster(devices, &format!("GPU 0, {}", valid.scenario().cluster.name))), Vec::<String>::new());
    assert!(named(&cluster(512, "GPU 0"))[0].contains("a job with 512 ranks"), "{:?}", named(&cluster(512, "GPU 0")));
    let other = named(&cluster(devices, "GPU 0, AMD Instinct MI300X"));
    assert!(other.len() == 1 && other[0].contains("a device MI300X"), "{other:?}");
    trace.slices.iter_mut().for_each(|slice| slice.duration_ns /= 3);
    assert!(named(&trace)[0].starts_with("Matrix products take 33 % of the predicted time"), "{:?}", named(&trace));
    trace.slices.iter_mut().for_each(|slice| slice.duration_ns *= 18);
    assert!(named(&trace)[0].starts_with("Matrix products take 6.0 times the predicted time"), "{:?}", named(&trace));
}

/// A rank that the plan does not have, and a trace without steps, are reported.
#[test]
fn missing_ranks_and_steps_are_reported() {
    let valid = valid(&json!({ "tensor": 2, "pipeline": 2, "microbatch": 1 }), &json!({ "recompute": "none" }));
    let planned = planned(&valid);
    let mut trace = recorded(&valid, &planned, 0);
    trace.steps.clear();
    let found = compare(&valid, &planned, &trace, Some(64));
    assert_eq!((found.pipeline_rank, found.steps), (0, 1));
    assert!(found.other_job[0].contains("no rank 64"), "{:?}", found.other_job);
    assert!(found.notes.iter().any(|note| note.contains("marks no steps")), "{:?}", found.notes);
}

/// A plan of an earlier version has no layers of its stages. Operators are not predicted, and a note says so.
#[test]
fn plans_of_earlier_versions_have_no_operators() {
    let valid = valid(&json!({ "tensor": 2, "pipeline": 2, "microbatch": 1 }), &json!({ "recompute": "none" }));
    let mut planned = planned(&valid);
    let trace = recorded(&valid, &planned, 0);
    planned.stages.iter_mut().for_each(|stage| stage.ranges.clear());
    let found = compare(&valid, &planned, &trace, Some(0));
    assert!(found.kernels.iter().all(|row| row.predicted_s.is_none()), "{:?}", found.kernels);
    assert!(found.notes.iter().any(|note| note.contains("earlier version")), "{:?}", found.notes);
}
