//! The figures of a report as files: each as SVG, and its points as CSV.

use crate::figures::{self, Chapter};
use crate::heat_map::{self, HeatMap};
use crate::panel::{Panel, Series};
use crate::svg;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// Name of the file that lists the others.
pub const LIST: &str = "figures.csv";

/// A picture that is no chart, with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Title of its chapter.
    pub chapter: &'static str,
    /// Title.
    pub title: &'static str,
    /// The picture.
    pub svg: String,
    /// Its numbers.
    pub csv: String,
}

/// Returns two files for each figure, each heat map and each picture of a report, and the list of them. `heat` has the
/// title of the maps' chapter.
pub(crate) fn files(chapters: &[Chapter], heat: Option<(&str, &[HeatMap])>, pictures: Vec<Picture>) -> Vec<File> {
    let mut list = vec![["file", "chapter", "figure", "point", "note"].map(str::to_owned)];
    let mut files = Vec::new();
    for chapter in chapters {
        for figure in &chapter.figures {
            let name = |ending: &str| format!("{}.{ending}", figure.file);
            let (chapter, title) = (chapter.title.clone(), figure.title.clone());
            list.push([name("svg"), chapter, title, figure.point.clone(), figure.note.clone()]);
            files.push(File { name: name("svg"), text: svg::render(figure) });
            files.push(File { name: name("csv"), text: csv(figure) });
        }
    }
    for (chapter, map) in heat.into_iter().flat_map(|(chapter, maps)| maps.iter().map(move |map| (chapter, map))) {
        let name = |ending: &str| format!("{}.{ending}", map.file);
        list.push([name("svg"), chapter.to_owned(), map.title.clone(), String::new(), String::new()]);
        files.push(File { name: name("svg"), text: heat_map::file(map) });
        files.push(File { name: name("csv"), text: heat_map::csv(map) });
    }
    for picture in pictures {
        let stem = figures::file_name(&format!("{} {}", picture.chapter, picture.title));
        let [chapter, title] = [picture.chapter, picture.title].map(str::to_owned);
        list.push([format!("{stem}.svg"), chapter, title, String::new(), String::new()]);
        files.push(File { name: format!("{stem}.svg"), text: picture.svg });
        files.push(File { name: format!("{stem}.csv"), text: picture.csv });
    }
    files.push(File { name: LIST.to_owned(), text: fairrate_text::csv(&list) });
    files
}

/// Returns the names of the files that `list` names.
pub fn listed(list: &str) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.=".contains(c);
    let stems = list.lines().skip(1).filter_map(|line| line.split(',').next()?.strip_suffix(".svg"));
    let fit = stems.filter(|stem| !stem.is_empty() && stem.chars().all(is_plain));
    fit.flat_map(|stem| [format!("{stem}.svg"), format!("{stem}.csv")]).collect()
}

/// Returns the points of a figure as CSV, a line each, with units in the first line.
pub fn csv(figure: &Panel) -> String {
    let (x, y) = (&figure.x.label, &figure.y.label);
    let is_in_rows = !figure.y.rows.is_empty();
    let has_bands = !is_in_rows && figure.series.iter().any(|s| !s.low.is_empty());
    let mut head = if is_in_rows {
        let what = if figure.parts { ["row", "series"].as_slice() } else { &["row"] };
        what.iter().map(|&name| name.to_owned()).chain([format!("from: {x}"), format!("to: {x}")]).collect()
    } else {
        vec!["series".to_owned(), x.clone(), y.clone()]
    };
    if has_bands {
        head.extend([format!("low: {y}"), format!("high: {y}")]);
    }
    let mut records = vec![head];
    for s in &figure.series {
        let names = names(figure, s);
        if is_in_rows {
            let ends = s.x.chunks_exact(2).map(|ends| [ends[0].to_string(), ends[1].to_string()]);
            records.extend(ends.map(|ends| names.iter().cloned().chain(ends).collect()));
            continue;
        }
        for k in 0..s.x.len() {
            let mut record = names.clone();
            record.extend([abscissa(figure, s, k), number(s.y.get(k))]);
            if has_bands {
                record.extend([number(s.low.get(k)), number(s.high.get(k))]);
            }
            records.push(record);
        }
    }
    fairrate_text::csv(&records)
}

/// Returns the fields that name a series of a figure: its row, if the figure has parts in rows, and its name.
fn names(figure: &Panel, s: &Series) -> Vec<String> {
    let name = if figure.parts {
        s.key.clone()
    } else if s.name.is_empty() {
        format!("{}, median", s.key)
    } else {
        s.name.clone()
    };
    if !figure.parts || figure.y.rows.is_empty() {
        return vec![name];
    }
    let row = figure.y.rows.get(s.y.first().map_or(0, |&row| row as usize));
    vec![row.cloned().unwrap_or_default(), name]
}

/// Returns the k-th x of a series; a word where the axis has words.
fn abscissa(figure: &Panel, s: &Series, k: usize) -> String {
    let word = figure.x.ticks.iter().filter(|_| figure.x.words).find(|(at, _)| *at == s.x[k]);
    word.map_or_else(|| number(s.x.get(k)), |(_, word)| word.clone())
}

/// Returns a number as text, or nothing if there is none.
fn number(x: Option<&f64>) -> String {
    x.filter(|x| x.is_finite()).map_or_else(String::new, f64::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;
    use crate::metrics::Metrics;
    use crate::{figures, synthetic};

    #[test]
    fn points_have_units_and_bands() {
        let variants = synthetic::grid(&["powertcp"], &[("load", &["0.2", "0.4"])], &[1, 2]);
        let comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
        let chapters = figures::all(&variants, &comparison, &figures::Selection::default());
        let picture = Picture { chapter: "Ports", title: "All of them", svg: "<svg/>".into(), csv: "port\n".into() };
        let files = files(&chapters, None, vec![picture]);
        let text = |name: &str| files.iter().find(|f| f.name == name).map(|f| f.text.clone()).unwrap();
        let over = text("over-load-goodput-of-all-flows.csv");
        assert_eq!(over.lines().next(), Some("series,load,goodput (Gb/s),low: goodput (Gb/s),high: goodput (Gb/s)"));
        assert_eq!(over.lines().nth(1), Some("PowerTCP,0.2,24,24,24"));
        let queue = text("at-the-switches-queue-of-tor0-h16-load=0.2.csv");
        assert_eq!(queue.lines().next(), Some("series,time (ms),queue (KB)"));
        let names: std::collections::HashSet<&str> = files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names.len(), files.len());
        let mut listed = listed(&text(LIST));
        let mut written: Vec<String> = files.iter().map(|f| f.name.clone()).filter(|name| name != LIST).collect();
        listed.sort();
        written.sort();
        assert_eq!(listed, written);
    }

    #[test]
    fn a_list_names_plain_files_alone() {
        let list = "file,chapter\n../../x.svg,a\na/b.svg,a\n,b\nfigures.csv,c\ngood.svg,d\n";
        assert_eq!(listed(list), ["good.svg", "good.csv"]);
    }
}
