//! Definitions of docs/glossary.md.

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

/// Returns the rows of the glossary whose term contains `term`, one line each.
pub(super) fn definitions(term: &str) -> Vec<String> {
    let wanted = term.trim().to_lowercase();
    let rows = GLOSSARY.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (name, meaning, source) = (cells.next()?, cells.next()?, cells.next().unwrap_or_default());
        let is_row = name != "term" && !name.starts_with("---");
        let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
        (is_row && !wanted.is_empty() && name.to_lowercase().contains(&wanted))
            .then(|| format!("{name}: {meaning}{source}"))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_found_in_any_case() {
        let found = definitions("Microbatch");
        assert!(found.iter().any(|line| line.starts_with("microbatch: Sequences of one forward")), "{found:?}");
        assert!(definitions("  ").is_empty() && definitions("term").iter().all(|line| !line.starts_with("term:")));
    }
}
