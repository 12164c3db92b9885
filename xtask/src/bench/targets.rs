//! Performance targets and the benchmarks that measure them.

/// Benchmark executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Estimate,
    Simulate,
    Search,
    BestPlan,
    Ranking,
    Tuning,
    ContextGroups,
    HeterogeneousStrategies,
    DataAware,
    Log,
    ImportTrace,
    Live,
    Load,
    Browser,
}

impl Source {
    pub(super) const ALL: [Self; 14] = [
        Self::Estimate,
        Self::Simulate,
        Self::Search,
        Self::BestPlan,
        Self::Ranking,
        Self::Tuning,
        Self::ContextGroups,
        Self::HeterogeneousStrategies,
        Self::DataAware,
        Self::Log,
        Self::ImportTrace,
        Self::Live,
        Self::Load,
        Self::Browser,
    ];

    /// Returns the cargo name of the benchmark.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Simulate => "simulate",
            Self::Search => "search",
            Self::BestPlan => "best_plan",
            Self::Ranking => "ranking",
            Self::Tuning => "tuning",
            Self::ContextGroups => "context_groups",
            Self::HeterogeneousStrategies => "heterogeneous_strategies",
            Self::DataAware => "data_aware",
            Self::Log => "log",
            Self::ImportTrace => "import_trace",
            Self::Live => "live",
            Self::Load => "load",
            Self::Browser => "browser",
        }
    }
}

/// Direction of improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// Performance target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// Issue number that contains the target.
    pub(super) issue: u32,
    pub(super) title: &'static str,
    pub(super) limit: f64,
    pub(super) unit: &'static str,
    pub(super) source: Source,
    /// Name of the value in the benchmark output.
    pub(super) name: &'static str,
    pub(super) better: Better,
}

impl Target {
    /// Returns the conversion factor from the benchmark unit (ms, or the unit itself) to the target
    /// unit.
    pub(super) fn factor(&self) -> f64 {
        if self.unit == "s" && self.source != Source::Browser { 1e-3 } else { 1.0 }
    }
}

const fn less(
    issue: u32,
    title: &'static str,
    limit: f64,
    unit: &'static str,
    source: Source,
    name: &'static str,
) -> Target {
    Target { issue, title, limit, unit, source, name, better: Better::Less }
}

const fn more(
    issue: u32,
    title: &'static str,
    limit: f64,
    unit: &'static str,
    source: Source,
    name: &'static str,
) -> Target {
    Target { issue, title, limit, unit, source, name, better: Better::More }
}

