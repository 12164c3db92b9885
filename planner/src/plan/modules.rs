//! Heterogeneous parallelism: modules with layouts and ranks of their own (ADR 15).
//!
//! The whole cluster is one replica. A *rank* of it is a block of devices that work as one: the TP x CP devices of one
//! pipeline rank of one copy of a module or, where modules with smaller ranks are colocated with modules with larger
//! ones, as many of the smaller side by side as fill the larger. Copies side by side share out the instances of every
//! part among themselves, as equally as can be, and the part takes as long as the largest share.

mod costs;
mod summary;

use std::ops::Range;

pub(crate) use costs::costs;
pub(super) use costs::of_plan;
pub(super) use summary::{placed, placement};

use crate::cost::Partition;

/// Where some consecutive modules stand, and how each of them is cut there.
///
/// Every module lies over all pipeline ranks of the layout by itself, in as many stages as a multiple of them says
/// ([`Partition::by_module`]). One layout of all modules may also cut them as one chain: then parts are whole microbatches of
/// the last module. Devices are numbered as Megatron-LM does it, TP fastest, then CP, DP and PP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleLayout {
    /// First module.
    pub first: u32,
    /// One behind the last module.
    pub end: u32,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Copies, DP.
    pub data: u32,
    /// Expert-parallel degree, EP, inside DP x CP.
    pub expert: u32,
    /// First of its devices, which follow each other.
    pub first_device: u32,
    /// Copies side by side on one rank, which share out every part.
    pub beside: u32,
}

impl ModuleLayout {
    /// The modules.
    pub fn modules(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// Devices of one pipeline rank of one copy.
    pub const fn rank_size(&self) -> u32 {
        self.tensor * self.context
    }

    /// All devices.
    pub fn devices(&self) -> Range<u32> {
        self.first_device..self.first_device + self.rank_size() * self.pipeline * self.data
    }

    /// Pipelines that parts are given to: copies, those side by side counted once.
    pub const fn pipelines(&self) -> u32 {
        self.data / self.beside
    }

    /// The devices of a pipeline's rank.
    pub fn devices_of(&self, copy: u32, rank: u32) -> Range<u32> {
        let first = self.first_device + (rank * self.data + copy * self.beside) * self.rank_size();
        first..first + self.beside * self.rank_size()
    }
}

/// Where the stages of one module stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Layout of the module.
    pub layout: usize,
    /// First of its stages in the partition.
    pub cut: usize,
    /// Stages of one copy.
    pub stages: usize,
    /// First stage of the first copy.
    pub first: usize,
}

impl Standing {
    /// The stages of a copy: those of every copy are numbered one behind the other.
    pub(crate) const fn of_copy(&self, copy: usize) -> Range<usize> {
        let first = self.first + copy * self.stages;
        first..first + self.stages
    }
}

/// The ranks of a plan whose modules have layouts of their own, and the stages on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// Devices of every rank.
    pub ranks: Vec<Range<u32>>,
    /// By module.
    pub modules: Vec<Standing>,
    /// Rank of every stage.
    pub stage_rank: Vec<u32>,
    /// Stage of the partition that every stage is a copy of.
    pub cut: Vec<u32>,
    /// Whether the one layout of all modules cuts them as one chain, through which microbatches go whole.
    pub joined: bool,
    /// Rank of every layout's pipelines, copy by copy.
    by_layout: Vec<Vec<u32>>,
}

