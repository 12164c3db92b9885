//! Integer programs, solved by HiGHS where it was compiled in.
//!
//! HiGHS (Huangfu and Hall, 2018) is C++ and has no place in wasm, so it is a feature of this crate, and every user of
//! it has a solver of our own to fall back to. It runs on one thread with its default seed, which makes it deterministic
//! as long as no time limit stops it.

/// Whether HiGHS was compiled in.
pub(crate) const COMPILED_IN: bool = cfg!(all(feature = "highs", not(target_family = "wasm")));

#[cfg(all(feature = "highs", not(target_family = "wasm")))]
pub(crate) use with_highs::minimise;

#[cfg(all(feature = "highs", not(target_family = "wasm")))]
mod with_highs {
    use highs::{HighsModelStatus, HighsSolutionStatus, Model, RowProblem, Sense};

    use crate::units::Seconds;

    /// What HiGHS found out.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Answer {
        /// Values of the columns, where a solution was found.
        pub(crate) columns: Option<Vec<f64>>,
        /// No solution is smaller; minus infinity where nothing is known.
        pub(crate) bound: f64,
        /// Whether it is proven that there is no solution.
        pub(crate) infeasible: bool,
    }

    /// Minimises until the relative gap is at most `gap` or the time is up, starting from a solution where one is known.
    ///
    /// The answer holds to HiGHS's tolerances, 1e-6 for rows and whole numbers: callers check what they decode.
    pub(crate) fn minimise(program: RowProblem, start: Option<&[f64]>, gap: f64, limit: Option<Seconds>) -> Answer {
        let mut model: Model = program.optimise(Sense::Minimise);
        model.set_option("threads", 1);
        model.set_option("parallel", "off");
        model.set_option("mip_rel_gap", gap);
        model.set_option("mip_abs_gap", 0.0);
        if let Some(limit) = limit {
            model.set_option("time_limit", limit.secs());
        }
        if let Some(columns) = start {
            // A hint: where it is refused the search only takes longer.
            let _ = model.try_set_solution(Some(columns), None, None, None);
        }
        let Ok(solved) = model.try_solve() else {
            return Answer { columns: None, bound: f64::NEG_INFINITY, infeasible: false };
        };
        let found = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
        Answer {
            columns: found.then(|| solved.get_solution().columns().to_vec()),
            bound: solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY),
            infeasible: solved.status() == HighsModelStatus::Infeasible,
        }
    }
}
