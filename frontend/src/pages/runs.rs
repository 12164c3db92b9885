//! The page of observed runs: open one, import a log, find those that are stored.

mod filters;
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
use filters::Filters;
use importing::ImportLog;
use line::Line;
pub(crate) use line::tags_of;
use opening::OpenRun;
use question::{Order, Question};

/// Runs that are not over are looked at again so often.
const AGAIN_MS: i32 = 5_000;
/// Words that are typed closer together than this are asked for once.
const TYPING_MS: i32 = 250;

/// What there is to show.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Loading,
    Failed(Failure),
    Empty,
    Listed,
}

/// The answer, once it is there.
type Runs = RwSignal<Option<Result<RunList, Failure>>>;

/// Observed runs.
#[component]
pub(crate) fn RunsPage() -> impl IntoView {
    document().set_title("Runs · Planscope");
    let list = RwSignal::new(None::<Result<RunList, Failure>>);
    let question = RwSignal::new(Question::default());
    let order = RwSignal::new(Order::default());
    let deletions = Deletions::new();
    let fetch = Callback::new(move |()| {
        let asked = question.get_untracked();
        spawn_local(async move {
            let url = format!("{}{}", path::RUNS, asked.query(None, client::encode));
            let answer = client::get::<RunList>(&url).await;
            let is_current = question.try_get_untracked().as_ref() == Some(&asked);
            if is_current && list.with_untracked(|known| known.as_ref() != Some(&answer)) {
                list.set(Some(answer));
            }
        });
    });
    Effect::new(move |before: Option<()>| {
        let asked = question.get();
        spawn_local(async move {
            if before.is_some() {
                pause(TYPING_MS).await;
            }
            if question.try_get_untracked().as_ref() == Some(&asked) {
                fetch.run(());
            }
        });
    });
    keep_fresh(list, fetch);
    let more = move |_| older(list, question);
    let gone = Callback::new(move |id: String| take_out(list, &id));
    // Lists change while somebody types or reaches for a button: lines stay, only what they say changes.
    let shown = Memo::new(move |_| {
        list.with(|list| {
            let mut runs =
                list.as_ref().and_then(|list| list.as_ref().ok()).map(|list| list.runs.clone()).unwrap_or_default();
            order.get().sort(&mut runs);
            runs
        })
    });
    let ids = Memo::new(move |_| {
        let is_shown = |run: &&RunSummary| !deletions.is_waiting(&run.id);
        shown.with(|runs| runs.iter().filter(is_shown).map(|run| run.id.clone()).collect::<Vec<_>>())
    });
    let tags = Memo::new(move |_| {
        list.with(|list| list.as_ref().and_then(|list| list.as_ref().ok()).map(|list| list.tags.clone()))
            .unwrap_or_default()
    });
    let totals = Memo::new(move |_| list.with(|list| list.as_ref()?.as_ref().ok().map(total_words)));
    let has_more = Memo::new(move |_| list.with(|list| matches!(list, Some(Ok(list)) if list.next.is_some())));
    let phase = Memo::new(move |_| {
        list.with(|list| match list {
            None => Phase::Loading,
            Some(Err(failure)) => Phase::Failed(failure.clone()),
            Some(Ok(list)) if list.runs.is_empty() && question.with(Question::is_open) => Phase::Empty,
            Some(Ok(_)) => Phase::Listed,
        })
    });
    let body = move || match phase.get() {
        Phase::Loading => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Phase::Failed(failure) => view! { <FailureNotice failure=failure on_retry=fetch /> }.into_any(),
        Phase::Empty => view! { <Empty /> }.into_any(),
        Phase::Listed => view! {
            <Filters question=question order=order tags=tags />
            <div class="table-scroll" role="region" aria-label="Stored runs" tabindex="0">
                <table class="list runs" data-testid="runs">
                    <Head />
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
            <Show when=move || has_more.get()>
                <p class="actions"><button on:click=more>"Older runs"</button></p>
            </Show>
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

/// A run is no longer shown.
fn take_out(list: Runs, id: &str) {
    list.update(|list| {
        if let Some(Ok(list)) = list {
            list.runs.retain(|run| run.id != id);
        }
    });
}

/// Asks again while runs are under way.
fn keep_fresh(list: Runs, fetch: Callback<()>) {
    spawn_local(async move {
        loop {
            pause(AGAIN_MS).await;
            let Some(known) = list.try_get_untracked() else { return };
            let moves = |run: &RunSummary| !matches!(run.state, RunState::Ended | RunState::Crashed);
            // Older pages that were fetched by hand would be lost.
            if matches!(known, Some(Ok(known)) if known.runs.len() <= question::PAGE as usize && known.runs.iter().any(moves))
            {
                fetch.run(());
            }
        }
    });
}

/// The page of runs behind those that are shown.
fn older(list: Runs, question: RwSignal<Question>) {
    let Some(next) = list.with_untracked(|list| list.as_ref()?.as_ref().ok()?.next.clone()) else { return };
    let asked = question.get_untracked();
    spawn_local(async move {
        let url = format!("{}{}", path::RUNS, asked.query(Some(&next), client::encode));
        let Ok(page) = client::get::<RunList>(&url).await else { return };
        list.try_update(|list| {
            if let Some(Ok(list)) = list {
                list.runs.extend(page.runs);
                list.next = page.next;
            }
        });
    });
}

/// How many runs there are, and what they take.
fn total_words(list: &RunList) -> String {
    let runs = if list.total == 1 { "1 run".to_owned() } else { format!("{} runs", format::count(list.total)) };
    let (stored, days) = (size(list.stored_bytes), list.retention_days);
    format!("{runs}. All logs take {stored} in the database. A deleted run can be brought back for {days} days.")
}

#[component]
fn Head() -> impl IntoView {
    view! {
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
