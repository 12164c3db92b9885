//! V-Min: a third of 1F1B's activation memory, the minimum for a V with two chunks (Qi et al.,
//! 2024, "Pipeline Parallelism with Controllable Memory").

use super::Schedule;
use super::stable_pattern::{Offsets, repeated};

/// Creates a V-Min schedule. Forwards and input gradients advance by a slot per rank down and up
/// the V. Offsets: `[r, 2 p - r - 1, 2 p + d + r, 4 p + d - r - 1]`, where d = 2 if three divides
/// p, otherwise 0.
///
/// Memory: up to `floor((p + 1) / 3) + 1` activations for a rank's two chunks. Bubble for F = I = W
/// and m >= p: two thirds of 1F1B's, 4 (p - 1) actions of a chunk, minus one, or plus one if three
/// divides p.
pub fn v_min(ranks: usize, microbatches: usize) -> Schedule {
    let offsets: Vec<Offsets> = (0..ranks).map(|rank| offsets(rank, ranks)).collect();
    repeated(&offsets, microbatches)
}

pub(super) const fn offsets(rank: usize, ranks: usize) -> Offsets {
    let gap = if ranks.is_multiple_of(3) { 2 } else { 0 };
    [rank, 2 * ranks - rank - 1, 2 * ranks + gap + rank, 4 * ranks + gap - rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formula values for p = 4 (d = 0) and p = 3 (d = 2).
    #[test]
    fn offsets_match_the_definition_and_never_collide() {
        assert_eq!(offsets(0, 4), [0, 7, 8, 15]);
        assert_eq!(offsets(3, 4), [3, 4, 11, 12]);
        assert_eq!(offsets(2, 3), [2, 3, 10, 11]);
        for (rank, ranks) in (1..40).flat_map(|ranks| (0..ranks).map(move |rank| (rank, ranks))) {
            let mut slots = offsets(rank, ranks).map(|offset| offset % 6);
            slots.sort_unstable();
            assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "rank {rank} of {ranks}: {slots:?}");
        }
    }
}
