//! Scenarios. A valid scenario has the same identifier in any notation.

use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let scenario = match parse(text) {
        Ok(scenario) => scenario,
        Err(errors) => return assert!(!errors.is_empty()),
    };
    match ValidScenario::new(scenario, &NoDatasets) {
        Ok(valid) => {
            let canonical = valid.scenario().canonical();
            let again = parse(&canonical).expect("the canonical form is a scenario");
            assert_eq!(again.canonical(), canonical);
            let again = ValidScenario::new(again, &NoDatasets).expect("and a valid one");
            assert_eq!(again.id(), valid.id());
        }
        Err(errors) => assert!(!errors.is_empty()),
    }
}
