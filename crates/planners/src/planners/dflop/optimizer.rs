//! Data-aware optimizer: encoder degrees, backbone degrees and number of microbatches
//! (DFLOP Alg. 1).
//!
//! Devices are divided between the two modules. The device count of a module is factored into TP x
//! PP x DP, where TP fits in a node and PP does not exceed the number of layers. The number of
//! microbatches i ranges from 1 to GBS / L_dp. E_dur and L_dur are the times per microbatch on an
//! encoder stage and a backbone stage, and `T = (i + E_pp + L_pp - 1) max(E_dur, L_dur)`
//! (DFLOP Sec. 3.3.1).
//!
//! For 1,024 devices this is about 250 million strategies. The search avoids full enumeration with
//! lower bounds. Throughput on a size range is bounded by the maximum in its table, and (i + P - 1)
//! / i decreases with i, so a range of i implies a lower bound for T. Pairs of degrees are skipped
//! if the bound exceeds the current minimum T. The other ranges are bisected until they are empty
//! ([`search`]). A test checks that the result is equal to full enumeration in the order of
//! DFLOP Alg. 1.

mod degrees;
mod durations;
mod published;
mod search;
#[cfg(test)]
mod tests;

use super::partition::Item;
use super::profile::ModuleProfile;
use degrees::sides;
use durations::Durations;

pub use degrees::Degrees;
pub use durations::ItemWork;

/// Optimizer input.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizerInput {
    /// Total device count, N_gpus.
    pub devices: u32,
    /// Devices per node; upper limit for TP.
    pub devices_per_node: u32,
    /// Memory per device in bytes, M_gpu.
    pub memory: f64,
    /// Items per global batch, GBS.
    pub global_batch: u32,
    /// Encoder tables.
    pub encoder: ModuleProfile,
    /// Backbone tables.
    pub backbone: ModuleProfile,
    /// Data sample, or a weighted histogram.
    pub items: Vec<ItemWork>,
    /// Fixed parameters.
    pub fixed: Fixed,
}

/// Strategy parameters that are fixed. The optimizer searches the other parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fixed {
    /// Backbone TP.
    pub tensor: Option<u32>,
    /// Backbone PP.
    pub pipeline: Option<u32>,
    /// Mean items per backbone microbatch. The number of microbatches is then GBS / L_dp divided by
    /// this value, rounded up.
    pub items: Option<u32>,
}

impl OptimizerInput {
    /// Returns the minimum and maximum number of microbatches for `data` backbone replicas. The
    /// range is from 1 to a microbatch per item, or the fixed value.
    fn microbatches(&self, data: u32) -> (u32, u32) {
        let max_count = self.global_batch / data;
        self.fixed.items.map_or((1, max_count), |items| {
            let count = max_count.div_ceil(items.max(1)).max(1);
            (count, count)
        })
    }
}

/// A parallelism strategy, theta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// Encoder degrees.
    pub encoder: Degrees,
    /// Backbone degrees.
    pub backbone: Degrees,
    /// Microbatches per backbone replica, N_mb.
    pub microbatches: u32,
}

/// A strategy with its predicted time and memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigurationEstimate {
    /// The strategy.
    pub configuration: Configuration,
    /// T for the mean item in seconds (DFLOP Alg. 1).
    pub mean_item_time: f64,
    /// Mean T over the items in seconds (DFLOP Eq. 1).
    pub mean_time: f64,
    /// T for the mean item in seconds, with two corrections: a microbatch is never shorter than the
    /// slowest item, and stages contain an integer number of layers.
    pub balanced: f64,
    /// E_dur for the mean item, in seconds.
    pub encoder_seconds: f64,
    /// L_dur for the mean item, in seconds.
    pub backbone_seconds: f64,
    /// Bytes per encoder device (DFLOP Eq. 4).
    pub encoder_bytes: f64,
    /// Bytes per backbone device (DFLOP Eq. 5).
    pub backbone_bytes: f64,
}

/// Optimal strategies for the objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimized {
    /// Minimum T for the mean item (DFLOP Alg. 1).
    pub by_mean_item: ConfigurationEstimate,
    /// Minimum mean T (DFLOP Eq. 1).
    pub by_mean_time: ConfigurationEstimate,
    /// Choice of the published program. It evaluates a single number of microbatches per pair of
    /// degrees. A later pair replaces the current choice only if it uses fewer microbatches and is
    /// not more than 10 % slower. `None` if no strategy fits its stricter memory rule.
    pub published: Option<ConfigurationEstimate>,
    /// Number of degree pairs.
    pub pairs: u64,
    /// Size of the search space: all pairs and their possible numbers of microbatches.
    pub strategies: u64,
    /// Number of strategies and ranges evaluated.
    pub looked_at: u64,
}

const GIB: f64 = (1_u64 << 30) as f64;

/// Error for an input without a valid strategy.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OptimizerError {
    /// Fewer than two devices for the two modules.
    #[error("encoder and backbone stand on devices of their own: there are {devices}")]
    Devices {
        /// Device count.
        devices: u32,
    },
    /// The item list or the global batch is empty.
    #[error("there is nothing to train on")]
    NoItems,
    /// An item has a negative or non-finite value, or all weights are zero.
    #[error("item {item}: sizes, operations and weights are finite and at least 0, weights not all 0")]
    Item {
        /// Index of the item.
        item: usize,
    },
    /// A throughput is not positive.
    #[error("a throughput of the {module} is not positive")]
    Rate {
        /// "encoder" or "backbone".
        module: &'static str,
    },
    /// No combination of profiled degrees uses all devices.
    #[error("no degrees that were profiled make up {devices} devices{}", .fixed.message_suffix())]
    NoDegrees {
        /// Device count.
        devices: u32,
        /// Fixed parameters.
        fixed: Fixed,
    },
    /// No strategy fits in memory.
    #[error("no strategy fits in memory: the smallest needs {:.1} GiB; {:.1} GiB available", .required / GIB, .memory / GIB)]
    NothingFits {
        /// Peak bytes per device in the strategy that needs the minimum memory.
        required: f64,
        /// Memory per device in bytes.
        memory: f64,
    },
}

