//! Root component: router, header and help dialog.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::hooks::use_location;
use leptos_router::location::Location;
use leptos_router::path;
use wasm_bindgen::{JsCast, JsValue};

use crate::catalogue::Catalogue;
use crate::check::CheckState;
use crate::explore::Explore;
use crate::header::Header;
use crate::help::HelpDialog;
use crate::lazy_pages;
use crate::pages::gallery::GalleryPage;
use crate::resource_page::MissingObject;
use crate::schedules::Schedules;

/// Root component of the dashboard.
#[component]
pub(crate) fn App() -> impl IntoView {
    let open_scenario = Explore::new();
    provide_context(open_scenario);
    provide_context(Catalogue::new());
    provide_context(Schedules::new());
    provide_context(CheckState::new());
    provide_context(MissingObject::new());
    // New and stored scenarios use the same page component.
    let explore = lazy_pages::explore();
    view! {
        <Router>
            <a class="skip" href="#main" on:click=|event| skip(&event, "main")>"Skip to the content"</a>
            <Show when=move || open_scenario.on_page()>
                <a class="skip" href="#results" data-testid="skip-to-results" on:click=|event| skip(&event, "results")>
                    "Skip to the results"
                </a>
            </Show>
            <Header />
            <Routes fallback=NotFound>
                <Route path=path!("/") view=GalleryPage />
                <Route path=path!("/check") view=lazy_pages::check().page() />
                <Route path=path!("/new") view=explore.page() />
                <Route path=path!("/s/:id") view=explore.page() />
                <Route path=path!("/c") view=lazy_pages::contained().page() />
                <Route path=path!("/schedules") view=lazy_pages::schedules().page() />
                <Route path=path!("/scenarios") view=lazy_pages::scenarios().page() />
                <Route path=path!("/plans") view=lazy_pages::plans().page() />
                <Route path=path!("/datasets") view=lazy_pages::datasets().page() />
                <Route path=path!("/traces") view=lazy_pages::traces().page() />
                <Route path=path!("/traces/compare") view=lazy_pages::trace_comparison().page() />
                <Route path=path!("/traces/:id") view=lazy_pages::trace().page() />
                <Route path=path!("/runs") view=lazy_pages::runs().page() />
                <Route path=path!("/runs/:id") view=lazy_pages::run().page() />
                <Route path=path!("/profiles") view=lazy_pages::profiles().page() />
                <Route path=path!("/profiles/:id") view=lazy_pages::profile().page() />
                <Route path=path!("/sweeps") view=lazy_pages::sweeps().page() />
                <Route path=path!("/sweeps/:id") view=lazy_pages::sweep().page() />
                <Route path=path!("/papers") view=lazy_pages::papers().page() />
                <Route path=path!("/papers/:id") view=lazy_pages::paper().page() />
                <Route path=path!("/accuracy") view=lazy_pages::accuracy().page() />
                <Route path=path!("/access") view=lazy_pages::access().page() />
            </Routes>
            <HelpDialog />
            <Steps />
        </Router>
    }
}

/// Pushes a browser history entry when a user follows a link and the router does not push it.
///
/// Pages write the address bar without the router. After the user navigates back to such an
/// address, the router still has an old location and skips the push for links to this location. The
/// page then changes, but the address bar shows the previous address.
#[component]
fn Steps() -> impl IntoView {
    let Location { pathname, search, hash, .. } = use_location();
    let address = || window().location().pathname().ok();
    Effect::new(move |earlier: Option<()>| {
        pathname.track();
        if earlier.is_none() {
            return;
        }
        let before = address();
        // The router writes the address before the next frame. After a back or forward navigation
        // the browser has already written it.
        request_animation_frame(move || {
            let to = pathname.get_untracked();
            if address() != before || before.as_ref() == Some(&to) {
                return;
            }
            let search =
                search.with_untracked(|search| if search.is_empty() { String::new() } else { format!("?{search}") });
            let link = format!("{to}{search}{}", hash.get_untracked());
            if let Ok(history) = window().history() {
                // If the browser rejects the call, the old address stays, as in the router.
                drop(history.push_state_with_url(&JsValue::NULL, "", Some(&link)));
            }
        });
    });
}

/// Moves the focus to an element, or to the main content if the element is missing. Does not change
/// the URL fragment, because the fragment encodes the view.
fn skip(event: &web_sys::MouseEvent, id: &str) {
    event.prevent_default();
    let find = |id: &str| document().get_element_by_id(id)?.dyn_into::<web_sys::HtmlElement>().ok();
    if let Some(target) = find(id).or_else(|| find("main")) {
        target.scroll_into_view();
        // If the browser rejects the focus, the page is still scrolled to the element.
        drop(target.focus());
    }
}

#[component]
fn NotFound() -> impl IntoView {
    document().set_title("Not found · Planscope");
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"There is no such page"</h1>
            <p><a href="/">"Ready scenarios"</a>" · "<a href="/scenarios">"Stored scenarios"</a></p>
        </main>
    }
}
