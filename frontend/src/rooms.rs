//! The rooms of the dashboard: pages whose code is fetched when they are first shown (ADR 38).
//!
//! Only the frame and the gallery are in the module that every visitor loads. Each function below is cut out of it by the
//! build, with everything that nothing else needs; what some rooms share is fetched with the first of them. A function hands
//! out the page as a pointer, so that the page itself is made where the router is, in the right owner.

use std::future::Future;
use std::pin::Pin;

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};

use crate::export_menu::ExportMenu;
use crate::pages::access::AccessPage;
use crate::pages::accuracy::AccuracyPage;
use crate::pages::contained::ContainedPage;
use crate::pages::datasets::DatasetsPage;
use crate::pages::explore::ExplorePage;
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

/// Makes a page, wherever its code came from.
type Make = fn() -> AnyView;

type Fetched = Pin<Box<dyn Future<Output = Result<Make, SplitLoaderError>>>>;

/// Declares what is cut out: a room, the part of the program that it is in, and its view.
macro_rules! rooms {
    ($($(#[$doc:meta])* $room:ident in $part:ident is $view:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $room() -> Room {
            #[wasm_split($part, wasm_split_path = ::leptos::wasm_split, fallible)]
            fn $room() -> Result<Make, SplitLoaderError> {
                Ok(|| view! { <$view /> }.into_any())
            }
            Room::new(|| Box::pin($room()))
        }
    )*};
}

rooms! {
    /// The explore page.
    explore in explore is ExplorePage;
    /// The page of a link that holds its scenario.
    contained in explore is ContainedPage;
    /// What the bar at the top shows on the explore page.
    export_menu in explore is ExportMenu;
    /// The page of schedules.
    schedules in schedules is SchedulesPage;
    /// Stored scenarios.
    scenarios in scenarios is ScenariosPage;
    /// Stored plans.
    plans in plans is PlansPage;
    /// Uploaded datasets.
    datasets in datasets is DatasetsPage;
    /// Uploaded traces.
    traces in traces is TracesPage;
    /// One trace.
    trace in trace is TracePage;
    /// Observed runs.
    runs in runs is RunsPage;
    /// One run.
    run in run is RunPage;
    /// Measured profiles.
    profiles in profiles is ProfilesPage;
    /// One profile.
    profile in profile is ProfilePage;
    /// Sweeps.
    sweeps in sweeps is SweepsPage;
    /// One sweep.
    sweep in sweep is SweepPage;
    /// Papers.
    papers in papers is PapersPage;
    /// One paper.
    paper in papers is PaperPage;
    /// How accurate predictions are.
    accuracy in accuracy is AccuracyPage;
    /// Session, tokens and audit.
    access in access is AccessPage;
}

#[derive(Clone, Copy)]
enum Code {
    /// On its way.
    Coming,
    /// There.
    Here(Make),
    /// Not to be had.
    Missing,
}

/// A page and where its code stands; lives as long as the dashboard.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    fetch: fn() -> Fetched,
    code: RwSignal<Code>,
}

impl Room {
    fn new(fetch: fn() -> Fetched) -> Self {
        Self { fetch, code: RwSignal::new(Code::Coming) }
    }

    /// The room as a page.
    pub(crate) fn page(self) -> impl Fn() -> AnyView + Clone + Send + 'static {
        move || self.view(|| view! { <Coming /> }.into_any(), move || view! { <Missing room=self /> }.into_any())
    }

    /// The room as a part of another page, which can do without it.
    pub(crate) fn part(self) -> AnyView {
        self.view(|| ().into_any(), || ().into_any())
    }

    fn view(self, coming: Make, missing: impl Fn() -> AnyView + Send + 'static) -> AnyView {
        // At a second visit nothing flashes.
        if let Code::Here(make) = self.code.get_untracked() {
            return make();
        }
        self.enter();
        let shown = move || match self.code.get() {
            Code::Coming => coming(),
            Code::Here(make) => untrack(make),
            Code::Missing => missing(),
        };
        shown.into_any()
    }

    fn enter(self) {
        self.code.set(Code::Coming);
        spawn_local(async move {
            let code = match (self.fetch)().await {
                Ok(make) => Code::Here(make),
                Err(_) => Code::Missing,
            };
            self.code.set(code);
        });
    }
}

/// What stands where a page will be.
#[component]
fn Coming() -> impl IntoView {
    view! {
        <main id="main" class="page" tabindex="-1" aria-busy="true" data-testid="room-coming">
            <h1 class="visually-hidden">"Opening"</h1>
            <div class="skeleton results-skeleton" aria-hidden="true"></div>
        </main>
    }
}

/// A page whose code cannot be had: the server is gone, or a newer one has other names for it.
#[component]
fn Missing(room: Room) -> impl IntoView {
    document().set_title("Not loaded · Planscope");
    // A browser that refuses to reload leaves the page as it is.
    let reload = move |_| drop(window().location().reload());
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"This page could not be loaded"</h1>
            <div class="notice bad" role="alert" data-testid="room-missing">
                <p>"The server cannot be reached, or it is another version than these pages. Reload to get its pages; what is stored stays."</p>
                <button class="primary" on:click=reload>"Reload"</button>
                <button on:click=move |_| room.enter()>"Try again"</button>
            </div>
        </main>
    }
}
