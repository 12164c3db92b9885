//! Time and memory per microbatch on a pipeline stage. i is the number of microbatches, as in
//! DFLOP Alg. 1.

use super::{Configuration, ConfigurationEstimate, Degrees, Objective, OptimizerInput};
use crate::planners::dflop::curve::Curve;
use crate::planners::dflop::profile::{DegreeProfile, ModuleProfile};

/// Work per item, also for histogram bins. FLOPs include forward and backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemWork {
    /// Effective encoder batch, b(d): tiles, images or clips.
    pub batch: f64,
    /// Backbone sequence length in tokens, s(d).
    pub length: f64,
    /// Encoder FLOPs.
    pub encoder_flops: f64,
    /// FLOPs in the backbone's linear layers.
    pub linear_flops: f64,
    /// FLOPs in the backbone's attention.
    pub attention_flops: f64,
    /// Weight or count in the sample.
    pub weight: f64,
}

impl ItemWork {
    pub(crate) fn is_valid(&self) -> bool {
        let values =
            [self.batch, self.length, self.encoder_flops, self.linear_flops, self.attention_flops, self.weight];
        values.into_iter().all(|figure| figure.is_finite() && figure >= 0.0)
    }
}

/// Work of an item for a degree profile. Attention throughput depends on the item's length only,
/// not on the packed length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ModuleWork {
    /// FLOPs with a throughput that depends on the packed size.
    linear: f64,
    /// Attention time on a single device, in seconds.
    attention: f64,
    /// Size contribution: effective batch or tokens.
    size: f64,
}

/// Items priced by the throughput tables.
#[derive(Debug, Clone)]
pub(crate) struct Durations<'a> {
    input: &'a OptimizerInput,
    mean: ItemWork,
    /// Normalized weights; the sum is 1.
    weights: Vec<f64>,
    /// Attention seconds per backbone degree profile: for the mean item, and for the individual
    /// items.
    attention: Vec<(f64, Vec<f64>)>,
}

/// A module with its degrees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'a> {
    pub profile: &'a DegreeProfile,
    /// Index of `profile` in the module's list.
    pub profile_index: usize,
    pub degrees: Degrees,
    /// Layers per stage, rounded up.
    layers: u32,
    /// True if a stage contains all layers.
    has_all_layers: bool,
    /// Maximum layers per stage, relative to the mean.
    uneven: f64,
}

impl<'a> Side<'a> {
    pub(crate) fn new(module: &'a ModuleProfile, degrees: Degrees) -> Self {
        let profile_index = module.degrees.iter().position(|profile| profile.tensor == degrees.tensor).unwrap_or(0);
        let layers = module.layers.div_ceil(degrees.pipeline);
        let uneven = f64::from(layers) * f64::from(degrees.pipeline) / f64::from(module.layers.max(1));
        Self {
            profile: &module.degrees[profile_index],
            profile_index,
            degrees,
            layers,
            has_all_layers: layers == module.layers,
            uneven,
        }
    }

    /// Returns TP x PP, the devices that process a microbatch.
    fn shared_by(&self) -> f64 {
        f64::from(self.degrees.tensor) * f64::from(self.degrees.pipeline)
    }

    /// Returns the seconds per stage for a microbatch with `share` such items, at the given linear
    /// throughput: E_dur or L_dur (DFLOP Sec. 3.3.1).
    fn seconds(&self, work: ModuleWork, share: f64, rate: f64) -> f64 {
        share * (work.linear / rate + work.attention) / self.shared_by()
    }

    /// Returns the bytes per device that stores `kept` microbatches with the given size
    /// (DFLOP Eq. 4, DFLOP Eq. 5).
    fn bytes(&self, stored: u32, size: f64) -> f64 {
        self.states() + self.profile.activation.bytes((self.layers, stored), size)
    }

    fn states(&self) -> f64 {
        self.profile.state.bytes(self.layers, self.has_all_layers, self.degrees.data)
    }

    /// Returns the minimum of [`Self::bytes`] on a size range.
    fn min_bytes(&self, stored: u32, from: f64, to: f64) -> f64 {
        self.states() + self.profile.activation.min_bytes((self.layers, stored), from, to)
    }

    fn linear(&self) -> &Curve {
        &self.profile.linear
    }
}

