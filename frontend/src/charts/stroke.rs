//! Line style of a plan or schedule: a colour, and a dash for readers who cannot distinguish the
//! colours.

use api::planner::scenario::PlannerKind;
use api::planner::schedule::ScheduleKind;
use plotly::common::DashType;

use crate::gantt::Theme;
use crate::gantt::observers::theme;

/// Line style.
#[derive(Debug, Clone)]
pub(crate) struct Stroke {
    /// Colour in the light theme.
    light: &'static str,
    /// Colour in the dark theme.
    dark: &'static str,
    pub(super) dash: DashType,
    /// SVG `stroke-dasharray` value for the legend.
    pub(crate) strokes: &'static str,
}

impl Stroke {
    /// Line style of a planner. The colour is the colour of the planner's pill (10-tokens.css). The
    /// dash distinguishes lines without colour.
    pub(crate) const fn for_planner(planner: PlannerKind) -> Self {
        let (light, dark, dash, strokes) = match planner {
            PlannerKind::Best => ("#9922ee", "#8844ff", DashType::Solid, "none"),
            PlannerKind::WaitFreeCyclic => ("#3399ee", "#88aaff", DashType::Solid, "none"),
            PlannerKind::Interleaved => ("#aa6622", "#bb7744", DashType::Dash, "6 4"),
            PlannerKind::Gpipe => ("#664400", "#886655", DashType::Dot, "2 2"),
            PlannerKind::OneFOneB => ("#777799", "#bbccaa", DashType::DashDot, "6 3 2 3"),
            PlannerKind::OneFOneBParameters => ("#777799", "#bbccaa", DashType::Dot, "2 2"),
            PlannerKind::PipeWeaver => ("#330055", "#aa77bb", DashType::Solid, "none"),
            PlannerKind::PipeWeaverRanking => ("#330055", "#aa77bb", DashType::Dash, "6 4"),
            PlannerKind::PipeWeaverInterleaving => ("#330055", "#aa77bb", DashType::DashDot, "6 3 2 3"),
            PlannerKind::PipeWeaverPartition => ("#330055", "#aa77bb", DashType::Dot, "2 2"),
            PlannerKind::InterleavedParameters => ("#aa6622", "#bb7744", DashType::Dot, "2 2"),
            PlannerKind::LoopedBfs => ("#664400", "#886655", DashType::Dash, "6 4"),
            PlannerKind::InterleavedZeroBubble => ("#4444aa", "#7788ee", DashType::Dash, "6 4"),
            PlannerKind::ZbH1 => ("#4444aa", "#7788ee", DashType::Dot, "2 2"),
            PlannerKind::ZbH2 => ("#4444aa", "#7788ee", DashType::DashDot, "6 3 2 3"),
            PlannerKind::Zbv => ("#4444aa", "#7788ee", DashType::Solid, "none"),
            PlannerKind::VHalf => ("#440022", "#cc99aa", DashType::Dash, "6 4"),
            PlannerKind::VMin => ("#440022", "#cc99aa", DashType::Dot, "2 2"),
            PlannerKind::NnScaler => ("#bb8833", "#dd8811", DashType::Dash, "6 4"),
            PlannerKind::Optimus => ("#bb8833", "#dd8811", DashType::Dot, "2 2"),
            PlannerKind::Dhp => ("#779988", "#bbeebb", DashType::Solid, "none"),
            PlannerKind::Dflop => ("#665588", "#eeee88", DashType::Solid, "none"),
            PlannerKind::DflopLayout => ("#665588", "#eeee88", DashType::Dash, "6 4"),
            PlannerKind::PowerOfTwoContext => ("#779988", "#bbeebb", DashType::Dash, "6 4"),
            PlannerKind::FlexSp => ("#779988", "#bbeebb", DashType::DashDot, "6 3 2 3"),
            PlannerKind::WlbLlm => ("#779988", "#bbeebb", DashType::Dot, "2 2"),
            PlannerKind::BalancedContext => ("#777799", "#bbccaa", DashType::Dash, "6 4"),
            PlannerKind::StaticContext => ("#777799", "#bbccaa", DashType::Solid, "none"),
            PlannerKind::Ulysses => ("#bb8833", "#dd8811", DashType::Solid, "none"),
            PlannerKind::HeterogeneousApart => ("#885544", "#337700", DashType::Solid, "none"),
            PlannerKind::HeterogeneousColocated => ("#885544", "#337700", DashType::Dash, "6 4"),
            PlannerKind::Homogeneous => ("#777799", "#bbccaa", DashType::LongDashDot, "9 3 2 3"),
            PlannerKind::Hydraulis => ("#222288", "#77ffff", DashType::Solid, "none"),
            PlannerKind::HydraulisStatic => ("#222288", "#77ffff", DashType::Dash, "6 4"),
            PlannerKind::HydraulisPacking => ("#222288", "#77ffff", DashType::DashDot, "6 3 2 3"),
            PlannerKind::HydraulisBase => ("#222288", "#77ffff", DashType::Dot, "2 2"),
            PlannerKind::HotSpa => ("#660000", "#ffcc44", DashType::Dash, "6 4"),
            PlannerKind::StaticStrategy => ("#777799", "#bbccaa", DashType::LongDash, "9 4"),
            PlannerKind::DeepSpeed => ("#bb8833", "#dd8811", DashType::LongDash, "9 4"),
        };
        Self { light, dark, dash, strokes }
    }

