//! Access page. It shows the current user; admins also see the tokens and the audit log.

mod audit;
mod tokens;

use api::access::{Identity, Role};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::notice::ErrorNotice;
use audit::AuditCard;
use tokens::TokensCard;

type ResponseSignal = RwSignal<Option<Result<Identity, RequestError>>>;

fn fetch(response: ResponseSignal) {
    response.set(None);
    spawn_local(async move {
        let identity = client::get(path::SESSION).await;
        // The user may have left the page during the request.
        drop(response.try_set(Some(identity)));
    });
}

#[component]
pub(crate) fn AccessPage() -> impl IntoView {
    document().set_title("Access · Planscope");
    let response: ResponseSignal = RwSignal::new(None);
    fetch(response);
    let body = move || match response.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch(response) /> }.into_any(),
        Some(Ok(identity)) => {
            let is_admin = identity.role == Role::Admin;
            let cards = is_admin.then(|| view! { <TokensCard /><AuditCard /> });
            view! { <IdentityCard identity=identity />{cards} }.into_any()
        }
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Access"</h1>
            {body}
        </main>
    }
}

/// Describes the permissions of a role.
const fn description(role: Role) -> &'static str {
    match role {
        Role::Reader => "may read everything but tokens and the audit, and change nothing",
        Role::Editor => "may change everything but tokens",
        Role::Admin => "may change everything, tokens too",
    }
}

#[component]
fn IdentityCard(identity: Identity) -> impl IntoView {
    let Identity { actor, role, token_needed } = identity;
    let last_error = RwSignal::new(None::<RequestError>);
    let is_out = RwSignal::new(false);
    let log_out = move |_| {
        spawn_local(async move {
            match client::submit("DELETE", path::SESSION, Body::Empty).await {
                Ok(()) => drop(is_out.try_set(true)),
                Err(problem) => drop(last_error.try_set(Some(problem))),
            }
        });
    };
    let body = move || {
        if is_out.get() {
            return view! { <p role="status" data-testid="logged-out">"You are logged out. Open the link with the token to log in again."</p> }
                .into_any();
        }
        if !token_needed {
            return view! { <p>"This server does not require a token: everyone who can reach it can change everything. Named tokens have an effect only if the server is started with a token."</p> }
                .into_any();
        }
        view! {
            <p data-testid="identity"><b>{actor.clone()}</b>" "{description(role)}"."</p>
            <p class="actions"><button data-testid="log-out" on:click=log_out>"Log out"</button></p>
        }
        .into_any()
    };
    view! {
        <section class="card">
            <header class="card-title"><h2>"Session"</h2></header>
            {body}
            {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        </section>
    }
}
