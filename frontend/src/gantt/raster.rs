//! Raster image in device pixels for the bars.
//!
//! Canvas drawing needs a call per bar and becomes slow at about 100,000 bars. This module fills a
//! pixel line per lane and copies it to all the lane's pixel rows. The cost depends on the image
//! size, not on the span count.

/// Opaque colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Rgb {
    /// Parses "#rrggbb" or "#rgb". Returns black for invalid input.
    pub(crate) fn parse(css: &str) -> Self {
        let channel = |at: usize| css.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let long = || Some(Self(channel(1)?, channel(3)?, channel(5)?));
        let short = || {
            let digit = |at: usize| css.get(at..=at).and_then(|digit| u8::from_str_radix(digit, 16).ok());
            (css.len() == 4).then_some(())?;
            Some(Self(digit(1)? * 17, digit(2)? * 17, digit(3)? * 17))
        };
        long().or_else(short).unwrap_or_default()
    }

    /// Blends this colour over a background. `parts` is the opacity in units of 1/255.
    pub(crate) const fn over(self, ground: Self, parts: u8) -> Self {
        const fn mix(top: u8, ground: u8, parts: u8) -> u8 {
            ((top as u32 * parts as u32 + ground as u32 * (255 - parts as u32) + 127) / 255) as u8
        }
        Self(mix(self.0, ground.0, parts), mix(self.1, ground.1, parts), mix(self.2, ground.2, parts))
    }

    const fn bytes(self) -> [u8; 4] {
        [self.0, self.1, self.2, 255]
    }
}

/// RGBA pixels in row-major order. Alpha is always 255.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raster {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Raster {
    /// Resizes the image and fills it with a colour.
    pub(crate) fn clear(&mut self, width: usize, height: usize, colour: Rgb) {
        (self.width, self.height) = (width, height);
        self.bytes.resize(width * height * 4, 0);
        let (first, rest) = self.bytes.split_at_mut((width * 4).min(width * height * 4));
        for pixel in first.chunks_exact_mut(4) {
            pixel.copy_from_slice(&colour.bytes());
        }
        for row in rest.chunks_exact_mut((width * 4).max(1)) {
            row.copy_from_slice(first);
        }
    }

    /// Width in device pixels.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Height in device pixels.
    pub(crate) const fn height(&self) -> usize {
        self.height
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Draws diagonal lines into a rectangle. `period` is the distance and `strength` the line
    /// width, in pixels.
    pub(crate) fn hatch(&mut self, area: Area, colour: Rgb, period: usize, strength: usize) {
        let Some(area) = area.within(self.width, self.height) else { return };
        let period = period.max(1);
        for y in area.top..area.bottom {
            let row = y * self.width;
            // First pixel of a line: x + y is a multiple of the period.
            let mut x = area.left + (period - (area.left + y) % period) % period;
            // Part of a line that starts left of the area.
            for strip in 0..strength.min(period) {
                let at = x + strip;
                if at >= area.left + period {
                    self.set(row + at - period, colour);
                }
            }
            while x < area.right {
                for at in x..(x + strength).min(area.right) {
                    self.set(row + at, colour);
                }
                x += period;
            }
        }
    }

    /// Fills a rectangle.
    pub(crate) fn fill(&mut self, area: Area, colour: Rgb) {
        let Some(area) = area.within(self.width, self.height) else { return };
        for y in area.top..area.bottom {
            for pixel in
                self.bytes[(y * self.width + area.left) * 4..(y * self.width + area.right) * 4].chunks_exact_mut(4)
            {
                pixel.copy_from_slice(&colour.bytes());
            }
        }
    }

    /// Copies a pixel line to `height` rows. Pixels without a colour in the line remain unchanged.
    ///
    /// The first and the last row use `edge`, which contains the outlines.
    pub(crate) fn lane(&mut self, line: &Line, top: i32, height: usize) {
        for step in 0..height {
            let Some(y) = moved(top, step).filter(|y| *y < self.height) else { continue };
            let source = if step == 0 || step + 1 == height { &line.edge } else { &line.body };
            let row = &mut self.bytes[y * self.width * 4..(y + 1) * self.width * 4];
            if line.filled {
                row.copy_from_slice(source);
                continue;
            }
            for (pixel, colour) in row.chunks_exact_mut(4).zip(source.chunks_exact(4)) {
                if colour[3] != 0 {
                    pixel.copy_from_slice(colour);
                }
            }
        }
    }

    /// Blends a colour into the image with the mask's opacity.
    pub(crate) fn mask(&mut self, mask: &Mask, left: i32, top: i32, colour: Rgb) {
        for y in 0..mask.height {
            let Some(to_y) = moved(top, y).filter(|to| *to < self.height) else { continue };
            for x in 0..mask.width {
                let parts = mask.parts[y * mask.width + x];
                let Some(to_x) = moved(left, x).filter(|to| *to < self.width) else { continue };
                if parts > 0 {
                    let at = (to_y * self.width + to_x) * 4;
                    let ground = Rgb(self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]);
                    self.set(at / 4, colour.over(ground, parts));
                }
            }
        }
    }

    fn set(&mut self, pixel: usize, colour: Rgb) {
        if let Some(bytes) = self.bytes.get_mut(pixel * 4..pixel * 4 + 4) {
            bytes.copy_from_slice(&colour.bytes());
        }
    }
}

/// Pixel coordinate `start + steps`. Returns `None` for negative coordinates.
fn moved(start: i32, steps: usize) -> Option<usize> {
    let start = isize::try_from(start).ok()?;
    start.checked_add_unsigned(steps).and_then(|at| usize::try_from(at).ok())
}

