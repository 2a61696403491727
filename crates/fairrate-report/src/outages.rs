//! Times for which links are down, and their marks in figures over time.

use fairrate_scenario::Scenario;
use fairrate_units::Time;

use crate::model::{PortSeries, Variant};
use crate::panel::{Mark, TimeUnit};

/// Largest number of failures of a link that flaps; later ones have no mark.
const MOST_FAILURES: usize = 200;
/// Largest number of labels above a figure.
const MOST_LABELS: usize = 4;
/// Largest number of failed ports that have figures beside those with the longest queues.
pub(crate) const MAX_FAILED: usize = 2;

/// Failures of links at the same times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outage {
    /// The ports that are down, as `from->to`.
    pub ports: Vec<String>,
    /// When they go down and come up, in ns; infinite if they do not.
    pub times_ns: Vec<(f64, f64)>,
}

impl Outage {
    /// Returns the links in words. A link that is down both ways is named once.
    fn words(&self) -> String {
        let is_back = |i: usize| {
            let back = self.ports[i].split_once("->").map(|(from, to)| format!("{to}->{from}"));
            back.is_some_and(|back| self.ports[..i].contains(&back))
        };
        let links: Vec<&str> = (0..self.ports.len()).filter(|i| !is_back(*i)).map(|i| self.ports[i].as_str()).collect();
        match links[..] {
            [] => String::new(),
            [link] => format!("{link} down"),
            [link, ref more @ ..] => format!("{link} and {} more down", more.len()),
        }
    }
}

/// Returns the failures of the links of a scenario that begin before `end_ns`.
pub(crate) fn of(scenario: &Scenario, end_ns: f64) -> Vec<Outage> {
    let config = scenario.sim_config();
    let topology = &config.topology;
    let mut all = Vec::new();
    for fault in &config.faults {
        let Some(flap) = fault.flap else { continue };
        let ns = |t: Time| if t == Time::MAX { f64::INFINITY } else { t.as_ns_f64() };
        let (down, up, stop) = (ns(flap.down_at), ns(flap.up_at), ns(fault.stop));
        let later = |n: usize| flap.period.map_or(f64::INFINITY, |every| n as f64 * ns(every));
        let nth = |n: usize| if n == 0 { (down, up) } else { (down + later(n), up + later(n)) };
        let begins = |(down, _): &(f64, f64)| *down < stop.min(end_ns);
        let times_ns: Vec<(f64, f64)> = (0..MOST_FAILURES).map(nth).take_while(begins).collect();
        let node = |i: usize| topology.nodes[i].name.as_str();
        let name = |from: usize, to: usize| format!("{}->{}", node(from), node(to));
        let ports = fault.ports.iter().map(|p| name(topology.from(*p).index(), topology.to(*p).index())).collect();
        if !times_ns.is_empty() {
            all.push(Outage { ports, times_ns });
        }
    }
    all
}

/// Returns the marks of the failures under any of the columns.
pub(crate) fn marks(variants: &[&Variant], unit: TimeUnit) -> Vec<Mark> {
    let mut outages: Vec<&Outage> = Vec::new();
    for outage in variants.iter().flat_map(|v| &v.first().outages) {
        if !outages.contains(&outage) {
            outages.push(outage);
        }
    }
    let mark = |label: String, (down, up): (f64, f64)| Mark {
        from: down / unit.ns,
        to: Some(up / unit.ns).filter(|up| up.is_finite()),
        label,
    };
    let of = |(n, outage): (usize, &&Outage)| {
        // A link that flaps is named at its first failure.
        let label = |i: usize| if i == 0 && n < MOST_LABELS { outage.words() } else { String::new() };
        outage.times_ns.iter().enumerate().map(|(i, times)| mark(label(i), *times)).collect::<Vec<_>>()
    };
    outages.iter().enumerate().flat_map(of).collect()
}

/// Returns `true` if the port is down at some time under some column.
pub(crate) fn fails(variants: &[&Variant], port: &PortSeries) -> bool {
    variants.iter().flat_map(|v| &v.first().outages).any(|outage| outage.ports.contains(&port.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outages(faults: &str, end_ns: f64) -> Vec<Outage> {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 4\n[transport]\ncc = \"dctcp\"\n[[traffic]]\n\
             kind = \"incast\"\nreceiver = \"h0\"\nsenders = [\"h1\"]\nbytes = \"1KB\"\n{faults}"
        );
        let scenario = Scenario::from_texts(&text, "test.toml", &[], &fairrate_scenario::Overrides::default()).unwrap();
        of(&scenario, end_ns)
    }

    #[test]
    fn failures_of_a_scenario_by_hand() {
        let got = outages(
            "[[fault]]\nlinks = [\"h1->sw0\"]\ndown_at = \"100us\"\nup_at = \"150us\"\nperiod = \"400us\"\n\
             [[fault]]\nlinks = \"sw0->h*\"\nboth_ways = false\ndown_at = \"300us\"\n\
             [[fault]]\nlinks = [\"sw0->h0\"]\ndown_at = \"2ms\"\n\
             [[fault]]\nlinks = [\"sw0->h0\"]\nloss = 0.1\n",
            1e6,
        );
        assert_eq!(got.len(), 2, "{got:?}");
        assert_eq!(got[0].times_ns, [(1e5, 1.5e5), (5e5, 5.5e5), (9e5, 9.5e5)]);
        assert_eq!(got[1].times_ns, [(3e5, f64::INFINITY)]);
        let words: Vec<String> = got.iter().map(Outage::words).collect();
        assert_eq!(words, ["h1->sw0 down", "sw0->h0 and 3 more down"]);
    }

    #[test]
    fn marks_are_named_once_and_drawn_once_for_all_columns() {
        let outage =
            Outage { ports: vec!["a->b".into(), "b->a".into()], times_ns: vec![(1e6, 2e6), (3e6, f64::INFINITY)] };
        let mut variants = crate::synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        for variant in &mut variants {
            variant.runs[0].outages = vec![outage.clone()];
        }
        let all: Vec<&Variant> = variants.iter().collect();
        let mark = |from, to, label: &str| Mark { from, to, label: label.into() };
        let want = [mark(1.0, Some(2.0), "a->b down"), mark(3.0, None, "")];
        assert_eq!(marks(&all, TimeUnit::for_span(4e6)), want);
    }
}
