//! How long a microbatch takes on a stage, and what it keeps there.

use super::{Choice, Configuration, Degrees, Objective, OptimizerInput};
use crate::data_aware::curve::Curve;
use crate::data_aware::profile::{DegreeProfile, ModuleProfile};

/// What an item, or each item of a bin of a histogram, asks of the two modules. Operations are those of forward and backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemWork {
    /// Effective batch of the encoder, b(d): tiles, images, clips.
    pub batch: f64,
    /// Length of the backbone's sequence, s(d), in tokens.
    pub length: f64,
    /// Operations of the encoder.
    pub encoder_flops: f64,
    /// Operations of the backbone's linear parts.
    pub linear_flops: f64,
    /// Operations of the backbone's attention.
    pub attention_flops: f64,
    /// How often there is such an item.
    pub weight: f64,
}

impl ItemWork {
    pub(super) fn is_valid(&self) -> bool {
        let figures =
            [self.batch, self.length, self.encoder_flops, self.linear_flops, self.attention_flops, self.weight];
        figures.into_iter().all(|figure| figure.is_finite() && figure >= 0.0)
    }
}

/// What one item asks of a degree: the attention of its own length has its own rate, whatever it is packed with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Asked {
    /// Operations whose rate depends on what is packed together.
    linear: f64,
    /// Seconds of one device for attention.
    attention: f64,
    /// Size that one item adds.
    size: f64,
}

/// The items as the tables price them.
#[derive(Debug, Clone)]
pub(super) struct Durations<'a> {
    input: &'a OptimizerInput,
    /// The mean item.
    mean: ItemWork,
    /// Weights that sum to one.
    weights: Vec<f64>,
    /// By degree of the backbone's profile, seconds of attention of the mean item and of every item.
    attention: Vec<(f64, Vec<f64>)>,
}

/// One of the two modules under its degrees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub profile: &'a DegreeProfile,
    /// Place of that among the profile's degrees.
    pub place: usize,
    pub degrees: Degrees,
    /// Layers of a stage, rounded up.
    layers: u32,
    /// Whether a stage is the whole module.
    whole: bool,
    /// How much longer the longest stage is than the mean, since stages hold whole layers.
    uneven: f64,
}

impl<'a> Side<'a> {
    pub(super) fn of(module: &'a ModuleProfile, degrees: Degrees) -> Self {
        let place = module.degrees.iter().position(|profile| profile.tensor == degrees.tensor).unwrap_or(0);
        let layers = module.layers.div_ceil(degrees.pipeline);
        let uneven = f64::from(layers) * f64::from(degrees.pipeline) / f64::from(module.layers.max(1));
        Self { profile: &module.degrees[place], place, degrees, layers, whole: layers == module.layers, uneven }
    }

    /// Devices that share a microbatch's work.
    fn shared_by(&self) -> f64 {
        f64::from(self.degrees.tensor) * f64::from(self.degrees.pipeline)
    }

    /// Seconds of a microbatch that holds `share` of items like that, with its linear rate.
    fn seconds(&self, asked: Asked, share: f64, rate: f64) -> f64 {
        share * (asked.linear / rate + asked.attention) / self.shared_by()
    }

    /// Bytes of a device that keeps `kept` microbatches of that size (Eq. 4 and 5).
    fn bytes(&self, kept: u32, size: f64) -> f64 {
        self.states() + self.profile.activation.bytes((self.layers, kept), size)
    }

    fn states(&self) -> f64 {
        self.profile.state.bytes(self.layers, self.whole, self.degrees.data)
    }

    /// At least, for sizes of a range.
    fn least_bytes(&self, kept: u32, from: f64, to: f64) -> f64 {
        self.states() + self.profile.activation.least((self.layers, kept), from, to)
    }

    fn linear(&self) -> &Curve {
        &self.profile.linear
    }
}

/// Both sides of a strategy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub encoder: Side<'a>,
    pub backbone: Side<'a>,
}

