//! Parts of a microbatch in one module: what sub-microbatches of a modality are made of.

use std::ops::Range;

use super::{ModuleLoad, common_length};
use crate::model::{Module, ModuleRole};
use crate::timeline::MicrobatchShape;
use crate::workload::shaped::{ItemLengths, ItemSize};
use crate::workload::{MicrobatchContents, Packing, Sequence};

/// The items of a sequence that a module reads and whose lengths the data say.
pub(super) type LengthsOf = fn(&Sequence) -> &ItemLengths;

/// What a module counts its work in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    /// Sequences, padded to a common length where there is one.
    Sequence { length: Option<f64> },
    /// Images of this many patches.
    Image { length: f64 },
    /// Clips of sound of this many frames.
    Sound { length: f64 },
    /// Clips of video, each of its own length.
    Video,
}

/// The instances of one module in one microbatch: images of a vision encoder, clips of sound of an audio encoder, clips
/// of video of a generator, sequences of a backbone. Consecutive instances can be run together as a sub-microbatch.
///
/// Instances are numbered in the order of the samples. The loads of consecutive ranges add up to the load of the
/// microbatch ([`super::MicrobatchLoad::of`]): a sequence that is padded is padded to the longest of the microbatch in
/// every part of it.
#[derive(Debug, Clone)]
pub struct Instances<'a> {
    contents: &'a MicrobatchContents,
    unit: Unit,
    /// Instances before every carrier (a member; for sequences, a sequence), and all of them at the end.
    before: Vec<u32>,
    /// Where the data say how long items are, of every carrier; and how long the others are.
    lengths: Option<(LengthsOf, ItemSize)>,
}

impl<'a> Instances<'a> {
    /// Of a module in a microbatch.
    pub fn of(contents: &'a MicrobatchContents, module: &Module, packing: Packing) -> Self {
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
            sum = sum.saturating_add(unit.carried_by(carrier));
            before.push(sum);
        }
        let of_items: Option<LengthsOf> = match module.role {
            ModuleRole::VisionEncoder => Some(|carrier| &carrier.image_lengths),
            ModuleRole::AudioEncoder => Some(|carrier| &carrier.clip_lengths),
            ModuleRole::Backbone | ModuleRole::Generator => None,
        };
        let lengths = of_items
            .filter(|of| carriers.iter().any(|carrier| of(carrier).items > 0))
            .map(|of| (of, ItemSize::of(module)));
        Self { contents, unit, before, lengths }
    }

    /// How many there are, N.
    pub fn count(&self) -> u32 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Ranges of at most `size` instances, as equal as can be: ⌈N / size⌉ of them, whose sizes differ by one at most.
    pub fn parts(&self, size: u32) -> impl Iterator<Item = Range<u32>> + use<> {
        let count = u64::from(self.count());
        let parts = count.div_ceil(u64::from(size.max(1)));
        (0..parts).map(move |part| (count * part / parts) as u32..(count * (part + 1) / parts) as u32)
    }

    /// What a range of instances asks of the module.
    pub fn load(&self, range: Range<u32>) -> ModuleLoad {
        match self.unit {
            Unit::Image { length } | Unit::Sound { length } => match self.lengths {
                Some((of, own)) => self.load_by_carrier(&range, of, own),
                None => ModuleLoad::equal_items(f64::from(length_of(&range)), length),
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

    /// Of items that differ from sample to sample; those of one sample count as equally long.
    fn load_by_carrier(&self, range: &Range<u32>, of: LengthsOf, own: ItemSize) -> ModuleLoad {
        let carriers = self.carriers(range);
        let part = |carrier: usize| {
            let (first, end) = (self.before[carrier], self.before[carrier + 1]);
            let count = end.min(range.end).saturating_sub(first.max(range.start));
            ModuleLoad::encoded(of(&self.contents.members()[carrier]).encoded((count, end - first), own))
        };
        ModuleLoad::sum(carriers.map(part))
    }

    /// The parts of samples in a range of instances: index in [`MicrobatchContents::members`], start and end in
    /// millionths of the sample's instances.
    pub fn sample_parts(&self, range: Range<u32>) -> Vec<(usize, u32, u32)> {
        let millionths = |instances: u32, of: u32| (u64::from(instances) * 1_000_000 / u64::from(of.max(1))) as u32;
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

    /// The samples that a range of instances belongs to, as indices of [`MicrobatchContents::members`]. Neighbouring
    /// ranges share a sample whose images (or clips) they divide.
    pub fn members(&self, range: Range<u32>) -> Range<usize> {
        let carriers = self.carriers(&range);
        match self.unit {
            Unit::Sequence { .. } => self.contents.members_of(carriers),
            Unit::Image { .. } | Unit::Sound { .. } | Unit::Video => carriers,
        }
    }

    /// What a range of instances holds, for people: the samples it belongs to and what the module itself reads of them.
    pub fn shape(&self, range: Range<u32>) -> MicrobatchShape {
        let (load, count) = (self.load(range.clone()), length_of(&range));
        let members = &self.contents.members()[self.members(range)];
        let shape = MicrobatchShape { samples: members.len() as u32, ..MicrobatchShape::default() };
        match self.unit {
            Unit::Sequence { .. } => MicrobatchShape { tokens: load.tokens as u32, ..shape },
            Unit::Image { .. } => MicrobatchShape { images: count, ..shape },
            Unit::Sound { .. } => MicrobatchShape { audio_clips: count, ..shape },
            Unit::Video => MicrobatchShape { video_ms: members.iter().map(|member| member.video_ms).sum(), ..shape },
        }
    }

    /// The carriers from that of the first to that of the last instance of a range.
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
    /// Instances in a member or sequence.
    const fn carried_by(self, carrier: &Sequence) -> u32 {
        match self {
            Self::Sequence { .. } => 1,
            Self::Image { .. } => carrier.images,
            Self::Sound { .. } => carrier.audio_clips,
            Self::Video => carrier.video_clips,
        }
    }
}

const fn length_of(range: &Range<u32>) -> u32 {
    range.end.saturating_sub(range.start)
}
