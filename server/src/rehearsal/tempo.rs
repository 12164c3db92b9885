//! How fast a plan can be rehearsed on this machine.

use std::collections::BTreeMap;

use planner::execution_plan::{ExecutionPlan, PlanActionKind};

use super::clock::Precision;
use super::control::Content;
use super::postage::Postage;
use super::score::Score;

/// Shortest time of an iteration where nobody says how fast, in ns.
const COMFORT_NS: f64 = 1.5e9;
/// Longest time of an iteration where nobody says how fast, in ns: patience ends before precision does.
const LONG_NS: f64 = 6e9;
/// Share of an iteration that this machine may add where nobody says how fast: half of what is promised, as processors are
/// shared by all ranks.
const AIM: f64 = 0.015;
/// Share of an iteration beyond which a warning is due: rehearsed and simulated times should agree within it.
pub(super) const AGREEMENT: f64 = 0.03;
/// Share beyond which a rehearsal says nothing about times.
const SENSELESS: f64 = 0.5;
/// Halvings of the range of speeds: 2^-20 of it is nothing.
const HALVINGS: u32 = 20;

/// How many times faster than planned, and what that does to precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tempo {
    /// How many times faster than planned.
    pub speed: f64,
    /// Sleeping of this machine.
    pub precision: Precision,
    /// Messages of this machine.
    pub postage: Postage,
    /// Shortest computation at that speed, in ns.
    pub shortest_ns: f64,
    /// Share of an iteration that sleeping and messages are expected to add at most.
    pub expected: f64,
    /// Time of the shortest iteration at that speed, in ns.
    pub iteration_ns: f64,
    /// The speed that is taken where nobody says one.
    pub better: f64,
}

/// What may hold up one rank in an iteration.
struct Burden {
    /// Moments that it sleeps until: ends of computations, and of transfers that it waits for.
    wakes: f64,
    /// Of every transfer that it waits for, how long it takes by the plan and what its message costs, in ns.
    transfers: Vec<(f64, f64)>,
}

impl Burden {
    /// Of every rank. A message costs nothing as long as the planned transfer hides it.
    fn of(plan: &ExecutionPlan, content: Content, postage: Postage) -> Vec<Self> {
        let mut sends = BTreeMap::new();
        for (rank, list) in plan.ranks.iter().enumerate() {
            for action in list.iter().filter(|action| action.action == PlanActionKind::Isend) {
                let Some(transfer) = action.transfer else { continue };
                let share_ns = action.duration_ns.unwrap_or(0) as f64;
                sends.insert((rank as u32, transfer.peer, transfer.payload, transfer.tag), share_ns);
            }
        }
        let burden = |(rank, list): (usize, &Vec<planner::execution_plan::PlanAction>)| {
            let computed = list.iter().filter(|action| action.action.computes()).count();
            let received = list.iter().filter(|action| action.action == PlanActionKind::Irecv);
            let transfers: Vec<(f64, f64)> = received
                .filter_map(|action| action.transfer)
                .map(|transfer| {
                    let key = (transfer.peer, rank as u32, transfer.payload, transfer.tag);
                    let share_ns = sends.get(&key).copied().unwrap_or(0.0);
                    (share_ns, postage.of(content.of(transfer.bytes)))
                })
                .collect();
            Self { wakes: (computed + transfers.len()) as f64, transfers }
        };
        plan.ranks.iter().enumerate().map(burden).collect()
    }

    /// How much later it ends at a speed, in ns of real time, where each of its wake-ups and messages holds it up.
    fn late_ns(&self, speed: f64, precision: Precision) -> f64 {
        let messages: f64 = self.transfers.iter().map(|(share, cost)| (cost - share / speed).max(0.0)).sum();
        self.wakes * precision.mean_ns as f64 + messages
    }
}

/// One iteration: how long it is planned to take, and what may hold up its ranks.
struct Demand {
    iteration_ns: f64,
    ranks: Vec<Burden>,
}

impl Demand {
    /// Share that is added to the iteration at a speed: that of the rank with most of it.
    fn added(&self, speed: f64, precision: Precision) -> f64 {
        let late = self.ranks.iter().map(|rank| rank.late_ns(speed, precision)).fold(1.0, f64::max);
        late * speed / self.iteration_ns
    }
}

