//! How the line of a plan or schedule is drawn: colour, and dash for those who see no colours.

use api::planner::scenario::PlannerKind;
use api::planner::schedule::ScheduleKind;
use plotly::common::DashType;

use crate::gantt::Theme;
use crate::gantt::watch::theme;

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct Stroke {
    /// On a light page.
    light: &'static str,
    /// On a dark page.
    dark: &'static str,
    pub(super) dash: DashType,
    /// The dash as SVG writes it, for the legend.
    pub(crate) strokes: &'static str,
}

impl Stroke {
    /// The planner's own colour, as its pill has it (10-tokens.css), and a dash, so that lines differ without
    /// colour too.
    pub(crate) const fn of(planner: PlannerKind) -> Self {
        let (light, dark, dash, strokes) = match planner {
            PlannerKind::WaitFreeCyclic => ("#0072b2", "#56a5e0", DashType::Solid, "none"),
            PlannerKind::Interleaved => ("#b8542a", "#ee8866", DashType::Dash, "6 4"),
            PlannerKind::Gpipe => ("#117755", "#44bb99", DashType::Dot, "2 2"),
            PlannerKind::OneFOneB => ("#66707e", "#a0a8b4", DashType::DashDot, "6 3 2 3"),
            PlannerKind::OneFOneBParameters => ("#66707e", "#a0a8b4", DashType::Dot, "2 2"),
            PlannerKind::PipeWeaver => ("#882255", "#dd77aa", DashType::Solid, "none"),
            PlannerKind::PipeWeaverRanking => ("#882255", "#dd77aa", DashType::Dash, "6 4"),
            PlannerKind::PipeWeaverInterleaving => ("#882255", "#dd77aa", DashType::DashDot, "6 3 2 3"),
            PlannerKind::PipeWeaverPartition => ("#882255", "#dd77aa", DashType::Dot, "2 2"),
            PlannerKind::InterleavedParameters => ("#b8542a", "#ee8866", DashType::Dot, "2 2"),
            PlannerKind::LoopedBfs => ("#117755", "#44bb99", DashType::Dash, "6 4"),
            PlannerKind::InterleavedZeroBubble => ("#4455aa", "#8899ee", DashType::Dash, "6 4"),
            PlannerKind::ZbH1 => ("#4455aa", "#8899ee", DashType::Dot, "2 2"),
            PlannerKind::ZbH2 => ("#4455aa", "#8899ee", DashType::DashDot, "6 3 2 3"),
            PlannerKind::Zbv => ("#4455aa", "#8899ee", DashType::Solid, "none"),
            PlannerKind::VHalf => ("#aa4466", "#ee99aa", DashType::Dash, "6 4"),
            PlannerKind::VMin => ("#aa4466", "#ee99aa", DashType::Dot, "2 2"),
            PlannerKind::NnScaler => ("#7a6a12", "#ccbb44", DashType::Dash, "6 4"),
            PlannerKind::Optimus => ("#7a6a12", "#ccbb44", DashType::Dot, "2 2"),
            PlannerKind::Dhp => ("#00706b", "#3cc4bd", DashType::Solid, "none"),
            PlannerKind::Dflop => ("#6b3fa0", "#b894ee", DashType::Solid, "none"),
            PlannerKind::DflopLayout => ("#6b3fa0", "#b894ee", DashType::Dash, "6 4"),
            PlannerKind::PowerOfTwoContext => ("#00706b", "#3cc4bd", DashType::Dash, "6 4"),
            PlannerKind::BalancedContext => ("#66707e", "#a0a8b4", DashType::Dash, "6 4"),
            PlannerKind::StaticContext => ("#66707e", "#a0a8b4", DashType::Solid, "none"),
            PlannerKind::Ulysses => ("#7a6a12", "#ccbb44", DashType::Solid, "none"),
            PlannerKind::HeterogeneousApart => ("#1b7f3b", "#66cc88", DashType::Solid, "none"),
            PlannerKind::HeterogeneousColocated => ("#1b7f3b", "#66cc88", DashType::Dash, "6 4"),
            PlannerKind::Homogeneous => ("#66707e", "#a0a8b4", DashType::LongDashDot, "9 3 2 3"),
            PlannerKind::Hydraulis => ("#0a63a8", "#6bb3f0", DashType::Solid, "none"),
            PlannerKind::HydraulisStatic => ("#0a63a8", "#6bb3f0", DashType::Dash, "6 4"),
            PlannerKind::HydraulisPacking => ("#0a63a8", "#6bb3f0", DashType::DashDot, "6 3 2 3"),
            PlannerKind::HydraulisBase => ("#0a63a8", "#6bb3f0", DashType::Dot, "2 2"),
            PlannerKind::HotSpa => ("#a0410d", "#f0945c", DashType::Dash, "6 4"),
            PlannerKind::StaticStrategy => ("#66707e", "#a0a8b4", DashType::LongDash, "9 4"),
            PlannerKind::DeepSpeed => ("#7a6a12", "#ccbb44", DashType::LongDash, "9 4"),
        };
        Self { light, dark, dash, strokes }
    }

    /// Colours on a light and on a dark page.
    pub(crate) const fn colours(&self) -> (&'static str, &'static str) {
        (self.light, self.dark)
    }

    /// Of a kind of schedule: as the planner that uses it where there is one.
    pub(crate) const fn of_schedule(kind: ScheduleKind) -> Self {
        match kind {
            ScheduleKind::Gpipe => Self::of(PlannerKind::Gpipe),
            ScheduleKind::LoopedBfs => Self::of(PlannerKind::LoopedBfs),
            ScheduleKind::OneFOneB => Self::of(PlannerKind::OneFOneB),
            ScheduleKind::Interleaved => Self::of(PlannerKind::Interleaved),
            ScheduleKind::InterleavedZeroBubble => Self::of(PlannerKind::InterleavedZeroBubble),
            ScheduleKind::ZbH1 => Self::of(PlannerKind::ZbH1),
            ScheduleKind::ZbH2 => Self::of(PlannerKind::ZbH2),
            ScheduleKind::Zbv => Self::of(PlannerKind::Zbv),
            ScheduleKind::VHalf => Self::of(PlannerKind::VHalf),
            ScheduleKind::VMin => Self::of(PlannerKind::VMin),
            ScheduleKind::DualPipe => {
                Self { light: "#7a6a12", dark: "#ccbb44", dash: DashType::Solid, strokes: "none" }
            }
            ScheduleKind::DualPipeV => Self { light: "#7a6a12", dark: "#ccbb44", dash: DashType::Dash, strokes: "6 4" },
            ScheduleKind::WaitFreeCyclic => Self::of(PlannerKind::WaitFreeCyclic),
        }
    }

    /// Of a table of one's own, by its number.
    pub(crate) const fn of_table(number: usize) -> Self {
        let (dash, strokes) = match number % 4 {
            0 => (DashType::Solid, "none"),
            1 => (DashType::Dash, "6 4"),
            2 => (DashType::Dot, "2 2"),
            _ => (DashType::DashDot, "6 3 2 3"),
        };
        Self { light: "#882255", dark: "#dd77aa", dash, strokes }
    }

    /// Its colour on the page as it is now.
    pub(crate) fn colour(&self) -> &'static str {
        if theme() == Theme::Dark { self.dark } else { self.light }
    }
}
