//! Pictures that are not charts: in the page with the colours of its theme, and as files with light colours.

use std::fmt::Write as _;

use fairrate_text::escape;

const STYLE: &str = include_str!("page/style.css");
/// Average width of a character, in pixels.
pub(crate) const CHARACTER: f64 = 6.8;
/// Margin of a picture in a file.
const MARGIN: f64 = 16.0;

/// The place of a picture, which decides its colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Page,
    File,
}

impl Place {
    /// Returns the colour with the name `name` in the style sheet.
    pub(crate) fn colour(self, name: &str) -> String {
        match self {
            Self::Page => format!("var(--{name})"),
            Self::File => {
                let after = STYLE.split_once(&format!("--{name}: "));
                after.and_then(|(_, rest)| rest.get(..7)).unwrap_or("#16191d").to_owned()
            }
        }
    }

    /// Returns a picture of this size with the drawing `inner`; `title` is its heading in a file, and `words` describe
    /// it to those who do not see it.
    pub(crate) fn svg(self, (width, height): (f64, f64), title: &str, words: &str, inner: &str) -> String {
        let words = escape(words);
        if self == Self::Page {
            return format!(
                "<svg viewBox=\"0 0 {width} {height}\" style=\"max-width:{width}px\" font-size=\"12\" role=\"img\" aria-label=\"{words}\">\n\
                 {inner}</svg>"
            );
        }
        let (full, tall) = (width + 2.0 * MARGIN, height + 26.0 + 2.0 * MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"Helvetica, Arial, sans-serif\" viewBox=\"0 0 {full} {tall}\" \
             width=\"{full}\" height=\"{tall}\" font-size=\"12\" role=\"img\" aria-label=\"{words}\">\n\
             <rect width=\"{full}\" height=\"{tall}\" fill=\"{}\"/>\n\
             <text x=\"{MARGIN}\" y=\"30\" font-size=\"15\" font-weight=\"bold\" fill=\"{}\">{}</text>\n\
             <g transform=\"translate({MARGIN} 42)\">\n{inner}</g>\n</svg>",
            self.colour("card"),
            self.colour("ink"),
            escape(title),
        )
    }
}

/// Returns a text in a picture: its place, its anchor and its colour.
pub(crate) fn text(x: f64, y: f64, anchor: &str, fill: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" style=\"fill:{fill}\">{}</text>\n", escape(text))
}

/// Width of a colour in a legend.
const LEGEND_WIDTH: f64 = 46.0;

/// Returns a legend of the colours `q0` to `q6` of amounts, with `bounds` between them and `unit` behind. It is 30
/// pixels high.
pub(crate) fn legend(x: f64, y: f64, bounds: &[String], unit: &str, place: Place) -> String {
    let (soft, line) = (place.colour("soft"), place.colour("line"));
    let mut out = String::new();
    for i in 0..=bounds.len() {
        let (x, fill) = (x + i as f64 * LEGEND_WIDTH, place.colour(&format!("q{i}")));
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{LEGEND_WIDTH}\" height=\"12\" style=\"fill:{fill};stroke:{line}\"/>"
        );
    }
    for (i, bound) in bounds.iter().enumerate() {
        out.push_str(&text(x + (i as f64 + 1.0) * LEGEND_WIDTH, y + 26.0, "middle", &soft, bound));
    }
    out + &text(x + (bounds.len() as f64 + 1.0) * LEGEND_WIDTH + 10.0, y + 11.0, "start", &soft, unit)
}
