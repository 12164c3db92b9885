//! Time and memory per microbatch on a pipeline stage. i is the number of microbatches, as in
//! DFLOP Alg. 1.

use super::{Choice, Configuration, Degrees, Objective, OptimizerInput};
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
        let figures =
            [self.batch, self.length, self.encoder_flops, self.linear_flops, self.attention_flops, self.weight];
        figures.into_iter().all(|figure| figure.is_finite() && figure >= 0.0)
    }
}

/// Work of an item for a degree profile. Attention throughput depends on the item's length only,
/// not on the packed length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Asked {
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
    pub place: usize,
    pub degrees: Degrees,
    /// Layers per stage, rounded up.
    layers: u32,
    /// True if a stage contains all layers.
    whole: bool,
    /// Maximum layers per stage, relative to the mean.
    uneven: f64,
}

impl<'a> Side<'a> {
    pub(crate) fn of(module: &'a ModuleProfile, degrees: Degrees) -> Self {
        let place = module.degrees.iter().position(|profile| profile.tensor == degrees.tensor).unwrap_or(0);
        let layers = module.layers.div_ceil(degrees.pipeline);
        let uneven = f64::from(layers) * f64::from(degrees.pipeline) / f64::from(module.layers.max(1));
        Self { profile: &module.degrees[place], place, degrees, layers, whole: layers == module.layers, uneven }
    }

    /// Returns TP x PP, the devices that process a microbatch.
    fn shared_by(&self) -> f64 {
        f64::from(self.degrees.tensor) * f64::from(self.degrees.pipeline)
    }

    /// Returns the seconds per stage for a microbatch with `share` such items, at the given linear
    /// throughput: E_dur or L_dur (DFLOP Sec. 3.3.1).
    fn seconds(&self, asked: Asked, share: f64, rate: f64) -> f64 {
        share * (asked.linear / rate + asked.attention) / self.shared_by()
    }

    /// Returns the bytes per device that stores `kept` microbatches with the given size
    /// (DFLOP Eq. 4, DFLOP Eq. 5).
    fn bytes(&self, kept: u32, size: f64) -> f64 {
        self.states() + self.profile.activation.bytes((self.layers, kept), size)
    }

    fn states(&self) -> f64 {
        self.profile.state.bytes(self.layers, self.whole, self.degrees.data)
    }

    /// Returns the minimum of [`Self::bytes`] on a size range.
    fn least_bytes(&self, kept: u32, from: f64, to: f64) -> f64 {
        self.states() + self.profile.activation.least((self.layers, kept), from, to)
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
    fn longest_stage(&self, encoder: f64, backbone: f64) -> f64 {
        (encoder * self.encoder.uneven).max(backbone * self.backbone.uneven)
    }
}

impl<'a> Durations<'a> {
    pub(crate) fn of(input: &'a OptimizerInput) -> Self {
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
        let of_degree = |degree: &DegreeProfile| {
            let seconds = |item: &ItemWork| item.attention_flops / degree.attention.at(item.length);
            (seconds(&mean), input.items.iter().map(seconds).collect())
        };
        let attention = input.backbone.degrees.iter().map(of_degree).collect();
        Self { input, mean, weights, attention }
    }

    pub(crate) fn mean(&self) -> &ItemWork {
        &self.mean
    }

    pub(crate) fn sides(&self, encoder: Degrees, backbone: Degrees) -> Sides<'a> {
        Sides { encoder: Side::of(&self.input.encoder, encoder), backbone: Side::of(&self.input.backbone, backbone) }
    }

    fn of_encoder(item: &ItemWork) -> Asked {
        Asked { linear: item.encoder_flops, attention: 0.0, size: item.batch }
    }

    fn of_backbone(item: &ItemWork, attention: f64) -> Asked {
        Asked { linear: item.linear_flops, attention, size: item.length }
    }

    /// Returns the items per microbatch and replica for both modules.
    fn shares(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let batch = f64::from(self.input.global_batch);
        let share = |side: &Side<'_>| batch / (f64::from(microbatches) * f64::from(side.degrees.data));
        (share(&sides.encoder), share(&sides.backbone))
    }

    /// Returns E_dur and L_dur if all items are equal to the mean item (DFLOP Alg. 1, lines 25 and
    /// 26).
    pub(crate) fn of_mean(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let attention = self.attention[sides.backbone.place].0;
        self.stages(sides, microbatches, (Self::of_encoder(&self.mean), Self::of_backbone(&self.mean, attention)))
    }

