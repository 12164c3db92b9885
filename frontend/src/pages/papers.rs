//! The papers: what was published for every set-up, and what this engine gives.

mod set;

use api::papers::{Paper, Papers};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::notice::FailureNotice;
use set::Set;

/// Published figures beside ours.
#[component]
pub(crate) fn PapersPage() -> impl IntoView {
    document().set_title("Papers · Planscope");
    let answer = RwSignal::new(None::<Result<Papers, Failure>>);
    let fetch = move || {
        answer.set(None);
        spawn_local(async move { answer.set(Some(client::get(path::PAPERS).await)) });
    };
    fetch();
    let body = move || match answer.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(papers)) if papers.papers.is_empty() => view! {
            <div class="empty">
                <p>"This server was built without figures of papers."</p>
                <p><code>"cargo xtask papers"</code>" plans their set-ups; a server built after it shows them here."</p>
            </div>
        }
        .into_any(),
        Some(Ok(Papers { engine, papers })) => {
            let papers = papers.into_iter().map(|paper| view! { <PaperSection paper=paper /> }).collect_view();
            view! {
                {papers}
                <p class="hint">{format!("Planned by {engine}.")}</p>
            }
            .into_any()
        }
    };
    view! {
        <main id="main" class="page papers" tabindex="-1">
            <h1>"Papers"</h1>
            <p class="lead">
                "What was published for a set-up, and what this engine gives for one after it. Data and batch sizes of the papers are mostly not public; ours are synthetic and said to be so, and nothing here was fitted to a figure."
            </p>
            {body}
        </main>
    }
}

#[component]
fn PaperSection(paper: Paper) -> impl IntoView {
    let Paper { id, title, source, sets } = paper;
    let contents = sets
        .iter()
        .map(|set| {
            let href = format!("#{id}-{}", set.id);
            view! { <li><a href=href rel="external">{set.place.clone()}</a></li> }
        })
        .collect_view();
    let paper = id.clone();
    let sets = sets.into_iter().map(|set| view! { <Set paper=paper.clone() set=set /> }).collect_view();
    view! {
        <section data-testid=format!("paper-{id}")>
            <h2>{title}</h2>
            <p class="hint">{source}</p>
            <ul class="contents" aria-label="Tables and figures">{contents}</ul>
            {sets}
        </section>
    }
}
