//! The data-aware optimizer of DFLOP: degrees of encoder and backbone, and how many microbatches (Algorithm 1).
//!
//! Devices are split between the two modules; each share is cut into TP x PP x DP, TP within a node and PP at most the layers;
//! every number of microbatches i up to GBS / L_dp is considered. With E_dur and L_dur the time of a microbatch on a stage of
//! either, T = (i + E_pp + L_pp - 1) max(E_dur, L_dur).
//!
//! All of that is a quarter of a billion numbers at 1,024 devices, and none of it needs to be tried twice: throughput on a
//! range of sizes is at most the largest of its table there, and (i + P - 1) / i falls with i, so a range of i has a lower bound
//! of T. Pairs of degrees whose bound over all i is above the best T known are passed over, the others are halved until
//! nothing is left ([`search`]). What is found is what trying everything in the order of Algorithm 1 finds (test).

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

/// What there is to lay out.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizerInput {
    /// All devices, N_gpus.
    pub devices: u32,
    /// Devices of a node: the largest TP.
    pub devices_per_node: u32,
    /// Bytes a device can hold, M_gpu.
    pub memory: f64,
    /// Items of a global batch, GBS.
    pub global_batch: u32,
    /// The encoder's tables.
    pub encoder: ModuleProfile,
    /// The backbone's tables.
    pub backbone: ModuleProfile,
    /// A sample of the data, or a histogram of it.
    pub items: Vec<ItemWork>,
    /// What is fixed.
    pub fixed: Fixed,
}

/// What of a strategy is fixed; the rest is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fixed {
    /// TP of the backbone.
    pub tensor: Option<u32>,
    /// PP of the backbone.
    pub pipeline: Option<u32>,
    /// Items of a microbatch of the backbone in the mean: it then has GBS / L_dp over as many microbatches, rounded up.
    pub items: Option<u32>,
}

impl OptimizerInput {
    /// Fewest and most microbatches of `data` replicas of the backbone: from one to one item in each, or what is fixed.
    fn microbatches(&self, data: u32) -> (u32, u32) {
        let most = self.global_batch / data;
        self.fixed.items.map_or((1, most), |items| {
            let count = most.div_ceil(items.max(1)).max(1);
            (count, count)
        })
    }
}

/// A parallelism strategy, theta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// Of the encoder.
    pub encoder: Degrees,
    /// Of the backbone.
    pub backbone: Degrees,
    /// Microbatches of every replica of the backbone, N_mb.
    pub microbatches: u32,
}

/// A strategy and what it is expected to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The strategy.
    pub configuration: Configuration,
    /// T of the mean item (Algorithm 1), in seconds.
    pub of_mean: f64,
    /// Mean of T over the items (Eq. 1), in seconds.
    pub mean_of: f64,
    /// T of the mean item where no microbatch is shorter than the longest item and stages hold whole layers, in seconds.
    pub balanced: f64,
    /// E_dur of the mean, in seconds.
    pub encoder_seconds: f64,
    /// L_dur of the mean, in seconds.
    pub backbone_seconds: f64,
    /// Bytes of an encoder's device (Eq. 4).
    pub encoder_bytes: f64,
    /// Bytes of a backbone's device (Eq. 5).
    pub backbone_bytes: f64,
}

/// What the optimizer chooses, by each of its objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimized {
    /// The least T of the mean item: Algorithm 1.
    pub of_mean: Choice,
    /// The least mean of T: Eq. 1.
    pub mean_of: Choice,
    /// What the published program takes: one number of microbatches for each pair of degrees, and a later pair only where it has
    /// fewer of them and is at most a tenth slower. Nothing where none fits by its stricter rule.
    pub published: Option<Choice>,
    /// Pairs of degrees.
    pub pairs: u64,
    /// Pairs times their numbers of microbatches: all that was to be considered.
    pub strategies: u64,
    /// Strategies and ranges of them that were looked at.
    pub looked_at: u64,
}

/// Bytes of a GiB, for messages.
const GIB: f64 = (1_u64 << 30) as f64;

