//! Uploads measurement files. Files are fitted separately or together.

use std::collections::VecDeque;

use api::path;
use api::profile::{OTHER_DEVICE, Profile};
use api::scenario::{ScenarioLine, ScenarioList};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::catalogue::use_catalogue;
use crate::client::{self, RequestError};
use crate::drop::FileDrop;
use crate::file_uploads::FileUploads;
use crate::format;
use crate::notice::ErrorNotice;
use crate::profiles::{ProfileLink, line_text, residual_text};

/// Upload options that the files do not contain.
#[derive(Debug, Clone, Default, PartialEq)]
struct Options {
    device: String,
    scenario: String,
    ranks: String,
    together: bool,
    /// True if the user confirms files from a different device.
    confirmed: bool,
}

/// URL for an upload. `onto` is the profile to extend with the file; `encode` escapes a query
/// value.
fn url(name: &str, options: &Options, onto: Option<&str>, encode: impl Fn(&str) -> String) -> String {
    let mut url = format!("{}?name={}", path::PROFILES, encode(name));
    let given = [
        ("device", options.device.as_str()),
        ("scenario", options.scenario.as_str()),
        ("ranks", options.ranks.trim()),
        ("onto", onto.unwrap_or_default()),
    ];
    if options.confirmed {
        url.push_str("&confirm_device=true");
    }
    for (key, value) in given.into_iter().filter(|(_, value)| !value.is_empty()) {
        url.push('&');
        url.push_str(key);
        url.push('=');
        url.push_str(&encode(value));
    }
    url
}

/// True if the server rejected a file because it was measured on a different device.
fn is_device_mismatch(error: &RequestError) -> bool {
    matches!(error, RequestError::Problem(problem) if problem.kind.ends_with(OTHER_DEVICE))
}

/// Drop area for measurement files.
#[component]
pub(super) fn UploadProfile(changed: Callback<()>) -> impl IntoView {
    let options = RwSignal::new(Options::default());
    let is_pending = RwSignal::new(false);
    let sending = FileUploads::new();
    let failures = RwSignal::new(Vec::<(String, RequestError)>::new());
    let stored = RwSignal::new(Vec::<Profile>::new());
    let queue = StoredValue::new_local(VecDeque::<web_sys::File>::new());
    // Rejected files. They are sent again after the user completes the fields below.
    let rejected = StoredValue::new_local(VecDeque::<web_sys::File>::new());
    let work = move || {
        is_pending.set(true);
        failures.set(Vec::new());
        rejected.update_value(VecDeque::clear);
        spawn_local(async move {
            let mut onto = None::<String>;
            // Files are sent sequentially, because a combined fit needs the profile from the
            // previous file.
            while let Some(file) = queue.try_update_value(VecDeque::pop_front).flatten() {
                let requested = options.get_untracked();
                let name = file.name();
                let url = url(&name, &requested, onto.as_deref().filter(|_| requested.together), client::encode);
                // `None`: the user cancelled the upload, which also clears the queue, or left the
                // page.
                let Some(response) = sending.send::<Profile>(&url, file.clone()).await else { break };
                match response {
                    Ok(profile) => {
                        let replaced = onto.replace(profile.summary.id.clone()).filter(|_| requested.together);
                        stored.update(|stored| {
                            stored.retain(|known| Some(&known.summary.id) != replaced.as_ref());
                            stored.insert(0, profile);
                        });
                    }
                    Err(error) => {
                        rejected.update_value(|files| files.push_back(file));
                        failures.update(|failures| failures.push((name, error)));
                    }
                }
            }
            // A confirmation applies to the rejected files only, not to later files.
            options.try_update(|options| options.confirmed = false);
            if is_pending.try_set(false).is_none() {
                changed.run(());
            }
        });
    };
    let take = move |file: web_sys::File| {
        queue.update_value(|queue| queue.push_back(file));
        if !is_pending.get_untracked() {
            work();
        }
    };
    let reports = move || stored.get().into_iter().map(|profile| view! { <Report profile=profile /> }).collect_view();
    let again = Callback::new(move |()| {
        let files = rejected.try_update_value(std::mem::take).unwrap_or_default();
        queue.update_value(|queue| queue.extend(files));
        if !is_pending.get_untracked() {
            work();
        }
    });
    let confirm = move |_| {
        options.update(|options| options.confirmed = true);
        again.run(());
    };
    let refusals = move || {
        let refusal = |(name, error): (String, RequestError)| {
            let other_device = is_device_mismatch(&error).then(|| {
                view! { <button data-testid="confirm-device" on:click=confirm>"Fit the measurements to this device anyway"</button> }
            });
            view! {
                <p class="muted">{name}</p>
                <ErrorNotice error=error on_retry=again />
                {other_device}
            }
        };
        failures.get().into_iter().map(refusal).collect_view()
    };
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose files of measurements".to_owned())
            hint="Kernels and collectives: planscope measure, nccl-tests, all_reduce_bench, aiconfigurator, Vidur, vTrain, SimuMax, Galvatron, or a table of your own. Timed layers: DFLOP, DynaPipe, Galvatron, or by sequence length and scheme (docs/formats.md)"
            test_id="upload-profile"
            sending=sending
            multiple=true
            on_cancel=move |()| queue.update_value(VecDeque::clear)
            on_file=take
        />
        <Unsaid options=options />
        {refusals}
        {reports}
    }
}

