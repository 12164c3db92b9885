//! Candidates for the free settings of a scenario.
//!
//! A reference planner, usually 1F1B, with a free layout simulates the sizing batch under each combination
//! of settings. Combinations whose lower bound is not below the best times are not simulated. All
//! planners then choose among the same candidates.

mod refinements;

use crate::planners::layout_search::LayoutSearch;
use crate::planners::setting_choices;
use crate::planners::static_3d::Fixed;
use crate::planners::{Batches, NO_CEILING, PlanningContext};
use planscope_core::host::{Workers, side_by_side};
use planscope_core::training::{ContextExchange, Recompute};
use planscope_core::units::{Bytes, Nanos, Seconds};
use planscope_core::workload::Packing;
use planscope_cost::cost::Pricing;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerKind, Scenario};
use refinements::{combinations, refinements};

/// Phase of the search, for progress.
const PHASE: &str = "comparing settings";
/// Number of candidates that are fastest for the reference planner, each with other degrees or packing.
const FASTEST: usize = 3;
/// Slower settings than this ratio to the fastest time are not simulated. Other planners can rank settings
/// differently.
const CEILING: f64 = 1.25;
/// The same with no recomputation, selective or full recomputation alone: less recomputation can be possible with
/// offload, and full recomputation takes a third more time.
const FULL_CEILING: f64 = 1.5;
/// Other candidates are the fastest ones with at most these ratios of the memory of the fastest.
const RELIEFS: [f64; 2] = [0.99, 0.9];
/// Number of further candidates with the smallest memory need.
const LEANEST: usize = 2;
/// Combinations of degrees whose recomputation and offload are refined with all ZeRO stages, and further combinations
/// with packing.
const REFINED_DEGREES: usize = 4;
/// The same if TP, PP and the microbatch are fixed. A search over one layout costs little, and degrees that fit with offload
/// only have no time before.
const REFINED_FIXED_DEGREES: usize = 12;
const REFINED_VARIANTS: usize = 2;
/// Limit on the combinations of recomputation and offload, and the devices up to
/// which it holds. A search takes longer with more devices.
const MAX_COMBINATIONS: usize = 800;
const COMBINATION_DEVICES: u32 = 64;
/// Searches that run at the same time. The number does not depend on the number of threads, so that the results do not.
/// The first search runs alone: its time is the ceiling of the next ones.
pub(crate) const CONCURRENT: usize = 2;

/// Result of the reference planner for one combination of settings.
#[derive(Debug, Clone, Copy)]
struct Probe {
    settings: PlanSettings,
    /// Iteration time on the sizing batch. `None` if no layout fits, or if none is faster than the ceiling.
    time: Option<Nanos>,
    /// Smallest peak memory of the simulated and rejected layouts. `None` if there is none.
    peak: Option<Bytes>,
}

/// Planner whose schedule ranks the settings, and the planner under which the progress is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searcher {
    pub reference: PlannerKind,
    pub reported: PlannerKind,
}

/// Returns settings for the planners: the fastest for the static planner `searcher.reference`, then those that need the
/// least memory.
pub(crate) fn candidates(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    batches: Batches<'_>,
    searcher: Searcher,
    observer: &mut dyn Observer,
) -> Result<Vec<PlanSettings>, Cancelled> {
    let own = PlanSettings::from_scenario(scenario);
    if scenario.search.rollouts == 0 {
        let full = own.with_recompute(Recompute::Full, None);
        let is_free = scenario.is_free(FreeSetting::Recompute) && full != own;
        return Ok(if is_free { vec![own, full] } else { vec![own] });
    }
    let degrees = degrees(scenario, own, can_pack(scenario, batches));
    let recomputations = [Recompute::None, Recompute::Selective, Recompute::Full];
    let recomputations: &[Recompute] =
        if scenario.is_free(FreeSetting::Recompute) { &recomputations } else { &[own.recompute] };
    let mut search = SettingsSearch { scenario, pricing, batches, searcher, observer, probes: Vec::new() };
    let with = |settings: PlanSettings, recompute| {
        if recompute == own.recompute { settings } else { settings.with_recompute(recompute, None) }
    };
    let degrees_and_recomputation: Vec<PlanSettings> =
        recomputations.iter().flat_map(|&recompute| degrees.iter().map(move |&base| with(base, recompute))).collect();
    search.probe(&degrees_and_recomputation, FULL_CEILING)?;
    let refined: Vec<PlanSettings> =
        search.best_degrees().into_iter().flat_map(|base| refinements(scenario, base)).collect();
    search.probe(&refined, CEILING)?;
    let combined: Vec<PlanSettings> =
        search.best_degrees().into_iter().flat_map(|base| combinations(scenario, base)).collect();
    // Only faster combinations are of use.
    search.probe(&combined[..combined.len().min(max_combinations(scenario))], 1.0)?;
    Ok(search.into_candidates())
}

