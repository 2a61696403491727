//! Readers of a network: a table of links and a table of flows.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use fairrate_units::Rate;

use crate::csv::{Columns, Field, rows};
use crate::input_error::FileError;
use crate::network::{CAPACITIES_BPS, Flow, Link, LinkId, WEIGHTS};

const BPS_PER_GBPS: f64 = 1e9;
const LINK_COLUMNS: Columns =
    Columns { required: &["link", "capacity_gbps"], optional: &[], example: "link,capacity_gbps" };
const FLOW_COLUMNS: Columns =
    Columns { required: &["flow", "links"], optional: &["weight"], example: "flow,links,weight" };

const HOST_FLOW_COLUMNS: Columns =
    Columns { required: &["src", "dst"], optional: &["flow", "weight", "sport", "dport"], example: "src,dst,weight" };

/// A flow between two hosts, whose path is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFlow<H> {
    /// Name of the flow, if the file has one.
    pub name: Option<String>,
    /// Sender.
    pub src: H,
    /// Receiver, another host.
    pub dst: H,
    /// The flow's share relative to other flows.
    pub weight: f64,
    /// Source and destination port, if the file gives them.
    pub ports: (Option<u16>, Option<u16>),
}

/// Reads links: CSV with the columns `link` and `capacity_gbps`.
///
/// Blank lines and lines that begin with `#` are skipped. Names contain no space, since flows list them with space
/// between.
///
/// # Errors
/// Gives line and column of the first error.
pub fn parse_links(text: &str) -> Result<Vec<Link>, FileError> {
    let mut links = Vec::new();
    let mut seen = Names::default();
    for row in rows(text, LINK_COLUMNS)? {
        let row = row?;
        let name = row.required(LINK_COLUMNS, 0)?;
        if name.words().count() != 1 {
            let message = format!("there is space in the name `{}`", name.text);
            return Err(name.error(message).help("flows list links by name with spaces between them"));
        }
        seen.add("link", name)?;
        let capacity_gbps = capacity_gbps(row.required(LINK_COLUMNS, 1)?)?;
        links.push(Link { name: name.text.as_ref().to_owned(), capacity_bps: capacity_gbps * BPS_PER_GBPS });
    }
    Ok(links)
}

/// Reads flows over `links`: CSV with the columns `flow`, `links` (names with spaces between them) and, if wanted,
/// `weight`, which is 1 where there is none.
///
/// Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
/// Gives line and column of the first error.
pub fn parse_flows(text: &str, links: &[Link]) -> Result<Vec<Flow>, FileError> {
    let ids: HashMap<&str, LinkId> = links.iter().map(|link| &*link.name).zip((0..).map(LinkId)).collect();
    let mut flows = Vec::new();
    let mut seen = Names::default();
    // For every link, 1 + the last flow found to use it.
    let mut last_user = vec![0; links.len()];
    for row in rows(text, FLOW_COLUMNS)? {
        let row = row?;
        let name = row.required(FLOW_COLUMNS, 0)?;
        seen.add("flow", name)?;
        let path = row.required(FLOW_COLUMNS, 1).map_err(|error| {
            let message = format!("flow `{}` uses no link, so nothing limits its rate", name.text);
            FileError { message, ..error }.help("list its links by name with spaces between them")
        })?;
        let mut used: Vec<LinkId> = Vec::new();
        for word in path.words() {
            let Some(&id) = ids.get(&*word.text) else { return Err(unknown_link(&word, links)) };
            if std::mem::replace(&mut last_user[id.index()], flows.len() + 1) == flows.len() + 1 {
                let message = format!("flow `{}` lists link `{}` a second time", name.text, word.text);
                return Err(word.error(message).help("a flow uses each of its links once"));
            }
            used.push(id);
        }
        let weight = row.optional(FLOW_COLUMNS, 0).map_or(Ok(1.0), weight)?;
        flows.push(Flow::new(name.text.as_ref(), used).weight(weight));
    }
    Ok(flows)
}

