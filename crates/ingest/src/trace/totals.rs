//! Time breakdown per device from interval unions, because kernels on different streams overlap.

use planner::timeline::covered::Covered;

use super::kind::Kind;
use super::table::{Lane, Process, Slices, Totals};

/// Returns the totals for all processes with device slices.
pub(super) fn totals(processes: &[Process], lanes: &[Lane], slices: &Slices) -> Vec<Totals> {
    // Compute, communication, copies.
    let mut intervals: Vec<[Vec<(u64, u64)>; 3]> = vec![<[Vec<(u64, u64)>; 3]>::default(); processes.len()];
    for slice in 0..slices.len() {
        let category = match slices.kind[slice] {
            Kind::Compute => 0,
            Kind::Communication => 1,
            Kind::Memcpy | Kind::Memset => 2,
            _ => continue,
        };
        let process = lanes[slices.lane[slice] as usize].process as usize;
        let start = slices.start_ns[slice];
        intervals[process][category].push((start, start.saturating_add(slices.duration_ns[slice])));
    }
    let mut totals = Vec::new();
    for (process, kinds) in intervals.into_iter().enumerate() {
        let [compute, communication, copies] = kinds.map(Covered::by);
        let either = compute.or(&communication);
        let active = either.or(&copies);
        let Some((first, last)) = active.ends() else { continue };
        let (span_ns, active_ns) = (last - first, active.length_ns());
        let (compute_ns, communication_ns) = (compute.length_ns(), communication.length_ns());
        totals.push(Totals {
            process: process as u32,
            rank: processes[process].rank,
            span_ns,
            compute_ns,
            communication_ns,
            // Inclusion-exclusion: the overlap is compute time minus the time that compute adds to
            // the union.
            overlapped_ns: compute_ns - (either.length_ns() - communication_ns),
            copy_ns: copies.length_ns(),
            busy_ns: active_ns,
            idle_ns: span_ns - active_ns,
        });
    }
    totals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device_totals(device: &[(Kind, u64, u64)]) -> Vec<Totals> {
        let process = Process { id: "0".to_owned(), name: None, labels: None, sort_index: None, rank: Some(3) };
        let lane = Lane { process: 0, thread: "7".to_owned(), name: None, overflow: 0 };
        let mut slices = Slices::default();
        for &(kind, start, end) in device {
            slices.lane.push(0);
            slices.start_ns.push(start);
            slices.duration_ns.push(end - start);
            slices.name.push(0);
            slices.kind.push(kind);
            slices.depth.push(0);
        }
        totals(&[process], &[lane], &slices)
    }

    /// Compute 0-10 and 5-15, communication 12-20, copy 30-31, host 0-100: idle is 20-30.
    #[test]
    fn streams_overlap() {
        let [total] = device_totals(&[
            (Kind::Compute, 0, 10),
            (Kind::Compute, 5, 15),
            (Kind::Communication, 12, 20),
            (Kind::Memcpy, 30, 31),
            (Kind::Cpu, 0, 100),
        ])[..] else {
            panic!("one device")
        };
        assert_eq!((total.rank, total.span_ns, total.busy_ns, total.idle_ns), (Some(3), 31, 21, 10));
        assert_eq!((total.compute_ns, total.communication_ns, total.overlapped_ns, total.copy_ns), (15, 8, 3, 1));
        assert!(device_totals(&[(Kind::Cpu, 0, 1)]).is_empty());
    }

    proptest! {
        /// The reference implementation counts individual nanoseconds.
        #[test]
        fn unions_count_every_moment_once(slices in prop::collection::vec((0_usize..3, 0_u64..40, 1_u64..20), 1..20)) {
            let kinds = [Kind::Compute, Kind::Communication, Kind::Memset];
            let device: Vec<_> = slices.iter().map(|&(kind, start, length)| (kinds[kind], start, start + length)).collect();
            let at = |moment: u64, wanted: &[Kind]| {
                device.iter().any(|(kind, start, end)| wanted.contains(kind) && (*start..*end).contains(&moment))
            };
            let count = |test: &dyn Fn(u64) -> bool| (0..60).filter(|&moment| test(moment)).count() as u64;
            let [total] = device_totals(&device)[..] else { panic!("one device") };
            prop_assert_eq!(total.busy_ns, count(&|moment| at(moment, &kinds)));
            prop_assert_eq!(total.compute_ns, count(&|moment| at(moment, &kinds[..1])));
            prop_assert_eq!(total.overlapped_ns, count(&|moment| at(moment, &kinds[..1]) && at(moment, &kinds[1..2])));
            prop_assert_eq!(total.span_ns, total.busy_ns + total.idle_ns);
        }
    }
}
