//! Lazily loaded pages: the browser downloads the code of a page at the first visit (ADR 38).
//!
//! The initial module contains only the frame and the start page. The build splits each function
//! below into a separate module, together with all code that is used only there. Code shared by
//! several pages is downloaded with the first of these pages. A function returns the page as a
//! function pointer, so that the router creates the page with the correct reactive owner.

use std::future::Future;
use std::pin::Pin;

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};

use crate::export_menu::ExportMenu;
use crate::pages::access::AccessPage;
use crate::pages::accuracy::AccuracyPage;
use crate::pages::check::CheckPage;
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
use crate::pages::trace_comparison::TraceComparisonPage;
use crate::pages::traces::TracesPage;

/// Creates the page.
type Make = fn() -> AnyView;

type Fetched = Pin<Box<dyn Future<Output = Result<Make, SplitLoaderError>>>>;

/// Declares lazily loaded pages: function name, module name, component.
macro_rules! lazy_pages {
    ($($(#[$doc:meta])* $page:ident in $part:ident is $view:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $page() -> LazyPage {
            #[wasm_split($part, wasm_split_path = ::leptos::wasm_split, fallible)]
            fn $page() -> Result<Make, SplitLoaderError> {
                Ok(|| view! { <$view /> }.into_any())
            }
            LazyPage::new(|| Box::pin($page()))
        }
    )*};
}

lazy_pages! {
    check in check is CheckPage;
    explore in explore is ExplorePage;
    /// Page for links that contain a scenario.
    contained in explore is ContainedPage;
    /// Export menu in the header on the explore page.
    export_menu in explore is ExportMenu;
    schedules in schedules is SchedulesPage;
    scenarios in scenarios is ScenariosPage;
    plans in plans is PlansPage;
    datasets in datasets is DatasetsPage;
    traces in traces is TracesPage;
    trace in trace is TracePage;
    trace_comparison in trace_comparison is TraceComparisonPage;
    runs in runs is RunsPage;
    run in run is RunPage;
    profiles in profiles is ProfilesPage;
    profile in profile is ProfilePage;
    sweeps in sweeps is SweepsPage;
    sweep in sweep is SweepPage;
    papers in papers is PapersPage;
    paper in papers is PaperPage;
    accuracy in accuracy is AccuracyPage;
    /// User session, tokens and audit log.
    access in access is AccessPage;
}

#[derive(Clone, Copy)]
enum Code {
    /// Loading.
    Loading,
    /// Loaded.
    Loaded(Make),
    /// Loading failed.
    Failed,
}

/// Page with the load state of its code. It exists until the dashboard closes.
#[derive(Clone, Copy)]
pub(crate) struct LazyPage {
    fetch: fn() -> Fetched,
    code: RwSignal<Code>,
}

impl LazyPage {
    fn new(fetch: fn() -> Fetched) -> Self {
        Self { fetch, code: RwSignal::new(Code::Loading) }
    }

    /// Returns the view as a page.
    pub(crate) fn page(self) -> impl Fn() -> AnyView + Clone + Send + 'static {
        move || {
            self.view(|| view! { <LoadingPage /> }.into_any(), move || view! { <LoadErrorPage page=self /> }.into_any())
        }
    }

    /// Returns the view as an optional part of another page.
    pub(crate) fn part(self) -> AnyView {
        self.view(|| ().into_any(), || ().into_any())
    }

    fn view(self, loading: Make, failed: impl Fn() -> AnyView + Send + 'static) -> AnyView {
        // Render loaded code immediately. Otherwise a placeholder flashes at every visit.
        if let Code::Loaded(make) = self.code.get_untracked() {
            return make();
        }
        self.load();
        let content = move || match self.code.get() {
            Code::Loading => loading(),
            Code::Loaded(make) => untrack(make),
            Code::Failed => failed(),
        };
        content.into_any()
    }

    fn load(self) {
        self.code.set(Code::Loading);
        spawn_local(async move {
            let code = match (self.fetch)().await {
                Ok(make) => Code::Loaded(make),
                Err(_) => Code::Failed,
            };
            self.code.set(code);
        });
    }
}

/// Placeholder for a page that is loading.
#[component]
fn LoadingPage() -> impl IntoView {
    // Not the element of a page: the renderer would keep it, and its change of width is a layout shift.
    view! {
        <div id="main" class="page" role="main" tabindex="-1" aria-busy="true" data-testid="page-loading">
            <h1 class="visually-hidden">"Opening"</h1>
            <div class="skeleton results-skeleton" aria-hidden="true"></div>
        </div>
    }
}

/// Error page for code that cannot be loaded: the server is unreachable, or a newer version uses different file
/// names.
#[component]
fn LoadErrorPage(page: LazyPage) -> impl IntoView {
    document().set_title("Not loaded · Planscope");
    // If the browser refuses to reload, the page stays unchanged.
    let reload = move |_| drop(window().location().reload());
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"This page could not be loaded"</h1>
            <div class="notice bad" role="alert" data-testid="page-load-error">
                <p>"The server cannot be reached, or it is another version than these pages. Reload to get its pages; what is stored stays."</p>
                <button class="primary" on:click=reload>"Reload"</button>
                <button on:click=move |_| page.load()>"Try again"</button>
            </div>
        </main>
    }
}
