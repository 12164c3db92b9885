//! Device count per rank, for time comparisons across layouts.

use api::planner::outcome::Planned;

/// Device count per rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RankDevices {
    /// Equal device count for all ranks.
    Uniform(u32),
    /// Individual count per rank.
    Each(Vec<u32>),
}

impl Default for RankDevices {
    fn default() -> Self {
        Self::Uniform(1)
    }
}

impl RankDevices {
    /// Device count per rank for one iteration of a plan: TP x CP. `context` is the
    /// context-parallel degree of the scenario. Pipelines and modules with individual degrees use
    /// these degrees.
    pub(crate) fn from_plan(planned: &Planned, iteration: usize, context: u32) -> Self {
        if let Some(placement) = &planned.placement {
            return Self::Each(placement.devices.iter().map(|(first, end)| end.saturating_sub(*first)).collect());
        }
        let strategy = planned.iterations.get(iteration).and_then(|iteration| iteration.strategy.as_ref());
        let Some(strategy) = strategy else {
            return Self::Uniform(planned.layout.tensor.saturating_mul(context).max(1));
        };
        let rows = strategy.pipelines.iter().flat_map(|pipeline| {
            std::iter::repeat_n(pipeline.tensor.saturating_mul(pipeline.context), pipeline.pipeline as usize)
        });
        Self::Each(rows.collect())
    }

    /// Device count of a rank, at least 1.
    pub(crate) fn device_count(&self, rank: usize) -> f64 {
        let devices = match self {
            Self::Uniform(devices) => *devices,
            Self::Each(devices) => devices.get(rank).copied().unwrap_or(1),
        };
        f64::from(devices.max(1))
    }
}

/// Device counts for a timeline and the compared timeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ComparedDevices {
    pub(crate) current: RankDevices,
    pub(crate) other: RankDevices,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_ranks_have_a_single_device() {
        assert!((RankDevices::Uniform(8).device_count(3) - 8.0).abs() < 1e-12);
        assert!((RankDevices::Uniform(0).device_count(0) - 1.0).abs() < 1e-12);
        let each = RankDevices::Each(vec![4, 2]);
        assert_eq!([0, 1, 2].map(|rank| each.device_count(rank) as u32), [4, 2, 1]);
    }
}
