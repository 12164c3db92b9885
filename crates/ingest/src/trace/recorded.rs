//! Device activity of each rank in a trace, for comparisons.

use std::collections::{BTreeMap, HashMap, HashSet};

use planner::trace_comparison::{Activity, Call, DeviceSlice, HostSlice, HostWork, Recorded, RecordedStep, normalised};

use super::kind::Kind;
use super::phase::Launches;
use super::table::Trace;
use super::{Collective, Step};

/// Operations that end on no rank before all ranks have arrived, as parts of names without `_`.
const ALL_WAIT: [&str; 5] = ["allreduce", "allgather", "reducescatter", "alltoall", "barrier"];
/// Other operations.
const ROOTED: [&str; 6] = ["broadcast", "reduce", "gather", "scatter", "send", "recv"];

/// Returns the activity of every device. Slices that occur twice count once. The rank is that of the device's process,
/// otherwise `rank` if the trace has one device, otherwise the position of the device.
pub fn recorded(trace: &Trace, name: &str, rank: Option<u32>) -> Vec<Recorded> {
    let launches = Launches::find(trace);
    let steps = Steps::new(trace);
    let mut devices: BTreeMap<u32, Recorded> = BTreeMap::new();
    let mut names: HashMap<(u32, u32), u32> = HashMap::new();
    let collectives: HashMap<u32, &Collective> =
        trace.collectives.iter().map(|located| (located.slice, &located.value)).collect();
    let mut seen = HashSet::new();
    for slice in 0..trace.slices.len() {
        let kind = trace.slices.kind[slice];
        let activity = match kind {
            Kind::Compute => Activity::Compute,
            Kind::Communication => Activity::Communication,
            Kind::Memcpy | Kind::Memset => Activity::Copy,
            _ => continue,
        };
        let lane = trace.slices.lane[slice];
        let process = trace.lanes[lane as usize].process;
        let device = devices.entry(process).or_default();
        let name_index = trace.slices.name[slice];
        if !seen.insert((lane, name_index, trace.slices.start_ns[slice], trace.slices.duration_ns[slice])) {
            device.duplicates += 1;
            continue;
        }
        let text = &trace.names[name_index as usize];
        let name = *names.entry((process, name_index)).or_insert_with(|| {
            let text = normalised(text);
            let known = device.names.iter().position(|known| *known == text);
            known.unwrap_or_else(|| {
                device.names.push(text.into_owned());
                device.names.len() - 1
            }) as u32
        });
        let call = (activity == Activity::Communication)
            .then(|| call(text, collectives.get(&(slice as u32)).copied()))
            .flatten();
        let call = call.map(|call| {
            device.calls.push(call);
            device.calls.len() as u32 - 1
        });
        let start_ns = trace.slices.start_ns[slice];
        device.slices.push(DeviceSlice {
            name,
            activity,
            phase: launches.phase[slice],
            start_ns,
            duration_ns: trace.slices.duration_ns[slice],
            step: steps.at(start_ns, launches.launch_ns[slice]),
            call,
            launched_ns: launches.launch_ns[slice],
        });
    }
    let only = devices.len() == 1;
    let mut host = if only { host(trace) } else { Vec::new() };
    devices
        .into_iter()
        .enumerate()
        .map(|(place, (process, mut device))| {
            let process = trace.processes.get(process as usize);
            let own = process.and_then(|process| process.rank);
            device.rank = match rank {
                Some(rank) if only => rank,
                _ => own.unwrap_or(place as u32),
            };
            name.clone_into(&mut device.name);
            device.model = process.and_then(|process| process.labels.clone());
            device.world_size = trace.distributed.as_ref().and_then(|job| job.world_size);
            device.host = std::mem::take(&mut host);
            device.slices.sort_by_key(|slice| (slice.start_ns, slice.duration_ns));
            device.steps = device_steps(&steps.durations, &device.slices);
            device
        })
        .collect()
}

/// Shortest slice of the host that is stored. Shorter ones explain no long gap.
const MIN_HOST_NS: u64 = 50_000;

/// Returns the slices of the host that can keep the device waiting, by their names in PyTorch, CUDA and HIP.
fn host(trace: &Trace) -> Vec<HostSlice> {
    let works: Vec<Option<HostWork>> = trace.names.iter().map(|name| host_work(name)).collect();
    let slice = |slice: usize| {
        let is_host = matches!(trace.slices.kind[slice], Kind::Cpu | Kind::Runtime | Kind::Annotation);
        let duration_ns = trace.slices.duration_ns[slice];
        let work = works[trace.slices.name[slice] as usize].filter(|_| is_host && duration_ns >= MIN_HOST_NS)?;
        Some(HostSlice { work, start_ns: trace.slices.start_ns[slice], duration_ns })
    };
    let mut found: Vec<HostSlice> = (0..trace.slices.len()).filter_map(slice).collect();
    found.sort_by_key(|slice| (slice.start_ns, slice.duration_ns));
    found
}

