//! Which modules travel together.

/// A module that costs this share of everything is worth a request of its own.
const REQUEST_SHARE: u64 = 300;

/// Modules that are fetched as one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Rooms that fetch it, a bit each.
    pub(super) rooms: u32,
    /// Its size.
    pub(super) bytes: u64,
    /// What is in it.
    pub(super) modules: Vec<String>,
}

/// Packs modules into fewer bundles: two become one as long as this makes the first visits to all rooms cheaper, where a request
/// costs as much as some bytes. A room may then fetch what it does not need, and never misses what it does.
pub(super) fn packed(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    let request = bundles.iter().map(|bundle| bundle.bytes).sum::<u64>() / REQUEST_SHARE;
    loop {
        let mut best: Option<(i64, usize, usize)> = None;
        for (i, one) in bundles.iter().enumerate() {
            for (j, other) in bundles[..i].iter().enumerate() {
                let gain = gain(one, other, request);
                if gain > best.map_or(0, |(gain, ..)| gain) {
                    best = Some((gain, j, i));
                }
            }
        }
        let Some((_, into, from)) = best else { return bundles };
        let Bundle { rooms, bytes, modules } = bundles.swap_remove(from);
        bundles[into].rooms |= rooms;
        bundles[into].bytes += bytes;
        bundles[into].modules.extend(modules);
    }
}

/// What the first visits to all rooms save, in bytes, if two bundles are one.
fn gain(one: &Bundle, other: &Bundle, request: u64) -> i64 {
    let rooms = |set: u32| i64::from(set.count_ones());
    let bytes = |bundle: &Bundle| i64::try_from(bundle.bytes).unwrap_or(i64::MAX);
    let saved = i64::try_from(request).unwrap_or(i64::MAX) * rooms(one.rooms & other.rooms);
    saved - bytes(one) * rooms(other.rooms & !one.rooms) - bytes(other) * rooms(one.rooms & !other.rooms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(rooms: u32, bytes: u64, name: &str) -> Bundle {
        Bundle { rooms, bytes, modules: vec![name.to_owned()] }
    }

    #[test]
    fn small_modules_travel_with_others_and_large_ones_alone() {
        // A request is worth (100,000 + 60,000 + 40 + 20) / 300 = 533 bytes. The two small ones lie in rooms 1 and 2, and in rooms
        // 1, 2 and 3: together they save two requests and cost room 3 40 bytes. The large ones would cost the other room more.
        let packed =
            packed(vec![bundle(1, 100_000, "a"), bundle(2, 60_000, "b"), bundle(3, 40, "c"), bundle(7, 20, "d")]);
        let found: Vec<_> = packed.iter().map(|bundle| (bundle.rooms, bundle.bytes, bundle.modules.concat())).collect();
        assert_eq!(found, [(1, 100_000, "a".to_owned()), (2, 60_000, "b".to_owned()), (7, 60, "cd".to_owned())]);
    }

    #[test]
    fn rooms_that_share_nothing_share_no_file() {
        let apart = vec![bundle(1, 10, "a"), bundle(2, 10, "b")];
        assert_eq!(packed(apart.clone()), apart);
    }
}
