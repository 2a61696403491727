//! The looks of lines: a colour, a dash pattern and a marker, each of which distinguishes lines without the other two.

use fairrate_control::ALGORITHMS;

/// Number of colours, `--s0` to `--s7` of `page/style.css`. Any two differ to colour-blind readers too; a test measures
/// it.
pub const COLOURS: usize = 8;
/// Dash patterns, in pixels; the first one is a solid line.
pub const DASHES: [&str; 10] =
    ["", "8 3", "2 3", "9 3 2 3", "4.5 2", "15 4", "9 3 2 3 2 3", "5 2 1.5 2", "17 3 5 3", "1 4"];
/// Outlines of markers, as points around their centre; the first one is a circle.
pub const MARKERS: [&[(f64, f64)]; 10] = [
    &CIRCLE,
    &[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
    &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
    &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)],
    &[(0.0, 4.4), (4.2, -3.2), (-4.2, -3.2)],
    &[(-4.4, 0.0), (3.2, 4.2), (3.2, -4.2)],
    &[(4.4, 0.0), (-3.2, 4.2), (-3.2, -4.2)],
    &[(-1.6, -4.4), (1.6, -4.4), (1.6, 4.4), (-1.6, 4.4)],
    &[(-4.4, -1.6), (4.4, -1.6), (4.4, 1.6), (-4.4, 1.6)],
    &[(-4.0, -4.0), (0.0, -1.0), (4.0, -4.0), (4.0, 4.0), (0.0, 1.0), (-4.0, 4.0)],
];
const CIRCLE: [(f64, f64); 12] = [
    (3.6, 0.0),
    (3.1, 1.8),
    (1.8, 3.1),
    (0.0, 3.6),
    (-1.8, 3.1),
    (-3.1, 1.8),
    (-3.6, 0.0),
    (-3.1, -1.8),
    (-1.8, -3.1),
    (0.0, -3.6),
    (1.8, -3.1),
    (3.1, -1.8),
];

/// Number of lines that can be distinguished by colour and dash together.
pub const DISTINCT: usize = COLOURS * DASHES.len();

/// The algorithms that are compared most often: each has its own colour. Grey is for no control at all.
const OFTEN: [&str; COLOURS] = ["powertcp", "dcqcn", "hpcc", "dctcp", "timely", "theta-powertcp", "swift", "line-rate"];

/// The look of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Style {
    /// Index of the colour.
    pub colour: usize,
    /// Index of the dash pattern.
    pub dash: usize,
    /// Index of the marker.
    pub marker: usize,
}

impl Style {
    /// Returns the look of the `i`-th of lines that have no look of their own: colours first, dashes once they are used
    /// up.
    pub fn nth(i: usize) -> Self {
        Self { colour: i % COLOURS, dash: i / COLOURS % DASHES.len(), marker: i % MARKERS.len() }
    }

    /// Returns the home look of an algorithm, from which [`styles`] departs where another line has the same colour,
    /// dash or marker.
    fn of(cc: &str, i: usize) -> Self {
        let others = || ALGORITHMS.iter().filter(|a| !OFTEN.contains(&a.name));
        let place = OFTEN.iter().position(|name| *name == cc);
        let rare = others().position(|a| a.name == cc).unwrap_or(i);
        // Grey is left to its algorithm; rare algorithms begin with dashes that the frequent ones lack.
        let home = |rare: usize| Self {
            colour: rare % (COLOURS - 1),
            dash: (COLOURS + rare) % DASHES.len(),
            marker: (COLOURS + rare) % MARKERS.len(),
        };
        place.map_or_else(|| home(rare), |place| Self { colour: place, dash: place, marker: place })
    }
}

/// Returns a look for each of the lines of a figure, named by their algorithms. No two of up to [`DISTINCT`] lines are
/// alike; of up to eight no two share a colour, a dash or a marker. An algorithm looks the same in every figure, as far
/// as possible.
pub fn styles(ccs: &[&str]) -> Vec<Style> {
    let homes: Vec<Style> = ccs.iter().zip(0..).map(|(cc, i)| Style::of(cc, i)).collect();
    let frequent: Vec<bool> = ccs.iter().map(|cc| OFTEN.contains(cc)).collect();
    let of = |part: fn(&Style) -> usize| homes.iter().map(part).collect::<Vec<_>>();
    let colours = spread(&of(|s| s.colour), COLOURS, &frequent, &|_, _| true);
    let dashes = spread(&of(|s| s.dash), DASHES.len(), &frequent, &|i, j| colours[i] == colours[j]);
    let markers = spread(&of(|s| s.marker), MARKERS.len(), &frequent, &|i, j| colours[i] == colours[j]);
    (0..ccs.len()).map(|i| Style { colour: colours[i], dash: dashes[i], marker: markers[i] }).collect()
}

