//! Details for a set: chart, assumptions, findings, and the points with the largest errors.

use std::sync::Arc;

use api::accuracy::{AccuracyPoint, AccuracySet, AccuracyVariant, MIXED_UNIT};
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};

use super::choices::Choices;
use super::filters::{Chosen, Filters, filtered, from_address};
use super::link;
use crate::charts::{AgreementChart, ErrorChart};
use crate::{client, format};

/// Maximum row count in the point table.
const MAX_ROWS: usize = 100;

#[component]
pub(super) fn Detail(set: Arc<AccuracySet>) -> impl IntoView {
    let AccuracySet { id, title, source, unit, variants, assumptions, findings, remarks, choices, .. } = (*set).clone();
    let is_mixed = unit == MIXED_UNIT;
    let address = use_query_map().get_untracked();
    let chosen = RwSignal::new(from_address(&set.properties, |name| address.get(name)));
    let axis =
        RwSignal::new(address.get(BY).and_then(|by| set.properties.iter().position(|name| *name == by)).unwrap_or(0));
    let names = set.properties.clone();
    let (own, navigate) = (link(&id), use_navigate());
    // The address has filters and property, so that a reload and a link show the same rows.
    Effect::new(move |before: Option<String>| {
        let url = address_of(&own, &names, &chosen.get(), axis.get());
        if before.is_some_and(|before| before != url) {
            navigate(&url, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
        }
        url
    });
    let (excluded, findings) = split_excluded(findings);
    let all = Arc::clone(&set);
    // Without a row, the charts show all rows; the note above them says that none is selected.
    let drawn = Memo::new(move |_| chosen.with(|chosen| filtered(&all, chosen)).unwrap_or_else(|| Arc::clone(&all)));
    let all = Arc::clone(&set);
    view! {
        <section class="set" data-testid="accuracy-detail" data-set=id>
            <h2>{title}</h2>
            <p class="muted">{source}</p>
            <div class="set-columns">
                <div>
                    {if is_mixed {
                        view! { <PointsTable set=set /> }.into_any()
                    } else {
                        view! {
                            <Filters set=all chosen=chosen />
                            <AgreementChart set=drawn />
                            <ErrorsByProperty set=drawn names=set.properties.clone() axis=axis />
                            <PointsDisclosure set=drawn />
                        }.into_any()
                    }}
                </div>
                <div class="set-text">
                    <SentenceList heading="Assumed" sentences=assumptions />
                    <SentenceList heading="Excluded rows" sentences=excluded />
                    <SentenceList heading="Findings" sentences=findings />
                    <Remarks remarks=remarks />
                    <Variants variants=variants />
                    <Choices choices=choices />
                </div>
            </div>
        </section>
    }
}

/// Name of the property of the error chart in the address.
const BY: &str = "by";

/// Returns the address of a set with its filters and the property of the error chart. The first property is the default.
fn address_of(set: &str, names: &[String], chosen: &Chosen, axis: usize) -> String {
    let filters = chosen.iter().filter_map(|(index, value)| Some((names.get(*index)?.as_str(), value.as_str())));
    let by = names.get(axis).filter(|_| axis > 0).map(|name| (BY, name.as_str()));
    let parts = filters.chain(by).map(|(name, value)| format!("&{}={}", client::encode(name), client::encode(value)));
    parts.fold(set.to_owned(), |url, part| url + &part)
}

/// Separates the excluded rows from the other findings. They have a heading of their own.
fn split_excluded(findings: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut excluded, mut others) = (Vec::new(), Vec::new());
    for finding in findings {
        match finding.strip_prefix("Excluded: ") {
            Some(rows) => excluded.push(rows.to_owned()),
            None => others.push(finding),
        }
    }
    (excluded, others)
}

/// Errors over the values of a property that the user chooses.
#[component]
fn ErrorsByProperty(
    #[prop(into)] set: Signal<Arc<AccuracySet>>,
    names: Vec<String>,
    axis: RwSignal<usize>,
) -> impl IntoView {
    (!names.is_empty()).then(|| {
        let options = names
            .into_iter()
            .enumerate()
            .map(|(index, name)| {
                view! { <option value=index prop:selected=move || axis.get() == index>{format::capitalised(&name)}</option> }
            })
            .collect_view();
        view! {
            <h3>
                <label>
                    "Errors by "
                    <select
                        data-testid="error-property"
                        on:change=move |event| axis.set(event_target_value(&event).parse().unwrap_or(0))
                    >
                        {options}
                    </select>
                </label>
            </h3>
            <ErrorChart set=set axis=axis />
        }
    })
}

#[component]
fn SentenceList(heading: &'static str, sentences: Vec<String>) -> impl IntoView {
    (!sentences.is_empty()).then(|| {
        let items = sentences
            .into_iter()
            .map(|sentence| view! { <li>{format::nonbreaking_units(&sentence)}</li> })
            .collect_view();
        view! { <h3>{heading}</h3><ul>{items}</ul> }
    })
}

