//! Profile page: effect on a scenario, quality of the fit, and a form that applies the profile.

use std::sync::Arc;

use api::path;
use api::planner::cluster::Cluster;
use api::profile::{AppliedProfile, ApplyProfile, FittedPart, Profile, ProfileEffect, ProfileSource};
use api::scenario::{ScenarioLine, ScenarioList, StoredScenario};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::charts::FitChart;
use crate::client::{self, Body, RequestError};
use crate::form::restore_text;
use crate::format;
use crate::listing::parse_tags;
use crate::notice::ErrorNotice;
use crate::profiles::{
    ChangeTable, EffectSummary, Factors, change_words, changes, is_parameter_line, line_text, residual_text,
    source_text, split_detail,
};
use crate::recent::{self, Opened};
use crate::resource_page::{Kind, ResourcePage};
use crate::runs::size;

#[component]
pub(crate) fn ProfilePage() -> impl IntoView {
    let show = |profile: Arc<Profile>| view! { <Detail profile=Arc::unwrap_or_clone(profile) /> }.into_any();
    view! {
        <main id="main" class="page" tabindex="-1">
            <ResourcePage kind=Kind { noun: "profile", list: "/profiles" } url=path::profile show=show />
        </main>
    }
}

#[component]
fn Detail(profile: Profile) -> impl IntoView {
    let Profile { summary, effect, parts, report, factors } = profile;
    document().set_title(&format!("{} · Planscope", summary.name));
    let last_error = RwSignal::new(None::<RequestError>);
    let url = path::profile(&summary.id);
    let change = Callback::new(move |(field, value): (&'static str, serde_json::Value)| {
        let (url, body) = (url.clone(), serde_json::json!({ field: value }).to_string());
        spawn_local(async move {
            let response = client::submit("PATCH", &url, Body::Json(body)).await;
            last_error.try_set(response.err());
        });
    });
    let name = StoredValue::new(summary.name.clone());
    let rename = move |event: web_sys::Event| {
        let typed = event_target_value(&event).trim().to_owned();
        if typed.is_empty() {
            restore_text(&event, &name.get_value());
        } else {
            name.set_value(typed.clone());
            change.run(("name", typed.into()));
        }
    };
    let source = match &summary.source {
        ProfileSource::Files { .. } => view! { <span>{source_text(&summary.source)}</span> }.into_any(),
        ProfileSource::Run { run, scenario } => {
            let short = scenario.get(..10).unwrap_or(scenario).to_owned();
            view! { <span>"from a "<a href=path::run_page(run)>"run"</a>" compared with "<a href=path::share(&short)>"its scenario"</a></span> }.into_any()
        }
    };
    let residual_name = match &summary.source {
        ProfileSource::Run { .. } => residual_name("step"),
        ProfileSource::Files { .. } => residual_name(""),
    };
    let residual =
        summary.residual.map(|residual| format!(", {residual_name} {}", residual_text(residual))).unwrap_or_default();
    let facts = format!(
        "{}{residual}, {}, stored {} UTC",
        measurements_text(summary.measurements, &parts),
        size(summary.bytes),
        format::moment(&summary.created_at)
    );
    let cluster = match &effect {
        ProfileEffect::Cluster { cluster } => Some((**cluster).clone()),
        ProfileEffect::Overrides { .. } => None,
    };
    let (silent, parts): (Vec<FittedPart>, Vec<FittedPart>) =
        parts.into_iter().partition(|part| !part.fitted && part.samples == 0);
    let silent: Vec<String> = silent.into_iter().map(|part| part.name).collect();
    let silent = (!silent.is_empty())
        .then(|| view! { <p class="muted">{format!("No timings, so nothing changes: {}.", silent.join(", "))}</p> });
    let parts = parts.into_iter().map(|part| view! { <Part part=part /> }).collect_view();
    let (parameters, report): (Vec<String>, Vec<String>) = report.into_iter().partition(|line| is_parameter_line(line));
    let lines = |lines: Vec<String>| lines.into_iter().map(|line| view! { <li>{line_text(&line)}</li> }).collect_view();
    let report = lines(report);
    let parameters = (!parameters.is_empty()).then(|| {
        view! { <details class="advanced"><summary>"Changed parameters"</summary><ul class="notes">{lines(parameters)}</ul></details> }
    });
    view! {
        <div class="title-row">
            <h1>
                <span class="visually-hidden">{summary.name.clone()}</span>
                <input class="title" data-testid="profile-title" aria-label="Name of the profile" maxlength="120" autocomplete="off" spellcheck="false" prop:value=summary.name.clone() on:change=rename />
            </h1>
        </div>
        <div class="run-status">{source}<span class="muted">{facts}</span></div>
        <div class="run-labels">
            <label>
                <span>"Tags"</span>
                <input placeholder="none; several by commas" prop:value=summary.tags.join(", ") on:change=move |event| change.run(("tags", parse_tags(&event_target_value(&event)).into())) />
            </label>
            <label>
                <span>"Note"</span>
                <input placeholder="none" maxlength="2000" prop:value=summary.note.clone().unwrap_or_default() on:change=move |event| change.run(("note", event_target_value(&event).trim().into())) />
            </label>
        </div>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        <section class="card">
            <header class="card-title"><h2>"What it does"</h2></header>
            <EffectSummary effect=effect />
            <Factors factors=factors />
            <UseIt profile=summary.id.clone() cluster=cluster />
        </section>
        {parts}
        <section class="card">
            <header class="card-title"><h2>"What was read"</h2></header>
            <ul class="notes" data-testid="profile-lines">{report}</ul>
            {parameters}
            {silent}
        </section>
    }
}

