//! Interpolation of values: `${section.key}`, `${.sibling}`, `${multiply:4, ${.key}}` (OmegaConf, `NeMo`) and
//! `${NAME:default}` (Primus).

use super::keys::Keys;

/// Maximum nesting of values that refer to values.
const MAX_DEPTH: u32 = 8;
/// Maximum length of a value that interpolation changes, in bytes.
const MAX_BYTES: usize = 1_024;

/// Replaces interpolations by the values that the file states. Others stay as they are.
pub(super) fn resolve(keys: &mut Keys) {
    keys.replace_values(|keys, key, value| {
        (value.contains("${") && value.len() <= MAX_BYTES).then(|| replaced(keys, key, value, 0))
    });
}

fn replaced(keys: &Keys, key: &str, value: &str, depth: u32) -> String {
    let mut text = value.to_owned();
    // The last opening is innermost.
    let mut end = text.len();
    while let Some(start) = text[..end].rfind("${") {
        end = start;
        let Some(close) = text[start..].find('}').map(|close| start + close) else { continue };
        if depth < MAX_DEPTH
            && let Some(new) = evaluated(keys, key, &text[start + 2..close], depth)
            && text.len() + new.len() <= 2 * MAX_BYTES
        {
            text.replace_range(start..=close, &new);
        }
    }
    text
}

fn evaluated(keys: &Keys, key: &str, expression: &str, depth: u32) -> Option<String> {
    if let Some(factors) = expression.strip_prefix("multiply:") {
        let product = factors.split(',').map(|factor| factor.trim().parse::<u32>().ok());
        return product.reduce(|a, b| a?.checked_mul(b?))?.map(|product| product.to_string());
    }
    if let Some((name, default)) = expression.strip_prefix("oc.env:").and_then(|rest| rest.split_once(',')) {
        return (!name.is_empty()).then(|| default.trim().to_owned());
    }
    if let Some((_, default)) = expression.split_once(':') {
        return Some(default.trim().trim_matches('"').to_owned());
    }
    let path = path(key, expression);
    // A launcher reads the file below the section "training".
    let found = keys.peek(&path).map(|value| (path.as_str(), value)).or_else(|| {
        let path = path.strip_prefix("training.")?;
        Some((path, keys.peek(path)?))
    });
    found.map(|(path, value)| replaced(keys, path, value, depth + 1))
}

/// Returns the full path. A leading dot stands for the section of `key`, each further dot for the section above.
fn path(key: &str, expression: &str) -> String {
    let name = expression.trim_start_matches('.');
    let dots = expression.len() - name.len();
    let mut section = key;
    for _ in 0..dots {
        section = section.rsplit_once('.').map_or("", |(section, _)| section);
    }
    if dots == 0 || section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_config::yaml;

    #[test]
    fn values_are_replaced() {
        let text = "variables:\n  length: 2048\nmodel:\n  hidden: 4096\n  ffn: ${multiply:4, ${.hidden}}\n  \
                    length: ${variables.length}\n  other: ${training.model.hidden}\n  env: ${SEQ:8192}\n  \
                    secret: ${oc.env:TOKEN}\n  data:\n    up: ${..hidden}\n  self: ${.self}${.self}\n";
        let mut keys = yaml::keys(text).unwrap();
        resolve(&mut keys);
        for (key, value) in [
            ("model.ffn", "16384"),
            ("model.length", "2048"),
            ("model.other", "4096"),
            ("model.env", "8192"),
            ("model.data.up", "4096"),
        ] {
            assert_eq!(keys.peek(key), Some(value), "{key}");
        }
        assert!(keys.peek("model.self").unwrap().len() <= 2 * MAX_BYTES);
    }
}