/// Gives each line one of `n` values: its home if no other line has precedence for it, which frequent lines have before
/// others and then earlier lines before later ones. Each other line gets the value that the fewest `alike` lines have,
/// among those the value that the fewest lines have, and among those the next after its home.
fn spread(homes: &[usize], n: usize, frequent: &[bool], alike: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let claim = |i: usize| (!frequent[i], i);
    let first = |i: usize| (0..homes.len()).all(|j| homes[j] != homes[i] || claim(i) <= claim(j));
    let mut taken: Vec<Option<usize>> = (0..homes.len()).map(|i| first(i).then_some(homes[i])).collect();
    for i in 0..homes.len() {
        let uses = |value: usize, counts: &dyn Fn(usize) -> bool| {
            (0..homes.len()).filter(|j| taken[*j] == Some(value) && counts(*j)).count()
        };
        let cost =
            |value: &usize| (uses(*value, &|j| alike(i, j)), uses(*value, &|_| true), (*value + n - homes[i]) % n);
        if taken[i].is_none() {
            taken[i] = (0..n).min_by_key(cost);
        }
    }
    taken.into_iter().zip(homes).map(|(value, home)| value.unwrap_or(*home)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    use proptest::prelude::*;

    fn all() -> Vec<&'static str> {
        ALGORITHMS.iter().map(|a| a.name).collect()
    }

    fn n_distinct<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> usize {
        values.collect::<HashSet<_>>().len()
    }

    #[test]
    fn every_pair_of_algorithms_differs_in_colour_dash_and_marker() {
        for a in all() {
            for b in all().into_iter().filter(|b| *b != a) {
                let [x, y] = styles(&[a, b])[..] else { panic!("two styles") };
                assert!(x.colour != y.colour && x.dash != y.dash && x.marker != y.marker, "{a} {x:?}, {b} {y:?}");
            }
        }
    }

    #[test]
    fn all_algorithms_together_are_pairwise_distinct() {
        let got = styles(&all());
        assert_eq!(n_distinct(got.iter().map(|s| (s.colour, s.dash))), all().len());
    }

    #[test]
    fn a_frequent_algorithm_looks_the_same_in_every_figure() {
        let home = |cc| styles(&[cc])[0];
        for (cc, style) in OFTEN.iter().zip(styles(&OFTEN)) {
            assert_eq!(style, home(*cc), "{cc}");
        }
        for rare in all().into_iter().filter(|cc| !OFTEN.contains(cc)) {
            assert_eq!(styles(&[rare, "hpcc", "swift"])[1..], [home("hpcc"), home("swift")], "{rare}");
        }
    }

    #[test]
    fn flows_of_one_figure_are_distinct() {
        assert_eq!(n_distinct((0..DISTINCT).map(Style::nth).map(|s| (s.colour, s.dash))), DISTINCT);
    }

    proptest! {
        #[test]
        fn any_set_of_lines_is_pairwise_distinct(ccs in prop::collection::vec(prop::sample::select(all()), 1..=DISTINCT)) {
            let got = styles(&ccs);
            prop_assert_eq!(n_distinct(got.iter().map(|s| (s.colour, s.dash))), ccs.len());
            if ccs.len() <= COLOURS {
                prop_assert_eq!(n_distinct(got.iter().map(|s| s.colour)), ccs.len());
                prop_assert_eq!(n_distinct(got.iter().map(|s| s.dash)), ccs.len());
                prop_assert_eq!(n_distinct(got.iter().map(|s| s.marker)), ccs.len());
            }
        }
    }

    /// Returns the variables `--s0` to `--s7` of the style sheet, light colours first.
    fn palettes() -> [Vec<[f64; 3]>; 2] {
        let style = include_str!("page/style.css");
        let channel = |hex: &str, at: usize| {
            let c = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let of = |text: &str| -> Vec<[f64; 3]> {
            let hex = |i: usize| text.split_once(&format!("--s{i}: #")).unwrap().1[..6].to_owned();
            (0..COLOURS).map(hex).map(|h| [0, 2, 4].map(|at| channel(&h, at))).collect()
        };
        let (light, dark) = style.split_once("prefers-color-scheme: dark").unwrap();
        [of(light), of(dark)]
    }

    /// Views of colours: normal vision, protanopia, deuteranopia and tritanopia. G. Machado, M. Oliveira, L. Fernandes,
    /// "A Physiologically-based Model for Simulation of Color Vision Deficiency", TVCG 15(6), 2009, table 1.
    const SEEN: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    /// Returns CIE L*a*b* of linear RGB.
    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let dot = |k: [f64; 3]| k.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>();
        let f = |t: f64| if 0.008_856 < t { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = f(dot([0.4124, 0.3576, 0.1805]) / 0.950_47);
        let y = f(dot([0.2126, 0.7152, 0.0722]));
        let z = f(dot([0.0193, 0.1192, 0.9505]) / 1.088_83);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn colours_differ_to_colour_blind_readers() {
        // A difference of 2.3 is just noticeable side by side; thin lines need about ten times that. Okabe and Ito's
        // palette with a grey has 9.
        for colours in palettes() {
            for seen in SEEN {
                let view = |rgb: &[f64; 3]| {
                    lab(seen.map(|row| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0)))
                };
                let labs: Vec<[f64; 3]> = colours.iter().map(view).collect();
                for (i, a) in labs.iter().enumerate() {
                    for (j, b) in labs.iter().enumerate().skip(i + 1) {
                        let distance = a.iter().zip(b).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt();
                        assert!(20.0 <= distance, "colours {i} and {j}: {distance:.1}");
                    }
                }
            }
        }
    }

    #[test]
    fn lines_stand_out_from_the_card_they_are_drawn_on() {
        // WCAG 2.1, 1.4.11: graphical objects need a contrast of at least 3 to 1.
        let cards = [1.0, 0.0120];
        for (colours, card) in palettes().iter().zip(cards) {
            for (i, [r, g, b]) in colours.iter().enumerate() {
                let luminance: f64 = 0.2126 * r + 0.7152 * g + 0.0722 * b;
                let (low, high) = (luminance.min(card), luminance.max(card));
                assert!(3.0 <= (high + 0.05) / (low + 0.05), "colour {i}");
            }
        }
    }
}