/// Why a speed is not taken.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TempoError {
    /// Not a speed.
    #[error("the speed must be a number between 0.000001 and 1000000")]
    Odd,
    /// Nothing could be learnt from it.
    #[error(
        "at speed {speed} an iteration takes {iteration_ms:.2} ms, to which waking up late and sending messages add \
         {late_ms:.2} ms on this machine: nothing could be learnt; try --speed {better:.3}"
    )]
    Senseless {
        /// What was asked for.
        speed: f64,
        /// Time of an iteration at that speed, in ms.
        iteration_ms: f64,
        /// Expected delay, in ms.
        late_ms: f64,
        /// What would be taken where nothing is said.
        better: f64,
    },
}

impl Tempo {
    /// The speed asked for, or the highest at which rehearsed and simulated times should agree.
    pub(super) fn of(
        score: &Score,
        speed: Option<f64>,
        content: Content,
        precision: Precision,
        postage: Postage,
    ) -> Result<Self, TempoError> {
        let plans = || score.movements().iter().map(|movement| &movement.plan);
        let demand = |plan: &ExecutionPlan| Demand {
            iteration_ns: (plan.iteration_ns() as f64).max(1.0),
            ranks: Burden::of(plan, content, postage),
        };
        let demands: Vec<Demand> = plans().map(demand).collect();
        let added = |speed: f64| demands.iter().map(|one| one.added(speed, precision)).fold(0.0, f64::max);
        let shortest = demands.iter().map(|one| one.iteration_ns).fold(f64::INFINITY, f64::min);
        let better = precise(shortest / LONG_NS, shortest / COMFORT_NS, added);
        let speed = speed.unwrap_or(better);
        if !(1e-6..=1e6).contains(&speed) {
            return Err(TempoError::Odd);
        }
        let expected = added(speed);
        let computations = plans().flat_map(|plan| plan.ranks.iter().flatten()).filter(|one| one.action.computes());
        let durations = computations.filter_map(|one| one.duration_ns).filter(|&duration| duration > 0);
        let shortest_ns = durations.min().unwrap_or(0) as f64 / speed;
        Ok(Self { speed, precision, postage, shortest_ns, expected, iteration_ns: shortest / speed, better })
    }

    /// Why a speed that somebody asked for is not taken. One that nobody asked for is the best that this machine can do, and
    /// is taken with a warning: orders can be learnt at any speed.
    pub fn refusal(&self) -> Option<TempoError> {
        let iteration_ms = self.iteration_ns / 1e6;
        let (speed, late_ms, better) = (self.speed, self.expected * iteration_ms, self.better);
        (self.expected > SENSELESS && speed > better).then_some(TempoError::Senseless {
            speed,
            iteration_ms,
            late_ms,
            better,
        })
    }

    /// What speaks against the times of such a rehearsal, in words.
    pub fn warning(&self) -> Option<String> {
        let late_us = self.precision.late_ns as f64 / 1e3;
        let shortest_us = self.shortest_ns / 1e3;
        let at = self.speed;
        if self.expected > AGREEMENT {
            let share = self.expected * 100.0;
            return Some(format!(
                "this machine is too imprecise for speed {at:.3}: late wake-ups and messages may add {share:.1} % to an iteration"
            ));
        }
        (self.shortest_ns < 2.0 * self.precision.late_ns as f64).then(|| {
            format!(
                "the shortest computation takes {shortest_us:.0} us at speed {at:.3}, and sleepers wake up to {late_us:.0} \
                 us late"
            )
        })
    }
}

