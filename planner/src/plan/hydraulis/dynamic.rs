//! Strategies that Hydraulis proposes: the best for every batch, or one for all of them.

use super::dealing::{assigned, of_assignment, pipelines, replica};
use super::profile::{Profiled, undominated};
use super::{Made, Setting, lengths, words};
use crate::heterogeneous_strategies::{
    Choice, Considered, DispatchSettings, PackingSettings, ProposalSettings, choose, propose,
};
use crate::observer::{Cancelled, Observer, go_on};
use crate::outcome::Search;
use crate::plan::{IterationPlan, NoPlan};
use crate::scenario::PlannerKind;

/// The strategies to choose from: of every scheme in `schemes` how many pipelines.
struct Proposed {
    schemes: Vec<Profiled>,
    strategies: Vec<Vec<u32>>,
}

impl Proposed {
    fn of(setting: &Setting<'_>) -> Result<Self, String> {
        let schemes = undominated(&setting.schemes);
        let costs: Vec<_> = schemes.iter().map(|known| known.cost).collect();
        let survey = setting.batches.survey.iter().chain([setting.batches.sizing]);
        let mut seen: Vec<u64> = survey.flat_map(lengths).collect();
        seen.sort_unstable();
        let counted: Vec<(u64, f64)> = seen.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect();
        let devices = setting.scenario.cluster.devices();
        let proposal =
            propose(&counted, devices, &costs, ProposalSettings::default()).map_err(|error| error.to_string())?;
        let strategies = proposal.strategies.into_iter().map(|candidate| candidate.copies).collect();
        Ok(Self { schemes, strategies })
    }

    fn label(&self, strategy: usize) -> String {
        words::strategy(&self.schemes, &self.strategies[strategy])
    }

    /// The strategy that holds every sequence and takes the least time for the sizing batch and the survey by estimate.
    fn best_for_all(&self, setting: &Setting<'_>) -> Option<usize> {
        let batches: Vec<Vec<u64>> =
            setting.batches.survey.iter().chain([setting.batches.sizing]).map(lengths).collect();
        let holds = |copies: &Vec<u32>| {
            let used = copies.iter().zip(&self.schemes).filter(|(count, _)| **count > 0);
            used.map(|(_, scheme)| scheme.cost.max_len).max().unwrap_or(0) >= setting.longest
        };
        let able: Vec<usize> = (0..self.strategies.len()).filter(|&place| holds(&self.strategies[place])).collect();
        let costs: Vec<Vec<_>> = able.iter().map(|&place| pipelines(&self.schemes, &self.strategies[place])).collect();
        let (dispatching, packing) =
            (self.settings(setting), PackingSettings { nodes: 500, ..PackingSettings::default() });
        let total = |place: &usize| {
            let of = |lengths: &Vec<u64>| {
                crate::heterogeneous_strategies::assign(lengths, &costs[*place], dispatching, packing)
                    .map_or(f64::INFINITY, |assignment| assignment.seconds)
            };
            batches.iter().map(of).sum::<f64>()
        };
        let timed: Vec<f64> = (0..able.len()).map(|place| total(&place)).collect();
        let best = (0..able.len()).min_by(|&a, &b| timed[a].total_cmp(&timed[b]).then(a.cmp(&b)))?;
        timed[best].is_finite().then(|| able[best])
    }

    fn settings(&self, setting: &Setting<'_>) -> DispatchSettings {
        DispatchSettings { seed: setting.scenario.seed, nodes: 500, ..DispatchSettings::default() }
    }
}

