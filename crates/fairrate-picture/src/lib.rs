//! Conversion of SVG to PDF and PNG. In PNG, text is drawn with the fonts of the machine; in PDF it stays text.

use std::path::PathBuf;
use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// The reason why a picture cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine has no fonts.
    #[error("there is no font on this machine; install one, as Debian's package `fonts-liberation`")]
    NoFonts,
    /// The SVG cannot be read.
    #[error("the SVG cannot be read: {0}")]
    Svg(#[from] usvg::Error),
    /// The PDF cannot be made.
    #[error("the PDF cannot be made: {0}")]
    Pdf(svg2pdf::ConversionError),
    /// The PNG cannot be made.
    #[error("the PNG cannot be made: {0}")]
    Png(String),
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// Vectors and text.
    Pdf,
    /// Pixels on white, with this number of pixels to a unit of the SVG.
    Png(f32),
}

/// Turns the text of an SVG into the bytes of another format. `fonts` are directories of fonts besides those of the
/// machine.
///
/// # Errors
/// If the SVG is wrong or too large, or the machine has no fonts.
pub fn convert(svg: &str, format: Format, fonts: &[PathBuf]) -> Result<Vec<u8>, Error> {
    let tree = usvg::Tree::from_str(svg, &options(fonts)?)?;
    match format {
        Format::Pdf => {
            let options = svg2pdf::ConversionOptions::default();
            svg2pdf::to_pdf(&tree, options, svg2pdf::PageOptions::default()).map_err(Error::Pdf)
        }
        Format::Png(scale) => png(&tree, scale),
    }
}

/// Returns the options with the machine's fonts and those in `dirs`; one of them replaces missing fonts.
fn options(dirs: &[PathBuf]) -> Result<usvg::Options<'static>, Error> {
    let mut fonts = fontdb::Database::new();
    fonts.load_system_fonts();
    for dir in dirs {
        fonts.load_fonts_dir(dir);
    }
    let is_plain = |face: &&fontdb::FaceInfo| face.style == fontdb::Style::Normal && !face.monospaced;
    let family = |face: &fontdb::FaceInfo| face.families.first().map(|(name, _)| name.clone());
    let plain = fonts.faces().filter(is_plain).find_map(family).or_else(|| fonts.faces().find_map(family));
    let fallback = plain.ok_or(Error::NoFonts)?;
    let sans = ["Liberation Sans", "DejaVu Sans", "Helvetica", "Arial", "Noto Sans"];
    let has = |name: &&str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
    let family = sans.iter().find(|name| has(name)).map_or(fallback, |&name| name.to_owned());
    fonts.set_sans_serif_family(&family);
    Ok(usvg::Options { font_family: family, fontdb: Arc::new(fonts), ..usvg::Options::default() })
}

fn png(tree: &usvg::Tree, scale: f32) -> Result<Vec<u8>, Error> {
    let [width, height] = [tree.size().width(), tree.size().height()].map(|side| (side * scale).ceil() as u32);
    let too_large = || Error::Png(format!("{width} by {height} pixels are too many"));
    let mut pixels = Pixmap::new(width, height).ok_or_else(too_large)?;
    pixels.fill(Color::WHITE);
    resvg::render(tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| Error::Png(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" viewBox=\"0 0 40 20\">\
                       <rect width=\"20\" height=\"20\" fill=\"#102030\"/></svg>";

    #[test]
    fn pictures_have_the_size_and_the_colours_of_the_svg() {
        let bytes = match convert(SVG, Format::Png(2.0), &[]) {
            Err(Error::NoFonts) => return println!("not run: this machine has no fonts"),
            bytes => bytes.expect("it is sound"),
        };
        let pixels = Pixmap::decode_png(&bytes).expect("it is a PNG");
        assert_eq!((pixels.width(), pixels.height()), (80, 40));
        let colour = |x, y| pixels.pixel(x, y).map(|p| (p.red(), p.green(), p.blue()));
        assert_eq!((colour(10, 10), colour(70, 10)), (Some((0x10, 0x20, 0x30)), Some((255, 255, 255))));
        let pdf = convert(SVG, Format::Pdf, &[]).expect("it is sound");
        assert!(pdf.starts_with(b"%PDF-"));
        assert!(matches!(convert("<svg", Format::Pdf, &[]), Err(Error::Svg(_))));
    }
}
