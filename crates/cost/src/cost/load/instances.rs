//! Instances of a module in a microbatch, from which sub-microbatches are formed.

use std::ops::Range;

use super::{ModuleLoad, common_length};
use planscope_core::model::{Module, ModuleRole};
use planscope_core::timeline::MicrobatchShape;
use planscope_core::workload::preprocessed::{ItemLengths, ItemSize};
use planscope_core::workload::{MicrobatchContents, Packing, Sequence};

/// Selects the item lengths in a sequence for a module, if the dataset contains them.
pub(super) type LengthAccessor = fn(&Sequence) -> &ItemLengths;

/// Type of an instance.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// Sequences, padded to a common length unless packed.
    Sequence { length: Option<f64> },
    /// Images with `length` patches.
    Image { length: f64 },
    /// Audio clips with `length` frames.
    Sound { length: f64 },
    /// Video clips with individual lengths.
    Video,
}

/// Instances of a module in a microbatch: images (vision encoder), audio clips (audio encoder),
/// video clips (video generator) or sequences (backbone). Consecutive instances can run together as
/// a sub-microbatch.
///
/// Instances are numbered in sample order. The loads of consecutive ranges add up to the load of
/// the microbatch ([`super::MicrobatchLoad::new`]). Padded sequences use the maximum length in the
/// microbatch, in all sub-microbatches.
#[derive(Debug, Clone)]
pub struct Instances<'a> {
    contents: &'a MicrobatchContents,
    unit: Unit,
    /// Prefix sums of the instance counts per carrier. A carrier is a sequence for the backbone,
    /// otherwise a sample.
    before: Vec<u32>,
    /// Item length accessor and the model's item size, if the dataset contains item lengths.
    lengths: Option<(LengthAccessor, ItemSize)>,
}

impl<'a> Instances<'a> {
    /// Enumerates the instances of a module in a microbatch.
    pub fn new(contents: &'a MicrobatchContents, module: &Module, packing: Packing) -> Self {
        let length = f64::from(module.tokens_per_item());
        let unit = match (module.role, module.video) {
            (ModuleRole::Backbone, _) => Unit::Sequence { length: common_length(contents.sequences(), packing) },
            (ModuleRole::Generator, Some(_)) => Unit::Video,
            (ModuleRole::VisionEncoder | ModuleRole::Generator, _) => Unit::Image { length },
            (ModuleRole::AudioEncoder, _) => Unit::Sound { length },
        };
        let carriers: &[Sequence] = match unit {
            Unit::Sequence { .. } => contents.sequences(),
            Unit::Image { .. } | Unit::Sound { .. } | Unit::Video => contents.members(),
        };
        let mut before = Vec::with_capacity(carriers.len() + 1);
        let mut sum = 0_u32;
        before.push(sum);
        for carrier in carriers {
            sum = sum.saturating_add(unit.count_in(carrier));
            before.push(sum);
        }
        let item_accessor: Option<LengthAccessor> = match module.role {
            ModuleRole::VisionEncoder => Some(|carrier| &carrier.image_lengths),
            ModuleRole::AudioEncoder => Some(|carrier| &carrier.clip_lengths),
            ModuleRole::Backbone | ModuleRole::Generator => None,
        };
        let lengths = item_accessor
            .filter(|accessor| carriers.iter().any(|carrier| accessor(carrier).items > 0))
            .map(|get_lengths| (get_lengths, ItemSize::from_module(module)));
        Self { contents, unit, before, lengths }
    }

    /// Number of instances, N.
    pub fn count(&self) -> u32 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Splits the instances into ⌈N / size⌉ ranges (M_i in PipeWeaver Sec. 5). The range sizes
    /// differ by at most one.
    pub fn parts(&self, size: u32) -> impl Iterator<Item = Range<u32>> + use<> {
        let count = u64::from(self.count());
        let parts = count.div_ceil(u64::from(size.max(1)));
        (0..parts).map(move |part| (count * part / parts) as u32..(count * (part + 1) / parts) as u32)
    }

