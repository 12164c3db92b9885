//! Actions of a rank, communication included, as a table. The complete plan is available as a file.

use std::sync::Arc;

use api::execution_plan::ExecutionPlanView;
use api::planner::execution_plan::{PlanAction, PlanActionKind, Transfer};
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::ranking;
use super::request_card::RequestCard;
use crate::explore::use_explore;
use crate::format;
use crate::gantt::time_text;

/// Rows per page.
const PAGE: usize = 100;

/// Request parameters: planner, iteration, rank, buffers, page.
#[derive(Debug, Clone, Copy)]
struct PlanRequest {
    plan_key: Memo<Option<(String, PlannerKind, u32)>>,
    rank: RwSignal<u32>,
    /// Buffers per rank pair: 0 for unlimited, `None` for the minimum count that adds no delay.
    buffers: RwSignal<Option<u32>>,
    page: RwSignal<usize>,
}

/// Execution plan for the selected planner and iteration.
#[component]
pub(super) fn ExecutionPlanCard() -> impl IntoView {
    let explore = use_explore();
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let plan_key = Memo::new(move |_| {
        let planner = selected.get()?;
        // Plans with context-parallel groups have no transfers between ranks.
        let iteration = explore.displayed.with(|content| {
            let timeline = content.timeline(planner).filter(|timeline| !timeline.is_grouped());
            timeline.map(|_| content.iteration)
        })?;
        let scenario = explore.stored_scenario_id()?;
        Some((scenario, planner, iteration))
    });
    let request =
        PlanRequest { plan_key, rank: RwSignal::new(0), buffers: RwSignal::new(None), page: RwSignal::new(0) };
    provide_context(request);
    // Reset the rank, because a different plan may have fewer ranks.
    Effect::new(move |before: Option<Option<(String, PlannerKind, u32)>>| {
        let now = plan_key.get();
        if before.is_some_and(|before| before != now) {
            request.rank.set(0);
            request.page.set(0);
        }
        now
    });
    let url = Memo::new(move |_| {
        let (rank, buffers) = (request.rank.get(), request.buffers.get());
        plan_key.get().map(|(scenario, planner, iteration)| {
            api::path::execution_plan(&scenario, planner.id(), iteration, rank, buffers)
        })
    });
    view! {
        <Show when=move || plan_key.with(Option::is_some)>
            <RequestCard
                url=url
                title="Execution plan"
                about="What every rank runs, sends, receives and waits for, in order, for the plan selected above."
                test_id="card-execution-plan"
                show=show
            />
        </Show>
    }
}

fn show(plan: Arc<ExecutionPlanView>) -> impl IntoView {
    let request: PlanRequest = expect_context();
    let options = (0..plan.ranks)
        .map(|rank| view! { <option value=rank.to_string() selected={rank == plan.rank}>{format!("rank {rank}")}</option> })
        .collect_view();
    let files = move || {
        request.plan_key.get().map(|(scenario, planner, iteration)| {
            let buffers = request.buffers.get();
            let file = |form: &str| api::path::execution_plan_file(&scenario, planner.id(), iteration, form, buffers);
            view! {
                <a class="button" href=file("csv") download="">"All ranks as CSV"</a>
                <a class="button" href=file("json") download="">"JSON"</a>
            }
        })
    };
    let explore = use_explore();
    let described = Arc::clone(&plan);
    let stages =
        move || request.plan_key.get().and_then(|(_, planner, _)| Some(explore.planned(planner)?.stages.len()));
    let title = move || {
        request.plan_key.get().map(|(_, planner, iteration)| format!("{}, iteration {iteration}", planner.title()))
    };
    let pick = move |event| {
        request.page.set(0);
        request.rank.set(event_target_value(&event).parse().unwrap_or(0));
    };
    view! {
        <div class="request-card-controls">
            <select aria-label="Rank whose list is shown" on:change=pick>{options}</select>
            <select aria-label="Buffers of each pair of ranks" on:change=move |event| request.buffers.set(event_target_value(&event).parse().ok())>
                {buffer_options(request.buffers.get_untracked())}
            </select>
            <span class="muted">{title}</span>
            <span class="grow"></span>
            {files}
        </div>
        <p class="hint" data-testid="execution-summary">{move || summary(&described, stages())}</p>
        <Rows plan=plan page=request.page />
    }
}

