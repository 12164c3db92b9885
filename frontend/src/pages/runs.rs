//! The page of observed runs: open one, import a log, find those that are stored.

mod importing;
mod line;
mod opening;
mod question;

use api::path;
use api::run::{RunList, RunState, RunSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure, pause};
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::FailureNotice;
use crate::runs::size;
use importing::ImportLog;
use line::Line;
pub(crate) use line::tags_of;
use opening::OpenRun;
use question::{Order, Question};

/// Runs that are not over are looked at again so often.
const AGAIN_MS: i32 = 5_000;

/// What there is to show.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Loading,
    Failed(Failure),
    Empty,
    Listed,
}

/// Observed runs.
#[component]
pub(crate) fn RunsPage() -> impl IntoView {
    document().set_title("Runs · Planscope");
    let list = RwSignal::new(None::<Result<RunList, Failure>>);
    let question = RwSignal::new(Question::default());
    let deletions = Deletions::new();
    let fetch = Callback::new(move |()| {
        spawn_local(async move {
            let answer = client::get::<RunList>(path::RUNS).await;
            if list.try_get_untracked().is_some_and(|known| known.as_ref() != Some(&answer)) {
                list.set(Some(answer));
            }
        });
    });
    fetch.run(());
    spawn_local(async move {
        loop {
            pause(AGAIN_MS).await;
            let Some(known) = list.try_get_untracked() else { return };
            let moves = |run: &RunSummary| !matches!(run.state, RunState::Ended | RunState::Crashed);
            if matches!(known, Some(Ok(known)) if known.runs.iter().any(moves)) {
                fetch.run(());
            }
        }
    });
    let gone = Callback::new(move |id: String| {
        list.update(|list| {
            if let Some(Ok(list)) = list {
                list.runs.retain(|run| run.id != id);
            }
        });
    });
    // Lists change while somebody types or reaches for a button: lines stay, only what they say changes.
    let shown = Memo::new(move |_| {
        let asked = question.get();
        list.with(|list| {
            let Some(Ok(list)) = list else { return Vec::new() };
            let mut runs: Vec<RunSummary> = list.runs.iter().filter(|run| asked.matches(run)).cloned().collect();
            asked.order.sort(&mut runs);
            runs
        })
    });
    let ids = Memo::new(move |_| {
        let is_shown = |run: &&RunSummary| !deletions.is_waiting(&run.id);
        shown.with(|runs| runs.iter().filter(is_shown).map(|run| run.id.clone()).collect::<Vec<_>>())
    });
    let tags = Memo::new(move |_| list.with(|list| list.as_ref().and_then(|list| list.as_ref().ok()).map(|list| list.tags.clone())).unwrap_or_default());
    let totals = Memo::new(move |_| {
        list.with(|list| {
            let RunList { runs, total, stored_bytes, retention_days, .. } = list.as_ref()?.as_ref().ok()?;
            let mut words = format!("Logs take {} in the database. A deleted run can be brought back for {retention_days} days.", size(*stored_bytes));
            if *total > runs.len() as u64 {
                words.push_str(&format!(" The newest {} of {} are listed.", format::count(runs.len() as u64), format::count(*total)));
            }
            Some(words)
        })
    });
    let phase = Memo::new(move |_| {
        list.with(|list| match list {
            None => Phase::Loading,
            Some(Err(failure)) => Phase::Failed(failure.clone()),
            Some(Ok(list)) if list.runs.is_empty() => Phase::Empty,
            Some(Ok(_)) => Phase::Listed,
        })
    });
    let body = move || match phase.get() {
        Phase::Loading => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Phase::Failed(failure) => view! { <FailureNotice failure=failure on_retry=fetch /> }.into_any(),
        Phase::Empty => view! { <Empty /> }.into_any(),
        Phase::Listed => view! {
            <Filters question=question tags=tags />
            <div class="table-scroll" role="region" aria-label="Stored runs" tabindex="0">
                <table class="list runs" data-testid="runs">
                    <thead>
                        <tr>
                            <th scope="col">"Run"</th>
                            <th scope="col">"State"</th>
                            <th scope="col">"Log"</th>
                            <th scope="col" class="number">"Points"</th>
                            <th scope="col" class="number">"Median step"</th>
                            <th scope="col">"Opened, UTC"</th>
                            <th scope="col"><span class="visually-hidden">"Actions"</span></th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || ids.get() key=Clone::clone let:id>
                            <Line id=id runs=shown deletions=deletions gone=gone changed=fetch />
                        </For>
                        <Show when=move || ids.with(Vec::is_empty)>
                            <tr><td colspan="7" class="muted">"Nothing matches."</td></tr>
                        </Show>
                    </tbody>
                </table>
            </div>
            <p class="hint" data-testid="runs-total">{totals}</p>
        }
        .into_any(),
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Runs"</h1>
            <p class="lead">
                "Training jobs as their logs tell of them, live or afterwards, beside what a plan says. The trainer is not touched: a shell loop sends the file that it writes anyway."
            </p>
            <div class="two-ways">
                <OpenRun changed=fetch />
                <ImportLog changed=fetch />
            </div>
            {body}
            <DeletionToasts deletions=deletions />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <div class="empty">
            <p>"No run yet. Open one and paste its command beside a training job, or drop a log of a job that is over."</p>
            <p>
                "Nothing to train at hand? Rehearse a plan: a process for every rank walks through it on this machine and writes its log. "
                "Open a "<a href="/">"ready scenario"</a>" and press Rehearse at one of its plans."
            </p>
        </div>
    }
}

#[component]
fn Filters(question: RwSignal<Question>, #[prop(into)] tags: Signal<Vec<String>>) -> impl IntoView {
    let set_state = move |event| {
        let value = event_target_value(&event);
        question.update(|question| question.state = question::state_of(&value));
    };
    let states = question::STATES.map(|(id, name, state)| {
        view! { <option value=id prop:selected=move || question.with(|question| question.state == state)>{name}</option> }
    });
    let orders = Order::ALL.map(|order| {
        view! { <option value=order.id() prop:selected=move || question.with(|question| question.order == order)>{order.title()}</option> }
    });
    let tag_options = move || {
        let option = |tag: String| {
            let (key, value) = (tag.clone(), tag.clone());
            view! { <option value=value prop:selected=move || question.with(|question| question.tag.as_ref() == Some(&key))>{tag}</option> }
        };
        tags.get().into_iter().map(option).collect_view()
    };
    view! {
        <div class="filters" role="search">
            <input
                type="search"
                placeholder="Search names, notes, tags"
                aria-label="Search runs"
                data-testid="runs-search"
                prop:value=move || question.with(|question| question.words.clone())
                on:input=move |event| question.update(|question| question.words = event_target_value(&event))
            />
            <select aria-label="State" on:change=set_state>{states}</select>
            <select
                aria-label="Tag"
                on:change=move |event| {
                    let tag = event_target_value(&event);
                    question.update(|question| question.tag = (!tag.is_empty()).then_some(tag));
                }
            >
                <option value="">"any tag"</option>
                {tag_options}
            </select>
            <select
                aria-label="Order"
                on:change=move |event| {
                    let order = Order::of(&event_target_value(&event));
                    question.update(|question| question.order = order);
                }
            >
                {orders}
            </select>
        </div>
    }
}
