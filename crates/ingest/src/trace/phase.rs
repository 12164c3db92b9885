//! Phase of a training step that launches a device slice.
//!
//! The arrow from the launch to the slice leads to the host thread. The outermost enclosing slice
//! whose name states a phase decides. The backward pass of PyTorch launches from a thread of its own.
//! If no slice of a thread states a phase, as with NVTX ranges around `loss.backward()`, the slices of
//! the main thread of the process decide. Eager programs name backward and optimizer only, so all
//! other launches of such a trace are forward.

use std::collections::HashMap;

use planner::trace_comparison::Phase;

use super::action::{ActionKind, actions};
use super::kind::Kind;
use super::table::Trace;

/// Launch time and phase per slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launches {
    /// Time of the launch on the host, if an arrow leads to the slice.
    pub(super) launch_ns: Vec<Option<u64>>,
    /// Phase of device slices; `None` if unknown.
    pub(super) phase: Vec<Option<Phase>>,
}

/// A launch: time on the host and index of the device slice.
#[derive(Debug, Clone, Copy)]
struct Launch {
    at_ns: u64,
    slice: u32,
}

impl Launches {
    /// Finds launches and phases of all device slices.
    pub(super) fn find(trace: &Trace) -> Self {
        let count = trace.slices.len();
        let mut found = Self { launch_ns: vec![None; count], phase: vec![None; count] };
        let stated: Vec<Option<Phase>> = trace.names.iter().map(|name| phase(name)).collect();
        // Rows: host threads for launches, and devices for slices that no arrow leads to.
        let mut by_thread: HashMap<u32, Vec<Launch>> = HashMap::new();
        for flow in &trace.flows {
            if let Some(slice) = device_slice_at(trace, flow.to_lane, flow.to_ns) {
                found.launch_ns[slice] = Some(flow.from_ns);
                let launch = Launch { at_ns: flow.from_ns, slice: slice as u32 };
                by_thread.entry(first_lane(trace, flow.from_lane)).or_default().push(launch);
            }
        }
        let main = main_threads(trace, &stated);
        for (lane, launches) in by_thread {
            let mut around = stating(trace, &stated, lane);
            if around.is_empty()
                && let Some(&main) = main.get(&trace.lanes[lane as usize].process)
            {
                around = stating(trace, &stated, main);
            }
            found.enclose(trace, &stated, around, launches);
        }
        found.device_annotations(trace, &stated);
        found.fill(trace);
        found
    }

    /// Sets the phase of each launch from the slices that enclose it.
    fn enclose(&mut self, trace: &Trace, stated: &[Option<Phase>], mut around: Vec<usize>, mut launches: Vec<Launch>) {
        let end = |slice: usize| trace.slices.start_ns[slice].saturating_add(trace.slices.duration_ns[slice]);
        around.retain(|&slice| stated[trace.slices.name[slice] as usize].is_some());
        around.sort_by_key(|&slice| (trace.slices.start_ns[slice], std::cmp::Reverse(trace.slices.duration_ns[slice])));
        launches.sort_by_key(|launch| launch.at_ns);
        let mut next = 0;
        let mut open: Vec<usize> = Vec::new();
        for launch in launches {
            while next < around.len() && trace.slices.start_ns[around[next]] <= launch.at_ns {
                open.push(around[next]);
                next += 1;
            }
            open.retain(|&slice| end(slice) > launch.at_ns);
            if let Some(&outermost) = open.first() {
                self.phase[launch.slice as usize] = stated[trace.slices.name[outermost] as usize];
            }
        }
    }

    /// Uses annotations on the device for slices without a known launch.
    fn device_annotations(&mut self, trace: &Trace, stated: &[Option<Phase>]) {
        let mut by_process: HashMap<u32, (Vec<usize>, Vec<Launch>)> = HashMap::new();
        for slice in 0..trace.slices.len() {
            let process = trace.lanes[trace.slices.lane[slice] as usize].process;
            let entry = by_process.entry(process).or_default();
            if trace.slices.kind[slice] == Kind::DeviceAnnotation {
                entry.0.push(slice);
            } else if trace.slices.kind[slice].is_on_device() && self.phase[slice].is_none() {
                entry.1.push(Launch { at_ns: trace.slices.start_ns[slice], slice: slice as u32 });
            }
        }
        for (around, launches) in by_process.into_values() {
            self.enclose(trace, stated, around, launches);
        }
    }