/// Names the measurements, and how many of them are in fitted parts: the residual is that of these.
fn measurements_text(measurements: u64, parts: &[FittedPart]) -> String {
    let used: u64 = parts.iter().filter(|part| part.fitted).map(|part| part.samples).sum();
    let all = format::counted(measurements, "measurement", "measurements");
    if used == 0 || used >= measurements { all } else { format!("{} of {all} fitted", format::count(used)) }
}

/// Form that applies the profile to a stored scenario and creates a new scenario.
#[component]
fn UseIt(profile: String, cluster: Option<Cluster>) -> impl IntoView {
    let lines = RwSignal::new(Vec::<ScenarioLine>::new());
    let selected = RwSignal::new(String::new());
    let before = RwSignal::new(None::<Cluster>);
    let last_error = RwSignal::new(None::<RequestError>);
    let is_pending = RwSignal::new(false);
    let applied = RwSignal::new(None::<AppliedProfile>);
    spawn_local(async move {
        match client::get::<ScenarioList>(path::SCENARIOS).await {
            Ok(list) => drop(lines.try_set(list.scenarios)),
            Err(problem) => drop(last_error.try_set(Some(problem))),
        }
    });
    let fitted = StoredValue::new(cluster);
    let choose = move |event| {
        let id = event_target_value(&event);
        selected.set(id.clone());
        before.set(None);
        applied.set(None);
        last_error.set(None);
        if id.is_empty() || fitted.with_value(Option::is_none) {
            return;
        }
        spawn_local(async move {
            // If this request fails, the preview is missing. The new scenario still lists its
            // changes.
            let Ok(stored) = client::get::<StoredScenario>(&path::scenario(&id)).await else { return };
            if selected.try_get_untracked().as_ref() == Some(&id) {
                before.set(Some(stored.scenario.cluster));
            }
        });
    };
    let apply = move |_| {
        let body = serde_json::to_string(&ApplyProfile { scenario: selected.get_untracked() });
        let (url, Ok(body)) = (path::profile_apply(&profile), body) else { return };
        is_pending.set(true);
        last_error.set(None);
        spawn_local(async move {
            let response = client::send::<AppliedProfile>("POST", &url, Body::Json(body)).await;
            if is_pending.try_set(false).is_some() {
                return;
            }
            match response {
                Ok(created) => applied.set(Some(created)),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let difference = move || {
        let before = before.get()?;
        let changes = fitted.with_value(|after| after.as_ref().map(|after| changes(&before, after)))?;
        Some(view! { <div data-testid="profile-changes"><ChangeTable changes=changes now="now" /></div> })
    };
    let options = move || {
        let option =
            |line: ScenarioLine| view! { <option value=line.id>{format!("{} ({})", line.title, line.short)}</option> };
        lines.get().into_iter().map(option).collect_view()
    };
    // Drafts that were opened in this browser and are not saved.
    let drafts = Memo::new(move |_| {
        let saved = lines.get();
        let is_draft = |opened: &Opened| saved.iter().all(|line| line.id != opened.id);
        recent::opened().into_iter().filter(is_draft).collect::<Vec<_>>()
    });
    let draft_options = move || {
        let option = |draft: Opened| {
            view! { <option value=draft.id>{format!("{} ({})", draft.title, draft.short)}</option> }
        };
        let options = drafts.get().into_iter().map(option).collect_view();
        (!drafts.with(Vec::is_empty)).then(|| view! { <optgroup label="Recently opened">{options}</optgroup> })
    };
    let has_none = move || lines.with(Vec::is_empty) && drafts.with(Vec::is_empty);
    view! {
        <p class="actions use-profile">
            <label for="use-in">"Use it in"</label>
            <select id="use-in" data-testid="use-in" on:change=choose>
                <option value="">"a scenario…"</option>
                {options}
                {draft_options}
            </select>
            <button class="primary" data-testid="apply-profile" disabled=move || is_pending.get() || selected.with(String::is_empty) on:click=apply>"Create a scenario with this profile"</button>
        </p>
        <Show when=has_none>
            <p class="hint">"No scenario is saved or was opened in this browser. "<a href="/#ready">"Open a scenario"</a>", then choose it here."</p>
        </Show>
        {difference}
        {move || applied.get().map(|profile| view! { <Applied profile=profile /> })}
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}

/// Link to the new scenario, and its changes.
#[component]
fn Applied(profile: AppliedProfile) -> impl IntoView {
    let AppliedProfile { scenario, changes } = profile;
    let short = scenario.get(..10).unwrap_or(&scenario).to_owned();
    let lines = changes.into_iter().map(|line| view! { <li>{change_words(&line)}</li> }).collect_view();
    view! {
        <div class="import-report" role="status" data-testid="applied">
            <b><a href=path::share(&short)>"Open the new scenario"</a></b>
            <ul>{lines}</ul>
        </div>
    }
}

/// Names the residual of a part. That of a run is the scatter of its steps around the fitted step.
fn residual_name(size_name: &str) -> &'static str {
    if size_name == "step" { "scatter of the steps" } else { "mean error" }
}

#[component]
fn Part(part: FittedPart) -> impl IntoView {
    let FittedPart { name, fitted, detail, residual, size_name, points, samples: _ } = part;
    let fit_status = match (fitted, residual) {
        (false, _) => "not fitted".to_owned(),
        (true, None) => "fitted".to_owned(),
        (true, Some(residual)) => format!("{} {}", residual_name(&size_name), residual_text(residual)),
    };
    // The title already contains the name.
    let detail = detail.strip_prefix(&format!("{name}: ")).unwrap_or(&detail);
    let (result, parameters) = split_detail(detail);
    let result = format::sentence(&result.join("; "));
    let parameters = (!parameters.is_empty()).then(|| {
        let lines = parameters.into_iter().map(|line| view! { <li>{line}</li> }).collect_view();
        view! { <details class="advanced"><summary>"Parameters of the fit"</summary><ul class="notes">{lines}</ul></details> }
    });
    let chart = (!points.is_empty())
        .then(|| view! { <FitChart points=Signal::stored(points) size_name=size_name name=name.clone() /> });
    view! {
        <section class="card" data-testid="fitted-part">
            <header class="card-title"><h2>{name}</h2><span class="muted">{fit_status}</span></header>
            <p>{result}</p>
            {chart}
            {parameters}
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_are_not_fitted_are_named() {
        let part = |fitted: bool, samples: u64| FittedPart {
            name: String::new(),
            samples,
            fitted,
            detail: String::new(),
            residual: None,
            size_name: String::new(),
            points: Vec::new(),
        };
        let parts = [part(true, 4_176), part(false, 6_264)];
        assert_eq!(measurements_text(10_440, &parts), "4,176 of 10,440 measurements fitted");
        assert_eq!(measurements_text(4_176, &parts[..1]), "4,176 measurements");
        assert_eq!(measurements_text(10_440, &[part(true, 0)]), "10,440 measurements", "an earlier version");
    }
}
