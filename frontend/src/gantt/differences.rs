//! How the actions of one timeline differ from those of another one.
//!
//! Two plans may cut the model and deal the samples differently. An action is therefore compared with the actions of the other
//! timeline that process the same samples in the same layers of the same module: their time is divided by samples (weighted by
//! tokens) and layers. If a timeline does not say its samples, an action is the same where kind, stage and microbatch are, and
//! where the microbatch has the same shape.

use std::collections::HashMap;

use api::planner::timeline::{SamplePart, SpanKind, StageLayers, Timeline};

use super::time_text::duration;
use crate::format::signed_percent;

/// What is compared of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Aspect {
    /// How long it takes.
    #[default]
    Duration,
    /// When it ends.
    End,
}

/// Time that the other timeline takes for the same work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counterpart {
    /// Duration, in ns.
    pub(crate) duration_ns: f64,
    /// End of the last action of it, in ns.
    pub(crate) end_ns: f64,
}

/// The actions of a timeline next to those of another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Differences {
    /// The same work in the other timeline, by span; `None` if it is not there, or only in part.
    pub(crate) counterpart: Vec<Option<Counterpart>>,
    /// Actions that have one.
    pub(crate) matched: usize,
    /// Actions that take part: all but sends.
    pub(crate) actions: usize,
}

impl Differences {
    /// Looks for the work of every action of `timeline` in `other`.
    pub(crate) fn of(timeline: &Timeline, other: &Timeline) -> Self {
        let knows = |timeline: &Timeline| !timeline.contents.is_empty() && !timeline.stage_layers.is_empty();
        let work = (knows(timeline) && knows(other)).then(|| Work::of(other));
        let mut places: HashMap<(u8, u32, u32), u32> = HashMap::with_capacity(other.len());
        for span in 0..other.len() {
            places.insert((other.kind[span], place(other, span), other.microbatch[span]), span as u32);
        }
        let mut found = Self { counterpart: vec![None; timeline.len()], ..Self::default() };
        for span in 0..timeline.len() {
            let kind = SpanKind::from_index(timeline.kind[span]);
            let takes_part = kind.is_some_and(SpanKind::is_compute_lane);
            found.actions += usize::from(takes_part);
            let has_microbatch = kind.is_some_and(super::describe::has_microbatch);
            let counterpart = match &work {
                Some(work) if takes_part && has_microbatch => work.counterpart(timeline, span),
                _ => {
                    let key = (timeline.kind[span], place(timeline, span), timeline.microbatch[span]);
                    let same = places.get(&key).map(|&there| there as usize);
                    same.filter(|&there| holds_the_same(timeline, span, other, there)).map(|there| Counterpart {
                        duration_ns: other.duration_ns[there] as f64,
                        end_ns: other.end_ns(there) as f64,
                    })
                }
            };
            found.matched += usize::from(takes_part && counterpart.is_some());
            found.counterpart[span] = counterpart;
        }
        found
    }

    /// How much later or longer an action is than its counterpart, in ns, and as a share of the counterpart's time; of its end as a
    /// share of the counterpart's iteration.
    pub(crate) fn at(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> Option<(f64, f64)> {
        let there = (*self.counterpart.get(span)?)?;
        let (difference, whole) = match aspect {
            Aspect::Duration => (timeline.duration_ns[span] as f64 - there.duration_ns, there.duration_ns),
            Aspect::End => (timeline.end_ns(span) as f64 - there.end_ns, other.makespan_ns as f64),
        };
        Some((difference, if whole > 0.0 { difference / whole } else { 0.0 }))
    }

    /// The difference of an action in words, with sign and percent: "+1.20 ms (+8.0 %) than in the baseline".
    pub(crate) fn told(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> String {
        let Some((ns, share)) = self.at(timeline, other, span, aspect) else {
            return "not in the baseline".to_owned();
        };
        let sign = if ns < 0.0 { '\u{2212}' } else { '+' };
        let by = format!("{sign}{} ({})", duration(ns.abs()), signed_percent(share));
        match aspect {
            Aspect::Duration if ns.abs() < 0.5 => "as long as in the baseline".to_owned(),
            Aspect::End if ns.abs() < 0.5 => "ends when it does in the baseline".to_owned(),
            Aspect::Duration => format!("{by} than in the baseline"),
            Aspect::End if ns < 0.0 => format!("{by} of the baseline's iteration: ends earlier"),
            Aspect::End => format!("{by} of the baseline's iteration: ends later"),
        }
    }

    /// The aspect that says more: durations where any differs by a thousandth, else ends.
    pub(crate) fn telling(&self, timeline: &Timeline, other: &Timeline) -> Aspect {
        let differs = (0..timeline.len())
            .any(|span| self.at(timeline, other, span, Aspect::Duration).is_some_and(|(_, share)| share.abs() >= 1e-3));
        if differs { Aspect::Duration } else { Aspect::End }
    }
}

/// Share of the work of an action that must be found for a comparison: the parts of samples are rounded to millionths.
const COMPLETE: f64 = 0.999;

/// All actions of one kind on one stage for one microbatch.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Actions: several where ranks of a group share the work.
    actions: u32,
    /// Their durations, in ns.
    duration_ns: u64,
    /// End of the last, in ns.
    end_ns: u64,
}

/// What a timeline does, by sample and layer.
struct Work<'a> {
    timeline: &'a Timeline,
    cells: HashMap<(u8, u32, u32), Cell>,
    /// Microbatch and part, by sample.
    samples: HashMap<u32, Vec<(u32, SamplePart)>>,
    /// Stage and layers, by module.
    stages: HashMap<u32, Vec<(u32, StageLayers)>>,
    /// Tokens of every microbatch, parts of samples counted in part.
    tokens: Vec<f64>,
}