    /// Completes launches without a stated phase in a trace with backward passes: between two
    /// optimizer launches, or after a backward pass and before the optimizer (clipping of gradients),
    /// they belong to the optimizer, otherwise to a forward pass.
    fn fill(&mut self, trace: &Trace) {
        if !self.phase.contains(&Some(Phase::Backward)) {
            return;
        }
        let mut launches: Vec<Launch> = (0..trace.slices.len())
            .filter_map(|slice| {
                let own = trace.slices.kind[slice].is_on_device();
                self.launch_ns[slice].filter(|_| own).map(|at_ns| Launch { at_ns, slice: slice as u32 })
            })
            .collect();
        launches.sort_by_key(|launch| (launch.at_ns, launch.slice));
        let mut after: Vec<Option<Phase>> = vec![None; launches.len()];
        let mut next = None;
        for (place, launch) in launches.iter().enumerate().rev() {
            after[place] = next;
            next = self.phase[launch.slice as usize].or(next);
        }
        let mut before = None;
        for (launch, after) in launches.iter().zip(after) {
            let phase = &mut self.phase[launch.slice as usize];
            match *phase {
                Some(stated) => before = Some(stated),
                None if after == Some(Phase::Optimizer) && before.is_some_and(|before| before != Phase::Forward) => {
                    *phase = Some(Phase::Optimizer);
                }
                None => *phase = Some(Phase::Forward),
            }
        }
    }
}

/// Returns the phase that a name states.
fn phase(name: &str) -> Option<Phase> {
    let kinds = actions(name);
    if let Some(first) = kinds.first() {
        return match first.kind {
            _ if kinds.len() > 1 => None,
            ActionKind::Forward => Some(Phase::Forward),
            ActionKind::Backward | ActionKind::InputGrad | ActionKind::WeightGrad => Some(Phase::Backward),
            _ => None,
        };
    }
    let lower = name.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    match (has("forward"), has("backward") || has("autograd::engine::evaluate_function")) {
        _ if has("optimizer") || has("/optim/") => Some(Phase::Optimizer),
        (true, false) => Some(Phase::Forward),
        (false, true) => Some(Phase::Backward),
        _ => None,
    }
}

/// Returns the host slices of a thread whose names state a phase. `lane` is the first lane of the thread.
fn stating(trace: &Trace, stated: &[Option<Phase>], lane: u32) -> Vec<usize> {
    let further = trace.lanes[lane as usize + 1..].iter().take_while(|lane| lane.overflow > 0).count();
    slices_of(trace, lane as usize..lane as usize + 1 + further)
        .filter(|&slice| !trace.slices.kind[slice].is_on_device() && trace.slices.kind[slice] != Kind::DeviceAnnotation)
        .filter(|&slice| stated[trace.slices.name[slice] as usize].is_some())
        .collect()
}

/// Returns the thread of each process with the most slices that state a phase, by its first lane.
fn main_threads(trace: &Trace, stated: &[Option<Phase>]) -> HashMap<u32, u32> {
    let mut main: HashMap<u32, (usize, u32)> = HashMap::new();
    for (lane, own) in (0..).zip(&trace.lanes).filter(|(_, own)| own.overflow == 0) {
        let count = stating(trace, stated, lane).len();
        let most = main.entry(own.process).or_default();
        if count > most.0 {
            *most = (count, lane);
        }
    }
    main.into_iter().filter(|(_, (count, _))| *count > 0).map(|(process, (_, lane))| (process, lane)).collect()
}

/// Returns the first lane of the thread that a lane belongs to.
fn first_lane(trace: &Trace, lane: u32) -> u32 {
    lane - trace.lanes[lane as usize].overflow.min(lane)
}

/// Returns the slices on lanes. Slices are sorted by lane.
fn slices_of(trace: &Trace, lanes: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let first = |lane: usize| trace.slices.lane.partition_point(|&other| (other as usize) < lane);
    first(lanes.start)..first(lanes.end)
}