pub(super) fn plan(setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<Result<Made, NoPlan>, Cancelled> {
    let search = Search { candidates: setting.schemes.len() as u32, ..Search::default() };
    let mut proposed = match Proposed::of(setting) {
        Ok(proposed) => proposed,
        Err(binding) => return Ok(Err(NoPlan { binding, search })),
    };
    let count = proposed.strategies.len();
    if setting.kind == PlannerKind::HydraulisStatic {
        let Some(best) = proposed.best_for_all(setting) else {
            let binding = format!("none of {count} strategies holds {} tokens", setting.longest);
            return Ok(Err(NoPlan { binding, search }));
        };
        proposed.strategies = vec![proposed.strategies[best].clone()];
    }
    let costs: Vec<Vec<_>> = proposed.strategies.iter().map(|copies| pipelines(&proposed.schemes, copies)).collect();
    let mut iterations = Vec::with_capacity(setting.batches.judged.len());
    let mut used: Vec<(usize, u32)> = Vec::new();
    for (index, batch) in setting.batches.judged.iter().enumerate() {
        go_on(observer)?;
        observer.progress(setting.kind, "assigning sequences", index as u32, setting.batches.judged.len() as u32);
        let own = lengths(batch);
        let Some(choice) = choose(&own, &costs, proposed.settings(setting), PackingSettings::default()) else {
            let binding = format!("iteration {index}: no proposed strategy holds its longest sequence");
            return Ok(Err(NoPlan { binding, search }));
        };
        let place = choice.strategy as usize;
        match used.iter_mut().find(|(known, _)| *known == place) {
            Some((_, times)) => *times += 1,
            None => used.push((place, 1)),
        }
        let copies = &proposed.strategies[place];
        // With more effort than candidates get, where that helps.
        let better = assigned(&proposed.schemes, copies, &own, setting.scenario.seed)
            .filter(|dealt| dealt.iter().map(|own| own.estimated_s).fold(0.0, f64::max) < choice.assignment.seconds);
        let dealt = better.unwrap_or_else(|| of_assignment(copies, &choice.assignment));
        let plan = replica(&proposed.schemes, dealt, setting.optimizer);
        iterations.push(IterationPlan { replicas: vec![plan], decision: Some(decision(&proposed, &choice)) });
    }
    used.sort_by_key(|&(place, times)| (std::cmp::Reverse(times), place));
    let mut decisions = vec![words::profile(setting)];
    decisions.push(match setting.kind {
        PlannerKind::HydraulisStatic => format!(
            "One strategy for all batches, the best of {count} proposed that hold {} tokens: {}.",
            setting.longest,
            proposed.label(0)
        ),
        _ => format!(
            "{count} strategies proposed once from {} batches that are not judged.",
            setting.batches.survey.len() + 1
        ),
    });
    if setting.kind == PlannerKind::Hydraulis {
        let all = iterations.len();
        let named = used.iter().take(4).map(|&(place, times)| format!("{} {times} times", proposed.label(place)));
        let more = if used.len() > 4 { format!(", {} others", used.len() - 4) } else { String::new() };
        decisions.push(format!("For {all} batches: {}{more}.", named.collect::<Vec<_>>().join(", ")));
    }
    decisions.extend(words::optimizer(setting));
    let search = Search { candidates: count as u32, ..search };
    Ok(Ok(Made { iterations, decisions, search }))
}

/// What became of the candidates, and the runner-up.
fn decision(proposed: &Proposed, choice: &Choice) -> String {
    let chosen = choice.strategy as usize;
    let (mut assigned, mut spared, mut impossible) = (0, 0, 0);
    let mut second: Option<(f64, usize)> = None;
    for (place, candidate) in choice.candidates.iter().enumerate() {
        match candidate {
            Considered::Seconds(seconds) => {
                assigned += 1;
                if place != chosen && second.is_none_or(|(known, _)| *seconds < known) {
                    second = Some((*seconds, place));
                }
            }
            Considered::AtLeast(_) => spared += 1,
            Considered::Impossible(_) => impossible += 1,
        }
    }
    let next = second
        .map_or_else(String::new, |(seconds, place)| format!("; next {} with {seconds:.3} s", proposed.label(place)));
    let Choice { assignment, .. } = choice;
    format!(
        "{}: estimated {:.3} s, dispatch within {:.1} % of its bound{next}; {assigned} strategies assigned, {spared} ruled out by their bounds, \
         {impossible} too short",
        proposed.label(chosen),
        assignment.seconds,
        assignment.dispatch.gap * 100.0
    )
}
