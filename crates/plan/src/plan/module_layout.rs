//! Layouts of modules that have their own ranks, and the arrangement of their stages.

use std::ops::Range;

use planscope_cost::cost::Partition;

/// Placement and degrees of consecutive modules.
///
/// Each module is split across all pipeline ranks of the layout, with a multiple of this number as
/// stages ([`Partition::by_module`]). A single layout for all modules may instead split them as a
/// chain; parts are then complete microbatches of the last module. Device numbering follows
/// Megatron-LM: TP fastest, then CP, DP and PP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleLayout {
    /// First module.
    pub first: u32,
    /// Module range end (exclusive).
    pub end: u32,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Number of copies, DP.
    pub data: u32,
    /// Expert-parallel degree, EP, inside DP x CP.
    pub expert: u32,
    /// First device. The devices are contiguous.
    pub first_device: u32,
    /// Number of copies on a rank, which split the instances of a part.
    pub copies_per_rank: u32,
}

impl ModuleLayout {
    /// Module range.
    pub fn modules(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// Devices of one pipeline rank of one copy.
    pub const fn rank_size(&self) -> u32 {
        self.tensor * self.context
    }

    /// Device range of all copies.
    pub fn devices(&self) -> Range<u32> {
        self.first_device..self.first_device + self.rank_size() * self.pipeline * self.data
    }

    /// Number of pipelines that receive parts. Copies on the same rank count as a single pipeline.
    pub const fn pipelines(&self) -> u32 {
        self.data / self.copies_per_rank
    }

    /// Device range of a rank in a pipeline.
    pub fn rank_device_range(&self, copy: u32, rank: u32) -> Range<u32> {
        let first = self.first_device + (rank * self.data + copy * self.copies_per_rank) * self.rank_size();
        first..first + self.copies_per_rank * self.rank_size()
    }
}

/// Stages of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleStages {
    /// Index of the module's layout.
    pub layout: usize,
    /// First stage in the partition.
    pub cut: usize,
    /// Stages per copy.
    pub stages: usize,
    /// First stage of copy 0.
    pub first: usize,
}

impl ModuleStages {
    /// Stages of a copy. Copies are numbered consecutively.
    pub const fn copy_stages(&self, copy: usize) -> Range<usize> {
        let first = self.first + copy * self.stages;
        first..first + self.stages
    }
}

/// Ranks and stages of a plan that has separate module layouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    /// Device range per rank.
    pub ranks: Vec<Range<u32>>,
    /// Stages per module.
    pub modules: Vec<ModuleStages>,
    /// Rank per stage.
    pub stage_rank: Vec<u32>,
    /// Partition stage, per stage of the arrangement.
    pub cut: Vec<u32>,
    /// True if a single layout splits all modules as a chain of undivided microbatches.
    pub joined: bool,
    /// Ranks per layout, ordered by copy and pipeline rank.
    by_layout: Vec<Vec<u32>>,
}

impl Arrangement {
    /// Builds the arrangement for layouts on equal or disjoint ranks.
    ///
    /// Ranks are numbered by group of overlapping devices. Inside a group, the layout that has the
    /// most pipeline ranks comes first, ordered by copy.
    ///
    /// # Errors
    /// Describes the invalid placement.
    pub fn new(layouts: &[ModuleLayout], partition: &Partition, modules: usize) -> Result<Self, String> {
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
                let devices = layout.rank_device_range(copy, rank);
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
            if let Some(&shared_stages) = arrangement.modules.first().filter(|_| joined) {
                arrangement.modules.push(shared_stages);
                continue;
            }
            let module_stages =
                ModuleStages { layout, cut: cut.start, stages: cut.len(), first: arrangement.stage_rank.len() };
            for copy in 0..layouts[layout].pipelines() {
                for stage in 0..cut.len() {
                    let rank = arrangement.rank(layout, pipeline, copy, stage as u32 % pipeline);
                    arrangement.stage_rank.push(rank);
                    arrangement.cut.push((cut.start + stage) as u32);
                }
            }
            arrangement.modules.push(module_stages);
        }
        Ok(arrangement)
    }

    /// Returns the rank number for a copy and pipeline rank. `pipeline` is the number of ranks per
    /// copy.
    pub fn rank(&self, layout: usize, pipeline: u32, copy: u32, rank: u32) -> u32 {
        self.by_layout[layout][(copy * pipeline + rank) as usize]
    }

    /// Device count per rank.
    pub fn sizes(&self) -> Vec<u32> {
        self.ranks.iter().map(|devices| devices.end - devices.start).collect()
    }

    /// Returns the lowest rank in the synchronisation group of each rank. A group starts the
    /// gradient reduction at the same time. It contains the ranks with the same stage in all
    /// copies, and the ranks of all other modules on these devices, because a device has a single
    /// step end.
    pub fn synchronised(&self, layouts: &[ModuleLayout]) -> Vec<usize> {
        let mut first: Vec<usize> = (0..self.ranks.len()).collect();
        for (layout, ranks) in layouts.iter().zip(&self.by_layout) {
            for rank in 0..layout.pipeline as usize {
                let copies = || ranks.iter().skip(rank).step_by(layout.pipeline as usize).map(|&rank| rank as usize);
                let together: Vec<usize> = copies().map(|rank| first[rank]).collect();
                let lowest = together.iter().copied().min().unwrap_or(0);
                for leader in &mut first {
                    if together.contains(leader) {
                        *leader = lowest;
                    }
                }
            }
        }
        first
    }
}

/// Returns true if the only layout splits all modules as a chain: a stage contains two modules, or
/// a module has no stage on some rank.
fn is_joined(layouts: &[ModuleLayout], partition: &Partition) -> bool {
    let [layout] = layouts else { return false };
    let by_itself = |cuts: Vec<Range<usize>>| {
        cuts.iter().all(|cut| !cut.is_empty() && cut.len().is_multiple_of(layout.pipeline as usize))
    };
    layout.end - layout.first > 1 && !partition.stages_by_module(layout.end as usize).is_some_and(by_itself)
}

/// Returns whether two ranges of devices overlap.
pub fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}
