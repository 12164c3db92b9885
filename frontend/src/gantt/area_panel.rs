//! Panel below the chart with the sums of the selected area.

use api::planner::timeline::SpanKind;
use leptos::prelude::*;

use super::area::Sums;
use super::chart::Chart;
use super::describe::{grouped, name};
use super::{navigation, time_text};

/// Sums for the selected area.
#[component]
pub(crate) fn AreaPanel(chart: Chart) -> impl IntoView {
    let selected_area = Memo::new(move |_| {
        let area = chart.area.get()?;
        let timeline = chart.timeline.get()?;
        let sums = Sums::in_area(&timeline, &area);
        Some((area, sums))
    });
    move || {
        selected_area.get().map(|(area, sums)| {
            let title = format!(
                "{} · {} · {}",
                time_text::range(area.window.start_ns, area.window.end_ns),
                time_text::duration(area.window.width_ns()),
                ranks(&area.ranks),
            );
            let spoken = format!(
                "{title}: computation {}, exposed communication {}, idle {}, {} spans",
                share(sums.compute_ns, sums.total_ns),
                share(sums.exposed_ns, sums.total_ns),
                share(sums.idle_ns, sums.total_ns),
                grouped(sums.spans() as u64),
            );
            let totals = [
                ("Computation", sums.compute_ns),
                ("Exposed communication", sums.exposed_ns),
                ("Idle", sums.idle_ns),
                ("of it with a send", sums.sending_idle_ns),
                ("Sends", sums.sending_ns),
            ];
            let totals = totals.map(|(label, ns)| {
                view! {
                    <div>
                        <dt>{label}</dt>
                        <dd>{time_text::duration(ns)}<small>{share(ns, sums.total_ns)}</small></dd>
                    </div>
                }
            });
            let kinds = SpanKind::ALL.into_iter().zip(sums.kinds).filter(|(_, sum)| sum.spans > 0).map(|(kind, sum)| {
                view! {
                    <tr>
                        <th scope="row">{name(kind)}</th>
                        <td>{grouped(sum.spans as u64)}</td>
                        <td>{time_text::duration(sum.ns)}</td>
                        <td>{share(sum.ns, sums.total_ns)}</td>
                        <td>{time_text::duration(sum.ns / sum.spans as f64)}</td>
                    </tr>
                }
            });
            view! {
                <section class="gantt-area" data-testid="gantt-area" aria-label="Selected area">
                    <header>
                        <strong>{title}</strong>
                        <span class="grow"></span>
                        <button type="button" class="quiet" on:click=move |_| navigation::zoom_to_selection(chart)>"Zoom to it"</button>
                        <button type="button" class="quiet" on:click=move |_| chart.area.set(None)>"Close"</button>
                    </header>
                    <dl class="gantt-area-totals">{totals.collect_view()}</dl>
                    <div class="table-scroll" tabindex="0" role="region" aria-label="Kinds in the area">
                        <table>
                            <thead>
                                <tr>
                                    <th scope="col">"Kind"</th>
                                    <th scope="col">"Spans"</th>
                                    <th scope="col">"Time inside"</th>
                                    <th scope="col">"Share"</th>
                                    <th scope="col">"Mean"</th>
                                </tr>
                            </thead>
                            <tbody>{kinds.collect_view()}</tbody>
                        </table>
                    </div>
                    <p class="gantt-spoken" role="status">{spoken}</p>
                </section>
            }
        })
    }
}

fn share(ns: f64, total_ns: f64) -> String {
    if total_ns > 0.0 { format!("{:.1} %", ns / total_ns * 100.0) } else { "–".to_owned() }
}

/// Formats a list of ranks: "ranks 0–3", "rank 5", "12 ranks".
fn ranks(ranks: &[usize]) -> String {
    match ranks {
        [rank] => format!("rank {rank}"),
        [first, .., last] if last - first + 1 == ranks.len() => format!("ranks {first}–{last}"),
        _ => format!("{} ranks", ranks.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_shares_are_short() {
        assert_eq!(ranks(&[5]), "rank 5");
        assert_eq!(ranks(&[0, 1, 2, 3]), "ranks 0–3");
        assert_eq!(ranks(&[0, 2]), "2 ranks");
        assert_eq!(share(1.0, 4.0), "25.0 %");
        assert_eq!(share(1.0, 0.0), "–");
    }
}