    fn stages(&self, sides: &Sides<'_>, microbatches: u32, (encoder, backbone): (Asked, Asked)) -> (f64, f64) {
        let shares = self.shares(sides, microbatches);
        let of = |side: &Side<'_>, asked: Asked, share: f64| {
            side.seconds(asked, share, side.linear().at(asked.size * share))
        };
        (of(&sides.encoder, encoder, shares.0), of(&sides.backbone, backbone, shares.1))
    }

    /// Returns T for the mean item (DFLOP Alg. 1, line 27; the makespan in DFLOP Sec. 3.3.1).
    pub(crate) fn time_of_mean(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.of_mean(sides, microbatches);
        slots(sides, microbatches) * encoder.max(backbone)
    }

    /// Returns the weighted mean of T (DFLOP Eq. 1). Each T assumes a batch with equal items.
    pub(crate) fn mean_of_time(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let attention = &self.attention[sides.backbone.place].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let asked = (Self::of_encoder(item), Self::of_backbone(item, attention));
            let (encoder, backbone) = self.stages(sides, microbatches, asked);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, microbatches) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// Returns T for an optimally balanced batch: T for the mean item, where a microbatch is never
    /// shorter than the slowest item and the largest stage contains an integer number of layers.
    pub(crate) fn time_when_balanced(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.of_mean(sides, microbatches);
        let (of_encoder, of_backbone) = self.shares(sides, microbatches);
        let rates = (
            sides.encoder.linear().at(self.mean.batch * of_encoder),
            sides.backbone.linear().at(self.mean.length * of_backbone),
        );
        let items = self.longest_items(sides, rates);
        slots(sides, microbatches) * sides.longest_stage(encoder.max(items.0), backbone.max(items.1))
    }

    /// Returns the maximum item time per stage for both modules at the given throughputs.
    fn longest_items(&self, sides: &Sides<'_>, (encoder, backbone): (f64, f64)) -> (f64, f64) {
        let attention = &self.attention[sides.backbone.place].1;
        let copies = f64::from(sides.backbone.degrees.data) / f64::from(sides.encoder.degrees.data);
        let items = || self.input.items.iter().zip(attention).filter(|(item, _)| item.weight > 0.0);
        let of_encoder = |(item, _): (&ItemWork, &f64)| sides.encoder.seconds(Self::of_encoder(item), copies, encoder);
        let of_backbone = |(item, &attention): (&ItemWork, &f64)| {
            sides.backbone.seconds(Self::of_backbone(item, attention), 1.0, backbone)
        };
        (items().map(of_encoder).fold(0.0, f64::max), items().map(of_backbone).fold(0.0, f64::max))
    }

    /// Returns a lower bound for [`Self::time_when_balanced`] over a range of i.
    pub(crate) fn least_time_when_balanced(&self, sides: &Sides<'_>, range: (u32, u32)) -> f64 {
        let (small, large) = (self.shares(sides, range.1), self.shares(sides, range.0));
        let most = |side: &Side<'_>, size: f64, small: f64, large: f64| side.linear().most(size * small, size * large);
        let rates = (
            most(&sides.encoder, self.mean.batch, small.0, large.0),
            most(&sides.backbone, self.mean.length, small.1, large.1),
        );
        let items = self.longest_items(sides, rates);
        let attention = self.attention[sides.backbone.place].0;
        let asked = (Self::of_encoder(&self.mean), Self::of_backbone(&self.mean, attention));
        let (encoder, backbone) = self.least(sides, range, asked);
        let of_item = slots(sides, range.0) * sides.longest_stage(items.0, items.1);
        of_item.max(slots(sides, range.1) * sides.longest_stage(encoder, backbone))
    }

    /// Returns a lower bound for [`Self::time_of_mean`] over a range of i.
    pub(crate) fn least_time_of_mean(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = self.attention[sides.backbone.place].0;
        let asked = (Self::of_encoder(&self.mean), Self::of_backbone(&self.mean, attention));
        let (encoder, backbone) = self.least(sides, (from, to), asked);
        slots(sides, to) * encoder.max(backbone)
    }

    /// Returns a lower bound for [`Self::mean_of_time`] over a range of i.
    pub(crate) fn least_mean_of_time(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = &self.attention[sides.backbone.place].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let asked = (Self::of_encoder(item), Self::of_backbone(item, attention));
            let (encoder, backbone) = self.least(sides, (from, to), asked);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, to) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// Returns lower bounds for the stage times with `to` microbatches, at the maximum throughput
    /// in the range `from..=to`. Multiplied by `to + P - 1`, this is a lower bound for T in the
    /// range, because (i + P - 1) / i decreases with i.
    fn least(&self, sides: &Sides<'_>, (from, to): (u32, u32), (encoder, backbone): (Asked, Asked)) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let of = |side: &Side<'_>, asked: Asked, small: f64, large: f64| {
            side.seconds(asked, small, side.linear().most(asked.size * small, asked.size * large))
        };
        (of(&sides.encoder, encoder, small.0, large.0), of(&sides.backbone, backbone, small.1, large.1))
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
    pub(crate) fn bytes_of(sides: &Sides<'_>, batch: f64, length: f64) -> (f64, f64) {
        let kept = sides.backbone.degrees.pipeline;
        (sides.encoder.bytes(sides.depth(), batch), sides.backbone.bytes(kept, length))
    }

    /// Returns lower bounds for [`Self::bytes`] over a range of i.
    pub(crate) fn least_bytes(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let (batch, length) = (self.mean.batch, self.mean.length);
        (
            sides.encoder.least_bytes(sides.depth(), batch * small.0, batch * large.0),
            sides.backbone.least_bytes(sides.backbone.degrees.pipeline, length * small.1, length * large.1),
        )
    }

    pub(crate) fn choice(&self, input: &OptimizerInput, configuration: Configuration) -> Choice {
        debug_assert_eq!(input.global_batch, self.input.global_batch);
        let sides = self.sides(configuration.encoder, configuration.backbone);
        let microbatches = configuration.microbatches;
        let (encoder_seconds, backbone_seconds) = self.of_mean(&sides, microbatches);
        let (encoder_bytes, backbone_bytes) = self.bytes(&sides, microbatches);
        Choice {
            configuration,
            of_mean: self.time_of_mean(&sides, microbatches),
            mean_of: self.mean_of_time(&sides, microbatches),
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
    pub(crate) fn of_item(&self, sides: &Sides<'_>, microbatches: u32, item: &ItemWork) -> (f64, f64) {
        let (encoder, backbone) = self.shares(sides, microbatches);
        let rates = (
            sides.encoder.linear().at(self.mean.batch * encoder),
            sides.backbone.linear().at(self.mean.length * backbone),
        );
        let attention = item.attention_flops / sides.backbone.profile.attention.at(item.length);
        let copies = f64::from(sides.backbone.degrees.data) / f64::from(sides.encoder.degrees.data);
        (
            sides.encoder.seconds(Self::of_encoder(item), copies, rates.0),
            sides.backbone.seconds(Self::of_backbone(item, attention), 1.0, rates.1),
        )
    }

    /// Returns a lower bound in seconds for a global batch on an encoder stage: mean items at the
    /// maximum throughput.
    pub(crate) fn least_encoder_work(&self, side: &Side<'_>) -> f64 {
        self.least_work(side, Self::of_encoder(&self.mean))
    }

    /// Returns a lower bound in seconds for a global batch on a backbone stage, at the maximum
    /// throughput. For the mean of T, attention uses the mean time over the items, which differs
    /// from the time of the mean item.
    pub(crate) fn least_backbone_work(&self, side: &Side<'_>, objective: Objective) -> f64 {
        let (of_mean, items) = &self.attention[side.place];
        let attention = match objective {
            Objective::OfMean | Objective::Balanced => *of_mean,
            Objective::MeanOf => items.iter().zip(&self.weights).map(|(seconds, weight)| seconds * weight).sum(),
        };
        self.least_work(side, Self::of_backbone(&self.mean, attention))
    }

    fn least_work(&self, side: &Side<'_>, asked: Asked) -> f64 {
        let share = f64::from(self.input.global_batch) / f64::from(side.degrees.data);
        side.seconds(asked, share, side.linear().max_value())
    }
}

/// Returns i + E_pp + L_pp - 1.
fn slots(sides: &Sides<'_>, microbatches: u32) -> f64 {
    f64::from(microbatches) + f64::from(sides.depth()) - 1.0
}
