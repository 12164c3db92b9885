//! Page header: navigation, theme switch, export menu on the explore page, and link button.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::copy_link::CopyLink;
use crate::explore::use_explore;
use crate::help;
use crate::lazy_pages;
use crate::links;
use crate::theme::ThemeToggle;

/// Page header.
#[component]
pub(crate) fn Header() -> impl IntoView {
    let explore = use_explore();
    let pathname = use_location().pathname;
    let here = move |page: &str| if pathname.get() == page { Some("page") } else { None };
    // A detail page is below its list page, for example /runs/:id below /runs.
    let below = move |list: &str| {
        let is_below =
            pathname.with(|path| path.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        is_below.then_some("page")
    };
    let menu = lazy_pages::export_menu();
    let explores = move || explore.on_page();
    // Links to the current exploration instead of an empty page.
    let explore_link = move || {
        let contained = || explore.unsaved.get().map(|fragment| format!("/c/#{fragment}"));
        explore.link().or_else(contained).unwrap_or_else(|| "/new".to_owned())
    };
    // On the explore page the link does nothing, because the router would rebuild the page.
    let stay = move |event: web_sys::MouseEvent| {
        if untrack(explores) && links::is_plain(&event) {
            event.prevent_default();
        }
    };
    view! {
        <header class="bar">
            <a class="brand" href="/" aria-current=move || here("/")>
                <svg viewBox="0 0 20 16" width="20" height="16" aria-hidden="true">
                    <rect x="0" y="0" width="9" height="4" rx="1" fill="#0072B2" />
                    <rect x="10" y="0" width="6" height="4" rx="1" fill="#EE6677" />
                    <rect x="3" y="6" width="7" height="4" rx="1" fill="#0072B2" />
                    <rect x="11" y="6" width="9" height="4" rx="1" fill="#EE6677" />
                    <rect x="6" y="12" width="5" height="4" rx="1" fill="#0072B2" />
                    <rect x="12" y="12" width="6" height="4" rx="1" fill="#EE6677" />
                </svg>
                "Planscope"
            </a>
            <nav aria-label="Pages">
                <a href="/check" aria-current=move || here("/check")>"Check"</a>
                <a href=explore_link on:click=stay aria-current=move || explores().then_some("page")>"Explore"</a>
                <a href="/schedules" aria-current=move || here("/schedules")>"Schedules"</a>
                <a href="/scenarios" aria-current=move || here("/scenarios").or(here("/plans"))>"Scenarios"</a>
                <a href="/sweeps" aria-current=move || below("/sweeps")>"Sweeps"</a>
                <a href="/datasets" aria-current=move || here("/datasets")>"Datasets"</a>
                <a href="/runs" aria-current=move || below("/runs")>"Runs"</a>
                <a href="/traces" aria-current=move || below("/traces")>"Traces"</a>
                <a href="/profiles" aria-current=move || below("/profiles")>"Profiles"</a>
                <a href="/papers" aria-current=move || below("/papers")>"Papers"</a>
                <a href="/accuracy" aria-current=move || here("/accuracy")>"Accuracy"</a>
            </nav>
            <span class="grow"></span>
            <button class="icon" on:click=|_| help::open() title="Keys (?)" aria-label="Help: keys">
                <b aria-hidden="true">"?"</b>
            </button>
            <ThemeToggle />
            <Show when=explores>{menu.part()}</Show>
            <CopyLink />
        </header>
    }
}