/// Why there is nothing to choose.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OptimizerError {
    /// Two modules need two devices.
    #[error("encoder and backbone stand on devices of their own: there are {devices}")]
    Devices {
        /// How many there are.
        devices: u32,
    },
    /// No items, or an empty batch.
    #[error("there is nothing to train on")]
    NoItems,
    /// An item of no finite work, or none in all.
    #[error("item {item}: sizes, operations and weights are finite and at least 0, weights not all 0")]
    Item {
        /// Its place.
        item: usize,
    },
    /// A rate that is not positive.
    #[error("a throughput of the {module} is not positive")]
    Rate {
        /// "encoder" or "backbone".
        module: &'static str,
    },
    /// No degrees of the profile make up the devices.
    #[error("no degrees that were profiled make up {devices} devices{}", .fixed.in_words())]
    NoDegrees {
        /// How many there are.
        devices: u32,
        /// What is fixed.
        fixed: Fixed,
    },
    /// Too little memory.
    #[error("no strategy fits in memory: the smallest needs {:.1} GiB; {:.1} GiB available", .least / GIB, .memory / GIB)]
    NothingFits {
        /// Bytes of the fullest device of the leanest strategy.
        least: f64,
        /// Bytes there are.
        memory: f64,
    },
}

impl Fixed {
    /// For the end of a sentence.
    fn in_words(self) -> String {
        let named = [("TP", self.tensor), ("PP", self.pipeline)];
        let named = named.iter().filter_map(|(name, degree)| Some(format!("{name} {}", (*degree)?)));
        let named: Vec<String> = named.collect();
        if named.is_empty() { String::new() } else { format!(" with {} of the backbone", named.join(" and ")) }
    }
}

/// Which objective is to be least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Objective {
    OfMean,
    MeanOf,
    Balanced,
}

/// Finds the best strategies.
///
/// # Errors
/// Where there is nothing to lay out, and where nothing fits.
pub fn optimize(input: &OptimizerInput) -> Result<Optimized, OptimizerError> {
    let durations = checked(input)?;
    let sides = sides(input);
    if sides.is_empty() {
        return Err(OptimizerError::NoDegrees { devices: input.devices, fixed: input.fixed });
    }
    let mut looked_at = 0;
    let mut best =
        |objective, count| search::best(input, &durations, &sides, (objective, count)).counted(&mut looked_at);
    let Some(of_mean) = best(Objective::OfMean, 1).pop() else {
        let least = search::leanest(input, &durations, &sides);
        return Err(OptimizerError::NothingFits { least, memory: input.memory });
    };
    // What fits is the same for all objectives.
    let mean_of = best(Objective::MeanOf, 1).pop().unwrap_or(of_mean);
    let (pairs, strategies) = sides.iter().fold((0, 0), |(pairs, strategies), split| {
        let of_backbone = |backbone: &Degrees| {
            let (fewest, most) = input.microbatches(backbone.data);
            u64::from(most + 1 - fewest)
        };
        let each: u64 = split.backbones.iter().map(of_backbone).sum();
        let (encoders, backbones) = (split.encoders.len() as u64, split.backbones.len() as u64);
        (pairs + encoders * backbones, strategies + encoders * each)
    });
    let choice = |configuration| durations.choice(input, configuration);
    Ok(Optimized {
        of_mean: choice(of_mean),
        mean_of: choice(mean_of),
        published: published::choice(input, &durations, &sides).map(choice),
        pairs,
        strategies,
        looked_at,
    })
}

/// The strategies with the least T where no microbatch is shorter than the longest item, which no scheduler can split, and stages hold
/// whole layers (ours); of each combination of tensor and pipeline parallelism the best, best first, at most `count`. Empty where nothing fits.
///
/// # Errors
/// Where the input is not such as [`optimize`] takes.
pub fn shortlist(input: &OptimizerInput, count: usize) -> Result<Vec<Choice>, OptimizerError> {
    let durations = checked(input)?;
    let mut looked_at = 0;
    let found = search::best(input, &durations, &sides(input), (Objective::Balanced, count.max(1)));
    let choice = |configuration| durations.choice(input, configuration);
    Ok(found.counted(&mut looked_at).into_iter().map(choice).collect())
}

/// What each item of a batch adds to a microbatch under a strategy: what the online scheduler balances. An item's own load at the
/// rates of a mean microbatch; its attention at the rate of its own length (section 3.4.2).
///
/// # Errors
/// Where the input is not such as [`optimize`] takes.
pub fn item_seconds(
    input: &OptimizerInput,
    configuration: &Configuration,
    items: &[ItemWork],
) -> Result<Vec<Item>, OptimizerError> {
    let durations = checked(input)?;
    let sides = durations.sides(configuration.encoder, configuration.backbone);
    let of = |item: &ItemWork| {
        let (encoder, backbone) = durations.of_item(&sides, configuration.microbatches, item);
        Item { encoder, backbone }
    };
    Ok(items.iter().map(of).collect())
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
        if rates.into_iter().any(|rate| rate.least_point() <= 0.0) {
            return Err(OptimizerError::Rate { module });
        }
    }
    Ok(Durations::of(input))
}
