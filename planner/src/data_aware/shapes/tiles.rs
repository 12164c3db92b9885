//! Images as tiles of one size.

use super::{ImageSize, InputShape};

/// LLaVA-OneVision's tiles: 384 pixels, 27 x 27 patches of 14.
const LLAVA_TILE_PX: u32 = 384;
const LLAVA_EDGE: u32 = 27;
/// Patches of a tile.
pub(super) const LLAVA_PATCHES: u32 = LLAVA_EDGE * LLAVA_EDGE;
/// Grids of 1 x 1 to 6 x 6 tiles.
const LLAVA_GRID: u32 = 6;
/// More than that many tiles' worth of tokens are interpolated down.
const LLAVA_MOST_TILES: f64 = 9.0;
/// Interpolation that would shrink an edge by less is not done.
const LLAVA_LEAST_SHRINKING: f64 = 1.1;
/// Tokens of a frame of video: 27 x 27 pooled to 14 x 14.
const LLAVA_FRAME_TOKENS: u64 = 196;

/// A lone image: the whole image as one tile and a grid of tiles, of which padding is cut away, a token behind every row. One
/// of several images: the whole alone. A frame: the whole, pooled; a token behind the video.
pub(super) fn llava_onevision(shape: &mut InputShape, images: &[ImageSize], frames: u32) {
    let patches = LLAVA_PATCHES;
    if let [image] = images
        && frames == 0
    {
        let (columns, rows) = best_grid(*image);
        let whole = u64::from(patches);
        shape.read(1 + columns * rows, patches, whole + tokens_of_grid(*image, columns, rows));
        return;
    }
    shape.read(images.len() as u32, patches, u64::from(patches) * images.len() as u64);
    if frames > 0 {
        shape.read(frames, patches, LLAVA_FRAME_TOKENS * u64::from(frames) + 1);
    }
}

/// The grid in which most of the image's own pixels are kept, of equals the one with the fewest pixels to spare, of equals the
/// first, columns ascending, then rows.
fn best_grid(image: ImageSize) -> (u32, u32) {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let mut best = (0, u64::MAX, (1, 1));
    for columns in 1..=LLAVA_GRID {
        for rows in 1..=LLAVA_GRID {
            let (wide, high) = (columns * LLAVA_TILE_PX, rows * LLAVA_TILE_PX);
            let scale = (f64::from(wide) / width).min(f64::from(high) / height);
            let scaled = (width * scale) as u64 * (height * scale) as u64;
            let kept = scaled.min(u64::from(image.width) * u64::from(image.height));
            let spare = u64::from(wide) * u64::from(high) - kept;
            if kept > best.0 || (kept == best.0 && spare < best.1) {
                best = (kept, spare, (columns, rows));
            }
        }
    }
    best.2
}

/// Tokens of a grid of tiles.
fn tokens_of_grid(image: ImageSize, columns: u32, rows: u32) -> u64 {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let (mut wide, mut high) = (columns * LLAVA_EDGE, rows * LLAVA_EDGE);
    // The image fills one direction; half of the rest of the other is cut off on either side.
    if width / height > f64::from(wide) / f64::from(high) {
        let filled = (height * (f64::from(wide) / width)) as u32;
        high -= (high - filled) / 2 * 2;
    } else {
        let filled = (width * (f64::from(high) / height)) as u32;
        wide -= (wide - filled) / 2 * 2;
    }
    let patches = f64::from(LLAVA_PATCHES);
    let ratio = (f64::from(high) * f64::from(wide) / (LLAVA_MOST_TILES * patches)).sqrt();
    if ratio > LLAVA_LEAST_SHRINKING {
        (high, wide) = ((f64::from(high) / ratio).floor() as u32, (f64::from(wide) / ratio).floor() as u32);
    }
    u64::from(high) * u64::from(wide) + u64::from(high)
}

/// InternVL's tiles: 448 pixels, 32 x 32 patches merged 2 x 2.
const INTERNVL_TILE_PX: f64 = 448.0;
pub(super) const INTERNVL_PATCHES: u32 = 1024;
const INTERNVL_TOKENS: u64 = 256;
/// Tiles of all images of an item.
const INTERNVL_MOST_TILES: u32 = 12;

/// An image: the grid of tiles with the closest aspect ratio, and the whole image beside them where they are several. Several
/// images share the tiles. A frame: one tile.
pub(super) fn internvl(shape: &mut InputShape, images: &[ImageSize], frames: u32) {
    let most = (INTERNVL_MOST_TILES / (images.len() as u32).max(1)).max(1);
    for &image in images {
        let (columns, rows) = closest_grid(image, most);
        let tiles = columns * rows;
        let all = if tiles > 1 { tiles + 1 } else { 1 };
        shape.read(all, INTERNVL_PATCHES, INTERNVL_TOKENS * u64::from(all));
    }
    shape.read(frames, INTERNVL_PATCHES, INTERNVL_TOKENS * u64::from(frames));
}

