//! Homogeneous strategies chosen by simulating the sizing batch: static strategies (Megatron-LM),
//! HotSPa, and the initial ablation steps of Hydraulis.

use std::collections::BTreeMap;

use super::dealing::{Dealt, assigned, dispatched, in_turn, replica};
use super::profile::Profiled;
use super::{Draft, Setting, lengths, words};
use crate::planners::batches::EachBatch;
use crate::planners::{NoPlan, PlanningContext, SearchError};
use planscope_core::workload::PackedBatch;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::{Layout, Loser, Search};
use planscope_plan::plan::{IterationPlan, ReplicaPlan};
use planscope_plan::scenario::PlannerKind;

/// End of interval 0 in HotSPa, in tokens. Further ends increase by a factor of four
/// (Hydraulis App. G: below 4K, 4K to 16K, 16K to 32K).
const FIRST_INTERVAL: u64 = 4096;
/// Limit on intervals.
const MAX_INTERVALS: usize = 4;
/// Candidate phases per interval. They are combined across intervals.
const MAX_PHASES: usize = 4;
/// Survey batches for comparing interval splits, in addition to the sizing batch.
const LOOKED_AT: usize = 3;
/// Limit on reported losers.
const MAX_LOSERS: usize = 40;

/// A phase of an iteration.
#[derive(Debug, Clone, Copy)]
struct Phase {
    /// Index into the schemes.
    scheme: usize,
    /// Maximum sequence length in tokens.
    end: u64,
    /// Maximum tokens per microbatch.
    capacity: u64,
}