/// Both modules in a strategy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub encoder: Side<'a>,
    pub backbone: Side<'a>,
}

impl Sides<'_> {
    /// Returns E_pp + L_pp.
    pub(crate) fn depth(&self) -> u32 {
        self.encoder.degrees.pipeline + self.backbone.degrees.pipeline
    }

    /// Returns the maximum stage time over both modules, from the mean stage times.
    fn max_stage_time(&self, encoder: f64, backbone: f64) -> f64 {
        (encoder * self.encoder.uneven).max(backbone * self.backbone.uneven)
    }
}

impl<'a> Durations<'a> {
    pub(crate) fn new(input: &'a OptimizerInput) -> Self {
        let total: f64 = input.items.iter().map(|item| item.weight).sum();
        let weights: Vec<f64> = input.items.iter().map(|item| item.weight / total).collect();
        let mean = |part: fn(&ItemWork) -> f64| -> f64 {
            input.items.iter().zip(&weights).map(|(item, weight)| part(item) * weight).sum()
        };
        let mean = ItemWork {
            batch: mean(|item| item.batch),
            length: mean(|item| item.length),
            encoder_flops: mean(|item| item.encoder_flops),
            linear_flops: mean(|item| item.linear_flops),
            attention_flops: mean(|item| item.attention_flops),
            weight: 1.0,
        };
        let attention_seconds = |degree: &DegreeProfile| {
            let seconds = |item: &ItemWork| item.attention_flops / degree.attention.at(item.length);
            (seconds(&mean), input.items.iter().map(seconds).collect())
        };
        let attention = input.backbone.degrees.iter().map(attention_seconds).collect();
        Self { input, mean, weights, attention }
    }

    pub(crate) fn mean(&self) -> &ItemWork {
        &self.mean
    }

