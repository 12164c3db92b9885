//! The frame around the pages.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::hooks::use_location;
use leptos_router::location::Location;
use leptos_router::path;
use wasm_bindgen::{JsCast, JsValue};

use crate::catalogue::Catalogue;
use crate::explore::Explore;
use crate::header::Header;
use crate::help::HelpDialog;
use crate::pages::gallery::GalleryPage;
use crate::rooms;
use crate::schedules::Schedules;

/// The whole dashboard.
#[component]
pub(crate) fn App() -> impl IntoView {
    let open_scenario = Explore::new();
    provide_context(open_scenario);
    provide_context(Catalogue::new());
    provide_context(Schedules::new());
    // New and stored scenarios are one page.
    let explore = rooms::explore();
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
                <Route path=path!("/new") view=explore.page() />
                <Route path=path!("/s/:id") view=explore.page() />
                <Route path=path!("/c") view=rooms::contained().page() />
                <Route path=path!("/schedules") view=rooms::schedules().page() />
                <Route path=path!("/scenarios") view=rooms::scenarios().page() />
                <Route path=path!("/plans") view=rooms::plans().page() />
                <Route path=path!("/datasets") view=rooms::datasets().page() />
                <Route path=path!("/traces") view=rooms::traces().page() />
                <Route path=path!("/traces/:id") view=rooms::trace().page() />
                <Route path=path!("/runs") view=rooms::runs().page() />
                <Route path=path!("/runs/:id") view=rooms::run().page() />
                <Route path=path!("/profiles") view=rooms::profiles().page() />
                <Route path=path!("/profiles/:id") view=rooms::profile().page() />
                <Route path=path!("/sweeps") view=rooms::sweeps().page() />
                <Route path=path!("/sweeps/:id") view=rooms::sweep().page() />
                <Route path=path!("/papers") view=rooms::papers().page() />
                <Route path=path!("/papers/:id") view=rooms::paper().page() />
                <Route path=path!("/accuracy") view=rooms::accuracy().page() />
                <Route path=path!("/access") view=rooms::access().page() />
            </Routes>
            <HelpDialog />
            <Steps />
        </Router>
    }
}

/// Sees to it that whoever follows a link takes a step in the browser's history.
///
/// Pages write their addresses past the router. A step back to such an address is none that it knows, and it pushes no link to
/// where it believes to stand since the step before: the page came, under the address of the other.
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
        // The router writes before the next frame, and the browser has written already where it takes a step itself.
        request_animation_frame(move || {
            let to = pathname.get_untracked();
            if address() != before || before.as_ref() == Some(&to) {
                return;
            }
            let search =
                search.with_untracked(|search| if search.is_empty() { String::new() } else { format!("?{search}") });
            let link = format!("{to}{search}{}", hash.get_untracked());
            if let Ok(history) = window().history() {
                // A refusal leaves the old address, as the router did.
                drop(history.push_state_with_url(&JsValue::NULL, "", Some(&link)));
            }
        });
    });
}

/// Moves the focus to an element, or to the content if the element is missing, without touching the fragment, which holds the view.
fn skip(event: &web_sys::MouseEvent, id: &str) {
    event.prevent_default();
    let find = |id: &str| document().get_element_by_id(id)?.dyn_into::<web_sys::HtmlElement>().ok();
    if let Some(target) = find(id).or_else(|| find("main")) {
        target.scroll_into_view();
        // A browser that refuses the focus has scrolled at least.
        drop(target.focus());
    }
}

#[component]
fn NotFound() -> impl IntoView {
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"There is no such page"</h1>
            <p><a href="/">"Ready scenarios"</a>" · "<a href="/scenarios">"Stored scenarios"</a></p>
        </main>
    }
}