impl<'a> Work<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let mut cells: HashMap<(u8, u32, u32), Cell> = HashMap::with_capacity(timeline.len());
        for span in 0..timeline.len() {
            let cell = cells.entry((timeline.kind[span], timeline.stage[span], timeline.microbatch[span])).or_default();
            cell.actions += 1;
            cell.duration_ns += timeline.duration_ns[span];
            cell.end_ns = cell.end_ns.max(timeline.end_ns(span));
        }
        let mut samples: HashMap<u32, Vec<(u32, SamplePart)>> = HashMap::new();
        for (microbatch, contents) in timeline.contents.iter().enumerate() {
            for part in &contents.samples {
                samples.entry(part.sample).or_default().push((microbatch as u32, *part));
            }
        }
        let mut stages: HashMap<u32, Vec<(u32, StageLayers)>> = HashMap::new();
        for (stage, layers) in timeline.stage_layers.iter().enumerate() {
            for layers in layers {
                stages.entry(layers.module).or_default().push((stage as u32, *layers));
            }
        }
        let tokens = timeline.contents.iter().map(|contents| contents.samples.iter().map(weight).sum()).collect();
        Self { timeline, cells, samples, stages, tokens }
    }

    /// Mean duration and last end of an action; a backward may be cut into the gradients of inputs and of weights.
    fn cell(&self, kind: u8, stage: u32, microbatch: u32) -> Option<(f64, u64)> {
        let of = |kind: u8| {
            let cell = self.cells.get(&(kind, stage, microbatch))?;
            Some((cell.duration_ns as f64 / f64::from(cell.actions), cell.end_ns))
        };
        of(kind).or_else(|| {
            if kind != SpanKind::Backward as u8 {
                return None;
            }
            let (input, weight) = (of(SpanKind::InputGrad as u8)?, of(SpanKind::WeightGrad as u8)?);
            Some((input.0 + weight.0, input.1.max(weight.1)))
        })
    }

    /// The time of the work of an action of another timeline; `None` if any of it is missing here.
    fn counterpart(&self, timeline: &Timeline, span: usize) -> Option<Counterpart> {
        let contents = timeline.contents.get(timeline.microbatch[span] as usize)?;
        let layers = timeline.stage_layers.get(timeline.stage[span] as usize)?;
        let own = |layers: &&StageLayers| contents.module.is_none_or(|module| module == layers.module);
        let (mut all, mut found) = (0.0, 0.0);
        let mut counterpart = Counterpart { duration_ns: 0.0, end_ns: 0.0 };
        for layers in layers.iter().filter(own) {
            for part in &contents.samples {
                all += weight(part) * f64::from(layers.end - layers.first);
                for (microbatch, there) in self.samples.get(&part.sample).into_iter().flatten() {
                    let shared = common((part.from_ppm, part.to_ppm), (there.from_ppm, there.to_ppm));
                    if shared > 0 {
                        let tokens = f64::from(part.tokens.max(1)) * f64::from(shared) / 1e6;
                        found += self.add(&mut counterpart, timeline.kind[span], *microbatch, *layers, tokens);
                    }
                }
            }
        }
        (all > 0.0 && found >= COMPLETE * all).then_some(counterpart)
    }

    /// Adds the time of some tokens of a microbatch in some layers; returns the work found, in tokens x layers.
    fn add(&self, sum: &mut Counterpart, kind: u8, microbatch: u32, layers: StageLayers, tokens: f64) -> f64 {
        let module = self.timeline.contents[microbatch as usize].module;
        if module.is_some_and(|module| module != layers.module) {
            return 0.0;
        }
        let mut found = 0.0;
        for (stage, there) in self.stages.get(&layers.module).into_iter().flatten() {
            let shared = common((layers.first, layers.end), (there.first, there.end));
            if shared == 0 {
                continue;
            }
            let Some((duration_ns, end_ns)) = self.cell(kind, *stage, microbatch) else { continue };
            let on_stage = self.timeline.stage_layers[*stage as usize].iter();
            let of_stage: u32 =
                on_stage.filter(|on| module.is_none_or(|own| own == on.module)).map(|on| on.end - on.first).sum();
            let whole = self.tokens[microbatch as usize] * f64::from(of_stage);
            let work = tokens * f64::from(shared);
            sum.duration_ns += duration_ns * work / whole;
            sum.end_ns = sum.end_ns.max(end_ns as f64);
            found += work;
        }
        found
    }
}

