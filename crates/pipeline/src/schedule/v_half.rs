//! V-Half: half of 1F1B's activation memory (Qi et al., 2024, "Pipeline Parallelism with
//! Controllable Memory").

use super::Schedule;
use super::stable_pattern::{Offsets, repeated};

/// Creates a V-Half schedule. Forwards advance by two slots per rank down the V and by a single
/// slot up the V; input gradients use the opposite speeds. Offsets: `[2 r, 3 p - r - 2, 3 p + d + 2
/// r - 1, 6 p + d - r - 2]`, where d = 3 for even p, otherwise 0.
///
/// Memory: `floor(p / 2) + 1` activations for a rank's two chunks on all ranks. Makespan for F = I =
/// W and m >= p, in actions of a chunk: 6 m + 3 p - 7 for even p >= 4, 6 m + 3 p - 4 for odd p. The
/// pattern without a shortened start and end takes 6 m + 3 (p - 1) for even p, half of 1F1B's bubble.
pub fn v_half(ranks: usize, microbatches: usize) -> Schedule {
    let offsets: Vec<Offsets> = (0..ranks).map(|rank| offsets(rank, ranks)).collect();
    repeated(&offsets, microbatches)
}

pub(super) const fn offsets(rank: usize, ranks: usize) -> Offsets {
    let gap = if ranks.is_multiple_of(2) { 3 } else { 0 };
    [2 * rank, 3 * ranks - rank - 2, 3 * ranks + gap + 2 * rank - 1, 6 * ranks + gap - rank - 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleKind;
    use crate::simulate::{execute, peak_memory};
    use planscope_core::units::Nanos;
    use planscope_cost::cost::{PipelineCosts, UniformTimes};

    /// Formula values for p = 4 (d = 3) and p = 3 (d = 0).
    #[test]
    fn offsets_match_the_definition_and_never_collide() {
        assert_eq!(offsets(0, 4), [0, 10, 14, 25]);
        assert_eq!(offsets(3, 4), [6, 7, 20, 22]);
        assert_eq!(offsets(1, 3), [2, 6, 10, 15]);
        for (rank, ranks) in (1..40).flat_map(|ranks| (0..ranks).map(move |rank| (rank, ranks))) {
            let mut slots = offsets(rank, ranks).map(|offset| offset % 6);
            slots.sort_unstable();
            assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "rank {rank} of {ranks}: {slots:?}");
        }
    }

    /// 77 slots for p = 4, m = 12 and 161 for p = 8, m = 24, at 6 and 10 activations of a chunk: the
    /// values of the public scheduler of the authors.
    #[test]
    fn makespan_matches_the_closed_form() {
        let times = UniformTimes {
            forward: Nanos::new(1000),
            input_grad: Nanos::new(1000),
            weight_grad: Nanos::new(1000),
            communication: Nanos::ZERO,
        };
        for ranks in 3..17_usize {
            for microbatches in [ranks, 2 * ranks, 3 * ranks, 3 * ranks + 1] {
                let kind = ScheduleKind::VHalf;
                let flows = kind.flows(ranks, 2, microbatches);
                let costs = PipelineCosts::uniform_over(flows, times);
                let schedule = v_half(ranks, microbatches);
                let execution = execute(&schedule, &costs).unwrap();
                let bubble = if ranks.is_multiple_of(2) { 3 * ranks - 7 } else { 3 * ranks - 4 };
                let expected = 1000 * (6 * microbatches + bubble) as u64;
                assert_eq!(execution.makespan().get(), expected, "p {ranks} m {microbatches}");
                let peaks = (0..ranks).map(|rank| peak_memory(rank, &schedule, &execution, &costs).get());
                assert!(peaks.max().unwrap() <= 2 * (ranks as u64 / 2 + 1));
            }
        }
    }
}