fn max_combinations(scenario: &Scenario) -> usize {
    let devices = scenario.cluster.devices().max(COMBINATION_DEVICES);
    MAX_COMBINATIONS * COMBINATION_DEVICES as usize / devices as usize
}

/// Returns whether packing changes microbatches: not if equal sequences fill more than half of the context.
fn can_pack(scenario: &Scenario, batches: Batches<'_>) -> bool {
    let sequences = &batches.sizing.sequences;
    let is_long = |tokens: u32| u64::from(tokens) * 2 > u64::from(scenario.workload.context_length);
    !sequences.first().is_some_and(|first| is_long(first.tokens) && sequences.iter().all(|other| other == first))
}

/// Combinations of degrees, ZeRO stage and packing.
fn degrees(scenario: &Scenario, own: PlanSettings, can_pack: bool) -> Vec<PlanSettings> {
    let mut all = vec![own];
    let mut extend = |setting: FreeSetting, change: &dyn Fn(PlanSettings) -> Vec<PlanSettings>| {
        if scenario.is_free(setting) {
            all = all.iter().flat_map(|&settings| change(settings)).collect();
        }
    };
    extend(FreeSetting::ContextParallel, &|settings| {
        let contexts = setting_choices::contexts(scenario).into_iter();
        contexts
            .map(|(context_parallel, context_exchange)| PlanSettings { context_parallel, context_exchange, ..settings })
            .collect()
    });
    extend(FreeSetting::ExpertParallel, &|settings| {
        let degrees = setting_choices::expert_degrees(scenario).into_iter();
        degrees.map(|expert_parallel| PlanSettings { expert_parallel, ..settings }).collect()
    });
    extend(FreeSetting::ExpertTensorParallel, &|settings| {
        let degrees = setting_choices::expert_tensor_degrees(scenario).into_iter();
        degrees.map(|expert_tensor_parallel| PlanSettings { expert_tensor_parallel, ..settings }).collect()
    });
    extend(FreeSetting::Zero, &|settings| {
        setting_choices::zero_stages(scenario).map(|zero| PlanSettings { zero, ..settings }).collect()
    });
    extend(FreeSetting::Packing, &|settings| {
        let packed = PlanSettings { packing: Packing::Packed, ..settings };
        if can_pack && settings.packing != Packing::Packed { vec![settings, packed] } else { vec![settings] }
    });
    all
}

struct SettingsSearch<'a> {
    scenario: &'a Scenario,
    /// Costs of the model on the cluster. Probes share them.
    pricing: &'a Pricing<'a>,
    batches: Batches<'a>,
    searcher: Searcher,
    observer: &'a mut dyn Observer,
    probes: Vec<Probe>,
}