    /// Colours for the light and the dark theme.
    pub(crate) const fn colours(&self) -> (&'static str, &'static str) {
        (self.light, self.dark)
    }

    /// Line style of a schedule kind. If a planner uses the schedule, the style is the planner's
    /// style.
    pub(crate) const fn for_schedule(kind: ScheduleKind) -> Self {
        match kind {
            ScheduleKind::Gpipe => Self::for_planner(PlannerKind::Gpipe),
            ScheduleKind::LoopedBfs => Self::for_planner(PlannerKind::LoopedBfs),
            ScheduleKind::OneFOneB => Self::for_planner(PlannerKind::OneFOneB),
            ScheduleKind::Interleaved => Self::for_planner(PlannerKind::Interleaved),
            ScheduleKind::InterleavedZeroBubble => Self::for_planner(PlannerKind::InterleavedZeroBubble),
            ScheduleKind::ZbH1 => Self::for_planner(PlannerKind::ZbH1),
            ScheduleKind::ZbH2 => Self::for_planner(PlannerKind::ZbH2),
            ScheduleKind::Zbv => Self::for_planner(PlannerKind::Zbv),
            ScheduleKind::VHalf => Self::for_planner(PlannerKind::VHalf),
            ScheduleKind::VMin => Self::for_planner(PlannerKind::VMin),
            ScheduleKind::DualPipe => {
                Self { light: "#bb8833", dark: "#dd8811", dash: DashType::Solid, strokes: "none" }
            }
            ScheduleKind::DualPipeV => Self { light: "#bb8833", dark: "#dd8811", dash: DashType::Dash, strokes: "6 4" },
            ScheduleKind::WaitFreeCyclic => Self::for_planner(PlannerKind::WaitFreeCyclic),
        }
    }

    /// Line style of an imported schedule table, by its index.
    pub(crate) const fn for_table(number: usize) -> Self {
        let (dash, strokes) = match number % 4 {
            0 => (DashType::Solid, "none"),
            1 => (DashType::Dash, "6 4"),
            2 => (DashType::Dot, "2 2"),
            _ => (DashType::DashDot, "6 3 2 3"),
        };
        Self { light: "#330055", dark: "#aa77bb", dash, strokes }
    }

    /// Colour in the current theme.
    pub(crate) fn colour(&self) -> &'static str {
        if theme() == Theme::Dark { self.dark } else { self.light }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::planner::timeline::SpanKind;

    use super::*;
    use crate::gantt::fill;

