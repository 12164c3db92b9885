//! Images as fixed-size tiles.

use super::{ImageSize, InputShape};

/// LLaVA-OneVision tile size: 384 pixels, 27 x 27 patches of 14 pixels.
const LLAVA_TILE_PX: u32 = 384;
const LLAVA_EDGE: u32 = 27;
/// Patches per tile.
pub(crate) const LLAVA_PATCHES: u32 = LLAVA_EDGE * LLAVA_EDGE;
/// Maximum grid size: 1 x 1 to 6 x 6 tiles.
const LLAVA_GRID: u32 = 6;
/// Token limit in tiles; larger grids are interpolated down.
const LLAVA_MAX_TILES: f64 = 9.0;
/// Minimum edge ratio for interpolation. Smaller ratios are skipped.
const LLAVA_MIN_SHRINKING: f64 = 1.1;
/// Tokens per video frame: 27 x 27 pooled to 14 x 14.
const LLAVA_FRAME_TOKENS: u64 = 196;

/// Adds images and frames for LLaVA-OneVision. A single image is an overview tile plus a grid of
/// tiles without padding, and a newline token per row. If the item has several images, an image is
/// only the overview tile. A video frame is a pooled tile, and a token follows the video.
pub(crate) fn llava_onevision(shape: &mut InputShape, images: &[ImageSize], frames: u32) {
    let patches = LLAVA_PATCHES;
    if let [image] = images
        && frames == 0
    {
        let (columns, rows) = best_grid(*image);
        let overview_tokens = u64::from(patches);
        shape.read(1 + columns * rows, patches, overview_tokens + grid_tokens(*image, columns, rows));
        return;
    }
    shape.read(images.len() as u32, patches, u64::from(patches) * images.len() as u64);
    if frames > 0 {
        shape.read(frames, patches, LLAVA_FRAME_TOKENS * u64::from(frames) + 1);
    }
}

/// Returns the grid (columns, rows) that preserves the maximum number of image pixels. Ties are
/// resolved to the fewest padding pixels, then to the first grid in column and row order.
fn best_grid(image: ImageSize) -> (u32, u32) {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let mut best = (0, u64::MAX, (1, 1));
    for columns in 1..=LLAVA_GRID {
        for rows in 1..=LLAVA_GRID {
            let (wide, high) = (columns * LLAVA_TILE_PX, rows * LLAVA_TILE_PX);
            let scale = (f64::from(wide) / width).min(f64::from(high) / height);
            let scaled = (width * scale) as u64 * (height * scale) as u64;
            let retained = scaled.min(u64::from(image.width) * u64::from(image.height));
            let spare = u64::from(wide) * u64::from(high) - retained;
            if retained > best.0 || (retained == best.0 && spare < best.1) {
                best = (retained, spare, (columns, rows));
            }
        }
    }
    best.2
}

/// Returns the number of tokens in a grid.
fn grid_tokens(image: ImageSize, columns: u32, rows: u32) -> u64 {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let (mut wide, mut high) = (columns * LLAVA_EDGE, rows * LLAVA_EDGE);
    // The scaled image fills a direction completely. In the other direction, the padding is cropped
    // equally at the two sides.
    if width / height > f64::from(wide) / f64::from(high) {
        let filled = (height * (f64::from(wide) / width)) as u32;
        high -= (high - filled) / 2 * 2;
    } else {
        let filled = (width * (f64::from(high) / height)) as u32;
        wide -= (wide - filled) / 2 * 2;
    }
    let patches = f64::from(LLAVA_PATCHES);
    let ratio = (f64::from(high) * f64::from(wide) / (LLAVA_MAX_TILES * patches)).sqrt();
    if ratio > LLAVA_MIN_SHRINKING {
        (high, wide) = ((f64::from(high) / ratio).floor() as u32, (f64::from(wide) / ratio).floor() as u32);
    }
    u64::from(high) * u64::from(wide) + u64::from(high)
}

/// InternVL tile size: 448 pixels, 32 x 32 patches merged 2 x 2.
const INTERNVL_TILE_PX: f64 = 448.0;
pub(crate) const INTERNVL_PATCHES: u32 = 1024;
const INTERNVL_TOKENS: u64 = 256;
/// Maximum tiles per item, in all images.
const INTERNVL_MAX_TILES: u32 = 12;

