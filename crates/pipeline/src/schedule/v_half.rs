//! V-Half: half of 1F1B's activation memory (Qi et al., 2024, "Pipeline Parallelism with
//! Controllable Memory").

use super::Schedule;
use super::stable_pattern::{Offsets, repeated};

/// Creates a V-Half schedule. Forwards advance by two slots per rank down the V and by a single
/// slot up the V; input gradients use the opposite speeds. Offsets: `[2 r, 3 p - r - 2, 3 p + d + 2
/// r - 1, 6 p + d - r - 2]`, where d = 3 for even p, otherwise 0.
///
/// Memory: `floor(p / 2) + 1` activations for a rank's two chunks on all ranks. Bubble for F = I =
/// W and m >= p: half of 1F1B's, 3 (p - 1) actions of a chunk, or 3 (p - 1) - 1 for odd p.
pub fn v_half(ranks: usize, microbatches: usize) -> Schedule {
    let offsets: Vec<Offsets> = (0..ranks).map(|rank| offsets(rank, ranks)).collect();
    repeated(&offsets, microbatches)
}

const fn offsets(rank: usize, ranks: usize) -> Offsets {
    let gap = if ranks.is_multiple_of(2) { 3 } else { 0 };
    [2 * rank, 3 * ranks - rank - 2, 3 * ranks + gap + 2 * rank - 1, 6 * ranks + gap - rank - 2]
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