impl Sides<'_> {
    /// E_pp + L_pp.
    pub(super) fn depth(&self) -> u32 {
        self.encoder.degrees.pipeline + self.backbone.degrees.pipeline
    }

    /// The longest stage of both modules, whose mean stages take as long.
    fn longest_stage(&self, encoder: f64, backbone: f64) -> f64 {
        (encoder * self.encoder.uneven).max(backbone * self.backbone.uneven)
    }
}

impl<'a> Durations<'a> {
    pub(super) fn of(input: &'a OptimizerInput) -> Self {
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

    pub(super) fn mean(&self) -> &ItemWork {
        &self.mean
    }

    pub(super) fn sides(&self, encoder: Degrees, backbone: Degrees) -> Sides<'a> {
        Sides { encoder: Side::of(&self.input.encoder, encoder), backbone: Side::of(&self.input.backbone, backbone) }
    }

    fn of_encoder(item: &ItemWork) -> Asked {
        Asked { linear: item.encoder_flops, attention: 0.0, size: item.batch }
    }

    fn of_backbone(item: &ItemWork, attention: f64) -> Asked {
        Asked { linear: item.linear_flops, attention, size: item.length }
    }

    /// Items of a microbatch of a replica of either module.
    fn shares(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let batch = f64::from(self.input.global_batch);
        let share = |side: &Side<'_>| batch / (f64::from(microbatches) * f64::from(side.degrees.data));
        (share(&sides.encoder), share(&sides.backbone))
    }

