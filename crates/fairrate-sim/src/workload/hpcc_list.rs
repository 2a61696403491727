//! Reader of the flow lists of the HPCC and PowerTCP ns-3 code (`flow.txt`).
//!
//! ```text
//! number of flows
//! src dst priority dport bytes start     (one line a flow, the start in seconds)
//! ```

use std::collections::HashMap;
use std::ops::Range;

use fairrate_units::Time;

use super::default_ports;
use super::flow_list::{Field, Hosts};
use crate::config::FlowSpec;
use crate::input_error::FileError;
use crate::topology::Topology;

const WORDS: [&str; 6] = ["src", "dst", "priority", "dport", "bytes", "start"];

/// Returns the number of flows, if the list's first line that is not blank is a number.
pub(super) fn announced(header: &str) -> Option<usize> {
    header.trim().parse().ok()
}

/// Reads the lines after the first one.
pub(super) fn parse<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    header_line: usize,
    announced: usize,
    topology: &Topology,
) -> Result<Vec<FlowSpec>, FileError> {
    let hosts = Hosts::new(topology);
    let (mut flows, mut pairs): (Vec<FlowSpec>, HashMap<_, u32>) = (Vec::new(), HashMap::new());
    for (at, line) in lines {
        if flows.len() == announced {
            let message = format!("more than the {announced} flows announced in line {header_line}");
            return Err(FileError::new(at, message));
        }
        let mut flow = flow(at, line, &hosts)?;
        let count = pairs.entry((flow.src, flow.dst)).or_default();
        flow.sport = default_ports(*count, 0).0;
        *count = count.wrapping_add(1);
        flows.push(flow);
    }
    if flows.len() < announced {
        let message = format!("{announced} flows are announced, {} follow", flows.len());
        return Err(FileError::new(header_line, message));
    }
    flows.sort_by_key(|flow| flow.start);
    Ok(flows)
}

/// Reads a line; the source port is set later.
fn flow(at: usize, line: &str, hosts: &Hosts<'_>) -> Result<FlowSpec, FileError> {
    let fields: Vec<Field<'_>> = words(line).map(|(text, range)| Field::new(text, at, range)).collect();
    let [src, dst, priority, dport, bytes, start] = fields.as_slice() else {
        let message = format!("expected `{}`, found {} words", WORDS.join(" "), fields.len());
        return Err(FileError::new(at, message).help("write a flow as `0 1 3 100 20000 2.0005`"));
    };
    let (from, to) = (hosts.find(src)?, hosts.find(dst)?);
    if from == to {
        return Err(dst.error(format!("a flow from host `{}` to itself", dst.text)));
    }
    let flow = FlowSpec::new(from, to, bytes.bytes()?, seconds(start)?);
    Ok(FlowSpec { dport: dport.integer("a port")?, class: Some(priority.class()?), ..flow })
}

/// Reads a start time in seconds, exactly if it is a plain decimal.
fn seconds(field: &Field<'_>) -> Result<Time, FileError> {
    let number = field.text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let plain = number.then(|| format!("{}s", field.text).parse().ok()).flatten();
    // The list's writers also print `5e-05`; a picosecond is far below the precision of that.
    let rounded = || {
        let ns = field.text.parse::<f64>().ok()? * 1e9;
        (0.0..1e18).contains(&ns).then(|| Time::from_ns(ns.round() as u64))
    };
    plain.or_else(rounded).ok_or_else(|| {
        field.error(format!("`{}` is no start time", field.text)).help("write seconds without a unit, such as 2.0005")
    })
}

/// Returns the words of a line, each with its position.
fn words(line: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    line.split_whitespace().map(move |word| {
        // `split_whitespace` yields subslices, so the distance of the pointers is the offset.
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        (word, start..start + word.len())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::config::FlowSpec;
    use crate::input_error::FileError;
    use crate::topology::Star;
    use crate::workload::{ListStacks, parse_flow_list};
    use fairrate_units::{Rate, Time};

    fn read(text: &str) -> Result<Vec<FlowSpec>, FileError> {
        let star = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
        parse_flow_list(text, &star, &[], ListStacks::default()).map(|workload| workload.flows)
    }

    #[test]
    fn the_flow_list_of_the_hpcc_code_is_read() {
        let flows = read("3\n2 1 3 100 200000 2.000000001\n\n0 1 3 100 1 2\r\n0 1 2 101 5000 5e-05\n").unwrap();
        let of = |f: &FlowSpec| (f.src.0, f.dst.0, f.class, f.sport, f.dport, f.bytes.as_u64(), f.start.as_ps());
        let got: Vec<_> = flows.iter().map(of).collect();
        let want = [
            (0, 1, Some(2), 10_001, 101, 5_000, 50_000_000),
            (0, 1, Some(3), 10_000, 100, 1, 2_000_000_000_000),
            (2, 1, Some(3), 10_000, 100, 200_000, 2_000_000_001_000),
        ];
        assert_eq!(got, want);
        assert_eq!(read("0\n").unwrap(), []);
    }

    #[test]
    fn errors_say_where_and_what_instead() {
        let cases = [
            ("2\n0 1 3 100 5 0\n", "line 1: 2 flows are announced, 1 follow", ""),
            ("1\n0 1 3 100 5 0\n1 2 3 100 5 0\n", "line 3: more than the 1 flows announced in line 1", ""),
            (
                "1\n0 1 3 100 5\n",
                "line 2: expected `src dst priority dport bytes start`, found 5 words",
                "write a flow as `0 1 3 100 20000 2.0005`",
            ),
            ("1\n0 9 3 100 5 0\n", "line 2: there is no host `9`", "hosts go from `h0` to `h3`"),
            ("1\n0 0 3 100 5 0\n", "line 2: a flow from host `0` to itself", ""),
            ("1\n0 1 8 100 5 0\n", "line 2: `8` is not a priority", "priorities go from 0, the highest, to 7"),
            ("1\n0 1 3 100 5 -1\n", "line 2: `-1` is no start time", "write seconds without a unit, such as 2.0005"),
            ("1\n0 1 3 100 5 2s\n", "line 2: `2s` is no start time", "write seconds without a unit, such as 2.0005"),
        ];
        for (text, message, help) in cases {
            let error = read(text).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help.as_deref().unwrap_or("")), (message, help), "{text}");
        }
        assert_eq!(read("1\n0  9 3 100 5 0\n").unwrap_err().column, Some((3, 4)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rows in "([0-9he.+ -]{0,16}\n){0,5}", n in 0_usize..5) {
            if let Ok(flows) = read(&format!("{n}\n{rows}")) {
                prop_assert!(flows.len() == n && flows.iter().all(|flow| flow.src != flow.dst && flow.src.0 < 4));
            }
        }
    }
}
