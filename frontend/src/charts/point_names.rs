//! Where the names of a few points stand, so that none covers a point or another name.

/// Size of the area that is drawn in, in px.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    /// From left to right.
    pub(super) width: f64,
    /// From top to bottom.
    pub(super) height: f64,
}

/// The middle of a name, in px to the right of its point and above it.
pub(super) type Shift = (f64, f64);

/// Width of a letter and height of a line at the size that charts write in, in px.
const LETTER: f64 = 6.4;
const LINE: f64 = 13.0;
/// Room that a point takes to every side, and between it and its name.
const POINT: f64 = 5.0;
/// Share of the area that an axis leaves free at either end.
const MARGIN: f64 = 0.06;

/// A rectangle by its middle and half its size.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    half_width: f64,
    half_height: f64,
}

impl Place {
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

/// Where the name of every point stands; nothing where all four sides are taken.
pub(super) fn shifts(points: &[(f64, f64, &str)], area: Area) -> Vec<Option<Shift>> {
    let extent = |of: fn(&(f64, f64, &str)) -> f64| {
        let values = points.iter().map(of);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let (across, up) = (extent(|point| point.0), extent(|point| point.1));
    let at = |value: f64, (least, most): (f64, f64), length: f64| {
        let share = if most > least { (value - least) / (most - least) } else { 0.5 };
        (MARGIN + share * (1.0 - 2.0 * MARGIN)) * length
    };
    let marks: Vec<Place> = points
        .iter()
        .map(|(x, y, _)| Place {
            x: at(*x, across, area.width),
            y: at(*y, up, area.height),
            half_width: POINT,
            half_height: POINT,
        })
        .collect();
    let mut names = Vec::<Place>::new();
    let mut place = |(own, (_, _, name)): (usize, &(f64, f64, &str))| {
        let (half_width, half_height) = (name.chars().count() as f64 * LETTER / 2.0, LINE / 2.0);
        let (beside, above) = (half_width + POINT + 1.0, half_height + POINT - 1.0);
        let sides = [(0.0, above), (0.0, -above), (beside, 0.0), (-beside, 0.0)];
        let free = sides.into_iter().find(|(right, up)| {
            let name = Place { x: marks[own].x + right, y: marks[own].y + up, half_width, half_height };
            let covers = |(number, mark): (usize, &Place)| number != own && mark.meets(&name);
            name.is_inside(area) && !marks.iter().enumerate().any(covers) && !names.iter().any(|it| it.meets(&name))
        })?;
        names.push(Place { x: marks[own].x + free.0, y: marks[own].y + free.1, half_width, half_height });
        Some(free)
    };
    points.iter().enumerate().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { width: 600.0, height: 180.0 };

    #[test]
    fn a_name_stands_above_its_point_where_there_is_room() {
        // Half-way up: 6.5 + 5 - 1 px above.
        assert_eq!(shifts(&[(1.0, 1.0, "1F1B")], AREA), [Some((0.0, 10.5))]);
        assert!(shifts(&[], AREA).is_empty());
    }

    #[test]
    fn names_leave_points_and_each_other_alone() {
        // The highest points have no room above. Of two at one place the first writes at the left, where 22.4 + 6 px clear both; the
        // second finds that taken, its own right side outside, and the other point below.
        let near = [(0.0, 0.0, "a"), (10.0, 10.0, "dynamic"), (10.0, 10.0, "static"), (5.0, 10.0, "third")];
        let found = shifts(&near, AREA);
        assert_eq!(found[0], Some((0.0, 10.5)));
        let (right, up) = found[1].unwrap();
        assert!((right + 28.4).abs() < 1e-9 && up == 0.0);
        assert_eq!(found[2], None);
        assert_eq!(found[3], Some((0.0, -10.5)), "nothing is written outside");
    }

    #[test]
    fn a_long_name_at_the_edge_stands_at_the_free_side() {
        let found = shifts(&[(0.0, 0.0, "a name of many letters"), (1.0, 1.0, "b")], AREA);
        // 22 letters of 6.4 px, half of them 70.4, and 6 px beside the point at 36 px.
        let (right, up) = found[0].unwrap();
        assert!((right - 76.4).abs() < 1e-9 && up == 0.0);
    }
}
