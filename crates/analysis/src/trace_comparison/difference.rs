//! Difference between two traces of a program, by kernel, phase and step.

use std::collections::{BTreeMap, BTreeSet};

use planscope_core::timeline::covered::Covered;
use serde::{Deserialize, Serialize};

use super::recorded::{Activity, DeviceSlice, Phase, Recorded, Usage};
use super::signed;

/// One of the two traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceSide {
    /// File or trace.
    pub name: String,
    /// Rank.
    pub rank: u32,
    /// Number of annotated steps.
    pub steps: u64,
    /// Number of device slices.
    pub slices: u64,
    /// Number of device slices outside of the compared steps, which are not compared.
    pub left_out: u64,
}

/// Time of a kernel, or of all copies of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KernelDifference {
    /// Name without addresses.
    pub name: String,
    /// Type.
    pub activity: Activity,
    /// Sum of durations before, in ns.
    pub before_ns: u64,
    /// Sum of durations after, in ns.
    pub after_ns: u64,
    /// After minus before, in ns.
    pub difference_ns: i64,
    /// Number of slices before.
    pub before_count: u64,
    /// Number of slices after.
    pub after_count: u64,
}

/// Time of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseDifference {
    /// Phase: `forward`, `backward`, `optimizer`, `other_compute`, `compute` (the union of these),
    /// `communication`, `exposed_communication`, `copies`, `idle`, `total`.
    pub phase: String,
    /// Time before, in ns.
    pub before_ns: u64,
    /// Time after, in ns.
    pub after_ns: u64,
    /// After minus before, in ns.
    pub difference_ns: i64,
}

/// Time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepDifference {
    /// Step number before.
    pub before: u64,
    /// Step number after.
    pub after: u64,
    /// Duration before, in ns.
    pub before_ns: u64,
    /// Duration after, in ns.
    pub after_ns: u64,
    /// After minus before, in ns.
    pub difference_ns: i64,
}

/// Difference between two traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceDifference {
    /// The trace before a change.
    pub before: TraceSide,
    /// The trace after a change.
    pub after: TraceSide,
    /// Kernels and copies, largest absolute difference first.
    pub kernels: Vec<KernelDifference>,
    /// Phases. Times of phases are unions of intervals, so phases may overlap.
    pub phases: Vec<PhaseDifference>,
    /// Steps in time order. All times of kernels and phases are sums over these steps; without
    /// steps, over the complete traces.
    pub steps: Vec<StepDifference>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Compares two traces.
pub fn difference(before: &Recorded, after: &Recorded) -> TraceDifference {
    let mut notes: Vec<String> = [before, after].iter().filter_map(|side| side.duplicates_note()).collect();
    let steps = matched_steps(before, after, &mut notes);
    let numbers = |number: fn(&StepDifference) -> u64| steps.iter().map(number).collect::<BTreeSet<u64>>();
    let chosen = [
        Chosen::new(before, numbers(|step| step.before), steps.iter().map(|step| step.before_ns).sum()),
        Chosen::new(after, numbers(|step| step.after), steps.iter().map(|step| step.after_ns).sum()),
    ];
    let [left, right] = &chosen;
    if left.phases_unknown() || right.phases_unknown() {
        notes.push(
            "A trace does not show which kernels belong to the forward pass, backward pass and optimizer: it has no launches with names, and no annotations."
                .to_owned(),
        );
    }
    TraceDifference {
        kernels: kernels(left, right),
        phases: phases(left, right),
        before: left.side(),
        after: right.side(),
        steps,
        notes,
    }
}

