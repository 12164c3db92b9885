//! Definitions of docs/glossary.md.

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

/// Returns the rows of the glossary whose term contains `term`, one line each; if there are none, those whose meaning or
/// source contains it. Case, hyphens and underscores make no difference.
pub(super) fn definitions(term: &str) -> Vec<String> {
    let wanted = plain(term);
    if wanted.is_empty() {
        return Vec::new();
    }
    let by_name: Vec<String> = rows().filter(|row| plain(row.name).contains(&wanted)).map(Row::describe).collect();
    if !by_name.is_empty() {
        return by_name;
    }
    rows()
        .filter(|row| plain(row.meaning).contains(&wanted) || plain(row.source).contains(&wanted))
        .map(Row::describe)
        .collect()
}

/// Row of the glossary.
struct Row {
    name: &'static str,
    meaning: &'static str,
    source: &'static str,
}

impl Row {
    fn describe(self) -> String {
        let Self { name, meaning, source } = self;
        if source.is_empty() { format!("{name}: {meaning}") } else { format!("{name}: {meaning} ({source})") }
    }
}

fn rows() -> impl Iterator<Item = Row> {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some(Row { name: cells.next()?, meaning: cells.next()?, source: cells.next().unwrap_or_default() })
    });
    rows.filter(|row| row.name != "term" && !row.name.starts_with("---"))
}

/// Returns a text in small letters, without hyphens and underscores.
fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace(['-', '_'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_found_in_any_case() {
        let found = definitions("Microbatch");
        assert!(found.iter().any(|line| line.starts_with("microbatch: Sequences of one forward")), "{found:?}");
        for term in ["FSDP", "ZeRO-3", "HFU", "gradient accumulation", "activation_checkpointing", "SwiGLU", "Ulysses"]
        {
            assert!(!definitions(term).is_empty(), "{term}");
        }
        assert!(definitions("  ").is_empty() && definitions("term").iter().all(|line| !line.starts_with("term:")));
    }
}