/// Options for the buffer count. The first option has a non-numeric value.
fn buffer_options(selected_count: Option<u32>) -> impl IntoView {
    let option = |count: Option<u32>| {
        let text = match count {
            None => "fewest buffers without delay".to_owned(),
            Some(0) => "any number of buffers".to_owned(),
            Some(1) => "1 buffer".to_owned(),
            Some(count) => format!("{count} buffers"),
        };
        let value = count.map_or_else(|| "fewest".to_owned(), |count| count.to_string());
        view! { <option value=value selected={count == selected_count}>{text}</option> }
    };
    [None, Some(1), Some(2), Some(4), Some(8), Some(16), Some(32), Some(0)].map(option)
}

/// Summarizes a plan. `stages` is the pipeline stage count; every stage runs once per microbatch
/// and direction.
fn summary(plan: &ExecutionPlanView, stages: Option<usize>) -> String {
    let count_text = |count: u32| format::count(count.into());
    let buffers = match plan.buffers.receive {
        None => "with any number of buffers".to_owned(),
        Some(count) => format!("with {count} buffers for each pair of ranks"),
    };
    let replay = if plan.replayed_s > plan.planned_s * 1.000_05 {
        format!(
            "Followed {buffers}, the last stage ends at {}, {} after the timeline's {}.",
            format::seconds(plan.replayed_s),
            format::percent(plan.replayed_s / plan.planned_s - 1.0),
            format::seconds(plan.planned_s)
        )
    } else {
        format!("Followed {buffers}, the last stage ends at {}, as in the timeline.", format::seconds(plan.replayed_s))
    };
    format!(
        "{} actions on {} ranks: {}{} stage executions, {} transfers in {} batches. {replay}",
        count_text(plan.actions),
        count_text(plan.ranks),
        stages.map_or_else(String::new, |stages| format!("{} stages, ", format::count(stages as u64))),
        count_text(plan.stages),
        count_text(plan.transfers),
        count_text(plan.batches)
    )
}

const HEADS: [&str; 6] = ["No.", "Start", "Action", "Stage", "Microbatch", "With"];

/// Cells: index, start, action, stage, microbatch, peer rank.
fn cells(index: usize, action: &PlanAction) -> [String; 6] {
    [
        index.to_string(),
        time_text::duration(action.start_ns as f64),
        name(action),
        action.stage.to_string(),
        action.microbatch.to_string(),
        action.transfer.as_ref().map_or_else(String::new, |transfer| other_end(action, transfer)),
    ]
}

fn name(action: &PlanAction) -> String {
    let name = match action.action {
        PlanActionKind::ForwardStage => "forward",
        PlanActionKind::BackwardStage => "backward",
        PlanActionKind::InputGradStage => "input gradient",
        PlanActionKind::WeightGradStage => "weight gradient",
        other => return other.name().to_owned(),
    };
    if action.with_next { format!("{name}, overlapped with the next") } else { name.to_owned() }
}

fn other_end(action: &PlanAction, transfer: &Transfer) -> String {
    let Transfer { payload, peer, peer_stage, peer_microbatch, tag, .. } = transfer;
    let payload = payload.name();
    let direction =
        if matches!(action.action, PlanActionKind::Isend | PlanActionKind::WaitIsend) { "to" } else { "from" };
    let microbatch =
        if *peer_microbatch == action.microbatch { String::new() } else { format!(" microbatch {peer_microbatch}") };
    format!("{payload} {tag} {direction} rank {peer}, stage {peer_stage}{microbatch}")
}

