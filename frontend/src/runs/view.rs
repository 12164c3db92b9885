//! View settings of the run page in the query string:
//! `?charts=step,loss&plans=1f1b&runs=ab12&steps=100..500`.
//!
//! All keys are optional. An invalid value is ignored and does not affect the other keys.

use api::planner::scenario::PlannerKind;

use super::metric::Metric;

/// View settings of the run page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunView {
    /// Displayed charts. `None`: the default charts with data.
    pub(crate) charts: Option<Vec<Metric>>,
    /// Further planners with predictions in the charts.
    pub(crate) plans: Vec<PlannerKind>,
    /// Further runs in the charts.
    pub(crate) runs: Vec<String>,
    /// First and last step in the charts. `None`: all steps.
    pub(crate) steps: Option<(u64, u64)>,
}

impl RunView {
    /// Parses query values.
    pub(crate) fn from_query(value: impl Fn(&str) -> Option<String>) -> Self {
        let list = |key: &str| value(key).unwrap_or_default();
        let charts = value("charts").map(|text| text.split(',').filter_map(Metric::from_id).collect());
        let mut plans: Vec<_> = list("plans").split(',').filter_map(PlannerKind::from_id).collect();
        plans.dedup();
        let is_id =
            |id: &str| !id.is_empty() && id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        let mut runs: Vec<_> = list("runs").split(',').filter(|id| is_id(id)).map(str::to_owned).collect();
        runs.dedup();
        Self { charts, plans, runs, steps: value("steps").as_deref().and_then(parse_steps) }
    }

    /// Formats the query string without `?`. Empty for the default view.
    pub(crate) fn write(&self) -> String {
        let mut pairs = Vec::new();
        if let Some(charts) = &self.charts {
            pairs.push(format!("charts={}", joined(charts.iter().map(|metric| metric.id()))));
        }
        if !self.plans.is_empty() {
            pairs.push(format!("plans={}", joined(self.plans.iter().map(|planner| planner.id()))));
        }
        if !self.runs.is_empty() {
            pairs.push(format!("runs={}", joined(self.runs.iter().map(String::as_str))));
        }
        if let Some((from, to)) = self.steps {
            pairs.push(format!("steps={from}..{to}"));
        }
        pairs.join("&")
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// Parses a step range such as "100..500".
pub(crate) fn parse_steps(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from <= to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> RunView {
        let pairs: Vec<(String, String)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        RunView::from_query(|key| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()))
    }

    #[test]
    fn a_link_shows_the_same() {
        let query = "charts=step,loss&plans=1f1b,gpipe&runs=ab12,cd34&steps=100..500";
        let view = read(query);
        assert_eq!(view.write(), query);
        assert_eq!(view.charts, Some(vec![Metric::StepTime, Metric::Loss]));
        assert_eq!(RunView::default().write(), "");
        assert_eq!(read(""), RunView::default());
    }

    #[test]
    fn invalid_parameters_are_ignored() {
        let view = read("charts=step,nothing&plans=none&runs=../../x,ok&steps=9..3");
        assert_eq!(
            view,
            RunView { charts: Some(vec![Metric::StepTime]), runs: vec!["ok".into()], ..RunView::default() }
        );
        assert_eq!(read("charts=").charts, Some(vec![]), "no chart at all is a choice too");
    }
}