impl Fixed {
    /// Formats the fixed degrees as a suffix for the error message.
    fn message_suffix(self) -> String {
        let named = [("TP", self.tensor), ("PP", self.pipeline)];
        let named = named.iter().filter_map(|(name, degree)| Some(format!("{name} {}", (*degree)?)));
        let named: Vec<String> = named.collect();
        if named.is_empty() { String::new() } else { format!(" with {} of the backbone", named.join(" and ")) }
    }
}

/// Objective to minimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Objective {
    MeanItem,
    MeanTime,
    Balanced,
}

/// Returns the optimal strategy for each objective: T for the mean item (DFLOP Alg. 1), and the
/// mean of T (DFLOP Eq. 1).
///
/// # Errors
/// If the input is invalid or no strategy fits in memory.
pub fn optimize(input: &OptimizerInput) -> Result<Optimized, OptimizerError> {
    let durations = checked(input)?;
    let sides = sides(input);
    if sides.is_empty() {
        return Err(OptimizerError::NoDegrees { devices: input.devices, fixed: input.fixed });
    }
    let mut looked_at = 0;
    let mut best =
        |objective, count| search::best(input, &durations, &sides, (objective, count)).counted(&mut looked_at);
    let Some(mean_item) = best(Objective::MeanItem, 1).pop() else {
        let required = search::leanest(input, &durations, &sides);
        return Err(OptimizerError::NothingFits { required, memory: input.memory });
    };
    // Memory does not depend on the objective, so this search also finds a strategy.
    let mean_time = best(Objective::MeanTime, 1).pop().unwrap_or(mean_item);
    let (pairs, strategies) = sides.iter().fold((0, 0), |(pairs, strategies), split| {
        let count_options = |backbone: &Degrees| {
            let (fewest, max_count) = input.microbatches(backbone.data);
            u64::from(max_count + 1 - fewest)
        };
        let each: u64 = split.backbones.iter().map(count_options).sum();
        let (encoders, backbones) = (split.encoders.len() as u64, split.backbones.len() as u64);
        (pairs + encoders * backbones, strategies + encoders * each)
    });
    let estimate = |configuration| durations.estimate(input, configuration);
    Ok(Optimized {
        by_mean_item: estimate(mean_item),
        by_mean_time: estimate(mean_time),
        published: published::select(input, &durations, &sides).map(estimate),
        pairs,
        strategies,
        looked_at,
    })
}

/// Returns up to `count` strategies in ascending order of balanced T, at most one per combination
/// of tensor and pipeline degrees. Balanced T (not in the paper) assumes that a microbatch is never
/// shorter than the slowest item, because a scheduler cannot split an item, and that stages contain
/// an integer number of layers. The list is empty if no strategy fits in memory.
///
/// # Errors
/// If the input is invalid for [`optimize`].
pub fn shortlist(input: &OptimizerInput, count: usize) -> Result<Vec<ConfigurationEstimate>, OptimizerError> {
    let durations = checked(input)?;
    let mut looked_at = 0;
    let found = search::best(input, &durations, &sides(input), (Objective::Balanced, count.max(1)));
    let estimate = |configuration| durations.estimate(input, configuration);
    Ok(found.counted(&mut looked_at).into_iter().map(estimate).collect())
}

/// Returns the seconds that the items add to a microbatch under a strategy. The online scheduler
/// balances these values. Linear parts use the throughput of a mean microbatch, attention uses the
/// throughput for the item's length (DFLOP Sec. 3.4.2).
///
/// # Errors
/// If the input is invalid for [`optimize`].
pub fn item_seconds(
    input: &OptimizerInput,
    configuration: &Configuration,
    items: &[ItemWork],
) -> Result<Vec<Item>, OptimizerError> {
    let durations = checked(input)?;
    let sides = durations.sides(configuration.encoder, configuration.backbone);
    let item_load = |item: &ItemWork| {
        let (encoder, backbone) = durations.item_times(&sides, configuration.microbatches, item);
        Item { encoder, backbone }
    };
    Ok(items.iter().map(item_load).collect())
}

fn checked(input: &OptimizerInput) -> Result<Durations<'_>, OptimizerError> {
    if input.devices < 2 {
        return Err(OptimizerError::Devices { devices: input.devices });
    }
    if input.items.is_empty() || input.global_batch == 0 {
        return Err(OptimizerError::NoItems);
    }
    if let Some(item) = input.items.iter().position(|item| !item.is_valid()) {
        return Err(OptimizerError::Item { item });
    }
    if input.items.iter().map(|item| item.weight).sum::<f64>() <= 0.0 {
        return Err(OptimizerError::Item { item: 0 });
    }
    for (module, profile) in [("encoder", &input.encoder), ("backbone", &input.backbone)] {
        let rates = profile.degrees.iter().flat_map(|degree| [&degree.linear, &degree.attention]);
        if rates.into_iter().any(|rate| rate.min_value() <= 0.0) {
            return Err(OptimizerError::Rate { module });
        }
    }
    Ok(Durations::new(input))
}