/// Pairs the steps by number if the shorter trace has no other numbers, otherwise by order.
fn matched_steps(before: &Recorded, after: &Recorded, notes: &mut Vec<String>) -> Vec<StepDifference> {
    let (left, right) = (&before.steps, &after.steps);
    if left.is_empty() || right.is_empty() {
        if !(left.is_empty() && right.is_empty()) {
            notes.push("Only one of the traces has annotated steps, so the complete traces are compared.".to_owned());
        } else if !(before.slices.is_empty() && after.slices.is_empty()) {
            notes.push("The traces have no annotated steps, so the complete traces are compared: record the same number of steps in both.".to_owned());
        }
        return Vec::new();
    }
    let pair = |left: &super::RecordedStep, right: &super::RecordedStep| StepDifference {
        before: left.number,
        after: right.number,
        before_ns: left.duration_ns,
        after_ns: right.duration_ns,
        difference_ns: signed(right.duration_ns, left.duration_ns),
    };
    let by_number: BTreeMap<u64, _> = right.iter().map(|step| (step.number, step)).collect();
    let same: Vec<StepDifference> =
        left.iter().filter_map(|step| Some(pair(step, by_number.get(&step.number)?))).collect();
    let shorter = left.len().min(right.len());
    let pairs = if same.len() == shorter {
        same
    } else {
        notes.push("The traces have different step numbers; steps are matched in order.".to_owned());
        left.iter().zip(right).map(|(left, right)| pair(left, right)).collect()
    };
    let unmatched = left.len() + right.len() - 2 * pairs.len();
    if unmatched > 0 {
        notes.push(match unmatched {
            1 => "1 step has no partner in the other trace and is not compared.".to_owned(),
            _ => format!("{unmatched} steps have no partner in the other trace and are not compared."),
        });
    }
    pairs
}

/// Slices of the compared steps of a trace.
pub(super) struct Chosen<'r> {
    recorded: &'r Recorded,
    /// Empty: the complete trace.
    steps: BTreeSet<u64>,
    /// Sum of the step durations.
    steps_ns: u64,
}

impl<'r> Chosen<'r> {
    fn new(recorded: &'r Recorded, steps: BTreeSet<u64>, steps_ns: u64) -> Self {
        Self { recorded, steps, steps_ns }
    }

    /// Chooses the complete trace.
    pub(super) fn all(recorded: &'r Recorded) -> Self {
        Self::new(recorded, BTreeSet::new(), 0)
    }

    fn has(&self, slice: &DeviceSlice) -> bool {
        self.steps.is_empty() || slice.step.is_some_and(|step| self.steps.contains(&step))
    }

    fn slices(&self) -> impl Iterator<Item = &DeviceSlice> {
        self.recorded.slices.iter().filter(|slice| self.has(slice))
    }

    fn phases_unknown(&self) -> bool {
        self.recorded.slices.iter().all(|slice| slice.phase.is_none())
    }

    fn side(&self) -> TraceSide {
        let slices = self.recorded.slices.len();
        TraceSide {
            name: self.recorded.name.clone(),
            rank: self.recorded.rank,
            steps: self.recorded.steps.len() as u64,
            slices: slices as u64,
            left_out: (slices - self.slices().count()) as u64,
        }
    }

    /// Returns the union of the compute kernels in a phase.
    fn phase_ns(&self, phase: Option<Phase>) -> u64 {
        let own = self.slices().filter(|slice| slice.activity == Activity::Compute && slice.phase == phase);
        Covered::by(own.map(|slice| (slice.start_ns, slice.end_ns())).collect()).length_ns()
    }

    /// Returns all phases in the order of the result.
    pub(super) fn times(&self) -> [(&'static str, u64); 10] {
        let usage = Usage::of(self.slices());
        let total = if self.steps.is_empty() { usage.span } else { self.steps_ns };
        [
            ("forward", self.phase_ns(Some(Phase::Forward))),
            ("backward", self.phase_ns(Some(Phase::Backward))),
            ("optimizer", self.phase_ns(Some(Phase::Optimizer))),
            ("other_compute", self.phase_ns(None)),
            ("compute", usage.compute),
            ("communication", usage.communication),
            ("exposed_communication", usage.exposed),
            ("copies", usage.copies),
            ("idle", total.saturating_sub(usage.busy)),
            ("total", total),
        ]
    }
}

fn kernels(before: &Chosen<'_>, after: &Chosen<'_>) -> Vec<KernelDifference> {
    let left = before.recorded.by_name(|slice| before.has(slice));
    let right = after.recorded.by_name(|slice| after.has(slice));
    let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let row = |key: &(Activity, &str)| {
        let (before_ns, before_count) = left.get(key).copied().unwrap_or_default();
        let (after_ns, after_count) = right.get(key).copied().unwrap_or_default();
        KernelDifference {
            name: key.1.to_owned(),
            activity: key.0,
            before_ns,
            after_ns,
            difference_ns: signed(after_ns, before_ns),
            before_count,
            after_count,
        }
    };
    let mut kernels: Vec<KernelDifference> = keys.into_iter().map(row).collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse((kernel.difference_ns.unsigned_abs(), kernel.before_ns)));
    kernels
}