    /// Matrices that map linear RGB to the perceived colour with normal vision, protanopia,
    /// deuteranopia and tritanopia (Machado et al., 2009, severity 1).
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    fn linear(css: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&css[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// Converts linear RGB to `OKLab` (Ottosson, 2020).
    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        let cones = times(
            [
                [0.412_221_47, 0.536_332_54, 0.051_445_99],
                [0.211_903_50, 0.680_699_55, 0.107_396_96],
                [0.088_302_46, 0.281_718_84, 0.629_978_70],
            ],
            rgb.map(|value| value.clamp(0.0, 1.0)),
        );
        times(
            [
                [0.210_454_26, 0.793_617_79, -0.004_072_05],
                [1.977_998_50, -2.428_592_21, 0.450_593_71],
                [0.025_904_04, 0.782_771_77, -0.808_675_77],
            ],
            cones.map(f64::cbrt),
        )
    }

    /// Minimum distance in `OKLab` over all types of colour vision.
    fn distance(first: &str, other: &str) -> f64 {
        let seen = |vision, css| oklab(times(vision, linear(css)));
        let between = |vision| {
            let pairs = seen(vision, first).into_iter().zip(seen(vision, other));
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        VISIONS.into_iter().map(between).fold(f64::INFINITY, f64::min)
    }

    fn families(theme: Theme) -> BTreeSet<&'static str> {
        let named_stroke = |planner| {
            let (light, dark) = Stroke::for_planner(planner).colours();
            if theme == Theme::Dark { dark } else { light }
        };
        PlannerKind::ALL.into_iter().map(named_stroke).collect()
    }

    #[test]
    fn planner_colours_differ_from_actions_and_other_families() {
        for theme in [Theme::Light, Theme::Dark] {
            let families = families(theme);
            assert_eq!(families.len(), 14);
            for planner in &families {
                for kind in SpanKind::ALL {
                    let distance = distance(planner, fill(kind, theme));
                    assert!(distance >= 0.06, "{planner}, {kind:?}, {theme:?}: {distance:.3}");
                }
                for other in families.iter().filter(|other| *other != planner) {
                    let distance = distance(planner, other);
                    assert!(distance >= 0.06, "{planner}, {other}, {theme:?}: {distance:.3}");
                }
            }
        }
    }

    #[test]
    fn distances_are_known() {
        // White and black differ in lightness by 1.
        assert!((distance("#ffffff", "#000000") - 1.0).abs() < 1e-3);
        // Red and green with similar lightness are close only for protanopia and deuteranopia.
        assert!(distance("#aa5500", "#557700") < 0.12);
    }

    /// WCAG 2.2 contrast ratio of two linear RGB colours.
    fn contrast(first: [f64; 3], other: [f64; 3]) -> f64 {
        let luminance = |[red, green, blue]: [f64; 3]| 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        let (first_luminance, other) = (luminance(first), luminance(other));
        (first_luminance.max(other) + 0.05) / (first_luminance.min(other) + 0.05)
    }

    /// Reads a CSS variable from a theme of the style sheet.
    fn variable(name: &str, theme: Theme) -> &'static str {
        let sheet = include_str!("../../../static/css/10-tokens.css");
        let (light, dark) = sheet.split_once(":root[data-theme=\"dark\"]").unwrap();
        let block = if theme == Theme::Dark { dark } else { light };
        let line = block.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap().trim_end_matches(';')
    }

    /// Pill colour: 85 % family colour and 15 % ink, mixed in sRGB (20-base.css).
    fn pill(colour: &str, theme: Theme) -> String {
        let channel = |css: &str, at: usize| f64::from(u8::from_str_radix(&css[at..at + 2], 16).unwrap());
        let ink = variable("--ink", theme);
        let mixed = [1, 3, 5].map(|at| (0.85 * channel(colour, at) + 0.15 * channel(ink, at)).round() as u8);
        format!("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2])
    }

    #[test]
    fn pills_stand_out_from_every_ground() {
        for theme in [Theme::Light, Theme::Dark] {
            for colour in families(theme) {
                let pill = pill(colour, theme);
                for ground in ["--bg", "--panel", "--wash", "--hover"] {
                    let ratio = contrast(linear(&pill), linear(variable(ground, theme)));
                    assert!(ratio >= 3.0, "{colour} as {pill} on {ground}, {theme:?}: {ratio:.2}");
                }
            }
        }
    }

    /// Dash pattern that the style sheet assigns to the planner's pill; "none" for a square.
    fn pill_dash(planner: PlannerKind) -> &'static str {
        let sheet = include_str!("../../../static/css/20-base.css");
        let (_, shapes) = sheet.split_once("/* Planners of one colour differ by shape").unwrap();
        let id = format!(".pill[data-planner-colour=\"{}\"]", planner.id());
        let rule = shapes.split('}').find(|rule| rule.contains(&id));
        let dash = rule.and_then(|rule| rule.split_once(".pill[data-dash=\"")?.1.split_once('"'));
        dash.map_or("none", |(dash, _)| dash)
    }

    #[test]
    fn planners_with_same_colour_differ_by_dash_and_shape() {
        for planner in PlannerKind::ALL {
            let stroke = Stroke::for_planner(planner);
            assert_eq!(pill_dash(planner), stroke.strokes, "{planner:?}");
            for other in PlannerKind::ALL.into_iter().filter(|other| *other != planner) {
                let same = Stroke::for_planner(other);
                assert!(same.colours() != stroke.colours() || same.strokes != stroke.strokes, "{planner:?}, {other:?}");
            }
        }
    }

    /// The pill colours are defined in the style sheet.
    #[test]
    fn the_style_sheet_has_the_same_colours() {
        let sheet = include_str!("../../../static/css/10-tokens.css");
        for theme in [Theme::Light, Theme::Dark] {
            for colour in families(theme) {
                assert!(sheet.lines().any(|line| line.contains("--planner-") && line.contains(colour)), "{colour}");
            }
        }
    }
}