pub(crate) fn plan(setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<Draft, SearchError<NoPlan>> {
    let mut search = Search::default();
    let chosen = if setting.context.planner == PlannerKind::HotSpa {
        hot_spa(setting, &mut search, observer)?
    } else {
        static_scheme(setting, setting.max_length, &mut search, observer)?
            .map(|scheme| vec![single_phase(setting, scheme)])
    };
    search.losers.sort_by(|a, b| a.iteration_s.unwrap_or(0.0).total_cmp(&b.iteration_s.unwrap_or(0.0)));
    search.losers.truncate(MAX_LOSERS);
    let Some(phases) = chosen else {
        let binding = format!("no homogeneous strategy on these devices fits {} tokens", setting.max_length);
        return Err(NoPlan { binding, search }.into());
    };
    let each = EachBatch {
        kind: setting.context.planner,
        phase: "packing batches",
        batches: setting.context.batches.evaluated,
    };
    let iterations = each.side_by_side(observer, |index, batch, _| {
        let plan = iteration(setting, &lengths(batch), &phases)
            .ok_or_else(|| format!("iteration {index}: its longest sequence fits no microbatch"))?;
        Ok(IterationPlan { replicas: vec![plan], decision: None })
    });
    let iterations = match iterations {
        Ok(iterations) => iterations,
        Err(error) => return Err(error.map(|binding| NoPlan { binding, search })),
    };
    let named = |phase: &Phase| {
        let known = &setting.schemes[phase.scheme];
        let name = format!("{}x{}", setting.copies(known), known.scheme);
        if phases.len() == 1 { name } else { format!("{name} up to {} tokens", phase.end) }
    };
    let names: Vec<String> = phases.iter().map(named).collect();
    let mut decisions = vec![words::profile(setting)];
    decisions.extend(words::measured(setting));
    let sequences = setting.context.batches.sizing.sequences.len();
    let seen = match setting.context.planner {
        PlannerKind::HotSpa => {
            format!("{} sample batches of {sequences} sequences", looked_at(setting).len())
        }
        _ => format!("a representative batch of {sequences} sequences"),
    };
    decisions.push(format!("{}: the fastest of {} strategies on {seen}.", names.join(", then "), search.simulated));
    decisions.extend(words::optimizer(setting));
    Ok(Draft { iterations, decisions, search })
}

/// Homogeneous plans of the first two ablation steps, as candidates of Hydraulis.
pub(super) struct Steps<'a> {
    settings: Vec<(Setting<'a>, Phase)>,
}

impl<'a> Steps<'a> {
    /// Chooses the scheme of each step on the sizing batch.
    pub(super) fn new(setting: &Setting<'a>, observer: &mut dyn Observer) -> Result<Self, Cancelled> {
        let mut settings = Vec::new();
        for planner in [PlannerKind::HydraulisBase, PlannerKind::HydraulisPacking] {
            let context = PlanningContext { planner, ..setting.context };
            let own = Setting { context, schemes: setting.schemes.clone(), ..*setting };
            if let Some(scheme) = static_scheme(&own, own.max_length, &mut Search::default(), observer)? {
                let phase = single_phase(&own, scheme);
                settings.push((own, phase));
            }
        }
        Ok(Self { settings })
    }

    /// Returns the name and the plan of each step for a batch.
    pub(super) fn plans(&self, lengths: &[u64]) -> impl Iterator<Item = (String, ReplicaPlan)> {
        self.settings.iter().filter_map(move |(setting, phase)| {
            let known = &setting.schemes[phase.scheme];
            let name = format!("{}x{}", setting.copies(known), known.scheme);
            Some((name, iteration(setting, lengths, &[*phase])?))
        })
    }
}

/// Builds a single phase for all sequences, packed to the context length.
fn single_phase(setting: &Setting<'_>, scheme: usize) -> Phase {
    let capacity =
        u64::from(setting.context.scenario.workload.context_length).min(setting.schemes[scheme].cost.max_len);
    Phase { scheme, end: u64::MAX, capacity }
}

/// Plans a batch in the given phases. Phases of longer sequences run first.
fn iteration(setting: &Setting<'_>, lengths: &[u64], phases: &[Phase]) -> Option<ReplicaPlan> {
    let mut dealt: Vec<Dealt> = Vec::new();
    let mut number = 0;
    for (position, phase) in phases.iter().enumerate() {
        let above = phases.get(position + 1).map_or(0, |next| next.end);
        let fits = |index: &u32| {
            let tokens = lengths[*index as usize];
            (tokens > above || position + 1 == phases.len()) && (position == 0 || tokens <= phase.end)
        };
        let sequences: Vec<u32> = (0..lengths.len() as u32).filter(fits).collect();
        if sequences.is_empty() {
            continue;
        }
        dealt.extend(deal(setting, *phase, lengths, &sequences, number)?);
        number += 1;
    }
    (!dealt.is_empty()).then(|| replica(&setting.schemes, dealt, setting.optimizer))
}

/// Distributes a phase's sequences across the pipelines, by the planner's rule.
fn deal(setting: &Setting<'_>, phase: Phase, lengths: &[u64], sequences: &[u32], number: u32) -> Option<Vec<Dealt>> {
    let scheme_index = phase.scheme;
    let scheme = &setting.schemes[scheme_index];
    let copies = setting.copies(scheme);
    let max_length = sequences.iter().map(|&index| lengths[index as usize]).max().unwrap_or(0);
    if copies == 0 || max_length > scheme.cost.max_len {
        return None;
    }
    match setting.context.planner {
        PlannerKind::HydraulisBase => {
            dispatched((scheme_index, scheme), copies, lengths, (phase.capacity, setting.context.scenario.seed))
        }
        PlannerKind::HydraulisPacking => {
            let mut scheme_copies = vec![0; setting.schemes.len()];
            scheme_copies[scheme_index] = copies;
            assigned(&setting.schemes, &scheme_copies, lengths, setting.context.scenario.seed)
        }
        _ => Some(in_turn((scheme_index, scheme), copies, lengths, sequences, (phase.capacity, number))),
    }
}

/// Returns the fastest scheme on the sizing batch that has MaxLen of at least `max_length` tokens.
fn static_scheme(
    setting: &Setting<'_>,
    max_length: u64,
    search: &mut Search,
    observer: &mut dyn Observer,
) -> Result<Option<usize>, Cancelled> {
    let sizing = lengths(setting.context.batches.sizing);
    let mut best: Option<(f64, usize)> = None;
    for (index, known) in setting.schemes.iter().enumerate() {
        go_on(observer)?;
        search.candidates += 1;
        if known.cost.max_len < max_length {
            search.reject(format!("a microbatch fits fewer than the {max_length} tokens of the longest sequence"));
            continue;
        }
        let simulated = iteration(setting, &sizing, &[single_phase(setting, index)])
            .and_then(|plan| setting.simulate(setting.context.batches.sizing, &plan));
        let Some((seconds, peak)) = simulated else {
            search.reject("the sizing batch cannot be distributed to its pipelines".to_owned());
            continue;
        };
        if peak > setting.context.scenario.memory_limit() {
            search.reject("activations exceed the memory".to_owned());
            continue;
        }
        search.simulated += 1;
        let loser = match best {
            Some((best_time, _)) if best_time <= seconds => Some((seconds, index)),
            _ => best.replace((seconds, index)),
        };
        if let Some((seconds, loser_index)) = loser {
            let known = &setting.schemes[loser_index];
            search.losers.push(Loser {
                layout: layout(setting, known),
                reason: format!("{}x{}: slower on the representative batch", setting.copies(known), known.scheme),
                iteration_s: Some(seconds),
                peak_memory_gib: None,
            });
        }
    }
    Ok(best.map(|(_, winner_index)| winner_index))
}

fn layout(setting: &Setting<'_>, known: &Profiled) -> Layout {
    Layout {
        tensor: known.scheme.tensor,
        pipeline: known.scheme.pipeline,
        data: setting.copies(known),
        chunks: 1,
        microbatch: 1,
        group: None,
    }
}

/// Returns the batches for comparing HotSPa candidates. The sizing batch alone contains too few
/// long sequences.
fn looked_at<'a>(setting: &Setting<'a>) -> Vec<&'a PackedBatch> {
    std::iter::once(setting.context.batches.sizing)
        .chain(setting.context.batches.survey.iter().take(LOOKED_AT))
        .collect()
}