/// Tokens of a part of a sample.
fn weight(part: &SamplePart) -> f64 {
    f64::from(part.tokens.max(1)) * f64::from(part.to_ppm.saturating_sub(part.from_ppm)) / 1e6
}

/// Length of what two ranges share.
fn common(one: (u32, u32), other: (u32, u32)) -> u32 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

/// Stage of an action; rank of those that belong to none.
fn place(timeline: &Timeline, span: usize) -> u32 {
    match SpanKind::from_index(timeline.kind[span]) {
        Some(SpanKind::GradientSync | SpanKind::Optimizer) => timeline.rank_of(span) as u32,
        _ => timeline.stage[span],
    }
}

fn holds_the_same(timeline: &Timeline, span: usize, other: &Timeline, there: usize) -> bool {
    if matches!(SpanKind::from_index(timeline.kind[span]), Some(SpanKind::GradientSync | SpanKind::Optimizer)) {
        return true;
    }
    let shape =
        |timeline: &Timeline, span: usize| timeline.microbatches.get(timeline.microbatch[span] as usize).copied();
    shape(timeline, span) == shape(other, there)
}

#[cfg(test)]
mod tests {
    use api::planner::scenario::PlannerKind;
    use api::planner::timeline::MicrobatchSamples;

    use super::super::sample;
    use super::*;

    #[test]
    fn a_timeline_does_not_differ_from_itself() {
        let timeline = sample::one_f_one_b(3, 5);
        let same = Differences::of(&timeline, &timeline);
        assert_eq!((same.matched, same.actions), (30, 30), "3 ranks, 5 microbatches, F and B");
        for span in 0..timeline.len() {
            for aspect in [Aspect::Duration, Aspect::End] {
                assert_eq!(same.at(&timeline, &timeline, span, aspect), Some((0.0, 0.0)));
            }
        }
        assert_eq!(same.telling(&timeline, &timeline), Aspect::End);
    }

    #[test]
    fn differences_have_a_sign_and_a_share() {
        let before = sample::one_f_one_b(2, 3);
        let mut after = before.clone();
        let span = after.compute_lane(1).start;
        after.duration_ns[span] += 250;
        let found = Differences::of(&after, &before);
        // 1,250 ns against 1,000.
        assert_eq!(found.at(&after, &before, span, Aspect::Duration), Some((250.0, 0.25)));
        assert_eq!(found.telling(&after, &before), Aspect::Duration);
        let back = Differences::of(&before, &after);
        assert_eq!(back.at(&before, &after, span, Aspect::Duration), Some((-250.0, -0.2)));
        let told = |aspect| back.told(&before, &after, span, aspect);
        assert_eq!(told(Aspect::Duration), "\u{2212}250 ns (\u{2212}20.0\u{202f}%) than in the baseline");
        assert!(told(Aspect::End).ends_with("ends earlier"), "{}", told(Aspect::End));
        let same = Differences::of(&before, &before);
        assert_eq!(same.told(&before, &before, span, Aspect::Duration), "as long as in the baseline");
        let none = Differences { counterpart: vec![None; before.len()], ..Differences::default() };
        assert_eq!(none.told(&before, &after, span, Aspect::End), "not in the baseline");
    }

    #[test]
    fn other_microbatches_under_the_same_number_are_no_counterparts() {
        let one = sample::one_f_one_b(2, 3);
        let mut other = one.clone();
        other.microbatches[1].tokens += 1;
        let found = Differences::of(&one, &other);
        assert_eq!((found.matched, found.actions), (8, 12));
        assert_eq!(Differences::of(&one, &sample::one_f_one_b(2, 2)).matched, 8);
    }

    /// Contents of `one_f_one_b`: a sample per microbatch, four layers per stage.
    fn with_contents(mut timeline: Timeline, samples: &[&[u32]]) -> Timeline {
        let part = |&sample: &u32| SamplePart { sample, tokens: 1_000, from_ppm: 0, to_ppm: 1_000_000 };
        let contents = |own: &&[u32]| MicrobatchSamples { module: None, samples: own.iter().map(part).collect() };
        timeline.contents = samples.iter().map(contents).collect();
        let layers = |stage: u32| vec![StageLayers { module: 0, first: 4 * stage, end: 4 * stage + 4 }];
        timeline.stage_layers = (0..timeline.ranks).map(layers).collect();
        timeline
    }