/// The highest speed of a range at which no more than the aim is added; the lowest where there is none. What is added grows
/// with the speed.
fn precise(slowest: f64, fastest: f64, added: impl Fn(f64) -> f64) -> f64 {
    if added(fastest) <= AIM {
        return fastest;
    }
    let (mut low, mut high) = (slowest, fastest);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if added(middle) <= AIM { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One rank, two computations of 30 and 70 ms.
    fn score() -> Score {
        let text = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 100000000, "ranks": [[
            {"start_ns": 0, "duration_ns": 30000000, "action": "forward_stage", "stage": 0, "microbatch": 0},
            {"start_ns": 30000000, "duration_ns": 70000000, "action": "backward_stage", "stage": 0, "microbatch": 0}]]}"#;
        Score::read(text).unwrap()
    }

    const PRECISION: Precision = Precision { median_ns: 1, mean_ns: 10_000, late_ns: 50_000 };
    const CONTENT: Content = Content { divisor: 1, unknown: 0, most: 0 };

    fn tempo(speed: Option<f64>, precision: Precision) -> Result<Tempo, TempoError> {
        Tempo::of(&score(), speed, CONTENT, precision, Postage::default())
    }

    #[test]
    fn where_nothing_is_said_an_iteration_takes_a_moment() {
        let easy = tempo(None, PRECISION).unwrap();
        // 100 ms in 1.5 s.
        assert!((easy.speed - 1.0 / 15.0).abs() < 1e-12);
        assert!((easy.shortest_ns - 450e6).abs() < 1.0 && easy.warning().is_none());
        // Two wake-ups of 300 ms: 1.5 % of no more than the 6 s that anybody waits.
        let slow = tempo(None, Precision { median_ns: 1, mean_ns: 300_000_000, late_ns: 300_000_000 }).unwrap();
        assert!((slow.speed - 0.1 / 6.0).abs() < 1e-6);
    }

    #[test]
    fn messages_that_their_transfers_do_not_hide_slow_it_down() {
        let text = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 2000000000, "ranks": [[
            {"start_ns": 0, "duration_ns": 990000000, "action": "forward_stage", "stage": 0, "microbatch": 0},
            {"start_ns": 990000000, "duration_ns": 10000000, "action": "isend", "stage": 0, "microbatch": 0, "transfer":
                {"payload": "activation", "peer": 1, "peer_stage": 1, "peer_microbatch": 0, "tag": 0, "batch": 0}}], [
            {"start_ns": 0, "action": "irecv", "stage": 1, "microbatch": 0, "transfer":
                {"payload": "activation", "peer": 0, "peer_stage": 0, "peer_microbatch": 0, "tag": 0, "batch": 0}},
            {"start_ns": 1000000000, "duration_ns": 1000000000, "action": "forward_stage", "stage": 1, "microbatch": 0}]]}"#;
        let score = Score::read(text).unwrap();
        let exact = Precision { median_ns: 0, mean_ns: 0, late_ns: 0 };
        let costing = |empty_ns: u64| {
            let postage = Postage { empty_ns, ..Postage::default() };
            Tempo::of(&score, None, CONTENT, exact, postage).unwrap()
        };
        // At speed s a message of 100 ms adds 100 - 10 / s ms to 2 / s seconds: 1.5 % at s = (30 + 10) / 100.
        assert!((costing(100_000_000).speed - 0.4).abs() < 1e-5);
        // 10 ms at 1.33, the speed of an iteration of 1.5 s, are 7.5 ms, and hide what costs 7 ms.
        assert!((costing(7_000_000).speed - 4.0 / 3.0).abs() < 1e-12);
        assert!(costing(7_000_000).expected < 1e-6);
    }

    #[test]
    fn what_is_too_fast_is_told_or_refused() {
        // 100 ms / 250 = 0.4 ms, of which twice 0.01 ms is 5 %.
        let fast = tempo(Some(250.0), PRECISION).unwrap();
        assert!((fast.expected - 0.05).abs() < 1e-12 && fast.warning().unwrap().contains("5.0 %"));
        assert_eq!(fast.refusal(), None);
        assert!(matches!(tempo(Some(1e5), PRECISION).unwrap().refusal(), Some(TempoError::Senseless { .. })));
        // Two wake-ups of 5 s in 6 s: no speed is better than the one that is taken.
        let hopeless = tempo(None, Precision { median_ns: 1, mean_ns: 5_000_000_000, late_ns: 1 }).unwrap();
        assert!(hopeless.refusal().is_none() && hopeless.warning().unwrap().contains("166.7 %"), "{hopeless:?}");
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(tempo(Some(odd), PRECISION), Err(TempoError::Odd));
        }
    }
}