/// The grid of at most `most` tiles whose aspect ratio is closest, fewer tiles first; of equals a larger one where the image
/// has more than half of its pixels.
fn closest_grid(image: ImageSize, most: u32) -> (u32, u32) {
    let aspect = f64::from(image.width) / f64::from(image.height);
    let area = f64::from(image.width) * f64::from(image.height);
    let mut grids: Vec<(u32, u32)> = (1..=most)
        .flat_map(|columns| (1..=most).map(move |rows| (columns, rows)))
        .filter(|(columns, rows)| columns * rows <= most)
        .collect();
    grids.sort_by_key(|&(columns, rows)| (columns * rows, columns));
    let mut best = (f64::INFINITY, (1, 1));
    for (columns, rows) in grids {
        let off = (aspect - f64::from(columns) / f64::from(rows)).abs();
        let pixels = INTERNVL_TILE_PX * INTERNVL_TILE_PX * f64::from(columns * rows);
        let larger = off.total_cmp(&best.0).is_eq() && area > 0.5 * pixels;
        if off < best.0 || larger {
            best = (off, (columns, rows));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::super::{ImageSize, Media, Preprocessing};

    fn of(preprocessing: Preprocessing, sizes: &[(u32, u32)], frames: u32) -> (u32, u64) {
        let image = |&(width, height): &(u32, u32)| ImageSize { width, height };
        let frame = (frames > 0).then_some(ImageSize { width: 640, height: 360 });
        let media = Media { images: sizes.iter().map(image).collect(), frames, frame, ..Media::default() };
        let shape = preprocessing.shape(&media);
        (shape.batch(), shape.backbone)
    }

    #[test]
    fn llava_onevision_reads_tiles_that_fit_the_image() {
        for (sizes, frames, batch, tokens) in [
            // 1 x 1: the tile twice, and 27 ends of rows.
            (&[(384, 384)][..], 0, 2, 729 + 729 + 27),
            // 2 columns, 1 row, nothing cut: 54 x 27.
            (&[(768, 384)], 0, 3, 729 + 54 * 27 + 27),
            // 2 x 2 for 640 x 480: 54 wide, 54 x 480 / 640 = 40 high, 54 - 40 = 14 cut.
            (&[(640, 480)], 0, 5, 729 + 54 * 40 + 40),
            // 6 x 6 tiles are 36 tiles' worth: halved to 81 x 81.
            (&[(2304, 2304)], 0, 37, 729 + 81 * 81 + 81),
            // Several images: one tile each.
            (&[(768, 384), (100, 900)], 0, 2, 2 * 729),
            (&[], 32, 32, 32 * 196 + 1),
        ] {
            assert_eq!(of(Preprocessing::LlavaOneVision, sizes, frames), (batch, tokens), "{sizes:?} {frames}");
        }
    }

    #[test]
    fn internvl_reads_tiles_and_a_thumbnail() {
        for (sizes, frames, batch) in [
            (&[(448, 448)][..], 0, 1),
            // Square, but large: 448² has half the pixels of 2 x 2 or less until 633 pixels; 3 x 3 from 951 on.
            (&[(634, 634)], 0, 5),
            (&[(633, 633)], 0, 1),
            (&[(960, 960)], 0, 10),
            // 800 x 600: 4 / 3 is met by 4 x 3 alone, 12 tiles.
            (&[(800, 600)], 0, 13),
            // Two images share twelve tiles: 4 x 3 is out, 3 x 2 (1.5) and 1 x 1 (1.0) are 1/6 and 1/3 off.
            (&[(800, 600), (448, 448)], 0, 7 + 1),
            (&[], 16, 16),
        ] {
            let (found, tokens) = of(Preprocessing::InternVl, sizes, frames);
            assert_eq!((found, tokens), (batch, 256 * u64::from(batch)), "{sizes:?} {frames}");
        }
    }

    /// No image needs more tiles than there can be, whatever its shape.
    #[test]
    fn tiles_are_bounded() {
        for width in (1..4000).step_by(97) {
            for height in (1..4000).step_by(101) {
                let (tiles, tokens) = of(Preprocessing::LlavaOneVision, &[(width, height)], 0);
                // Interpolation keeps 1.1² x 9 tiles at most, and 162 ends of rows.
                assert!((2..=37).contains(&tiles) && tokens <= 729 + 7939 + 162, "{width} x {height}: {tokens}");
                assert!(of(Preprocessing::InternVl, &[(width, height)], 0).0 <= 13);
            }
        }
    }
}
