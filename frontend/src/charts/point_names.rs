//! Label placement for a small set of points, so that no label covers a point or another label.

/// Plot area in px.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Centre of a label relative to its point, in px to the right and px upwards.
pub(super) type Shift = (f64, f64);

/// Character width and line height at the chart font size, in px.
const LETTER: f64 = 6.4;
const LINE: f64 = 13.0;
/// Half-size of a point, and gap between a point and its label, in px.
const POINT: f64 = 5.0;
/// Axis margin at both ends, as a fraction of the area.
const MARGIN: f64 = 0.06;

/// Rectangle given by its centre and half its size.
#[derive(Clone, Copy)]
struct LabelBox {
    x: f64,
    y: f64,
    half_width: f64,
    half_height: f64,
}

impl LabelBox {
    fn meets(&self, other: &Self) -> bool {
        (self.x - other.x).abs() < self.half_width + other.half_width
            && (self.y - other.y).abs() < self.half_height + other.half_height
    }

    fn is_inside(&self, area: Area) -> bool {
        self.x >= self.half_width
            && self.x + self.half_width <= area.width
            && self.y >= self.half_height
            && self.y + self.half_height <= area.height
    }
}

/// Computes one label position per point; `None` if all four sides are occupied.
pub(super) fn shifts(points: &[(f64, f64, &str)], area: Area) -> Vec<Option<Shift>> {
    let extent = |coordinate: fn(&(f64, f64, &str)) -> f64| {
        let values = points.iter().map(coordinate);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let (across, up) = (extent(|point| point.0), extent(|point| point.1));
    let at = |value: f64, (lower, upper): (f64, f64), length: f64| {
        let share = if upper > lower { (value - lower) / (upper - lower) } else { 0.5 };
        (MARGIN + share * (1.0 - 2.0 * MARGIN)) * length
    };
    let marks: Vec<LabelBox> = points
        .iter()
        .map(|(x, y, _)| LabelBox {
            x: at(*x, across, area.width),
            y: at(*y, up, area.height),
            half_width: POINT,
            half_height: POINT,
        })
        .collect();
    let mut names = Vec::<LabelBox>::new();
    let mut label_shift = |(index, (_, _, name)): (usize, &(f64, f64, &str))| {
        let (half_width, half_height) = (name.chars().count() as f64 * LETTER / 2.0, LINE / 2.0);
        let (horizontal, above) = (half_width + POINT + 1.0, half_height + POINT - 1.0);
        let sides = [(0.0, above), (0.0, -above), (horizontal, 0.0), (-horizontal, 0.0)];
        let free = sides.into_iter().find(|(right, up)| {
            let name = LabelBox { x: marks[index].x + right, y: marks[index].y + up, half_width, half_height };
            let covers = |(number, mark): (usize, &LabelBox)| number != index && mark.meets(&name);
            name.is_inside(area) && !marks.iter().enumerate().any(covers) && !names.iter().any(|it| it.meets(&name))
        })?;
        names.push(LabelBox { x: marks[index].x + free.0, y: marks[index].y + free.1, half_width, half_height });
        Some(free)
    };
    points.iter().enumerate().map(&mut label_shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { width: 600.0, height: 180.0 };

    #[test]
    fn label_is_above_point_if_space_is_free() {
        // Centre of the label: 6.5 + 5 - 1 px above the point.
        assert_eq!(shifts(&[(1.0, 1.0, "1F1B")], AREA), [Some((0.0, 10.5))]);
        assert!(shifts(&[], AREA).is_empty());
    }

    #[test]
    fn labels_overlap_no_points_or_labels() {
        // The topmost points have no space above. Two points have the same position: the first
        // label goes to the left, where 22.4 + 6 px is enough. The second label finds the left
        // occupied, the right outside the area, and the third point blocked below.
        let near = [(0.0, 0.0, "a"), (10.0, 10.0, "dynamic"), (10.0, 10.0, "static"), (5.0, 10.0, "third")];
        let found = shifts(&near, AREA);
        assert_eq!(found[0], Some((0.0, 10.5)));
        let (right, up) = found[1].unwrap();
        assert!((right + 28.4).abs() < 1e-9 && up == 0.0);
        assert_eq!(found[2], None);
        assert_eq!(found[3], Some((0.0, -10.5)), "nothing is written outside");
    }

    #[test]
    fn long_label_at_edge_uses_free_side() {
        let found = shifts(&[(0.0, 0.0, "a name of many letters"), (1.0, 1.0, "b")], AREA);
        // 22 characters at 6.4 px: half is 70.4 px, plus 6 px gap to the point at 36 px.
        let (right, up) = found[0].unwrap();
        assert!((right - 76.4).abs() < 1e-9 && up == 0.0);
    }
}
