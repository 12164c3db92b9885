//! What was read from the configuration, assumed, and not understood.

use std::sync::Arc;

use api::check::Check;
use leptos::prelude::*;

use crate::check::Checked;
use crate::format;
use crate::notice::titled_list;

/// Settings of the file, assumptions, and everything that the result does not include.
#[component]
pub(super) fn ReadPanel(checked: Arc<Checked>) -> impl IntoView {
    let Check { read, assumed, not_modelled, unknown, .. } = checked.check.clone();
    let plain = |lines: Vec<String>| lines.iter().map(|line| format::grouped_in(line)).collect();
    let count = read.len();
    let settings = read.into_iter().map(|setting| {
        view! {
            <li>
                <code>{setting.key}</code>
                <span class="value">{setting.value}</span>
                <small>{setting.setting}</small>
            </li>
        }
    });
    let settings = settings.collect::<Vec<_>>();
    view! {
        <aside class="card check-read" aria-label="What was read" data-testid="check-read">
            <header class="card-title"><h2>"Read from the file"</h2><span class="muted">{format::counted(count as u64, "setting", "settings")}</span></header>
            {titled_list(view! { <h3>"Assumed"</h3> }, "", plain(assumed))}
            {titled_list(view! { <h3>"Not modelled"</h3> }, "warning", plain(not_modelled))}
            {titled_list(view! { <h3>"Keys that are not recognised"</h3> }, "warning", unknown)}
            {(count > 0).then(|| view! { <h3>"Read"</h3><ul class="check-settings">{settings}</ul> })}
        </aside>
    }
}
