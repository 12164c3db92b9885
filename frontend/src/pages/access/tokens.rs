//! Named tokens: a form that creates a token, and a table.

use api::access::{CreatedToken, NewToken, Role, TokenLine, TokenList};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

type ResponseSignal = RwSignal<Option<Result<TokenList, RequestError>>>;

fn fetch(response: ResponseSignal) {
    spawn_local(async move {
        let list = client::get(path::TOKENS).await;
        drop(response.try_set(Some(list)));
    });
}

#[component]
pub(super) fn TokensCard() -> impl IntoView {
    let response: ResponseSignal = RwSignal::new(None);
    let last_error = RwSignal::new(None::<RequestError>);
    fetch(response);
    let revoke = move |name: String| {
        spawn_local(async move {
            let revoked = client::submit("DELETE", &path::token(&name), Body::Empty).await;
            if last_error.try_set(revoked.err()).is_none() {
                fetch(response);
            }
        });
    };
    let table = move || match response.get() {
        // The placeholder has the height of the text for an empty list, so the next card does not
        // move.
        None => view! { <p class="muted" aria-hidden="true">"Loading"</p> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch(response) /> }.into_any(),
        Some(Ok(list)) if list.tokens.is_empty() => {
            view! { <p class="muted">"There are no named tokens yet."</p> }.into_any()
        }
        Some(Ok(list)) => {
            let rows = list.tokens.into_iter().map(|line| row(line, revoke)).collect_view();
            view! {
                <div class="table-scroll" role="region" aria-label="Tokens" tabindex="0">
                    <table class="list" data-testid="tokens">
                        <thead>
                            <tr><th>"Name"</th><th>"Role"</th><th>"Created, UTC"</th><th>"Last used, UTC"</th><th>"State"</th></tr>
                        </thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            }
            .into_any()
        }
    };
    view! {
        <section class="card">
            <header class="card-title"><h2>"Tokens"</h2><span class="muted">"one for each person and program"</span></header>
            <MakeToken on_created=Callback::new(move |()| fetch(response)) />
            {move || last_error.get().map(|request_error| view! { <ErrorNotice error=request_error /> })}
            {table}
        </section>
    }
}

fn row(line: TokenLine, revoke: impl Fn(String) + Copy + Send + 'static) -> impl IntoView {
    let TokenLine { name, role, created_at, last_used_at, revoked_at } = line;
    let used = last_used_at.as_deref().map_or_else(|| "never".to_owned(), format::moment);
    let label = format!("Revoke {name}");
    let (key, token_name) = (name.clone(), name.clone());
    let state = match revoked_at {
        Some(at) => view! { <span class="muted">{format!("revoked {}", format::moment(&at))}</span> }.into_any(),
        None => {
            view! { <button class="quiet" aria-label=label on:click=move |_| revoke(name.clone())>"Revoke"</button> }
                .into_any()
        }
    };
    view! {
        <tr data-token=key>
            <td>{token_name}</td>
            <td>{role.id()}</td>
            <td class="muted">{format::moment(&created_at)}</td>
            <td class="muted">{used}</td>
            <td>{state}</td>
        </tr>
    }
}

#[component]
fn MakeToken(on_created: Callback<()>) -> impl IntoView {
    let name = RwSignal::new(String::new());
    let role = RwSignal::new(Role::Editor);
    let last_error = RwSignal::new(None::<RequestError>);
    let created_token = RwSignal::new(None::<CreatedToken>);
    let is_pending = RwSignal::new(false);
    let make = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let token = NewToken { name: name.get_untracked().trim().to_owned(), role: role.get_untracked() };
        let Ok(body) = serde_json::to_string(&token) else { return };
        is_pending.set(true);
        spawn_local(async move {
            let response = client::send::<CreatedToken>("POST", path::TOKENS, Body::Json(body)).await;
            if is_pending.try_set(false).is_some() {
                return;
            }
            match response {
                Ok(token) => {
                    last_error.set(None);
                    name.set(String::new());
                    created_token.set(Some(token));
                    on_created.run(());
                }
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let choose = move |event: web_sys::Event| {
        if let Some(selected) = Role::from_id(&event_target_value(&event)) {
            role.set(selected);
        }
    };
    let options = Role::ALL.into_iter().map(|option| {
        view! { <option value=option.id() selected=option == Role::Editor>{option.id()}</option> }
    });
    let options = options.collect_view();
    let token_notice = move || {
        created_token.get().map(|CreatedToken { name, token, .. }| {
            view! {
                <p role="status" data-testid="made-token">
                    {format!("The token of {name}. It is shown only once: ")}<code>{token}</code>
                </p>
            }
        })
    };
    view! {
        <form class="open-run" on:submit=make>
            <label>
                "Name"
                <input
                    data-testid="token-name"
                    maxlength="60"
                    required
                    pattern="[A-Za-z0-9._\\-]+"
                    title="Letters, digits, and any of - _ ."
                    prop:value=move || name.get()
                    on:input=move |event| name.set(event_target_value(&event))
                />
            </label>
            <label>"Role"<select data-testid="token-role" on:change=choose>{options}</select></label>
            <p class="actions">
                <button type="submit" class="primary" data-testid="make-token" disabled=move || is_pending.get()>"Create token"</button>
            </p>
        </form>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        {token_notice}
    }
}
