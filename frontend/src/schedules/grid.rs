//! Grid model of a schedule table in the torch action grammar, with operations that move actions.

/// Cells by row. Rows are text lines, so addresses match those in a spreadsheet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Grid {
    /// Trimmed cell texts.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Zero-based cell position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CellPosition {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// Move direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Earlier.
    PointQueue,
    /// Later.
    Right,
    /// Previous rank.
    Up,
    /// Next rank.
    Down,
}

impl Direction {
    /// Returns the direction for an arrow key.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        match key {
            "ArrowLeft" => Some(Self::PointQueue),
            "ArrowRight" => Some(Self::Right),
            "ArrowUp" => Some(Self::Up),
            "ArrowDown" => Some(Self::Down),
            _ => None,
        }
    }
}

impl Grid {
    /// Parses CSV text.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let cell = |cell: &str| cell.trim().trim_matches('"').trim().to_owned();
        Self { rows: text.lines().map(|line| line.split(',').map(cell).collect()).collect() }
    }

    /// Formats CSV text without trailing idle cells.
    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let end = row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
            text.push_str(&row[..end].join(","));
            text.push('\n');
        }
        text
    }

    /// Returns the cell count of the longest row.
    pub(crate) fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the cell text, or an empty string past the end of the row.
    pub(crate) fn at(&self, position: CellPosition) -> &str {
        self.rows.get(position.row).and_then(|row| row.get(position.column)).map_or("", String::as_str)
    }

    /// Returns the adjacent position. At the edge, returns the same position.
    pub(crate) fn neighbour(&self, position: CellPosition, direction: Direction) -> CellPosition {
        let CellPosition { row, column } = position;
        let (last_row, last_column) = (self.rows.len().saturating_sub(1), self.columns().saturating_sub(1));
        match direction {
            Direction::PointQueue => CellPosition { row, column: column.saturating_sub(1) },
            Direction::Right => CellPosition { row, column: (column + 1).min(last_column) },
            Direction::Up => CellPosition { row: row.saturating_sub(1), column },
            Direction::Down => CellPosition { row: (row + 1).min(last_row), column },
        }
    }

    /// Swaps an action with its neighbour. Returns the new grid and the new position of the action.
    /// An action may move a single cell past the end of the longest row.
    pub(crate) fn moved(&self, position: CellPosition, direction: Direction) -> Option<(Self, CellPosition)> {
        let beyond = direction == Direction::Right && position.column + 1 == self.columns();
        let to = if beyond {
            CellPosition { column: position.column + 1, ..position }
        } else {
            self.neighbour(position, direction)
        };
        let (moved, met) = (self.at(position).to_owned(), self.at(to).to_owned());
        if to == position || (moved.is_empty() && met.is_empty()) {
            return None;
        }
        let mut grid = self.clone();
        grid.put(to, moved);
        grid.put(position, met);
        Some((grid, to))
    }

    /// Returns the grid with an idle cell at this position.
    pub(crate) fn cleared(&self, position: CellPosition) -> Option<Self> {
        let mut grid = self.clone();
        if grid.at(position).is_empty() {
            return None;
        }
        grid.put(position, String::new());
        Some(grid)
    }

    fn put(&mut self, position: CellPosition, text: String) {
        let Some(row) = self.rows.get_mut(position.row) else { return };
        if row.len() <= position.column {
            row.resize(position.column + 1, String::new());
        }
        row[position.column] = text;
    }
}

/// Returns the action letter that determines the cell colour, or "overlap".
pub(crate) fn action_letter(cell: &str) -> Option<&'static str> {
    if cell.starts_with('(') {
        return Some("overlap");
    }
    match cell.trim_start_matches(|letter: char| letter.is_ascii_digit()).chars().next()? {
        'F' => Some("F"),
        'B' => Some("B"),
        'I' => Some("I"),
        'W' => Some("W"),
        _ => None,
    }
}

/// True if the pasted text is a table: its first cells are action names.
pub(crate) fn is_table(text: &str) -> bool {
    text.len() < 1 << 24
        && text.split([',', '\n']).map(str::trim).find(|cell| !cell.is_empty()).is_some_and(|cell| {
            cell.starts_with(|letter: char| letter.is_ascii_digit() || letter == '(')
                && cell.contains(|letter: char| letter.is_ascii_uppercase())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0F0,,0B0\n1F0,1B0\n";

    fn cell_position(row: usize, column: usize) -> CellPosition {
        CellPosition { row, column }
    }

    #[test]
    fn a_text_is_read_and_written() {
        let grid = Grid::parse(TEXT);
        assert_eq!((grid.columns(), grid.at(cell_position(0, 2)), grid.at(cell_position(1, 2))), (3, "0B0", ""));
        assert_eq!(grid.write(), TEXT);
        assert_eq!(Grid::parse("\u{feff}\"0F0\", 0B0 ,\r\n").write(), "0F0,0B0\n");
    }

    #[test]
    fn an_action_and_its_neighbour_change_places() {
        let grid = Grid::parse(TEXT);
        let moved = |at, direction| grid.moved(at, direction).map(|(grid, to)| (grid.write(), to));
        assert_eq!(
            moved(cell_position(0, 0), Direction::Right),
            Some((",0F0,0B0\n1F0,1B0\n".to_owned(), cell_position(0, 1)))
        );
        assert_eq!(
            moved(cell_position(1, 1), Direction::PointQueue),
            Some(("0F0,,0B0\n1B0,1F0\n".to_owned(), cell_position(1, 0)))
        );
        assert_eq!(
            moved(cell_position(0, 2), Direction::Right),
            Some(("0F0,,,0B0\n1F0,1B0\n".to_owned(), cell_position(0, 3)))
        );
        assert_eq!(
            moved(cell_position(0, 2), Direction::Down),
            Some(("0F0\n1F0,1B0,0B0\n".to_owned(), cell_position(1, 2)))
        );
        assert_eq!(moved(cell_position(0, 0), Direction::PointQueue), None, "the edge");
        assert_eq!(moved(cell_position(0, 0), Direction::Up), None);
        assert_eq!(moved(cell_position(1, 2), Direction::Right), None, "nothing to move");
    }

    #[test]
    fn the_selection_stays_inside() {
        let grid = Grid::parse(TEXT);
        assert_eq!(grid.neighbour(cell_position(0, 2), Direction::Right), cell_position(0, 2));
        assert_eq!(grid.neighbour(cell_position(1, 0), Direction::Down), cell_position(1, 0));
        assert_eq!(Grid::default().neighbour(cell_position(0, 0), Direction::Right), cell_position(0, 0));
        assert_eq!(grid.cleared(cell_position(1, 1)).map(|grid| grid.write()), Some("0F0,,0B0\n1F0\n".to_owned()));
        assert_eq!(grid.cleared(cell_position(0, 1)), None);
    }

    #[test]
    fn cells_and_texts_are_recognised() {
        let actions = ["0F1", "12B0", "1I3", "3W1", "(4F4;3B0)OVERLAP_F_B", "nonsense", ""].map(action_letter);
        assert_eq!(actions, [Some("F"), Some("B"), Some("I"), Some("W"), Some("overlap"), None, None]);
        assert!(is_table(TEXT) && is_table(",0F0\n") && is_table("(1F0;0B0)OVERLAP_F_B"));
        assert!(!is_table("3.5, 4") && !is_table("hello") && !is_table(""));
    }
}