/// Pixel rectangle. Right and bottom are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) right: usize,
    pub(crate) bottom: usize,
}

impl Area {
    /// Intersection with an image, or `None` if it is empty.
    fn within(self, width: usize, height: usize) -> Option<Self> {
        let area = Self { right: self.right.min(width), bottom: self.bottom.min(height), ..self };
        (area.left < area.right && area.top < area.bottom).then_some(area)
    }
}

/// Glyph opacity per pixel, in units of 1/255.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) parts: Vec<u8>,
}

/// Pixel line for a lane, with a separate `edge` line for the first and last row, which contains
/// the outlines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    body: Vec<u8>,
    edge: Vec<u8>,
    filled: bool,
}

impl Line {
    /// Resizes the line and clears all colours.
    pub(crate) fn clear(&mut self, width: usize) {
        for line in [&mut self.body, &mut self.edge] {
            line.clear();
            line.resize(width * 4, 0);
        }
        self.filled = false;
    }

    /// Fills the pixels `left..right`, with an optional outline.
    pub(crate) fn bar(&mut self, left: usize, right: usize, fill: Rgb, outline: Option<Rgb>) {
        let right = right.min(self.body.len() / 4);
        if left >= right {
            return;
        }
        paint(&mut self.body[left * 4..right * 4], fill);
        paint(&mut self.edge[left * 4..right * 4], outline.unwrap_or(fill));
        if let Some(outline) = outline {
            paint(&mut self.body[left * 4..left * 4 + 4], outline);
            paint(&mut self.body[right * 4 - 4..right * 4], outline);
        }
    }

    /// Finishes the line after the last bar. A line without gaps can be copied faster.
    pub(crate) fn close(&mut self) {
        self.filled = self.body.chunks_exact(4).all(|pixel| pixel[3] != 0);
    }
}

fn paint(pixels: &mut [u8], colour: Rgb) {
    for pixel in pixels.chunks_exact_mut(4) {
        pixel.copy_from_slice(&colour.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Rgb = Rgb(255, 255, 255);
    const BLACK: Rgb = Rgb(0, 0, 0);
    const RED: Rgb = Rgb(200, 0, 0);

    fn at(raster: &Raster, x: usize, y: usize) -> Rgb {
        let at = (y * raster.width() + x) * 4;
        assert_eq!(raster.bytes()[at + 3], 255, "every pixel is opaque");
        Rgb(raster.bytes()[at], raster.bytes()[at + 1], raster.bytes()[at + 2])
    }

    fn blank(width: usize, height: usize) -> Raster {
        let mut raster = Raster::default();
        raster.clear(width, height, WHITE);
        raster
    }

    #[test]
    fn colours_are_read_and_mixed() {
        assert_eq!(Rgb::parse("#0072b2"), Rgb(0, 0x72, 0xb2));
        assert_eq!(Rgb::parse("#fa0"), Rgb(255, 170, 0));
        assert_eq!(Rgb::parse("tomato"), BLACK);
        assert_eq!(BLACK.over(WHITE, 0), WHITE);
        assert_eq!(BLACK.over(WHITE, 255), BLACK);
        assert_eq!(Rgb(100, 0, 0).over(Rgb(200, 0, 0), 51), Rgb(180, 0, 0), "a fifth");
    }

    #[test]
    fn lane_fills_its_height_and_preserves_gaps() {
        let mut raster = blank(6, 5);
        let mut line = Line::default();
        line.clear(6);
        line.bar(1, 3, RED, None);
        line.close();
        raster.lane(&line, 1, 3);
        for y in 0..5 {
            let inside = (1..4).contains(&y);
            assert_eq!(at(&raster, 1, y), if inside { RED } else { WHITE });
            assert_eq!(at(&raster, 3, y), WHITE);
        }
        // Rows above the image are clipped.
        raster.lane(&line, -2, 3);
        assert_eq!((at(&raster, 1, 0), at(&raster, 2, 0)), (RED, RED));
    }

    #[test]
    fn outlines_run_around_bars() {
        let mut raster = blank(6, 3);
        let mut line = Line::default();
        line.clear(6);
        line.bar(0, 6, RED, Some(BLACK));
        line.close();
        raster.lane(&line, 0, 3);
        for (x, y, expected) in [(0, 1, BLACK), (5, 1, BLACK), (2, 0, BLACK), (2, 2, BLACK), (2, 1, RED)] {
            assert_eq!(at(&raster, x, y), expected, "({x}, {y})");
        }
    }

    #[test]
    fn hatching_is_diagonal_and_stays_inside() {
        let mut raster = blank(9, 4);
        raster.hatch(Area { left: 1, top: 0, right: 8, bottom: 4 }, BLACK, 3, 1);
        for y in 0..4 {
            for x in 0..9 {
                let inked = (1..8).contains(&x) && (x + y) % 3 == 0;
                assert_eq!(at(&raster, x, y), if inked { BLACK } else { WHITE }, "({x}, {y})");
            }
        }
    }

    #[test]
    fn masks_and_fills_beyond_the_picture_are_cut() {
        let mut raster = blank(3, 3);
        let mask = Mask { width: 2, height: 2, parts: vec![255, 0, 128, 255] };
        raster.mask(&mask, 2, 2, BLACK);
        raster.mask(&mask, -1, -1, BLACK);
        assert_eq!((at(&raster, 2, 2), at(&raster, 0, 0), at(&raster, 1, 1)), (BLACK, BLACK, WHITE));
        raster.fill(Area { left: 1, top: 1, right: 90, bottom: 2 }, RED);
        assert_eq!((at(&raster, 2, 1), at(&raster, 0, 1)), (RED, WHITE));
    }
}