/// All targets, sorted by issue.
pub(super) const TARGETS: &[Target] = &[
    less(3, "estimates of 896 configurations, 10,000 a second on one core", 89.6, "ms", Source::Estimate, "estimates"),
    less(3, "simulation with memory, 8 ranks", 5.0, "ms", Source::Simulate, "timeline_with_memory/(8, 1, 64)"),
    less(3, "job of 16,384 devices", 50.0, "ms", Source::Estimate, "sixteen_thousand_devices"),
    less(
        4,
        "layers of a rank with 64 stage pairs tuned within 5 %",
        10.0,
        "ms",
        Source::Tuning,
        "a_rank_within_5_percent/(64, 8, 60)",
    ),
    less(5, "DHP, 512 sequences on 64 ranks", 5.0, "ms", Source::ContextGroups, "portfolio/(512, 64, 1.1)"),
    less(5, "DHP, 4,096 sequences on 1,024 ranks", 50.0, "ms", Source::ContextGroups, "portfolio/(4096, 1024, 1.1)"),
    less(5, "Hydraulis packs 128 sequences", 100.0, "ms", Source::HeterogeneousStrategies, "packing_128/(16384, 4)"),
    less(5, "Hydraulis proposes strategies, 64 devices", 0.5, "s", Source::HeterogeneousStrategies, "proposal/64"),
    less(
        5,
        "Hydraulis proposes strategies, 1,024 devices",
        10.0,
        "s",
        Source::HeterogeneousStrategies,
        "proposal/1024",
    ),
    less(
        5,
        "Hydraulis decides on an iteration, 64 devices",
        1.0,
        "s",
        Source::HeterogeneousStrategies,
        "whole_iteration/64",
    ),
    less(5, "the same, 1,024 devices", 1.0, "s", Source::HeterogeneousStrategies, "whole_iteration/1024"),
    less(6, "DFLOP's optimizer, 64 devices", 4.0, "ms", Source::DataAware, "optimizing/(64, 512)"),
    less(6, "DFLOP's optimizer, 1,024 devices", 200.0, "ms", Source::DataAware, "optimizing/(1024, 2048)"),
    less(6, "2,048 items into 64 buckets, gap 0.1 %", 50.0, "ms", Source::DataAware, "balancing/(2048, 64)"),
    less(6, "every layout of two modules, 64 devices", 5.0, "s", Source::Search, "every_layout_on_64_devices/2"),
    less(7, "100 MB of Megatron-LM log", 2.0, "s", Source::Log, "megatron_100_mb"),
    less(7, "trace of 1,000,000 events", 5.0, "s", Source::ImportTrace, "plain, time"),
    less(7, "the same, peak memory", 500.0, "MB", Source::ImportTrace, "plain, memory"),
    less(7, "a point to an open browser, 1 trainer, 99 %", 1.0, "s", Source::Live, "1 trainers, 99 %"),
    less(7, "the same, 50 trainers and 100 browsers", 1.0, "s", Source::Live, "50 trainers, 99 %"),
    less(
        7,
        "a page among 500 streams, 50 trainers and 20 planners on two cores, 99 %",
        250.0,
        "ms",
        Source::Load,
        "pages, 99 %",
    ),
    less(7, "the same, a point to a stream", 1.0, "s", Source::Load, "point, 99 %"),
    less(8, "gallery, cold load to first useful paint", 1500.0, "ms", Source::Browser, "gallery"),
    less(8, "what-if, slider to painted charts, 64 devices, p95", 100.0, "ms", Source::Browser, "what-if p95"),
    less(8, "the same, every value planned for the first time", 100.0, "ms", Source::Browser, "what-if anew p95"),
    less(8, "the same, images of VLM-S on 16, PipeWeaver sketched", 100.0, "ms", Source::Browser, "what-if sketch p95"),
    less(
        8,
        "Gantt of 1,000,000 spans, first paint of a page load",
        1000.0,
        "ms",
        Source::Browser,
        "gantt 1M first paint",
    ),
    more(8, "the same, panning", 30.0, "frames/s", Source::Browser, "gantt 1M panning"),
    more(8, "the same, zooming", 30.0, "frames/s", Source::Browser, "gantt 1M zooming"),
    more(8, "Gantt of 100,000 spans, panning", 60.0, "frames/s", Source::Browser, "gantt 100k panning"),
    more(8, "the same, zooming", 60.0, "frames/s", Source::Browser, "gantt 100k zooming"),
    less(8, "wasm of the first page, raw", 900.0, "kB", Source::Browser, "wasm raw"),
    less(8, "wasm of the first page, brotli", 350.0, "kB", Source::Browser, "wasm brotli"),
    less(29, "`best`, first plan, 64 devices", 300.0, "ms", Source::BestPlan, "first_plan_64_devices"),
    less(29, "the same, 32,768 devices", 300.0, "ms", Source::BestPlan, "first_plan_32768_devices"),
    less(29, "`best`, all steps, 64 devices", 10.0, "s", Source::BestPlan, "all_steps_64_devices"),
    less(29, "the same, 1,024 devices", 60.0, "s", Source::BestPlan, "all_steps_1024_devices"),
    less(29, "the same, 32,768 devices", 120.0, "s", Source::BestPlan, "all_steps_32768_devices"),
];