/// Searches the phases of HotSPa, in descending length order. Candidates are all splits into at
/// least two intervals of neighbouring lengths. Each interval uses a scheme and a capacity
/// (interval end or context length) from the phases that are fastest for it on the sizing batch.
/// The result has the lowest time across several batches, including switches.
fn hot_spa(
    setting: &Setting<'_>,
    search: &mut Search,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<Phase>>, Cancelled> {
    let mut ends = Vec::new();
    let mut end = FIRST_INTERVAL;
    while end < setting.max_length && ends.len() + 1 < MAX_INTERVALS {
        ends.push(end);
        end *= 4;
    }
    ends.push(setting.max_length);
    let looked_at = looked_at(setting);
    // Fastest phases for all pairs of interval ends.
    let mut known = BTreeMap::new();
    for (from, above) in [0].iter().chain(&ends).enumerate() {
        for &end in &ends[from.min(ends.len())..] {
            go_on(observer)?;
            known.insert((*above, end), fastest(setting, (*above, end)));
        }
    }
    let mut best: Option<(f64, Vec<Phase>)> = None;
    let inner = ends.len() - 1;
    // If all sequences are short, the only interval makes HotSPa a static strategy. Otherwise a
    // single strategy is excluded: if the optimizer uses all devices, it would equal the first
    // ablation step of Hydraulis.
    let first = u32::from(inner > 0);
    for cuts in first..1 << inner {
        go_on(observer)?;
        let interval_ends =
            (0..inner).filter(|index| cuts & (1 << index) != 0).map(|index| ends[index]).chain([setting.max_length]);
        let mut above = 0;
        let mut options: Vec<Vec<Phase>> = vec![Vec::new()];
        for end in interval_ends {
            let phases = &known[&(std::mem::replace(&mut above, end), end)];
            let with = |way: &Vec<Phase>, phase: &Phase| [&[*phase], way.as_slice()].concat();
            options = options.iter().flat_map(|way| phases.iter().map(move |phase| with(way, phase))).collect();
        }
        if options.is_empty() {
            search.candidates += 1;
            search.reject("no scheme fits the sequences of an interval".to_owned());
        }
        for phases in options {
            search.candidates += 1;
            let simulated = looked_at.iter().map(|batch| {
                let plan = iteration(setting, &lengths(batch), &phases)?;
                setting.simulate(batch, &plan).filter(|(_, peak)| *peak <= setting.context.scenario.memory_limit())
            });
            let Some(seconds) = simulated.map(|simulated| Some(simulated?.0)).sum::<Option<f64>>() else {
                search.reject("activations exceed the memory".to_owned());
                continue;
            };
            search.simulated += 1;
            if best.as_ref().is_none_or(|(best_time, _)| seconds < *best_time) {
                best = Some((seconds, phases));
            }
        }
    }
    Ok(best.map(|(_, phases)| phases))
}

/// Returns the phases with the shortest simulated time for sequence lengths in (above, end]. Phases
/// are simulated separately on the sizing batch. If it has no such sequences, the first suitable
/// survey batch is used.
fn fastest(setting: &Setting<'_>, (above, end): (u64, u64)) -> Vec<Phase> {
    let inside = |batch: &PackedBatch| -> Vec<u32> {
        let lengths = lengths(batch);
        (0..lengths.len() as u32).filter(|&index| (above + 1..=end).contains(&lengths[index as usize])).collect()
    };
    let mut batches = std::iter::once(setting.context.batches.sizing).chain(setting.context.batches.survey);
    let batch = batches.find(|batch| !inside(batch).is_empty()).unwrap_or(setting.context.batches.sizing);
    let (lengths, sequences) = (lengths(batch), inside(batch));
    let context = u64::from(setting.context.scenario.workload.context_length);
    let mut timed: Vec<(f64, Phase)> = Vec::new();
    for (scheme, profiled) in setting.schemes.iter().enumerate() {
        if profiled.cost.max_len < end || setting.copies(profiled) == 0 {
            continue;
        }
        for capacity in [end, context.min(profiled.cost.max_len)] {
            let phase = Phase { scheme, end, capacity };
            let simulated = deal(setting, phase, &lengths, &sequences, 0)
                .map(|dealt| replica(&setting.schemes, dealt, setting.optimizer))
                .and_then(|plan| setting.simulate(batch, &plan));
            let Some((seconds, peak)) = simulated else { continue };
            if peak <= setting.context.scenario.memory_limit() {
                timed.push((seconds, phase));
            }
        }
    }
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    timed.into_iter().take(MAX_PHASES).map(|(_, phase)| phase).collect()
}
