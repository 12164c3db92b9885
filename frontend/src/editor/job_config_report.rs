//! Import report for the configuration of a training job.

use api::job_config::JobConfig;
use leptos::prelude::*;

use crate::notice::titled_list;

/// Lists the imported, assumed, ignored and unknown settings.
#[component]
pub(super) fn JobConfigReport(
    /// File name and parsed configuration.
    report: RwSignal<Option<(String, JobConfig)>>,
) -> impl IntoView {
    move || {
        report.get().map(|(name, config)| {
            let read = config.read.into_iter().map(|setting| {
                view! { <tr><th scope="row">{setting.setting}</th><td>{setting.value}</td><td><code>{setting.key}</code></td></tr> }
            });
            let read = read.collect::<Vec<_>>();
            let summary = format!("{} settings read", read.len());
            view! {
                <section class="import-report job-config" data-testid="job-config" aria-label="Configuration file" role="status">
                    <span class="files">{name}</span>
                    <b>{config.format.title()}</b>
                    <details>
                        <summary>{summary}</summary>
                        <div class="wide"><table><tbody>{read}</tbody></table></div>
                    </details>
                    {titled_list(view! { <b>"Assumed"</b> }, "", config.assumed)}
                    {titled_list(view! { <b>"Why the framework does not start this job"</b> }, "warning", config.refusals)}
                    {titled_list(view! { <b>"Not modelled"</b> }, "warning", config.not_modelled)}
                    {titled_list(view! { <b>"Keys that are not recognised"</b> }, "warning", config.unknown)}
                    <button class="quiet" on:click=move |_| report.set(None)>"Close"</button>
                </section>
            }
        })
    }
}
