//! The page of profiles: upload measurements, find what was fitted to them or calibrated from runs.

mod uploading;

use api::path;
use api::profile::{ProfileList, ProfileSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::FailureNotice;
use crate::profiles::{ProfileLink, source_words};
use crate::runs::size;
use uploading::UploadProfile;

/// Whether every word stands somewhere in the profile, and the tag is among its own.
fn matches(profile: &ProfileSummary, words: &str, tag: Option<&str>) -> bool {
    let note = profile.note.as_deref().unwrap_or_default();
    let text =
        format!("{} {note} {} {}", profile.name, profile.tags.join(" "), source_words(&profile.source)).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
        && tag.is_none_or(|tag| profile.tags.iter().any(|known| known == tag))
}

/// Profiles.
#[component]
pub(crate) fn ProfilesPage() -> impl IntoView {
    document().set_title("Profiles · Planscope");
    let list = RwSignal::new(None::<Result<ProfileList, Failure>>);
    let words = RwSignal::new(String::new());
    let tag = RwSignal::new(None::<String>);
    let deletions = Deletions::new();
    let fetch = Callback::new(move |()| {
        spawn_local(async move {
            let answer = client::get::<ProfileList>(path::PROFILES).await;
            list.try_set(Some(answer));
        });
    });
    fetch.run(());
    let gone = Callback::new(move |id: String| {
        list.update(|list| {
            if let Some(Ok(list)) = list {
                list.profiles.retain(|profile| profile.id != id);
            }
        });
    });
    let tag_options = move || {
        let tags = list
            .with(|list| list.as_ref().and_then(|list| list.as_ref().ok()).map(|list| list.tags.clone()))
            .unwrap_or_default();
        tags.into_iter().map(|tag| view! { <option value=tag.clone()>{tag.clone()}</option> }).collect_view()
    };
    let body = move || {
        match list.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=fetch /> }.into_any(),
        Some(Ok(list)) if list.profiles.is_empty() => view! {
            <div class="empty">
                <p>"No profile yet. Drop measured operators, collectives or tables of layers above; or calibrate one from a "<a href="/runs">"run"</a>" that is held against a plan."</p>
            </div>
        }
        .into_any(),
        Some(Ok(list)) => {
            let ProfileList { profiles, stored_bytes, retention_days, .. } = list;
            let shown = profiles.into_iter().filter(|profile| matches(profile, &words.get(), tag.get().as_deref()) && !deletions.is_waiting(&profile.id));
            let rows: Vec<_> = shown.map(|profile| view! { <Line profile=profile deletions=deletions gone=gone /> }).collect();
            let none = rows.is_empty().then(|| view! { <tr><td colspan="7" class="muted">"Nothing matches."</td></tr> });
            view! {
                <div class="table-scroll" role="region" aria-label="Stored profiles" tabindex="0">
                    <table class="list" data-testid="profiles">
                        <thead>
                            <tr>
                                <th scope="col">"Profile"</th>
                                <th scope="col">"From"</th>
                                <th scope="col" class="number">"Measurements"</th>
                                <th scope="col" class="number">"Mean residual"</th>
                                <th scope="col" class="number">"Size"</th>
                                <th scope="col">"Stored, UTC"</th>
                                <th scope="col"><span class="visually-hidden">"Actions"</span></th>
                            </tr>
                        </thead>
                        <tbody>{rows}{none}</tbody>
                    </table>
                </div>
                <p class="hint">{format!("Profiles take {} in the database. A deleted profile can be brought back for {retention_days} days.", size(stored_bytes))}</p>
            }
            .into_any()
        }
    }
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Profiles"</h1>
            <p class="lead">
                "What devices, links and runs were measured to do, and what was fitted to it. A scenario that uses a profile says so itself: nothing is applied in silence."
            </p>
            <UploadProfile changed=fetch />
            <div class="filters" role="search">
                <input type="search" placeholder="Search names, notes, tags, formats" aria-label="Search profiles" prop:value=move || words.get() on:input=move |event| words.set(event_target_value(&event)) />
                <select
                    aria-label="Tag"
                    on:change=move |event| {
                        let chosen = event_target_value(&event);
                        tag.set((!chosen.is_empty()).then_some(chosen));
                    }
                >
                    <option value="">"any tag"</option>
                    {tag_options}
                </select>
            </div>
            {body}
            <DeletionToasts deletions=deletions />
        </main>
    }
}

#[component]
fn Line(profile: ProfileSummary, deletions: Deletions, gone: Callback<String>) -> impl IntoView {
    let ProfileSummary { id, name, note, tags, source, measurements, residual, created_at, bytes } = profile.clone();
    let label = format!("Delete {name}");
    let key = id.clone();
    let delete = move |_| {
        let urls = (path::profile(&id), path::profile_restore(&id));
        deletions.delete_restorable(id.clone(), name.clone(), urls, gone);
    };
    let tags = tags.into_iter().map(|tag| view! { <span class="chip">{tag}</span> }).collect_view();
    view! {
        <tr data-profile=key>
            <th scope="row">
                <ProfileLink summary=profile />
                {note.map(|note| view! { <p class="hint note">{note}</p> })}
                <span class="chips">{tags}</span>
            </th>
            <td>{source_words(&source)}</td>
            <td class="number">{format::count(measurements)}</td>
            <td class="number">{residual.map_or_else(|| "–".to_owned(), format::percent)}</td>
            <td class="number">{size(bytes)}</td>
            <td class="muted">{format::moment(&created_at)}</td>
            <td class="number"><button class="quiet" aria-label=label on:click=delete>"Delete"</button></td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use api::profile::ProfileSource;

    use super::*;

    #[test]
    fn words_and_tag_must_match() {
        let profile = ProfileSummary {
            id: String::new(),
            name: "A100 operators".into(),
            note: None,
            tags: vec!["lab".into()],
            source: ProfileSource::Files { formats: vec!["nccl-tests".into()] },
            measurements: 1,
            residual: None,
            created_at: String::new(),
            bytes: 0,
        };
        assert!(matches(&profile, "NCCL a100", Some("lab")));
        assert!(!matches(&profile, "h100", None) && !matches(&profile, "", Some("other")));
    }
}
