//! The files of the page, which are part of the program.

/// A file of the page: its name, its type, and its content.
pub type Asset = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// All files. The one without a name is the page itself.
pub const ASSETS: &[Asset] = &[
    ("", HTML, include_str!("../page/index.html")),
    ("style.css", STYLE, include_str!("../page/style.css")),
    ("main.js", SCRIPT, include_str!("../page/main.js")),
    ("api.js", SCRIPT, include_str!("../page/api.js")),
    ("layout.js", SCRIPT, include_str!("../page/layout.js")),
    ("picture.js", SCRIPT, include_str!("../page/picture.js")),
    ("colours.js", SCRIPT, include_str!("../page/colours.js")),
    ("charts.js", SCRIPT, include_str!("../page/charts.js")),
    ("tables.js", SCRIPT, include_str!("../page/tables.js")),
    ("words.js", SCRIPT, include_str!("../page/words.js")),
    ("uplot.js", SCRIPT, include_str!(concat!(env!("OUT_DIR"), "/uplot.js"))),
    ("uplot.css", STYLE, include_str!(concat!(env!("OUT_DIR"), "/uplot.css"))),
    ("uplot-licence.txt", TEXT, LICENCES),
];

/// The licences of the libraries of others in the page.
pub const LICENCES: &str = include_str!(concat!(env!("OUT_DIR"), "/uplot-licence.txt"));