impl SettingsSearch<'_> {
    /// Runs the reference planner under each of the settings. Plans slower than `ratio` times the fastest time are not
    /// simulated.
    fn probe(&mut self, mut settings: &[PlanSettings], ratio: f64) -> Result<(), Cancelled> {
        while !settings.is_empty() {
            let count = if self.probes.is_empty() { 1 } else { CONCURRENT };
            let (round, rest) = settings.split_at(count.min(settings.len()));
            let ceiling = self.ceiling(ratio);
            let done = self.probes.len();
            self.observer.progress(self.searcher.reported, PHASE, done as u32, (done + settings.len()) as u32);
            let search = &*self;
            let workers = search.observer.workers();
            let probes = side_by_side(workers, round.len(), |index| search.run(round[index], ceiling));
            for probe in probes {
                self.probes.push(probe?);
            }
            settings = rest;
        }
        Ok(())
    }

    fn run(&self, settings: PlanSettings, ceiling: Nanos) -> Result<Probe, Cancelled> {
        go_on(&*self.observer)?;
        let scenario = self.scenario.with_settings(&settings);
        let pricing = self.pricing.for_training(&scenario.training);
        let (kind, observer): (_, &dyn Observer) = (self.searcher.reference, &*self.observer);
        let (planner, batches) = (kind, self.batches);
        let context =
            PlanningContext { scenario: &scenario, pricing: &pricing, planner, batches, ceiling, recorded: None };
        let planner = Fixed { kind };
        let search = LayoutSearch::run(context, &planner, &mut Quiet(observer))?;
        Ok(Probe { settings, time: search.best_time(), peak: search.min_peak() })
    }

    /// Returns the time from which settings are not simulated.
    fn ceiling(&self, ratio: f64) -> Nanos {
        let fastest = self.probes.iter().filter_map(|probe| probe.time).min();
        fastest.map_or(NO_CEILING, |time| Seconds::from_secs(ratio * time.secs()).to_nanos())
    }

    /// Returns the degrees of the fastest probes, without recomputation and offload; of the leanest probes if
    /// nothing fits.
    fn best_degrees(&self) -> Vec<PlanSettings> {
        let mut order: Vec<&Probe> = self.probes.iter().collect();
        // Degrees without any layout have no peak. They come last.
        order.sort_by_key(|probe| (probe.time.is_none(), probe.time, probe.peak.is_none(), probe.peak));
        let own = PlanSettings::from_scenario(self.scenario);
        let base = |probe: &Probe| PlanSettings {
            recompute: own.recompute,
            recompute_layers: own.recompute_layers,
            recompute_modules: own.recompute_modules,
            activation_offload: own.activation_offload,
            optimizer_offload: own.optimizer_offload,
            ..probe.settings
        };
        let request = self.scenario.layout;
        let is_fixed = request.tensor.is_some() && request.pipeline.is_some() && request.microbatch.is_some();
        let most = if is_fixed { REFINED_FIXED_DEGREES } else { REFINED_DEGREES };
        let mut bases: Vec<PlanSettings> = Vec::new();
        for &probe in &order {
            let has_degrees = |other: &PlanSettings| degrees_of(other) == degrees_of(&probe.settings);
            if bases.len() < most && !bases.iter().any(has_degrees) {
                bases.push(base(probe));
            }
        }
        // With offload or recomputation, other ZeRO stages fit.
        let stages = setting_choices::zero_stages(self.scenario);
        let other_stages = |&base: &PlanSettings| {
            let others = stages.clone().filter(move |&zero| zero != base.zero);
            others.map(move |zero| PlanSettings { zero, ..base })
        };
        let others: Vec<PlanSettings> = bases.iter().flat_map(other_stages).collect();
        bases.extend(others);
        let most = bases.len() + REFINED_VARIANTS;
        for variant in order.into_iter().map(base) {
            if bases.len() < most && !bases.contains(&variant) {
                bases.push(variant);
            }
        }
        bases
    }

    /// Returns the settings of the scenario, the fastest and the leanest settings.
    fn into_candidates(mut self) -> Vec<PlanSettings> {
        self.probes.sort_by_key(|probe| (probe.time.is_none(), probe.time));
        let mut candidates = vec![PlanSettings::from_scenario(self.scenario)];
        let degrees = |settings: &PlanSettings| (degrees_of(settings), settings.packing);
        let mut fastest: Vec<PlanSettings> = Vec::new();
        for probe in self.probes.iter().filter(|probe| probe.time.is_some()) {
            if fastest.len() < FASTEST && fastest.iter().all(|other| degrees(other) != degrees(&probe.settings)) {
                fastest.push(probe.settings);
            }
        }
        // Other planners can need more memory than the reference.
        let has_offload = |probe: &&Probe| probe.settings.activation_offload > 0.0;
        if !fastest.iter().any(|settings| settings.activation_offload > 0.0) {
            let offloaded = self.probes.iter().filter(|probe| probe.time.is_some()).find(has_offload);
            fastest.extend(offloaded.map(|probe| probe.settings));
        }
        // Batches of the run can need more memory than the sizing batch.
        let lead = self.probes.first().and_then(|probe| probe.peak).map_or(0.0, Bytes::gib);
        for relief in RELIEFS {
            let is_small = |probe: &&Probe| probe.peak.is_some_and(|peak| peak.gib() <= relief * lead);
            let smaller = self.probes.iter().filter(|probe| probe.time.is_some()).find(is_small);
            fastest.extend(smaller.map(|probe| probe.settings).filter(|settings| !fastest.contains(settings)));
        }
        candidates.extend(fastest.into_iter().filter(|settings| *settings != candidates[0]).collect::<Vec<_>>());
        self.probes.retain(|probe| probe.peak.is_some() && !candidates.contains(&probe.settings));
        self.probes.sort_by_key(|probe| (probe.peak, probe.time.is_none(), probe.time));
        candidates.extend(self.probes.iter().take(LEANEST).map(|probe| probe.settings));
        candidates
    }
}

/// Degrees of parallelism among the settings.
pub(crate) fn degrees_of(settings: &PlanSettings) -> (u32, ContextExchange, u32, Option<u32>) {
    let PlanSettings { context_parallel, context_exchange, expert_parallel, expert_tensor_parallel, .. } = *settings;
    (context_parallel, context_exchange, expert_parallel, expert_tensor_parallel)
}

/// Forwards cancellation and workers, and ignores events.
pub(crate) struct Quiet<'a>(pub &'a dyn Observer);

impl Observer for Quiet<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn max_bytes(&self) -> u64 {
        self.0.max_bytes()
    }

    fn workers(&self) -> &dyn Workers {
        self.0.workers()
    }

    fn draws_timelines(&self) -> bool {
        self.0.draws_timelines()
    }
}