/// Returns the device slice that starts at a time, on a lane or on the thread's further lanes.
fn device_slice_at(trace: &Trace, lane: u32, at_ns: u64) -> Option<usize> {
    let further = trace.lanes.get(lane as usize + 1..)?.iter().take_while(|lane| lane.overflow > 0).count();
    (lane as usize..=lane as usize + further).find_map(|lane| {
        let range = slices_of(trace, lane..lane + 1);
        let starts = &trace.slices.start_ns[range.clone()];
        let first = range.start + starts.partition_point(|&start| start < at_ns);
        (first..range.end)
            .take_while(|&slice| trace.slices.start_ns[slice] == at_ns)
            .find(|&slice| trace.slices.kind[slice].is_on_device())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Limits, TimeUnit, read};

    #[test]
    fn names_state_phases() {
        for (name, expected) in [
            ("autograd::engine::evaluate_function: MmBackward0", Some(Phase::Backward)),
            ("Optimizer.step#AdamW.step", Some(Phase::Optimizer)),
            ("Optimizer.zero_grad#AdamW.zero_grad", Some(Phase::Optimizer)),
            ("torch/optim/adamw.py(60): step", Some(Phase::Optimizer)),
            ("forward", Some(Phase::Forward)),
            ("PP:0F3", Some(Phase::Forward)),
            ("PP:0W3", Some(Phase::Backward)),
            ("PP:(0F1;2B0)OVERLAP_F_B", None),
            ("forward_backward_func", None),
            ("aten::mm", None),
        ] {
            assert_eq!(phase(name), expected, "{name}");
        }
    }

    /// Ranges are on thread 1 only; thread 2 launches a kernel during the range of the backward pass.
    #[test]
    fn a_thread_without_ranges_has_the_phase_of_the_main_thread() {
        let range = |name: &str, at: u64| serde_json::json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 90});
        let mut events = vec![range("forward", 0), range("backward", 100), range("optimizer", 200)];
        for (id, (thread, at)) in [(1, 10), (2, 120), (2, 150), (1, 210)].into_iter().enumerate() {
            let start = at + 1000;
            events.extend([
                serde_json::json!({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": 5}),
                serde_json::json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread, "ts": at, "dur": 5}),
                serde_json::json!({"ph": "s", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": thread, "ts": at}),
                serde_json::json!({"ph": "f", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": start, "bp": "e"}),
            ]);
        }
        let text = serde_json::Value::Array(events).to_string();
        let trace = read(text.as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let launches = Launches::find(&trace);
        let device = (0..trace.slices.len()).filter(|&slice| trace.slices.kind[slice].is_on_device());
        let found: Vec<Option<Phase>> = device.map(|slice| launches.phase[slice]).collect();
        assert_eq!(found, [Phase::Forward, Phase::Backward, Phase::Backward, Phase::Optimizer].map(Some));
    }

    /// Launches: embedding, a kernel in a backward function that recomputes a forward function,
    /// clipping, optimizer, the next forward pass. The copy has no launch.
    #[test]
    fn launches_have_phases() {
        let mut events = vec![
            serde_json::json!({"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: CheckpointFunctionBackward", "pid": 1, "tid": 2, "ts": 200, "dur": 100}),
            serde_json::json!({"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 1, "tid": 2, "ts": 210, "dur": 50}),
            serde_json::json!({"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1, "tid": 1, "ts": 400, "dur": 50}),
            serde_json::json!({"ph": "X", "cat": "gpu_memcpy", "name": "copy", "pid": 0, "tid": 8, "ts": 1, "dur": 1}),
        ];
        for (id, (thread, at)) in [(1, 100), (2, 220), (1, 350), (1, 410), (1, 500)].into_iter().enumerate() {
            let start = at + 1000;
            events.extend([
                serde_json::json!({"ph": "X", "cat": "kernel", "name": format!("k{id}"), "pid": 0, "tid": 7, "ts": start, "dur": 5}),
                serde_json::json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread, "ts": at, "dur": 5}),
                serde_json::json!({"ph": "s", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": thread, "ts": at}),
                serde_json::json!({"ph": "f", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": start, "bp": "e"}),
            ]);
        }
        let text = serde_json::Value::Array(events).to_string();
        let trace = read(text.as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let launches = Launches::find(&trace);
        let found: Vec<_> = (0..trace.slices.len())
            .filter(|&slice| trace.slices.kind[slice].is_on_device())
            .map(|slice| (launches.launch_ns[slice], launches.phase[slice]))
            .collect();
        let expected = [
            (None, None),
            (Some(100_000), Some(Phase::Forward)),
            (Some(220_000), Some(Phase::Backward)),
            (Some(350_000), Some(Phase::Optimizer)),
            (Some(410_000), Some(Phase::Optimizer)),
            (Some(500_000), Some(Phase::Forward)),
        ];
        assert_eq!(found, expected);
    }
}