/// Fields for information that the files do not contain.
#[component]
fn Unsaid(options: RwSignal<Options>) -> impl IntoView {
    let catalogue = use_catalogue();
    let scenarios = RwSignal::new(Vec::<ScenarioLine>::new());
    spawn_local(async move {
        // If the list request fails, the user can still choose a preset.
        if let Ok(list) = client::get::<ScenarioList>(path::SCENARIOS).await {
            scenarios.try_set(list.scenarios);
        }
    });
    let devices = move || {
        let presets = catalogue.presets.get();
        let names = presets.map(|presets| {
            presets.clusters.iter().map(|preset| (preset.id.clone(), preset.cluster.name.clone())).collect::<Vec<_>>()
        });
        names
            .unwrap_or_default()
            .into_iter()
            .map(|(id, name)| view! { <option value=id>{name}</option> })
            .collect_view()
    };
    let lines = move || {
        let option =
            |line: ScenarioLine| view! { <option value=line.id>{format!("{} ({})", line.title, line.short)}</option> };
        scenarios.get().into_iter().map(option).collect_view()
    };
    view! {
        <div class="upload-fields">
            <div class="choices">
                <label>
                    "Device of the kernel and collective measurements"
                    <select data-testid="measured-device" on:change=move |event| options.update(|options| options.device = event_target_value(&event))>
                        <option value="">"from the file"</option>
                        {devices}
                    </select>
                </label>
                <label>
                    "Or a scenario: its cluster, and its modules for layer timings"
                    <select on:change=move |event| options.update(|options| options.scenario = event_target_value(&event))>
                        <option value="">"none"</option>
                        {lines}
                    </select>
                </label>
                <label>
                    "Devices in each collective"
                    <input inputmode="numeric" placeholder="from the file" on:input=move |event| options.update(|options| options.ranks = event_target_value(&event)) />
                </label>
            </div>
            <label class="check">
                <input type="checkbox" prop:checked=move || options.with(|options| options.together) on:change=move |event| options.update(|options| options.together = event_target_checked(&event)) />
                "Fit all files of one upload as one profile"
            </label>
        </div>
    }
}

#[component]
fn Report(profile: Profile) -> impl IntoView {
    let measurements = format::counted(profile.summary.measurements, "measurement", "measurements");
    let error = profile.summary.residual.map(|residual| format!(", mean error {}", residual_text(residual)));
    let lines = profile.report.into_iter().map(|line| view! { <li>{line_text(&line)}</li> }).collect_view();
    view! {
        <div class="import-report" role="status" data-testid="profile-report">
            <b><ProfileLink summary=profile.summary /></b>
            <span>{measurements}{error}</span>
            <details><summary>"What was read and fitted"</summary><ul>{lines}</ul></details>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_contains_only_given_options() {
        let encode = |text: &str| text.replace(' ', "%20");
        assert_eq!(url("a b.csv", &Options::default(), None, encode), "/api/v1/profiles?name=a%20b.csv");
        let options = Options { device: "a100-80gb".into(), ranks: " 8 ".into(), ..Options::default() };
        assert_eq!(url("x", &options, Some("p1"), encode), "/api/v1/profiles?name=x&device=a100-80gb&ranks=8&onto=p1");
        let confirmed = Options { device: "h100".into(), confirmed: true, ..Options::default() };
        assert_eq!(url("x", &confirmed, None, encode), "/api/v1/profiles?name=x&confirm_device=true&device=h100");
    }
}