/// Adds images and frames for InternVL. An image uses the grid with the closest aspect ratio, plus
/// a thumbnail if the grid has several tiles. The tile limit applies to all images together. A
/// video frame is one tile.
pub(crate) fn internvl(shape: &mut InputShape, images: &[ImageSize], frames: u32) {
    let max_tiles = (INTERNVL_MAX_TILES / (images.len() as u32).max(1)).max(1);
    for &image in images {
        let (columns, rows) = closest_grid(image, max_tiles);
        let tiles = columns * rows;
        let all = if tiles > 1 { tiles + 1 } else { 1 };
        shape.read(all, INTERNVL_PATCHES, INTERNVL_TOKENS * u64::from(all));
    }
    shape.read(frames, INTERNVL_PATCHES, INTERNVL_TOKENS * u64::from(frames));
}

/// Returns the grid (columns, rows) with up to `most` tiles and the closest aspect ratio. Ties are
/// resolved to fewer tiles, or to a larger grid if the image has more than half the grid's pixels.
fn closest_grid(image: ImageSize, max_tiles: u32) -> (u32, u32) {
    let aspect = f64::from(image.width) / f64::from(image.height);
    let area = f64::from(image.width) * f64::from(image.height);
    let mut grids: Vec<(u32, u32)> = (1..=max_tiles)
        .flat_map(|columns| (1..=max_tiles).map(move |rows| (columns, rows)))
        .filter(|(columns, rows)| columns * rows <= max_tiles)
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
    use crate::workload::preprocessing::{ImageSize, Media, Preprocessing};

    fn batch_and_tokens(preprocessing: Preprocessing, sizes: &[(u32, u32)], frames: u32) -> (u32, u64) {
        let image = |&(width, height): &(u32, u32)| ImageSize { width, height };
        let frame = (frames > 0).then_some(ImageSize { width: 640, height: 360 });
        let media = Media { images: sizes.iter().map(image).collect(), frames, frame, ..Media::default() };
        let shape = preprocessing.shape(&media);
        (shape.batch(), shape.backbone)
    }

    #[test]
    fn llava_onevision_reads_tiles_that_fit_the_image() {
        for (sizes, frames, batch, tokens) in [
            // 1 x 1: the tile twice, and 27 newline tokens.
            (&[(384, 384)][..], 0, 2, 729 + 729 + 27),
            // 2 columns, 1 row, without cropping: 54 x 27.
            (&[(768, 384)], 0, 3, 729 + 54 * 27 + 27),
            // 2 x 2 for 640 x 480: width 54, height 54 x 480 / 640 = 40, 54 - 40 = 14 cropped.
            (&[(640, 480)], 0, 5, 729 + 54 * 40 + 40),
            // 6 x 6 tiles exceed the limit by a factor of 4: the edges are halved to 81 x 81.
            (&[(2304, 2304)], 0, 37, 729 + 81 * 81 + 81),
            // Several images: a tile per image.
            (&[(768, 384), (100, 900)], 0, 2, 2 * 729),
            (&[], 32, 32, 32 * 196 + 1),
        ] {
            assert_eq!(
                batch_and_tokens(Preprocessing::LlavaOneVision, sizes, frames),
                (batch, tokens),
                "{sizes:?} {frames}"
            );
        }
    }

    #[test]
    fn internvl_reads_tiles_and_a_thumbnail() {
        for (sizes, frames, batch) in [
            (&[(448, 448)][..], 0, 1),
            // Square images: 2 x 2 requires more than half its pixels, which is above 633 pixels
            // per edge. 3 x 3 starts at 951.
            (&[(634, 634)], 0, 5),
            (&[(633, 633)], 0, 1),
            (&[(960, 960)], 0, 10),
            // 800 x 600: only 4 x 3 has the ratio 4 / 3, 12 tiles.
            (&[(800, 600)], 0, 13),
            // The limit of twelve tiles is for two images: 4 x 3 exceeds the limit of 6; 3 x 2
            // (1.5) and 1 x 1 (1.0) differ by 1/6 and 1/3.
            (&[(800, 600), (448, 448)], 0, 7 + 1),
            (&[], 16, 16),
        ] {
            let (found, tokens) = batch_and_tokens(Preprocessing::InternVl, sizes, frames);
            assert_eq!((found, tokens), (batch, 256 * u64::from(batch)), "{sizes:?} {frames}");
        }
    }

    /// The number of tiles is bounded for any image size.
    #[test]
    fn tiles_are_bounded() {
        for width in (1..4000).step_by(97) {
            for height in (1..4000).step_by(101) {
                let (tiles, tokens) = batch_and_tokens(Preprocessing::LlavaOneVision, &[(width, height)], 0);
                // Interpolation limits the grid to 1.1² x 9 tiles and 162 newline tokens.
                assert!((2..=37).contains(&tiles) && tokens <= 729 + 7939 + 162, "{width} x {height}: {tokens}");
                assert!(batch_and_tokens(Preprocessing::InternVl, &[(width, height)], 0).0 <= 13);
            }
        }
    }
}
