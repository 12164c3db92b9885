//! Published values for the displayed scenario, if it is a setup from a paper.

use api::papers::{CitedSet, ScenarioPapers};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client;
use crate::explore::use_explore;
use crate::published::FigureTable;

/// Maximum value count of initially expanded tables.
const MAX_OPEN: usize = 12;

/// Published and computed values. Hidden if the scenario is not from a paper.
#[component]
pub(super) fn PublishedCard() -> impl IntoView {
    let explore = use_explore();
    let scenario = Memo::new(move |_| explore.stored_scenario_id());
    let cited = RwSignal::new(Vec::<CitedSet>::new());
    Effect::new(move |_| {
        let Some(id) = scenario.get() else { return cited.set(Vec::new()) };
        spawn_local(async move {
            // Ignore a failed request: published values are optional on this page.
            let response = client::get::<ScenarioPapers>(&api::path::scenario_papers(&id)).await.unwrap_or_default();
            if scenario.try_get_untracked() == Some(Some(id)) {
                cited.set(response.cited);
            }
        });
    });
    let sets = move || cited.get().into_iter().map(|cited| view! { <Cited cited=cited /> }).collect_view();
    view! {
        <Show when=move || cited.with(|cited| !cited.is_empty())>
            <section class="card" data-testid="card-published">
                <header class="card-title"><h2>"Published figures"</h2></header>
                <p class="hint">
                    "Published values for this scenario, and the predictions of Planscope as shipped; "
                    "plans of this page are in the table above."
                </p>
                {sets}
            </section>
        </Show>
    }
}

#[component]
fn Cited(cited: CitedSet) -> impl IntoView {
    let CitedSet { paper, title, set } = cited;
    let href = format!("{}#{paper}-{}", api::path::paper_page(&paper), set.id);
    let label = format!("{title}, {}: published and predicted values", set.place);
    let synthetic = set.is_synthetic.then(|| view! { <span class="chip">"synthetic data"</span> });
    let open = set.figures.len() <= MAX_OPEN;
    view! {
        <details class="advanced" open=open>
            <summary>{format!("{title}, {}: {}", set.place, set.title)}" "{synthetic}</summary>
            <FigureTable values=set.figures label=label />
            <p class="hint"><a href=href rel="external">"Assumptions and plans"</a></p>
        </details>
    }
}
