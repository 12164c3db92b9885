//! Studies for a plan. Each card computes its study when the user expands it.

mod correction;
mod layout_sweep;
mod search_progress;
mod stages;
mod sub_microbatches;

use api::planner::analysis::Subject;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::request_card::{RequestCard, Unfolded};
use crate::explore::use_explore;

/// Rollouts per strategy. This number is large enough for the curves to become flat.
const PROGRESS_ROLLOUTS: u32 = 2_000;
/// Rollouts per search in the size study, which runs many searches.
const SIZE_ROLLOUTS: u32 = 200;

/// Studies for the selected iteration. They need a PipeWeaver plan.
#[component]
#[expect(clippy::too_many_lines, reason = "one view and its handlers")]
pub(super) fn Studies() -> impl IntoView {
    let explore = use_explore();
    let subject = Memo::new(move |_| {
        let iteration = explore.displayed.with(|content| content.iteration);
        explore.result.with(|stored| {
            let stored = stored.as_ref()?;
            Subject::from_outcome(&stored.outcome, iteration).ok()?;
            // Plans from other engine versions are not supported; the page offers to plan again.
            let is_current = stored.outcome.engine == stored.current_engine;
            is_current.then_some(iteration)
        })
    });
    // During a slider drag the card stays open. It sends its request when the result is stored.
    let url = |path: fn(&str, u32, u32) -> String, rollouts: u32| {
        Memo::new(move |_| {
            let iteration = subject.get()?;
            Some(path(&explore.stored_scenario_id()?, iteration, rollouts))
        })
    };
    let search = url(api::path::search_analysis, PROGRESS_ROLLOUTS);
    let sizes = url(api::path::sub_microbatch_analysis, SIZE_ROLLOUTS);
    let has_modules = Memo::new(move |_| {
        explore.result.with(|stored| {
            stored.as_ref().is_some_and(|stored| {
                let asked = stored
                    .outcome
                    .results
                    .iter()
                    .any(|result| result.planner.family() == api::planner::scenario::PlannerFamily::ModuleLayouts);
                asked && stored.outcome.engine == stored.current_engine
            })
        })
    });
    let modules = Memo::new(move |_| {
        let scenario = explore.stored_scenario_id()?;
        has_modules.get().then(|| api::path::layout_analysis(&scenario))
    });
    let stage_times = Memo::new(move |_| {
        let iteration = explore.displayed.with(|content| content.iteration);
        let scenario = explore.stored_scenario_id()?;
        Some(api::path::stage_analysis(&scenario, iteration))
    });
    let has_correction = Memo::new(move |_| {
        explore.result.with(|stored| {
            stored.as_ref().is_some_and(|stored| {
                let is_planned = stored.outcome.results.iter().any(|result| {
                    result.planner == PlannerKind::Dflop && matches!(result.answer, PlanOutcome::Planned(_))
                });
                is_planned && stored.outcome.engine == stored.current_engine
            })
        })
    });
    let corrected = Memo::new(move |_| explore.stored_scenario_id().filter(|_| has_correction.get()));
    let settings = correction::Settings::new();
    let correction_url = Memo::new(move |_| Some(api::path::correction_analysis(&corrected.get()?, &settings.query())));
    let has_subject = Memo::new(move |_| subject.with(Option::is_some));
    // If the link contains a layout, expand the card for this layout.
    let unfolded = if explore.view.with_untracked(|view| view.layout.is_some()) {
        Unfolded::FromTheStart
    } else {
        Unfolded::OnRequest
    };
    view! {
        <RequestCard
            url=stage_times
            title="Stages"
            about="How unevenly stages are loaded from microbatch to microbatch, what that adds to the bubble, and the TFLOP/s of each stage."
            test_id="card-stages"
            show=stages::show
        />
        <Show when=move || has_modules.get()>
            <RequestCard
                url=modules
                title="Layouts of the modules"
                about="All layouts: one for all modules; one per module on shared devices; one per module on separate devices."
                test_id="card-layouts"
                show=layout_sweep::show
                unfolded=unfolded
            />
        </Show>
        <Show when=move || has_correction.get()>
            <RequestCard
                url=correction_url
                title="Adaptive correction"
                about="DFLOP measures which input shapes are slower than predicted and rebalances batches. Measuring costs time; if the gain is smaller than the cost, it is switched off. A simulation on the batches of this scenario."
                test_id="card-correction"
                show=correction::show
                settings=move || view! { <correction::SettingsForm settings=settings scenario=corrected /> }
            />
        </Show>
        <Show when=move || has_subject.get()>
            <RequestCard
                url=search
                title="Search progress"
                about="The best order known while three strategies search the ranking of the same iteration."
                test_id="card-search"
                show=search_progress::show
            />
            <RequestCard
                url=sizes
                title="Sub-microbatch size"
                about="The fastest and the slowest order found when images or clips are cut into parts of another size."
                test_id="card-sizes"
                show=sub_microbatches::show
            />
        </Show>
    }
}

/// Describes iteration and replica of a study.
fn location_text(iteration: u32, replica: u32) -> String {
    format!("Iteration {iteration}, its slowest replica ({replica})")
}

/// Explains the difference between the lower bounds for a search and for a plan.
const REPLICA_BOUND: &str = "Lower bounds are of this replica with these parts, in this iteration. The bound in the gap of the ranked \
                             table is of the plan: the largest of all replicas, as a mean of all iterations.";

/// Note for a study that reached the time limit.
const CUT: &str =
    "The server's time limit was reached before the search ended; the figures are the best found until then.";
