//! Reader of the topology files of the HPCC and PowerTCP ns-3 code.
//!
//! ```text
//! nodes switches [tors] links
//! ids of the switches
//! a b rate delay error-rate        (one line a link)
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::ids::{NodeId, PortId};
use crate::input_error::FileError;

/// Reads a topology file. Nodes are named by their decimal ids, and port ids follow the order of the links.
///
/// Switches with hosts become ToRs, their switch neighbours aggregation switches, all others core switches. An error
/// rate is the probability that a packet is lost on the link, in either direction; [`Topology::error_rates`] stores
/// those that are not 0. Rates are `25Gbps` or plain bits per second, delays `1us`; blank lines and lines that begin
/// with `#` are skipped.
///
/// # Errors
/// Gives line and column of the first error.
pub fn parse_topology_file(text: &str) -> Result<Topology, FileError> {
    let mut lines = Lines::new(text);
    let header = lines.next().ok_or_else(|| {
        FileError::new(1, "the file is empty").help("line 1 is `nodes switches links`, such as `12 1 11`")
    })?;
    let header_line = header.line;
    let counts = parse_header(&header)?;
    let is_switch = parse_switches(&mut lines, header_line, &counts)?;
    let links = parse_links(&mut lines, header_line, &counts)?;
    assemble(&is_switch, &links, header_line)
}

/// The numbers in line 1.
struct Counts {
    nodes: u32,
    switches: u32,
    links: usize,
}

/// A link and its position in the file.
struct LinkLine {
    ends: [u32; 2],
    rate: Rate,
    delay: Time,
    error_rate: f64,
    line: usize,
    columns: [Range<usize>; 2],
}

fn parse_header(header: &Line<'_>) -> Result<Counts, FileError> {
    if !(3..=4).contains(&header.words.len()) {
        let message = format!(
            "expected `nodes switches links` or `nodes switches tors links`, found {} words",
            header.words.len()
        );
        return Err(FileError::new(header.line, message));
    }
    let nodes = header.integer(0, "number of nodes")?;
    let switches = header.integer(1, "number of switches")?;
    let links = header.integer(header.words.len() - 1, "number of links")?;
    if build::NODES_MAX < u64::from(nodes) {
        return Err(header
            .error(0, format!("{nodes} nodes are too many"))
            .help(format!("up to {} are possible", build::NODES_MAX)));
    }
    if nodes < switches {
        return Err(header.error(1, format!("{switches} switches among {nodes} nodes")));
    }
    Ok(Counts { nodes, switches, links: links as usize })
}

/// Reads the ids of the switches, which may run over several lines; returns `true` for each node that is a switch.
fn parse_switches(lines: &mut Lines<'_>, header_line: usize, counts: &Counts) -> Result<Vec<bool>, FileError> {
    let mut is_switch = vec![false; counts.nodes as usize];
    let mut left = counts.switches;
    while 0 < left {
        let line = lines.next().ok_or_else(|| {
            FileError::new(header_line, format!("{} switches are announced, {} ids are missing", counts.switches, left))
        })?;
        for i in 0..line.words.len() {
            if left == 0 {
                return Err(line.error(
                    i,
                    format!("more than the {} switch ids announced in line {header_line}", counts.switches),
                ));
            }
            let id = line.node(i, counts.nodes)?;
            if std::mem::replace(&mut is_switch[id as usize], true) {
                return Err(line.error(i, format!("switch {id} is listed twice")));
            }
            left -= 1;
        }
    }
    Ok(is_switch)
}

fn parse_links(lines: &mut Lines<'_>, header_line: usize, counts: &Counts) -> Result<Vec<LinkLine>, FileError> {
    let mut links = Vec::new();
    for line in lines {
        if links.len() == counts.links {
            return Err(FileError::new(
                line.line,
                format!("more than the {} links announced in line {header_line}", counts.links),
            ));
        }
        links.push(parse_link(&line, counts.nodes)?);
    }
    if links.len() < counts.links {
        let message = format!("{} links are announced, {} follow", counts.links, links.len());
        return Err(FileError::new(header_line, message));
    }
    Ok(links)
}

fn parse_link(line: &Line<'_>, nodes: u32) -> Result<LinkLine, FileError> {
    if !(4..=5).contains(&line.words.len()) {
        let message = format!("expected `a b rate delay error-rate`, found {} words", line.words.len());
        return Err(FileError::new(line.line, message).help("write a link as `0 256 25Gbps 1us 0`"));
    }
    let (a, b) = (line.node(0, nodes)?, line.node(1, nodes)?);
    if a == b {
        return Err(line.error(1, format!("a link from node {a} to itself")));
    }
    let rate = parse_rate(line)?;
    let delay = parse_delay(line)?;
    let error_rate = parse_error_rate(line)?;
    let column = |i: usize| line.words[i].1.clone();
    Ok(LinkLine { ends: [a, b], rate, delay, error_rate, line: line.line, columns: [column(0), column(1)] })
}

fn parse_rate(line: &Line<'_>) -> Result<Rate, FileError> {
    let word = line.words[2].0;
    let parsed = match word.parse::<f64>() {
        Ok(bps) => Ok(Rate::from_bps_f64(bps)),
        Err(_) => word.replace("b/s", "bps").parse::<Rate>(),
    };
    let rate = parsed.map_err(|e| line.error(2, e.to_string()).help(e.help()))?;
    build::rate("rate", rate)
        .map_err(|e| FileError { help: e.help, ..line.error(2, format!("`{word}` is no link rate")) })?;
    Ok(rate)
}