    pub(crate) fn sides(&self, encoder: Degrees, backbone: Degrees) -> Sides<'a> {
        Sides { encoder: Side::new(&self.input.encoder, encoder), backbone: Side::new(&self.input.backbone, backbone) }
    }

    fn encoder_work(item: &ItemWork) -> ModuleWork {
        ModuleWork { linear: item.encoder_flops, attention: 0.0, size: item.batch }
    }

    fn backbone_work(item: &ItemWork, attention: f64) -> ModuleWork {
        ModuleWork { linear: item.linear_flops, attention, size: item.length }
    }

    /// Returns the items per microbatch and replica for both modules.
    fn shares(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let batch = f64::from(self.input.global_batch);
        let share = |side: &Side<'_>| batch / (f64::from(microbatches) * f64::from(side.degrees.data));
        (share(&sides.encoder), share(&sides.backbone))
    }

    /// Returns E_dur and L_dur if all items are equal to the mean item (DFLOP Alg. 1, lines 25 and
    /// 26).
    pub(crate) fn mean_item_stage_times(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let attention = self.attention[sides.backbone.profile_index].0;
        self.stages(sides, microbatches, (Self::encoder_work(&self.mean), Self::backbone_work(&self.mean, attention)))
    }

    fn stages(
        &self,
        sides: &Sides<'_>,
        microbatches: u32,
        (encoder, backbone): (ModuleWork, ModuleWork),
    ) -> (f64, f64) {
        let shares = self.shares(sides, microbatches);
        let stage_time = |side: &Side<'_>, work: ModuleWork, share: f64| {
            side.seconds(work, share, side.linear().at(work.size * share))
        };
        (stage_time(&sides.encoder, encoder, shares.0), stage_time(&sides.backbone, backbone, shares.1))
    }

    /// Returns T for the mean item (DFLOP Alg. 1, line 27; the makespan in DFLOP Sec. 3.3.1).
    pub(crate) fn mean_item_time(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.mean_item_stage_times(sides, microbatches);
        slots(sides, microbatches) * encoder.max(backbone)
    }

    /// Returns the weighted mean of T (DFLOP Eq. 1). Each T assumes a batch with equal items.
    pub(crate) fn mean_time(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let attention = &self.attention[sides.backbone.profile_index].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let work = (Self::encoder_work(item), Self::backbone_work(item, attention));
            let (encoder, backbone) = self.stages(sides, microbatches, work);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, microbatches) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// Returns T for an optimally balanced batch: T for the mean item, where a microbatch is never
    /// shorter than the slowest item and the largest stage contains an integer number of layers.
    pub(crate) fn time_when_balanced(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.mean_item_stage_times(sides, microbatches);
        let (encoder_share, backbone_share) = self.shares(sides, microbatches);
        let rates = (
            sides.encoder.linear().at(self.mean.batch * encoder_share),
            sides.backbone.linear().at(self.mean.length * backbone_share),
        );
        let items = self.max_item_times(sides, rates);
        slots(sides, microbatches) * sides.max_stage_time(encoder.max(items.0), backbone.max(items.1))
    }

    /// Returns the maximum item time per stage for both modules at the given throughputs.
    fn max_item_times(&self, sides: &Sides<'_>, (encoder, backbone): (f64, f64)) -> (f64, f64) {
        let attention = &self.attention[sides.backbone.profile_index].1;
        let copies = f64::from(sides.backbone.degrees.data) / f64::from(sides.encoder.degrees.data);
        let items = || self.input.items.iter().zip(attention).filter(|(item, _)| item.weight > 0.0);
        let encoder_time =
            |(item, _): (&ItemWork, &f64)| sides.encoder.seconds(Self::encoder_work(item), copies, encoder);
        let backbone_time = |(item, &attention): (&ItemWork, &f64)| {
            sides.backbone.seconds(Self::backbone_work(item, attention), 1.0, backbone)
        };
        (items().map(encoder_time).fold(0.0, f64::max), items().map(backbone_time).fold(0.0, f64::max))
    }

    /// Returns a lower bound for [`Self::time_when_balanced`] over a range of i.
    pub(crate) fn min_time_when_balanced(&self, sides: &Sides<'_>, range: (u32, u32)) -> f64 {
        let (small, large) = (self.shares(sides, range.1), self.shares(sides, range.0));
        let max_rate =
            |side: &Side<'_>, size: f64, small: f64, large: f64| side.linear().max_between(size * small, size * large);
        let rates = (
            max_rate(&sides.encoder, self.mean.batch, small.0, large.0),
            max_rate(&sides.backbone, self.mean.length, small.1, large.1),
        );
        let items = self.max_item_times(sides, rates);
        let attention = self.attention[sides.backbone.profile_index].0;
        let work = (Self::encoder_work(&self.mean), Self::backbone_work(&self.mean, attention));
        let (encoder, backbone) = self.min_stage_times(sides, range, work);
        let item_bound = slots(sides, range.0) * sides.max_stage_time(items.0, items.1);
        item_bound.max(slots(sides, range.1) * sides.max_stage_time(encoder, backbone))
    }

    /// Returns a lower bound for [`Self::mean_item_time`] over a range of i.
    pub(crate) fn min_mean_item_time(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = self.attention[sides.backbone.profile_index].0;
        let work = (Self::encoder_work(&self.mean), Self::backbone_work(&self.mean, attention));
        let (encoder, backbone) = self.min_stage_times(sides, (from, to), work);
        slots(sides, to) * encoder.max(backbone)
    }

    /// Returns a lower bound for [`Self::mean_time`] over a range of i.
    pub(crate) fn min_mean_time(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = &self.attention[sides.backbone.profile_index].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let work = (Self::encoder_work(item), Self::backbone_work(item, attention));
            let (encoder, backbone) = self.min_stage_times(sides, (from, to), work);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, to) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// Returns lower bounds for the stage times with `to` microbatches, at the maximum throughput
    /// in the range `from..=to`. Multiplied by `to + P - 1`, this is a lower bound for T in the
    /// range, because (i + P - 1) / i decreases with i.
    fn min_stage_times(
        &self,
        sides: &Sides<'_>,
        (from, to): (u32, u32),
        (encoder, backbone): (ModuleWork, ModuleWork),
    ) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let min_stage_time = |side: &Side<'_>, work: ModuleWork, small: f64, large: f64| {
            side.seconds(work, small, side.linear().max_between(work.size * small, work.size * large))
        };
        (
            min_stage_time(&sides.encoder, encoder, small.0, large.0),
            min_stage_time(&sides.backbone, backbone, small.1, large.1),
        )
    }

    /// Returns the bytes per device for both modules with mean items (DFLOP Eq. 4, DFLOP Eq. 5).
    pub(crate) fn bytes(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let (encoder, backbone) = self.shares(sides, microbatches);
        (
            sides.encoder.bytes(sides.depth(), self.mean.batch * encoder),
            sides.backbone.bytes(sides.backbone.degrees.pipeline, self.mean.length * backbone),
        )
    }

    /// Returns the bytes per device for both modules with the given microbatch sizes.
    pub(crate) fn microbatch_bytes(sides: &Sides<'_>, batch: f64, length: f64) -> (f64, f64) {
        let stored = sides.backbone.degrees.pipeline;
        (sides.encoder.bytes(sides.depth(), batch), sides.backbone.bytes(stored, length))
    }

    /// Returns lower bounds for [`Self::bytes`] over a range of i.
    pub(crate) fn min_bytes(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let (batch, length) = (self.mean.batch, self.mean.length);
        (
            sides.encoder.min_bytes(sides.depth(), batch * small.0, batch * large.0),
            sides.backbone.min_bytes(sides.backbone.degrees.pipeline, length * small.1, length * large.1),
        )
    }

    pub(crate) fn estimate(&self, input: &OptimizerInput, configuration: Configuration) -> ConfigurationEstimate {
        debug_assert_eq!(input.global_batch, self.input.global_batch);
        let sides = self.sides(configuration.encoder, configuration.backbone);
        let microbatches = configuration.microbatches;
        let (encoder_seconds, backbone_seconds) = self.mean_item_stage_times(&sides, microbatches);
        let (encoder_bytes, backbone_bytes) = self.bytes(&sides, microbatches);
        ConfigurationEstimate {
            configuration,
            mean_item_time: self.mean_item_time(&sides, microbatches),
            mean_time: self.mean_time(&sides, microbatches),
            balanced: self.time_when_balanced(&sides, microbatches),
            encoder_seconds,
            backbone_seconds,
            encoder_bytes,
            backbone_bytes,
        }
    }

    /// Returns the seconds that an item adds to a microbatch on both modules, at the throughput for
    /// mean microbatches. The encoder value is scaled by L_dp / E_dp, because the encoder replicas
    /// process the items for all backbone replicas.
    pub(crate) fn item_times(&self, sides: &Sides<'_>, microbatches: u32, item: &ItemWork) -> (f64, f64) {
        let (encoder, backbone) = self.shares(sides, microbatches);
        let rates = (
            sides.encoder.linear().at(self.mean.batch * encoder),
            sides.backbone.linear().at(self.mean.length * backbone),
        );
        let attention = item.attention_flops / sides.backbone.profile.attention.at(item.length);
        let copies = f64::from(sides.backbone.degrees.data) / f64::from(sides.encoder.degrees.data);
        (
            sides.encoder.seconds(Self::encoder_work(item), copies, rates.0),
            sides.backbone.seconds(Self::backbone_work(item, attention), 1.0, rates.1),
        )
    }

    /// Returns a lower bound in seconds for a global batch on an encoder stage: mean items at the
    /// maximum throughput.
    pub(crate) fn min_encoder_work(&self, side: &Side<'_>) -> f64 {
        self.min_work(side, Self::encoder_work(&self.mean))
    }

    /// Returns a lower bound in seconds for a global batch on a backbone stage, at the maximum
    /// throughput. For the mean of T, attention uses the mean time over the items, which differs
    /// from the time of the mean item.
    pub(crate) fn min_backbone_work(&self, side: &Side<'_>, objective: Objective) -> f64 {
        let (mean_item, items) = &self.attention[side.profile_index];
        let attention = match objective {
            Objective::MeanItem | Objective::Balanced => *mean_item,
            Objective::MeanTime => items.iter().zip(&self.weights).map(|(seconds, weight)| seconds * weight).sum(),
        };
        self.min_work(side, Self::backbone_work(&self.mean, attention))
    }

    fn min_work(&self, side: &Side<'_>, work: ModuleWork) -> f64 {
        let share = f64::from(self.input.global_batch) / f64::from(side.degrees.data);
        side.seconds(work, share, side.linear().max_value())
    }
}

/// Returns i + E_pp + L_pp - 1.
fn slots(sides: &Sides<'_>, microbatches: u32) -> f64 {
    f64::from(microbatches) + f64::from(sides.depth()) - 1.0
}