#[component]
fn Rows(plan: Arc<ExecutionPlanView>, page: RwSignal<usize>) -> impl IntoView {
    let count = plan.list.len();
    let last = count.saturating_sub(1) / PAGE;
    let at = Memo::new(move |_| page.get().min(last));
    let rows = move || {
        let first = at.get() * PAGE;
        let line = |(row_index, action): (usize, &PlanAction)| {
            let [index, start, name, rest @ ..] = cells(first + row_index, action);
            let rest = rest.map(|cell| view! { <td>{cell}</td> });
            view! { <tr data-action=action.action.name()><td>{index}</td><td>{start}</td><th scope="row">{name}</th>{rest}</tr> }
        };
        plan.list.iter().skip(first).take(PAGE).enumerate().map(line).collect_view()
    };
    let range = move || {
        let first = at.get() * PAGE;
        let count_text = |count: usize| format::count(count as u64);
        format!(
            "{}–{} of {}",
            count_text((first + 1).min(count)),
            count_text((first + PAGE).min(count)),
            count_text(count)
        )
    };
    view! {
        <div class="table-scroll tall" role="region" aria-label="Actions of the rank" tabindex="0">
            <table class="figures action-list">
                <thead><tr>{HEADS.map(|head| view! { <th scope="col">{head}</th> })}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <Show when=move || { last > 0 }>
            <p class="gantt-pages">
                <button type="button" disabled=move || at.get() == 0 on:click=move |_| page.set(at.get().saturating_sub(1))>"Previous"</button>
                <span aria-live="polite">{range}</span>
                <button type="button" disabled=move || { at.get() >= last } on:click=move |_| page.set(at.get() + 1)>"Next"</button>
            </p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::execution_plan::{Buffers, Payload};

    use super::*;

    fn view(replayed_s: f64) -> ExecutionPlanView {
        ExecutionPlanView {
            buffers: Buffers::default(),
            planned_s: 10.0,
            replayed_s,
            receives_held: 2,
            sends_held: 1,
            actions: 24,
            stages: 8,
            transfers: 4,
            batches: 6,
            ranks: 2,
            rank: 0,
            list: Vec::new(),
        }
    }

    #[test]
    fn summary_reports_cost_with_few_buffers() {
        assert!(
            summary(&view(10.0), None).ends_with("the last stage ends at 10.0\u{202f}s, as in the timeline."),
            "{}",
            summary(&view(10.0), None)
        );
        let slower = summary(&view(10.5), None);
        assert!(slower.contains("2 buffers for each pair of ranks"), "{slower}");
        assert!(slower.contains("5.00\u{202f}% after"), "{slower}");
    }

    /// Two stages, two microbatches, forward and backward: eight executions.
    #[test]
    fn stages_are_not_their_executions() {
        let text = summary(&view(10.0), Some(2));
        assert!(
            text.starts_with("24 actions on 2 ranks: 2 stages, 8 stage executions, 4 transfers in 6 batches."),
            "{text}"
        );
        let unknown = summary(&view(10.0), None);
        assert!(unknown.starts_with("24 actions on 2 ranks: 8 stage executions,"), "{unknown}");
    }

    #[test]
    fn a_transfer_names_its_other_end_and_another_microbatch_there() {
        let transfer = Transfer {
            payload: Payload::Activation,
            peer: 3,
            peer_stage: 7,
            peer_microbatch: 1,
            tag: 4,
            batch: 2,
            bytes: None,
        };
        let action = |microbatch, action| PlanAction {
            start_ns: 1_500,
            duration_ns: None,
            action,
            stage: 6,
            microbatch,
            with_next: false,
            transfer: Some(transfer),
        };
        let same = cells(9, &action(1, PlanActionKind::Isend));
        assert_eq!(same[0], "9");
        assert_eq!(same[2..], ["isend", "6", "1", "activation 4 to rank 3, stage 7"]);
        let other = cells(0, &action(0, PlanActionKind::WaitIrecv));
        assert_eq!(other[5], "activation 4 from rank 3, stage 7 microbatch 1");
    }
}
