//! The page of stored scenarios.

use api::path;
use api::scenario::{ScenarioLine, ScenarioList};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::FailureNotice;

/// Whether every word of the filter stands somewhere in the line.
fn matches(line: &ScenarioLine, filter: &str) -> bool {
    let text = format!("{} {} {}", line.title, line.model, line.cluster).to_lowercase();
    filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// Stored scenarios.
#[component]
pub(crate) fn ScenariosPage() -> impl IntoView {
    document().set_title("Scenarios · Planscope");
    let list = RwSignal::new(None::<Result<Vec<ScenarioLine>, Failure>>);
    let filter = RwSignal::new(String::new());
    let deletions = Deletions::new();
    let fetch = move || {
        spawn_local(async move {
            list.set(Some(client::get::<ScenarioList>(path::SCENARIOS).await.map(|list| list.scenarios)));
        });
    };
    fetch();
    let gone = Callback::new(move |id: String| {
        list.update(|list| {
            if let Some(Ok(lines)) = list {
                lines.retain(|line| line.id != id);
            }
        });
    });
    let body = move || {
        match list.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(lines)) if lines.is_empty() => view! {
            <div class="empty">
                <p>"Nothing is kept yet. Open a scenario and press Save; until then its link works, but it does not stand here."</p>
                <p><a class="button" href="/">"Ready scenarios"</a>" "<a class="button" href="/new">"New scenario"</a></p>
            </div>
        }
        .into_any(),
        Some(Ok(lines)) => {
            let rows = lines.into_iter().filter(|line| matches(line, &filter.get()) && !deletions.is_waiting(&line.id));
            let rows: Vec<_> = rows.map(|line| view! { <Line line=line deletions=deletions gone=gone /> }).collect();
            let none = rows.is_empty().then(|| view! { <tr><td colspan="7" class="muted">"Nothing matches."</td></tr> });
            view! {
                <div class="table-scroll" role="region" aria-label="Stored scenarios" tabindex="0">
                    <table class="list" data-testid="scenarios">
                        <thead>
                            <tr>
                                <th scope="col">"Title"</th>
                                <th scope="col">"Model"</th>
                                <th scope="col">"Cluster"</th>
                                <th scope="col">"Best planner"</th>
                                <th scope="col" class="number">"Iteration"</th>
                                <th scope="col">"Stored, UTC"</th>
                                <th scope="col"><span class="visually-hidden">"Actions"</span></th>
                            </tr>
                        </thead>
                        <tbody>{rows}{none}</tbody>
                    </table>
                </div>
            }
            .into_any()
        }
    }
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <div class="page-title">
                <h1>"Scenarios"</h1>
                <span class="grow"></span>
                <input
                    type="search"
                    placeholder="Filter by title, model, cluster"
                    aria-label="Filter scenarios"
                    prop:value=move || filter.get()
                    on:input=move |event| filter.set(event_target_value(&event))
                />
                <a class="button primary" href="/new">"New scenario"</a>
            </div>
            {body}
            <DeletionToasts deletions=deletions />
        </main>
    }
}

#[component]
fn Line(line: ScenarioLine, deletions: Deletions, gone: Callback<String>) -> impl IntoView {
    let ScenarioLine { id, short, title, model, cluster, best, created_at } = line;
    let (planner, time) = best.map(|best| (best.planner, format::seconds(best.iteration_s))).unzip();
    let name = title.clone();
    let label = format!("Delete {title}");
    view! {
        <tr>
            <th scope="row"><a href=path::share(&short)>{title}</a></th>
            <td>{model}</td>
            <td>{cluster}</td>
            <td>{planner}</td>
            <td class="number">{time}</td>
            <td class="muted">{format::moment(&created_at)}</td>
            <td class="number">
                <button
                    class="quiet"
                    aria-label=label
                    on:click=move |_| deletions.delete(id.clone(), name.clone(), path::scenario(&id), gone)
                >
                    "Delete"
                </button>
            </td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_filter_counts() {
        let line = ScenarioLine {
            id: String::new(),
            short: String::new(),
            title: "Long documents".into(),
            model: "Llama-2 7B".into(),
            cluster: "4 x 8 A100-80GB".into(),
            best: None,
            created_at: String::new(),
        };
        assert!(matches(&line, ""));
        assert!(matches(&line, "a100 LONG"));
        assert!(!matches(&line, "long h100"));
    }
}