    #[test]
    fn actions_are_matched_by_their_samples_not_by_number() {
        let one = with_contents(sample::one_f_one_b(2, 3), &[&[0], &[1], &[2]]);
        let mut other = with_contents(sample::one_f_one_b(2, 3), &[&[2], &[0], &[1]]);
        // Sample 0 is microbatch 1 there: its forward on rank 0 takes 300 ns more.
        let span = other.compute_lane(0).find(|&span| other.microbatch[span] == 1 && other.kind[span] == 0).unwrap();
        other.duration_ns[span] += 300;
        let found = Differences::of(&one, &other);
        assert_eq!((found.matched, found.actions), (12, 12));
        let here = one.compute_lane(0).find(|&span| one.microbatch[span] == 0 && one.kind[span] == 0).unwrap();
        let (difference, share) = found.at(&one, &other, here, Aspect::Duration).unwrap();
        assert!((difference + 300.0).abs() < 1e-6 && (share + 300.0 / 1_300.0).abs() < 1e-9);
    }

    #[test]
    fn the_time_of_larger_microbatches_is_divided_by_samples() {
        // Two samples in one microbatch of 1,000 ns against one sample in 1,000 ns: twice as long.
        let one = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
        let other = with_contents(sample::one_f_one_b(2, 1), &[&[0, 1]]);
        let found = Differences::of(&one, &other);
        assert_eq!((found.matched, found.actions), (8, 8));
        assert_eq!(found.at(&one, &other, one.compute_lane(0).start, Aspect::Duration), Some((500.0, 1.0)));
        let back = Differences::of(&other, &one);
        assert_eq!(back.at(&other, &one, other.compute_lane(0).start, Aspect::Duration), Some((-1_000.0, -0.5)));
    }

    #[test]
    fn other_cuts_of_the_model_are_compared_by_layers() {
        // One stage of eight layers against two stages of four.
        let mut one = with_contents(sample::one_f_one_b(1, 2), &[&[0], &[1]]);
        one.stage_layers = vec![vec![StageLayers { module: 0, first: 0, end: 8 }]];
        let other = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
        let found = Differences::of(&one, &other);
        assert_eq!((found.matched, found.actions), (4, 4));
        assert_eq!(found.at(&one, &other, 0, Aspect::Duration), Some((-1_000.0, -0.5)), "1,000 against 2 x 1,000");
    }

    #[test]
    fn work_that_is_missing_or_of_another_module_is_not_compared() {
        let one = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
        let other = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[7]]);
        assert_eq!(Differences::of(&one, &other).matched, 4);
        let mut encoder = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
        encoder.contents[0].module = Some(1);
        assert_eq!(Differences::of(&one, &encoder).matched, 4);
    }

    /// A backward against the two gradients that it consists of.
    #[test]
    fn a_backward_is_compared_with_its_gradients() {
        let one = with_contents(sample::lane(&[(0, 0, 100), (1, 100, 300)]), &[&[0], &[0]]);
        let other = with_contents(sample::lane(&[(0, 0, 100), (2, 100, 180), (3, 180, 290)]), &[&[0], &[0], &[0]]);
        let same = |timeline: Timeline| Timeline { microbatch: vec![0; timeline.len()], ..timeline };
        let cut = |mut timeline: Timeline| {
            timeline.contents.truncate(1);
            timeline
        };
        let (one, other) = (cut(same(one)), cut(same(other)));
        let found = Differences::of(&one, &other);
        assert_eq!(found.matched, 2);
        assert_eq!(found.at(&one, &other, 1, Aspect::Duration), Some((10.0, 10.0 / 190.0)));
    }

    #[test]
    fn a_dynamic_plan_is_compared_with_a_static_one() {
        use api::planner::engine::{Unobserved, plan};
        use api::planner::scenario::validate::NoDatasets;
        use api::planner::scenario::{ValidScenario, parse};
        let question = include_str!("../../../examples/vlm-s-image-heavy.json");
        let mut question = parse(question).unwrap();
        question.planners = vec![PlannerKind::OneFOneB, PlannerKind::PipeWeaverPartition];
        question.iterations = 1;
        let planning = plan(&ValidScenario::new(question, &NoDatasets).unwrap(), &mut Unobserved).unwrap();
        let of = |planner| &planning.timelines.iter().find(|timeline| timeline.planner == planner).unwrap().timeline;
        let (fixed, dynamic) = (of(PlannerKind::OneFOneB), of(PlannerKind::PipeWeaverPartition));
        let found = Differences::of(dynamic, fixed);
        // Replicas may hold other samples; with one replica everything has a counterpart.
        assert!(found.matched * 10 >= found.actions * 9, "{} of {}", found.matched, found.actions);
    }
}