fn phases(before: &Chosen<'_>, after: &Chosen<'_>) -> Vec<PhaseDifference> {
    let row = |((phase, before_ns), (_, after_ns)): ((&str, u64), (&str, u64))| PhaseDifference {
        phase: phase.to_owned(),
        before_ns,
        after_ns,
        difference_ns: signed(after_ns, before_ns),
    };
    before.times().into_iter().zip(after.times()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_comparison::RecordedStep;

    fn slice(name: u32, activity: Activity, phase: Option<Phase>, start_ns: u64, duration_ns: u64) -> DeviceSlice {
        let step = Some(start_ns / 100);
        DeviceSlice { name, activity, phase, start_ns, duration_ns, step, call: None, launched_ns: None }
    }

    /// Steps of 100 ns, each with a forward kernel of `gemm_ns` at 0, a backward kernel of 30 ns at
    /// 50 and a collective of 20 ns at 70.
    fn recorded(first: u64, steps: u64, gemm_ns: u64) -> Recorded {
        let numbers = first..first + steps;
        let slices = numbers.clone().flat_map(|step| {
            let at = step * 100;
            [
                slice(0, Activity::Compute, Some(Phase::Forward), at, gemm_ns),
                slice(1, Activity::Compute, Some(Phase::Backward), at + 50, 30),
                slice(2, Activity::Communication, None, at + 70, 20),
            ]
        });
        Recorded {
            name: format!("from {first}"),
            names: ["gemm", "dgrad", "nccl"].map(str::to_owned).into(),
            slices: slices.collect(),
            steps: numbers.map(|number| RecordedStep { number, duration_ns: 100 }).collect(),
            ..Recorded::default()
        }
    }

    #[test]
    fn times_by_kernel_phase_and_step() {
        let (before, mut after) = (recorded(3, 2, 40), recorded(3, 3, 25));
        after.names[1] = "dgrad_2".to_owned();
        let found = difference(&before, &after);
        // Two matched steps: gemm 80 to 50, dgrad 60 to 0 and dgrad_2 0 to 60.
        let kernels: Vec<_> = found
            .kernels
            .iter()
            .map(|row| {
                (row.name.as_str(), row.before_ns, row.after_ns, row.difference_ns, row.before_count, row.after_count)
            })
            .collect();
        assert_eq!(
            kernels,
            [
                ("dgrad", 60, 0, -60, 2, 0),
                ("dgrad_2", 0, 60, 60, 0, 2),
                ("gemm", 80, 50, -30, 2, 2),
                ("nccl", 40, 40, 0, 2, 2),
            ]
        );
        let phases: Vec<_> = found
            .phases
            .iter()
            .map(|row| (row.phase.as_str(), row.before_ns, row.after_ns, row.difference_ns))
            .collect();
        assert_eq!(
            phases,
            [
                ("forward", 80, 50, -30),
                ("backward", 60, 60, 0),
                ("optimizer", 0, 0, 0),
                ("other_compute", 0, 0, 0),
                ("compute", 140, 110, -30),
                ("communication", 40, 40, 0),
                ("exposed_communication", 20, 20, 0),
                ("copies", 0, 0, 0),
                ("idle", 40, 70, 30),
                ("total", 200, 200, 0),
            ]
        );
        assert_eq!(found.steps.iter().map(|step| (step.before, step.after)).collect::<Vec<_>>(), [(3, 3), (4, 4)]);
        assert_eq!((found.before.left_out, found.after.left_out, found.notes.len()), (0, 3, 1));
    }

    #[test]
    fn steps_are_matched_by_number_or_order() {
        let pairs = |before: &Recorded, after: &Recorded| {
            let found = difference(before, after);
            (found.steps.iter().map(|step| (step.before, step.after)).collect::<Vec<_>>(), found.notes.len())
        };
        assert_eq!(pairs(&recorded(3, 2, 1), &recorded(7, 2, 1)), (vec![(3, 7), (4, 8)], 1));
        // Step 4 is in both traces, but the numbers differ otherwise.
        assert_eq!(pairs(&recorded(3, 2, 1), &recorded(4, 2, 1)), (vec![(3, 4), (4, 5)], 1));
        let without = Recorded { steps: Vec::new(), ..recorded(3, 2, 1) };
        assert_eq!(pairs(&without, &recorded(3, 2, 1)), (Vec::new(), 1));
        assert_eq!(difference(&without, &without).kernels[0].before_count, 2);
        assert!(difference(&Recorded::default(), &Recorded::default()).kernels.is_empty());
    }
}