/// Splits a text into paragraphs, joins the lines, and removes the Markdown marks for emphasis and
/// code.
fn paragraphs(remarks: &str) -> Vec<String> {
    let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ").replace(['`', '*'], "");
    remarks.replace("\r\n", "\n").split("\n\n").map(joined).filter(|text| !text.is_empty()).collect()
}

#[component]
fn Remarks(remarks: String) -> impl IntoView {
    let paragraphs = paragraphs(&remarks);
    (!paragraphs.is_empty()).then(|| {
        let lines = paragraphs.into_iter().map(|text| view! { <p>{text}</p> }).collect_view();
        view! { <h3>"Remarks"</h3>{lines} }
    })
}

#[component]
fn Variants(variants: Vec<AccuracyVariant>) -> impl IntoView {
    (!variants.is_empty()).then(|| {
        let lines = variants.into_iter().map(|AccuracyVariant { title, statistics }| {
            view! {
                <tr>
                    <th scope="row">{title}</th>
                    <td>{format::count(statistics.count.into())}</td>
                    <td>{format::percent(statistics.mean_abs_pct / 100.0)}</td>
                    <td>{format::percent(statistics.max_abs_pct / 100.0)}</td>
                    <td>{format::signed_percent(statistics.bias_pct / 100.0)}</td>
                </tr>
            }
        });
        view! {
            <h3>"Other readings"</h3>
            <div class="table-scroll" role="region" aria-label="Other readings" tabindex="0">
                <table class="figures readings">
                    <thead>
                        <tr>
                            <th scope="col">"Reading"</th>
                            <th scope="col">"Rows"</th>
                            <th scope="col">"Mean"</th>
                            <th scope="col">"Max"</th>
                            <th scope="col">"Bias"</th>
                        </tr>
                    </thead>
                    <tbody>{lines.collect_view()}</tbody>
                </table>
            </div>
        }
    })
}

/// Table of points. It is rendered on request because a set may have thousands of points.
#[component]
fn PointsDisclosure(#[prop(into)] set: Signal<Arc<AccuracySet>>) -> impl IntoView {
    let open = RwSignal::new(false);
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| open.set(details.get_untracked().is_some_and(|details| details.open()));
    view! {
        <details class="advanced" node_ref=details on:toggle=toggled data-testid="accuracy-points">
            <summary>"As a table"</summary>
            {move || open.get().then(|| view! { <PointsTable set=set.get() /> })}
        </details>
    }
}

/// Returns the points with the largest absolute errors, in descending order.
fn worst(points: &[AccuracyPoint]) -> Vec<AccuracyPoint> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    sorted.truncate(MAX_ROWS);
    sorted
}

#[component]
fn PointsTable(set: Arc<AccuracySet>) -> impl IntoView {
    let named = set.points.iter().any(|point| !point.label.is_empty());
    let lines = worst(&set.points).into_iter().map(|point| {
        let error = format::signed_percent(point.error());
        let properties = point.properties.iter().map(|value| view! { <td>{value.clone()}</td> }).collect_view();
        view! {
            <tr>
                {named.then(|| view! { <th scope="row">{point.label.clone()}</th> })}
                <td>{format::three_digits(point.measured)}</td>
                <td>{format::three_digits(point.predicted)}</td>
                <td>{error}</td>
                {properties}
            </tr>
        }
    });
    let unit = if set.unit == MIXED_UNIT { String::new() } else { format!(", {}", set.unit) };
    let caption = if set.points.len() > MAX_ROWS {
        format!("The {MAX_ROWS} largest errors of {}", format::count(set.points.len() as u64))
    } else {
        "Largest errors first".to_owned()
    };
    view! {
        <p class="hint">{caption}</p>
        <div class="table-scroll tall" role="region" aria-label="Measured and predicted values" tabindex="0">
            <table class="figures">
                <thead>
                    <tr>
                        {named.then(|| view! { <th scope="col">"Configuration"</th> })}
                        <th scope="col">{format!("Measured{unit}")}</th>
                        <th scope="col">{format!("Predicted{unit}")}</th>
                        <th scope="col">"Error"</th>
                        {set.properties.iter().map(|name| view! { <th scope="col">{format::capitalised(name)}</th> }).collect_view()}
                    </tr>
                </thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_magnitude_in_descending_order() {
        let point = |label: &str, predicted| AccuracyPoint {
            label: label.into(),
            measured: 10.0,
            predicted,
            properties: vec![],
        };
        let order = worst(&[point("a", 11.0), point("b", 7.0), point("c", 10.0)]);
        assert_eq!(order.iter().map(|point| point.label.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(worst(&vec![point("a", 1.0); 300]).len(), MAX_ROWS);
    }

    #[test]
    fn excluded_rows_have_a_heading_of_their_own() {
        let findings = ["Excluded: 430 rows (slow).", "A straight line."].map(str::to_owned).to_vec();
        assert_eq!(
            split_excluded(findings),
            (vec!["430 rows (slow).".to_owned()], vec!["A straight line.".to_owned()])
        );
    }

    #[test]
    fn remarks_are_plain_paragraphs() {
        assert_eq!(paragraphs("One\nline, `code`.\n\n**Two**.\n"), ["One line, code.", "Two."]);
        assert!(paragraphs("  \n\n ").is_empty());
    }
}
