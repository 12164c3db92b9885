//! Peak memory of the layout closest to feasibility.

use serde::{Deserialize, Serialize};

use super::{Layout, RankMemory};

/// The rejected layout with the smallest memory requirement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NearestMiss {
    /// Degrees of parallelism.
    pub layout: Layout,
    /// Rank with the highest peak memory.
    pub rank: u32,
    /// Peak memory on this rank excluding the reserve, in GiB.
    pub needs_gib: f64,
    /// Memory limit: device memory without the reserve, in GiB.
    pub limit_gib: f64,
    /// Peak memory for all pipeline ranks on the representative batch used in the layout search.
    pub ranks: Vec<RankNeed>,
}

/// Peak memory of a pipeline rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankNeed {
    /// Pipeline rank.
    pub rank: u32,
    /// Layers on the rank, for example "0-4 with the embedding".
    pub layers: String,
    /// Peak memory terms.
    pub memory: RankMemory,
}

/// Minimum difference of a term between two ranks to be reported, in GiB.
const ALIKE_GIB: f64 = 0.05;

/// Describes the memory difference between the highest and the lowest rank, by term. `None` for
/// fewer than two ranks.
///
/// Example: "Rank 0 needs 12.0 GiB more than rank 3: activations 9.0 GiB (4 forwards in flight, not
/// 1), optimizer 3.0 GiB."
pub fn memory_difference(ranks: &[(u32, RankMemory)]) -> Option<String> {
    // The first rank wins ties.
    let by_need = |a: &&(u32, RankMemory), b: &&(u32, RankMemory)| a.1.resident_gib().total_cmp(&b.1.resident_gib());
    let (max_rank, memory) = ranks.iter().rev().max_by(by_need)?;
    let (min_rank, other) = ranks.iter().min_by(by_need)?;
    if max_rank == min_rank {
        return (ranks.len() > 1).then(|| "All ranks need the same memory.".to_owned());
    }
    let difference = memory.resident_gib() - other.resident_gib();
    if difference < ALIKE_GIB {
        return Some("All ranks need about the same memory.".to_owned());
    }
    let mut terms = [
        ("weights", memory.weights_gib - other.weights_gib),
        ("gradients", memory.gradients_gib - other.gradients_gib),
        ("optimizer", memory.optimizer_gib - other.optimizer_gib),
        ("activations", memory.activations_gib - other.activations_gib),
        ("temporary", memory.temporary_gib - other.temporary_gib),
    ];
    terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let labels = terms.iter().filter(|(_, gib)| gib.abs() >= ALIKE_GIB).map(|(name, gib)| {
        let sign = if *gib < 0.0 { "\u{2212}" } else { "" };
        let term = format!("{name} {sign}{:.1} GiB", gib.abs());
        if *name == "activations" && memory.in_flight != other.in_flight {
            let noun = if memory.in_flight == 1 { "forward" } else { "forwards" };
            return format!("{term} ({} {noun} in flight, not {})", memory.in_flight, other.in_flight);
        }
        term
    });
    let descriptions: Vec<String> = labels.collect();
    Some(format!("Rank {max_rank} needs {difference:.1} GiB more than rank {min_rank}: {}.", descriptions.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(optimizer_gib: f64, activations_gib: f64, in_flight: u32) -> RankMemory {
        RankMemory { weights_gib: 10.0, optimizer_gib, activations_gib, in_flight, ..RankMemory::default() }
    }

    #[test]
    fn the_difference_is_named_term_by_term() {
        let ranks =
            [(0, memory(8.0, 12.0, 4)), (1, memory(5.0, 9.0, 3)), (2, memory(5.0, 6.0, 2)), (3, memory(6.0, 3.0, 1))];
        assert_eq!(
            memory_difference(&ranks).unwrap(),
            "Rank 0 needs 11.0 GiB more than rank 3: activations 9.0 GiB (4 forwards in flight, not 1), optimizer 2.0 GiB."
        );
    }

    #[test]
    fn a_term_that_is_smaller_has_a_sign() {
        let ranks = [(0, memory(8.0, 2.0, 1)), (1, memory(4.0, 3.0, 1))];
        assert_eq!(
            memory_difference(&ranks).unwrap(),
            "Rank 0 needs 3.0 GiB more than rank 1: optimizer 4.0 GiB, activations \u{2212}1.0 GiB."
        );
    }

    #[test]
    fn equal_ranks_differ_in_nothing() {
        assert_eq!(memory_difference(&[]), None);
        assert_eq!(memory_difference(&[(0, memory(1.0, 1.0, 1))]), None);
        let equal = [(0, memory(1.0, 1.0, 1)), (1, memory(1.0, 1.0, 1))];
        assert_eq!(memory_difference(&equal).unwrap(), "All ranks need the same memory.");
        let alike = [(0, memory(1.0, 1.04, 1)), (1, memory(1.0, 1.0, 1))];
        assert_eq!(memory_difference(&alike).unwrap(), "All ranks need about the same memory.");
    }
}