impl Arrangement {
    /// Of layouts that stand on equal or disjoint ranks.
    ///
    /// Ranks are numbered by island of devices, and in each by the layout with the most pipeline ranks, copy by copy.
    ///
    /// # Errors
    /// What cannot be, in words.
    pub(crate) fn of(layouts: &[ModuleLayout], partition: &Partition, modules: usize) -> Result<Self, String> {
        let joined = is_joined(layouts, partition);
        let cuts = if joined {
            vec![0..partition.stages.len(); modules]
        } else {
            partition.stages_by_module(modules).ok_or("a stage holds layers of two modules")?
        };
        let mut order: Vec<usize> = (0..layouts.len()).collect();
        order.sort_by_key(|&index| {
            let island = layouts.iter().filter(|other| overlap(&other.devices(), &layouts[index].devices()));
            let first = island.map(|other| other.first_device).min();
            (first, std::cmp::Reverse(layouts[index].pipeline), index)
        });
        let mut ranks: Vec<Range<u32>> = Vec::new();
        let mut by_layout = vec![Vec::new(); layouts.len()];
        for index in order {
            let layout = &layouts[index];
            for (copy, rank) in
                (0..layout.pipelines()).flat_map(|copy| (0..layout.pipeline).map(move |rank| (copy, rank)))
            {
                let devices = layout.devices_of(copy, rank);
                let known = ranks.iter().position(|other| *other == devices);
                if known.is_none() && ranks.iter().any(|other| overlap(other, &devices)) {
                    return Err("the ranks of colocated modules overlap only partly".to_owned());
                }
                by_layout[index].push(known.unwrap_or(ranks.len()) as u32);
                if known.is_none() {
                    ranks.push(devices);
                }
            }
        }
        let mut arrangement =
            Self { ranks, modules: Vec::new(), stage_rank: Vec::new(), cut: Vec::new(), joined, by_layout };
        for (module, cut) in cuts.iter().enumerate() {
            let layout = layouts.iter().position(|layout| layout.modules().contains(&module));
            let layout = layout.ok_or("a module has no layout")?;
            let ModuleLayout { pipeline, .. } = layouts[layout];
            if cut.is_empty() || cut.len() % pipeline as usize != 0 {
                return Err("the number of stages of a module is not a multiple of its pipeline ranks".to_owned());
            }
            if let Some(&standing) = arrangement.modules.first().filter(|_| joined) {
                arrangement.modules.push(standing);
                continue;
            }
            let standing = Standing { layout, cut: cut.start, stages: cut.len(), first: arrangement.stage_rank.len() };
            for copy in 0..layouts[layout].pipelines() {
                for stage in 0..cut.len() {
                    let rank = arrangement.rank(layout, pipeline, copy, stage as u32 % pipeline);
                    arrangement.stage_rank.push(rank);
                    arrangement.cut.push((cut.start + stage) as u32);
                }
            }
            arrangement.modules.push(standing);
        }
        Ok(arrangement)
    }

    /// The number of a rank of a layout with `pipeline` ranks a copy.
    pub(crate) fn rank(&self, layout: usize, pipeline: u32, copy: u32, rank: u32) -> u32 {
        self.by_layout[layout][(copy * pipeline + rank) as usize]
    }

    /// Devices of every rank.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        self.ranks.iter().map(|devices| devices.end - devices.start).collect()
    }

    /// Of every rank the first of those whose gradients are reduced together with its own, so that they begin at once:
    /// the ranks of all copies of a stage and, as a device has one end of the step, of all modules on them.
    pub(crate) fn synchronised(&self, layouts: &[ModuleLayout]) -> Vec<usize> {
        let mut first: Vec<usize> = (0..self.ranks.len()).collect();
        for (layout, ranks) in layouts.iter().zip(&self.by_layout) {
            for rank in 0..layout.pipeline as usize {
                let copies = || ranks.iter().skip(rank).step_by(layout.pipeline as usize).map(|&rank| rank as usize);
                let together: Vec<usize> = copies().map(|rank| first[rank]).collect();
                let least = together.iter().copied().min().unwrap_or(0);
                for of in &mut first {
                    if together.contains(of) {
                        *of = least;
                    }
                }
            }
        }
        first
    }
}

/// Whether one layout of all modules cuts them as one chain of layers: a stage holds two modules, or some module has no
/// stage on some rank.
fn is_joined(layouts: &[ModuleLayout], partition: &Partition) -> bool {
    let [layout] = layouts else { return false };
    let by_itself = |cuts: Vec<Range<usize>>| {
        cuts.iter().all(|cut| !cut.is_empty() && cut.len().is_multiple_of(layout.pipeline as usize))
    };
    layout.end - layout.first > 1 && !partition.stages_by_module(layout.end as usize).is_some_and(by_itself)
}

/// Whether two blocks of devices share one.
fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
pub(crate) mod tests;