/// Reads flows between hosts: CSV with the columns `src`, `dst` and, if wanted, `flow` (a name), `weight`, `sport` and
/// `dport`. `host` returns the host of a name in the file, or an error message and a suggestion.
///
/// Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
/// Gives line and column of the first error.
pub fn parse_host_flows<H: PartialEq>(
    text: &str,
    host: impl Fn(&str) -> Result<H, (String, Option<String>)>,
) -> Result<Vec<HostFlow<H>>, FileError> {
    let find =
        |field: &Field<'_>| host(&field.text).map_err(|(message, help)| FileError { help, ..field.error(message) });
    let mut flows = Vec::new();
    let mut seen = Names::default();
    for row in rows(text, HOST_FLOW_COLUMNS)? {
        let row = row?;
        let (src, to) = (find(row.required(HOST_FLOW_COLUMNS, 0)?)?, row.required(HOST_FLOW_COLUMNS, 1)?);
        let dst = find(to)?;
        if src == dst {
            return Err(to.error(format!("a flow from host `{}` to itself", to.text)));
        }
        let name = row.optional(HOST_FLOW_COLUMNS, 0);
        name.map_or(Ok(()), |name| seen.add("flow", name))?;
        let weight = row.optional(HOST_FLOW_COLUMNS, 1).map_or(Ok(1.0), weight)?;
        let port = |i| row.optional(HOST_FLOW_COLUMNS, i).map(port).transpose();
        let ports = (port(2)?, port(3)?);
        flows.push(HostFlow { name: name.map(|name| name.text.as_ref().to_owned()), src, dst, weight, ports });
    }
    Ok(flows)
}

/// Names read so far, with their lines.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn add(&mut self, what: &str, name: &Field<'_>) -> Result<(), FileError> {
        match self.0.insert(name.text.as_ref().to_owned(), name.line) {
            None => Ok(()),
            Some(line) => Err(name
                .error(format!("{what} `{}` comes a second time", name.text))
                .help(format!("the first is on line {line}"))),
        }
    }
}

fn unknown_link(word: &Field<'_>, links: &[Link]) -> FileError {
    let names = || links.iter().map(|link| &*link.name);
    let help = fairrate_text::did_you_mean(&word.text, names()).unwrap_or_else(|| match links {
        [] => "the file of links has none".to_owned(),
        [one] => format!("the only link is `{}`", one.name),
        [first, .., last] => format!("links go from `{}` to `{}`", first.name, last.name),
    });
    word.error(format!("there is no link `{}`", word.text)).help(help)
}

fn capacity_gbps(field: &Field<'_>) -> Result<f64, FileError> {
    let lowest = CAPACITIES_BPS.start() / BPS_PER_GBPS;
    let highest = CAPACITIES_BPS.end() / BPS_PER_GBPS;
    number(field, lowest..=highest).ok_or_else(|| {
        let help = match field.text.parse::<Rate>() {
            Ok(rate) if rate != Rate::ZERO => format!("capacities are in Gb/s: write `{}`", rate.as_gbps_f64()),
            _ => "write Gb/s without a unit, above 0, such as 100".to_owned(),
        };
        field.error(format!("`{}` is not a capacity", field.text)).help(help)
    })
}

fn weight(field: &Field<'_>) -> Result<f64, FileError> {
    number(field, WEIGHTS).ok_or_else(|| {
        field.error(format!("`{}` is not a weight", field.text)).help("weights are above 0, from 1e-6 to 1e6")
    })
}

fn port(field: &Field<'_>) -> Result<u16, FileError> {
    let error = || field.error(format!("`{}` is not a port", field.text)).help("ports go from 0 to 65535");
    field.text.parse().map_err(|_| error())
}

/// Parses the field as a number within `range`; returns `None` otherwise.
fn number(field: &Field<'_>, range: RangeInclusive<f64>) -> Option<f64> {
    field.text.parse().ok().filter(|x| range.contains(x))
}