    /// E_dur and L_dur where every item is the mean one (Algorithm 1, lines 25 and 26).
    pub(super) fn of_mean(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
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

    /// T of the mean item.
    pub(super) fn time_of_mean(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.of_mean(sides, microbatches);
        slots(sides, microbatches) * encoder.max(backbone)
    }

    /// Mean of T over the items (Eq. 1): of batches that hold nothing but such items.
    pub(super) fn mean_of_time(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let attention = &self.attention[sides.backbone.place].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let asked = (Self::of_encoder(item), Self::of_backbone(item, attention));
            let (encoder, backbone) = self.stages(sides, microbatches, asked);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, microbatches) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// T of a batch whose buckets are as equal as they can be: of the mean item, but no bucket is shorter than the item in it that
    /// takes longest, and the longest stage has a whole number of layers.
    pub(super) fn time_when_balanced(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        let (encoder, backbone) = self.of_mean(sides, microbatches);
        let (of_encoder, of_backbone) = self.shares(sides, microbatches);
        let rates = (
            sides.encoder.linear().at(self.mean.batch * of_encoder),
            sides.backbone.linear().at(self.mean.length * of_backbone),
        );
        let items = self.longest_items(sides, rates);
        slots(sides, microbatches) * sides.longest_stage(encoder.max(items.0), backbone.max(items.1))
    }

    /// What the longest item takes of a stage of either at some rates.
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

    /// No number of microbatches of a range takes less when balanced.
    pub(super) fn least_time_when_balanced(&self, sides: &Sides<'_>, range: (u32, u32)) -> f64 {
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

    /// No number of microbatches of a range takes less by the mean item.
    pub(super) fn least_time_of_mean(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = self.attention[sides.backbone.place].0;
        let asked = (Self::of_encoder(&self.mean), Self::of_backbone(&self.mean, attention));
        let (encoder, backbone) = self.least(sides, (from, to), asked);
        slots(sides, to) * encoder.max(backbone)
    }

    /// No number of microbatches of a range has a smaller mean of T.
    pub(super) fn least_mean_of_time(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> f64 {
        let attention = &self.attention[sides.backbone.place].1;
        let slowest = |(item, &attention): (&ItemWork, &f64)| {
            let asked = (Self::of_encoder(item), Self::of_backbone(item, attention));
            let (encoder, backbone) = self.least(sides, (from, to), asked);
            encoder.max(backbone)
        };
        let items = self.input.items.iter().zip(attention).map(slowest);
        slots(sides, to) * items.zip(&self.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// What a microbatch of either takes at least where they are `to` and may be as few as `from`: the same share of all
    /// work at the best rate of the range. Times i + P - 1 it bounds T, since (i + P - 1) / i falls with i.
    fn least(&self, sides: &Sides<'_>, (from, to): (u32, u32), (encoder, backbone): (Asked, Asked)) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let of = |side: &Side<'_>, asked: Asked, small: f64, large: f64| {
            side.seconds(asked, small, side.linear().most(asked.size * small, asked.size * large))
        };
        (of(&sides.encoder, encoder, small.0, large.0), of(&sides.backbone, backbone, small.1, large.1))
    }

    /// Bytes of a device of either (Eq. 4 and 5), by the mean item.
    pub(super) fn bytes(&self, sides: &Sides<'_>, microbatches: u32) -> (f64, f64) {
        let (encoder, backbone) = self.shares(sides, microbatches);
        (
            sides.encoder.bytes(sides.depth(), self.mean.batch * encoder),
            sides.backbone.bytes(sides.backbone.degrees.pipeline, self.mean.length * backbone),
        )
    }

    /// Bytes of a device of either by other sizes of a microbatch.
    pub(super) fn bytes_of(sides: &Sides<'_>, batch: f64, length: f64) -> (f64, f64) {
        let kept = sides.backbone.degrees.pipeline;
        (sides.encoder.bytes(sides.depth(), batch), sides.backbone.bytes(kept, length))
    }

    /// No number of microbatches of a range needs less of either.
    pub(super) fn least_bytes(&self, sides: &Sides<'_>, (from, to): (u32, u32)) -> (f64, f64) {
        let (small, large) = (self.shares(sides, to), self.shares(sides, from));
        let (batch, length) = (self.mean.batch, self.mean.length);
        (
            sides.encoder.least_bytes(sides.depth(), batch * small.0, batch * large.0),
            sides.backbone.least_bytes(sides.backbone.degrees.pipeline, length * small.1, length * large.1),
        )
    }

    /// A strategy with its figures.
    pub(super) fn choice(&self, input: &OptimizerInput, configuration: Configuration) -> Choice {
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

    /// What an item adds to a microbatch of either at the rates of a microbatch of mean items; the encoder's share is that of all its
    /// copies, which take the items of all copies of the backbone.
    pub(super) fn of_item(&self, sides: &Sides<'_>, microbatches: u32, item: &ItemWork) -> (f64, f64) {
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

    /// Seconds of an encoder's stage for a whole batch at the best rate of all, by the mean item.
    pub(super) fn least_encoder_work(&self, side: &Side<'_>) -> f64 {
        self.least_work(side, Self::of_encoder(&self.mean))
    }

    /// Seconds of a backbone's stage for a whole batch at the best rate of all. Mean of T is at least what the means of both
    /// modules come to, and of attention that is not what the mean item takes.
    pub(super) fn least_backbone_work(&self, side: &Side<'_>, objective: Objective) -> f64 {
        let (of_mean, items) = &self.attention[side.place];
        let attention = match objective {
            Objective::OfMean | Objective::Balanced => *of_mean,
            Objective::MeanOf => items.iter().zip(&self.weights).map(|(seconds, weight)| seconds * weight).sum(),
        };
        self.least_work(side, Self::of_backbone(&self.mean, attention))
    }

    fn least_work(&self, side: &Side<'_>, asked: Asked) -> f64 {
        let share = f64::from(self.input.global_batch) / f64::from(side.degrees.data);
        side.seconds(asked, share, side.linear().most_point())
    }
}

/// i + E_pp + L_pp - 1.
fn slots(sides: &Sides<'_>, microbatches: u32) -> f64 {
    f64::from(microbatches) + f64::from(sides.depth()) - 1.0
}
