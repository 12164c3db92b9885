//! Selects modules to merge.

/// A request costs as much as 1/300 of the total size.
const REQUEST_SHARE: u64 = 300;

/// Modules downloaded as a single file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Bit set of the pages that download this file.
    pub(super) pages: u32,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// Module names.
    pub(super) modules: Vec<String>,
}

/// Merges bundles while a merge reduces the total cost of the first visits to all pages. The cost
/// is the size in bytes plus a fixed cost per request. A page may download code that it does not
/// need, but never misses required code.
pub(super) fn packed(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    let request = bundles.iter().map(|bundle| bundle.bytes).sum::<u64>() / REQUEST_SHARE;
    loop {
        let mut best: Option<(i64, usize, usize)> = None;
        for (i, left) in bundles.iter().enumerate() {
            for (j, other) in bundles[..i].iter().enumerate() {
                let gain = gain(left, other, request);
                if gain > best.map_or(0, |(gain, ..)| gain) {
                    best = Some((gain, j, i));
                }
            }
        }
        let Some((_, into, from)) = best else { return bundles };
        let Bundle { pages, bytes, modules } = bundles.swap_remove(from);
        bundles[into].pages |= pages;
        bundles[into].bytes += bytes;
        bundles[into].modules.extend(modules);
    }
}

/// Bytes saved over the first visits to all pages if two bundles are merged.
fn gain(first: &Bundle, other: &Bundle, request: u64) -> i64 {
    let count = |set: u32| i64::from(set.count_ones());
    let bytes = |bundle: &Bundle| i64::try_from(bundle.bytes).unwrap_or(i64::MAX);
    let saved = i64::try_from(request).unwrap_or(i64::MAX) * count(first.pages & other.pages);
    saved - bytes(first) * count(other.pages & !first.pages) - bytes(other) * count(first.pages & !other.pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(pages: u32, bytes: u64, name: &str) -> Bundle {
        Bundle { pages, bytes, modules: vec![name.to_owned()] }
    }

    #[test]
    fn small_modules_are_merged_and_large_modules_stay_separate() {
        // A request costs (100,000 + 60,000 + 40 + 20) / 300 = 533 bytes. The two small bundles are
        // used by pages 1 and 2, and by pages 1, 2 and 3. A merge saves two requests and costs page
        // 3 an extra 40 bytes. Merging the large bundles would cost the other page more.
        let packed =
            packed(vec![bundle(1, 100_000, "a"), bundle(2, 60_000, "b"), bundle(3, 40, "c"), bundle(7, 20, "d")]);
        let found: Vec<_> = packed.iter().map(|bundle| (bundle.pages, bundle.bytes, bundle.modules.concat())).collect();
        assert_eq!(found, [(1, 100_000, "a".to_owned()), (2, 60_000, "b".to_owned()), (7, 60, "cd".to_owned())]);
    }

    #[test]
    fn pages_without_shared_code_share_no_file() {
        let separate = vec![bundle(1, 10, "a"), bundle(2, 10, "b")];
        assert_eq!(packed(separate.clone()), separate);
    }
}
