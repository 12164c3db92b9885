//! The frame around the pages.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;
use wasm_bindgen::JsCast;

use crate::catalogue::Catalogue;
use crate::explore::Explore;
use crate::header::Header;
use crate::help::HelpDialog;
use crate::pages::accuracy::AccuracyPage;
use crate::pages::contained::ContainedPage;
use crate::pages::datasets::DatasetsPage;
use crate::pages::explore::ExplorePage;
use crate::pages::gallery::GalleryPage;
use crate::pages::papers::PapersPage;
use crate::pages::papers::paper::PaperPage;
use crate::pages::plans::PlansPage;
use crate::pages::profile::ProfilePage;
use crate::pages::profiles::ProfilesPage;
use crate::pages::run::RunPage;
use crate::pages::runs::RunsPage;
use crate::pages::scenarios::ScenariosPage;
use crate::pages::schedules::SchedulesPage;
use crate::pages::sweep::SweepPage;
use crate::pages::sweeps::SweepsPage;
use crate::pages::trace::TracePage;
use crate::pages::traces::TracesPage;
use crate::schedules::Schedules;

/// The whole dashboard.
#[component]
pub(crate) fn App() -> impl IntoView {
    provide_context(Explore::new());
    provide_context(Catalogue::new());
    provide_context(Schedules::new());
    view! {
        <Router>
            <a class="skip" href="#main" on:click=|event| skip(&event)>"Skip to the content"</a>
            <Header />
            <Routes fallback=NotFound>
                <Route path=path!("/") view=GalleryPage />
                <Route path=path!("/new") view=ExplorePage />
                <Route path=path!("/s/:id") view=ExplorePage />
                <Route path=path!("/c") view=ContainedPage />
                <Route path=path!("/schedules") view=SchedulesPage />
                <Route path=path!("/scenarios") view=ScenariosPage />
                <Route path=path!("/plans") view=PlansPage />
                <Route path=path!("/datasets") view=DatasetsPage />
                <Route path=path!("/traces") view=TracesPage />
                <Route path=path!("/traces/:id") view=TracePage />
                <Route path=path!("/runs") view=RunsPage />
                <Route path=path!("/runs/:id") view=RunPage />
                <Route path=path!("/profiles") view=ProfilesPage />
                <Route path=path!("/profiles/:id") view=ProfilePage />
                <Route path=path!("/sweeps") view=SweepsPage />
                <Route path=path!("/sweeps/:id") view=SweepPage />
                <Route path=path!("/papers") view=PapersPage />
                <Route path=path!("/papers/:id") view=PaperPage />
                <Route path=path!("/accuracy") view=AccuracyPage />
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
