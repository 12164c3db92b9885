//! The frame around the pages.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;
use wasm_bindgen::JsCast;

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
    provide_context(Explore::new());
    provide_context(Catalogue::new());
    provide_context(Schedules::new());
    // New and stored scenarios are one page.
    let explore = rooms::explore();
    view! {
        <Router>
            <a class="skip" href="#main" on:click=|event| skip(&event)>"Skip to the content"</a>
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
            </Routes>
            <HelpDialog />
        </Router>
    }
}

/// Goes to the content without touching the fragment, which holds the view.
fn skip(event: &web_sys::MouseEvent) {
    event.prevent_default();
    let main = document().get_element_by_id("main").and_then(|main| main.dyn_into::<web_sys::HtmlElement>().ok());
    if let Some(main) = main {
        // A page without content has nothing to go to.
        drop(main.focus());
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
