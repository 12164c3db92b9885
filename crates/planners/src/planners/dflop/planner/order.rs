//! 1F1B across the stages of both modules.
//!
//! A rank at distance d from the last stage runs d warm-up forwards: E_pp + L_pp - 1 - s on encoder
//! stage s, and L_pp - 1 - s on backbone stage s. It stores activations for at most d + 1 rounds,
//! as in DFLOP Eq. 4 and DFLOP Eq. 5.

use planscope_core::action::{Action, Schedule};
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::{ModuleLayout, Part};

/// Returns the order of actions for all ranks. Microbatches are numbered by round, `backbones` per
/// round.
pub(crate) fn schedule(
    layouts: &[ModuleLayout; 2],
    arrangement: &Arrangement,
    parts: &[Part],
    rounds: usize,
) -> Schedule {
    let mut orders = vec![Vec::new(); arrangement.ranks.len()];
    let backbones = layouts[1].data;
    for (module, layout) in (0_u32..).zip(layouts) {
        let behind = if module == 0 { layouts[1].pipeline } else { 0 };
        for copy in 0..layout.data {
            let mut by_round = vec![Vec::new(); rounds];
            for (index, part) in parts.iter().enumerate().filter(|(_, part)| (part.module, part.copy) == (module, copy))
            {
                by_round[(part.microbatch / backbones) as usize].push(index);
            }
            let stages = arrangement.modules[module as usize].copy_stages(copy as usize);
            for (stage_index, stage) in (0..layout.pipeline).zip(stages) {
                let rank = arrangement.rank(module as usize, layout.pipeline, copy, stage_index) as usize;
                let warm_up = (layout.pipeline + behind - 1 - stage_index) as usize;
                orders[rank] = alternating(&by_round, stage, warm_up.min(rounds));
            }
        }
    }
    Schedule { stages: arrangement.stage_rank.len(), microbatches: parts.len(), orders }
}

/// Runs `warm_up` rounds forward, then alternates forward and backward, then runs the remaining
/// backwards.
fn alternating(rounds: &[Vec<usize>], stage: usize, warm_up: usize) -> Vec<Action> {
    let forward = |round: usize| rounds[round].iter().map(move |&part| Action::forward(stage, part));
    let backward = |round: usize| rounds[round].iter().map(move |&part| Action::backward(stage, part));
    let mut order: Vec<Action> = (0..warm_up).flat_map(forward).collect();
    for steady in 0..rounds.len() - warm_up {
        order.extend(forward(warm_up + steady));
        order.extend(backward(steady));
    }
    order.extend((rounds.len() - warm_up..rounds.len()).flat_map(backward));
    order
}