/// Returns the work of a host slice by its name.
fn host_work(name: &str) -> Option<HostWork> {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["DataLoader", "dataloader", "data_loader"]) {
        Some(HostWork::Reading)
    } else if has(&["StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "aten::item", "_local_scalar_dense"])
    {
        Some(HostWork::Synchronisation)
    } else if has(&["cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cuMemMap", "cuMemUnmap"]) {
        Some(HostWork::Allocation)
    } else {
        None
    }
}

/// Returns the steps with their durations on the device: from the first slice of the step to the
/// first slice of the next one. The host launches ahead, so its own durations say when launches end.
/// The last step ends at its last slice, and lasts at least its annotated duration, because it has no next
/// slice that ends its idle time. A step without slices keeps its annotated duration.
fn device_steps(annotated: &[RecordedStep], slices: &[DeviceSlice]) -> Vec<RecordedStep> {
    let mut ends: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for slice in slices {
        if let Some(step) = slice.step {
            let (first, last) = ends.entry(step).or_insert((slice.start_ns, slice.end_ns()));
            *first = (*first).min(slice.start_ns);
            *last = (*last).max(slice.end_ns());
        }
    }
    let duration = |step: &RecordedStep| {
        let Some(&(first, last)) = ends.get(&step.number) else { return step.duration_ns };
        let next = step.number.checked_add(1).and_then(|next| ends.get(&next)).map(|next| next.0);
        next.filter(|&next| next > first).map_or_else(|| step.duration_ns.max(last - first), |next| next - first)
    };
    annotated.iter().map(|step| RecordedStep { number: step.number, duration_ns: duration(step) }).collect()
}

/// Returns the collective of a communication kernel; `None` if neither arguments nor name state the
/// operation.
fn call(kernel: &str, collective: Option<&Collective>) -> Option<Call> {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let stated = collective.and_then(|collective| collective.name.as_deref()).map(letters);
    let name = letters(kernel);
    let find = |known: &[&'static str]| {
        // The stated operation is more specific: all-to-all runs as sends and receives.
        let own = |text: &str| known.iter().find(|operation| text.contains(**operation)).copied();
        stated.as_deref().map_or_else(|| own(&name), own)
    };
    let (operation, waits_for_all) = match (find(&ALL_WAIT), find(&ROOTED)) {
        (Some(operation), _) => (operation, true),
        (None, Some(operation)) => (operation, false),
        (None, None) => return None,
    };
    let group = collective.map_or_else(String::new, |collective| {
        [&collective.group, &collective.ranks].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    });
    let sequence = collective.and_then(|collective| collective.sequence);
    Some(Call { operation: operation.to_owned(), group, sequence, waits_for_all })
}

/// Steps of a trace: intervals of launches on the host, or of slices on the device.
struct Steps {
    host: Vec<(u64, u64, u64)>,
    device: Vec<(u64, u64, u64)>,
    durations: Vec<RecordedStep>,
}

impl Steps {
    fn new(trace: &Trace) -> Self {
        let intervals = |on_device: bool| {
            let interval = |step: &Step| {
                let start = trace.slices.start_ns[step.slice as usize];
                (start, start.saturating_add(trace.slices.duration_ns[step.slice as usize]), step.number)
            };
            let own = trace.steps.iter().filter(|step| step.on_device == on_device);
            let mut intervals: Vec<(u64, u64, u64)> = own.map(interval).collect();
            intervals.sort_unstable();
            // Several threads or streams may annotate the same step.
            let mut seen = std::collections::HashSet::new();
            intervals.retain(|&(.., number)| seen.insert(number));
            intervals
        };
        let (host, device) = (intervals(false), intervals(true));
        let durations = if host.is_empty() { &device } else { &host };
        let durations =
            durations.iter().map(|&(start, end, number)| RecordedStep { number, duration_ns: end - start }).collect();
        Self { host, device, durations }
    }

    /// Returns the step in which a slice is launched, otherwise the step on the device in which it
    /// starts, otherwise the step on the host.
    fn at(&self, start_ns: u64, launch_ns: Option<u64>) -> Option<u64> {
        let find = |steps: &[(u64, u64, u64)], time: u64| {
            let after = steps.partition_point(|&(start, ..)| start <= time);
            let &(_, end, number) = steps.get(after.checked_sub(1)?)?;
            (time < end).then_some(number)
        };
        match launch_ns {
            Some(launch_ns) if !self.host.is_empty() => find(&self.host, launch_ns),
            _ if !self.device.is_empty() => find(&self.device, start_ns),
            _ => find(&self.host, start_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trace::{Limits, TimeUnit, read};

    #[test]
    fn operations_are_known_by_arguments_or_name() {
        let stated = |name: &str| Collective {
            name: Some(name.to_owned()),
            group: Some("3".to_owned()),
            ranks: Some("[0, 1]".to_owned()),
            sequence: Some(9),
            ..Collective::default()
        };
        let found = |kernel: &str, collective: Option<&Collective>| {
            call(kernel, collective).map(|call| (call.operation, call.group, call.sequence, call.waits_for_all))
        };
        let expected =
            |operation: &str, group: &str, sequence, all| Some((operation.to_owned(), group.to_owned(), sequence, all));
        assert_eq!(
            found("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", None),
            expected("reducescatter", "", None, true)
        );
        assert_eq!(found("ncclKernel_AllReduce_RING_LL_Sum_float", None), expected("allreduce", "", None, true));
        assert_eq!(found("ncclDevKernel_SendRecv", None), expected("send", "", None, false));
        assert_eq!(found("ncclDevKernel_Broadcast_RING_LL", None), expected("broadcast", "", None, false));
        assert_eq!(
            found("ncclDevKernel_SendRecv", Some(&stated("all_to_allv"))),
            expected("alltoall", "3 [0, 1]", Some(9), true)
        );
        assert_eq!(found("ncclDevKernel_Generic", None), None);
    }

    /// The host runs ahead: the kernel at 150 is launched in step 1, which ends at 100.
    #[test]
    fn slices_belong_to_the_step_that_launches_them() {
        let slice = |cat: &str, name: &str, pid: u32, ts: u32, dur: u32| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 1, "ts": ts, "dur": dur});
        let flow = |phase: &str, pid: u32, ts: u32| json!({"ph": phase, "id": 1, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": 1, "ts": ts, "bp": "e"});
        let events = json!({"distributedInfo": {"rank": 5}, "traceEvents": [
            slice("user_annotation", "ProfilerStep#1", 9, 0, 100),
            slice("user_annotation", "ProfilerStep#2", 9, 100, 100),
            slice("cuda_runtime", "cudaLaunchKernel", 9, 90, 5),
            slice("kernel", "gemm at 0x7f00aa11bb22", 0, 150, 10),
            slice("gpu_memcpy", "Memcpy HtoD", 0, 170, 10),
            slice("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 9, 100, 60),
            slice("cuda_runtime", "cudaStreamSynchronize", 9, 160, 49),
            slice("cuda_runtime", "cudaMalloc", 9, 10, 50),
            flow("s", 9, 90),
            flow("f", 0, 150),
        ]});
        let trace = read(events.to_string().as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let [device] = &recorded(&trace, "a.json", None)[..] else { panic!("one device") };
        assert_eq!((device.rank, device.name.as_str(), device.steps.len()), (5, "a.json", 2));
        assert_eq!(device.names, ["gemm at 0x…", "Memcpy HtoD"]);
        assert_eq!(device.slices.iter().map(|slice| slice.step).collect::<Vec<_>>(), [Some(1), Some(2)]);
        // On the device, step 1 lasts from 150 to the copy at 170. The last step has its annotated duration.
        assert_eq!(device.steps.iter().map(|step| step.duration_ns).collect::<Vec<_>>(), [20_000, 100_000]);
        assert_eq!(recorded(&trace, "a.json", Some(7))[0].rank, 7);
        let host: Vec<_> = device.host.iter().map(|slice| (slice.work, slice.duration_ns)).collect();
        assert_eq!(host, [(HostWork::Allocation, 50_000), (HostWork::Reading, 60_000)]);
    }

    #[test]
    fn slices_that_occur_twice_count_once() {
        let kernel =
            |ts: u32| json!({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": ts, "dur": 5});
        let events = json!({"distributedInfo": {"rank": 1, "world_size": 4},
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "maxThreadsPerBlock": 1024}], "traceEvents": [
            {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
            kernel(10), kernel(10), kernel(20),
        ]});
        let trace = read(events.to_string().as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let [device] = &recorded(&trace, "a.json", None)[..] else { panic!("one device") };
        assert_eq!((device.slices.len(), device.duplicates, device.world_size), (2, 1, Some(4)));
        assert_eq!(device.model.as_deref(), Some("GPU 0, NVIDIA A100-SXM4-80GB"));
    }
}