    /// Returns the load for a range of instances.
    pub fn load(&self, range: Range<u32>) -> ModuleLoad {
        match self.unit {
            Unit::Image { length } | Unit::Sound { length } => match self.lengths {
                Some((accessor, item_size)) => self.load_by_carrier(&range, accessor, item_size),
                None => ModuleLoad::equal_items(f64::from(range_length(&range)), length),
            },
            Unit::Sequence { length } => {
                let sequences = &self.contents.sequences()[self.carriers(&range)];
                ModuleLoad::sum(sequences.iter().map(|sequence| ModuleLoad::text(sequence, length)))
            }
            Unit::Video => {
                ModuleLoad::sum(self.contents.members()[self.carriers(&range)].iter().map(ModuleLoad::video))
            }
        }
    }

    /// Computes the load for items with individual lengths. Items in the same sample have equal
    /// lengths.
    fn load_by_carrier(&self, range: &Range<u32>, accessor: LengthAccessor, item_size: ItemSize) -> ModuleLoad {
        let carriers = self.carriers(range);
        let part = |carrier: usize| {
            let (first, end) = (self.before[carrier], self.before[carrier + 1]);
            let count = end.min(range.end).saturating_sub(first.max(range.start));
            ModuleLoad::encoded(accessor(&self.contents.members()[carrier]).encoded((count, end - first), item_size))
        };
        ModuleLoad::sum(carriers.map(part))
    }

    /// Returns the sample fractions in a range of instances: index into
    /// [`MicrobatchContents::members`], start and end in millionths of the sample's instances.
    pub fn sample_parts(&self, range: Range<u32>) -> Vec<(usize, u32, u32)> {
        let millionths =
            |instances: u32, total: u32| (u64::from(instances) * 1_000_000 / u64::from(total.max(1))) as u32;
        let part = |carrier: usize| {
            let (first, end) = (self.before[carrier], self.before[carrier + 1]);
            let (from, to) = (range.start.max(first) - first, range.end.min(end) - first);
            (carrier, millionths(from, end - first), millionths(to, end - first))
        };
        match self.unit {
            Unit::Sequence { .. } => self.members(range).map(|member| (member, 0, 1_000_000)).collect(),
            _ => self.carriers(&range).filter(|&at| self.before[at + 1] > self.before[at]).map(part).collect(),
        }
    }

    /// Returns the samples in a range of instances, as indices into
    /// [`MicrobatchContents::members`]. Adjacent ranges can share a sample with several images or
    /// clips.
    pub fn members(&self, range: Range<u32>) -> Range<usize> {
        let carriers = self.carriers(&range);
        match self.unit {
            Unit::Sequence { .. } => self.contents.sequence_members(carriers),
            Unit::Image { .. } | Unit::Sound { .. } | Unit::Video => carriers,
        }
    }

    /// Summarizes a range of instances for display: the number of samples and the module's input.
    pub fn shape(&self, range: Range<u32>) -> MicrobatchShape {
        let (load, count) = (self.load(range.clone()), range_length(&range));
        let members = &self.contents.members()[self.members(range)];
        let shape = MicrobatchShape { samples: members.len() as u32, ..MicrobatchShape::default() };
        match self.unit {
            Unit::Sequence { .. } => MicrobatchShape { tokens: load.tokens as u32, ..shape },
            Unit::Image { .. } => MicrobatchShape { images: count, ..shape },
            Unit::Sound { .. } => MicrobatchShape { audio_clips: count, ..shape },
            Unit::Video => MicrobatchShape { video_ms: members.iter().map(|member| member.video_ms).sum(), ..shape },
        }
    }

    /// Returns the carriers that contain the instances in `range`.
    fn carriers(&self, range: &Range<u32>) -> Range<usize> {
        let carrier = |instance: u32| self.before.partition_point(|&before| before <= instance) - 1;
        if range.is_empty() {
            let at = carrier(range.start).min(self.before.len() - 1);
            return at..at;
        }
        carrier(range.start)..carrier(range.end - 1) + 1
    }
}

impl Unit {
    /// Number of instances in a carrier.
    const fn count_in(self, carrier: &Sequence) -> u32 {
        match self {
            Self::Sequence { .. } => 1,
            Self::Image { .. } => carrier.images,
            Self::Sound { .. } => carrier.audio_clips,
            Self::Video => carrier.video_clips,
        }
    }
}

const fn range_length(range: &Range<u32>) -> u32 {
    range.end.saturating_sub(range.start)
}