fn parse_delay(line: &Line<'_>) -> Result<Time, FileError> {
    let word = line.words[3].0;
    let delay: Time = word
        .trim_start_matches('+')
        .parse()
        .map_err(|e: fairrate_units::ParseQuantityError| line.error(3, e.to_string()).help(e.help()))?;
    build::delay("delay", delay)
        .map_err(|e| FileError { help: e.help, ..line.error(3, format!("`{word}` is no link delay")) })?;
    Ok(delay)
}

fn parse_error_rate(line: &Line<'_>) -> Result<f64, FileError> {
    let Some(&(word, _)) = line.words.get(4) else { return Ok(0.0) };
    let rate = word.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| {
        let help = "write the probability that a packet is lost, from 0 to 1";
        line.error(4, format!("`{word}` is no error rate")).help(help)
    })
}

/// Determines tiers and racks; checks that hosts have one link each and that everything is connected.
fn assemble(is_switch: &[bool], links: &[LinkLine], header_line: usize) -> Result<Topology, FileError> {
    let n = is_switch.len();
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); n];
    for link in links {
        for (side, (from, to)) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])].into_iter().enumerate() {
            let host = !is_switch[from as usize];
            let error = |message| FileError::new(link.line, message).at(link.columns[side].clone());
            if host && !is_switch[to as usize] {
                return Err(error(format!("hosts {from} and {to} are linked without a switch between them")));
            }
            if host && !neighbours[from as usize].is_empty() {
                return Err(error(format!("host {from} has a second link"))
                    .help("a host has one link; switches are listed in line 2"));
            }
            neighbours[from as usize].push(to);
        }
    }
    connected(&neighbours, header_line)?;
    let has_hosts = |s: usize| is_switch[s] && neighbours[s].iter().any(|&h| !is_switch[h as usize]);
    let mut rack_of_tor = vec![0; n];
    for (rack, tor) in (0..).zip((0..n).filter(|&s| has_hosts(s))) {
        rack_of_tor[tor] = rack;
    }
    let mut b = Builder::default();
    for node in 0..n {
        let tier = match (is_switch[node], has_hosts(node)) {
            (false, _) => Tier::Host,
            (true, true) => Tier::Tor,
            (true, false) if neighbours[node].iter().any(|&t| has_hosts(t as usize)) => Tier::Aggregation,
            (true, false) => Tier::Core,
        };
        let tor = neighbours[node].first().copied().unwrap_or(0);
        let rack = if tier == Tier::Host { rack_of_tor[tor as usize] } else { 0 };
        b.node(node.to_string(), tier, rack);
    }
    for link in links {
        b.link(NodeId(link.ends[0]), NodeId(link.ends[1]), link.rate, link.delay);
    }
    let error_rates = (0..).zip(links).filter(|(_, link)| link.error_rate != 0.0);
    let error_rates = error_rates.map(|(i, link)| (PortId(2 * i), link.error_rate)).collect();
    Ok(Topology { error_rates, ..b.finish(&[]) })
}

/// Checks that every node can be reached from node 0.
fn connected(neighbours: &[Vec<u32>], header_line: usize) -> Result<(), FileError> {
    if neighbours.len() < 2 {
        return Err(FileError::new(header_line, "a network needs at least two nodes"));
    }
    let mut seen = vec![false; neighbours.len()];
    seen[0] = true;
    let mut queue = VecDeque::from([0u32]);
    while let Some(node) = queue.pop_front() {
        for &next in &neighbours[node as usize] {
            if !std::mem::replace(&mut seen[next as usize], true) {
                queue.push_back(next);
            }
        }
    }
    match seen.iter().position(|&s| !s) {
        None => Ok(()),
        Some(lost) => Err(FileError::new(header_line, format!("node {lost} is not connected to node 0"))
            .help("every node needs a path of links to every other")),
    }
}

/// A line split into words.
struct Line<'a> {
    /// Line number, from 1.
    line: usize,
    /// Each word, with its range of bytes in the line.
    words: Vec<(&'a str, Range<usize>)>,
}

impl Line<'_> {
    fn error(&self, word: usize, message: String) -> FileError {
        FileError::new(self.line, message).at(self.words[word].1.clone())
    }

    fn integer(&self, word: usize, what: &str) -> Result<u32, FileError> {
        let text = self.words[word].0;
        text.parse().map_err(|_| self.error(word, format!("`{text}` is no {what}")))
    }

    fn node(&self, word: usize, nodes: u32) -> Result<u32, FileError> {
        let id = self.integer(word, "node id")?;
        if id < nodes {
            return Ok(id);
        }
        Err(self
            .error(word, format!("node {id} of a network of {nodes} nodes"))
            .help(format!("ids go from 0 to {}", nodes.saturating_sub(1))))
    }
}

/// The lines that are neither blank nor comments.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines().enumerate() }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        loop {
            let (i, text) = self.lines.next()?;
            let words: Vec<_> = words(text).collect();
            if !words.is_empty() && !words[0].0.starts_with('#') {
                return Some(Line { line: i + 1, words });
            }
        }
    }
}

/// Returns the words of a line, each with its position.
fn words(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    text.split_whitespace().map(move |word| {
        // `split_whitespace` yields subslices, so the distance of the pointers is the offset.
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        (word, start..start + word.len())
    })
}
