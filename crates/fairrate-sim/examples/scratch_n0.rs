//! args: topo flows alg ref_flow.csv|ref_fct.csv lo hi [best]
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use fairrate_control::*;
use fairrate_sim::topology::parse_topology_file;
use fairrate_sim::*;
use fairrate_units::*;
use std::collections::HashMap;
struct Check<'a> {
    reference: &'a HashMap<(u64, u32), (u64, f64)>,
    matched: u64,
    bad: Option<(u64, u32, u64)>,
    fct: Vec<(u32, u64)>,
}
impl Sink for Check<'_> {
    fn flow(&mut self, f: &FlowOutcome) {
        self.fct.push((f.flow.0, f.fct_ack.map_or(0, |t| t.as_ns())));
    }
    fn port(&mut self, _: &PortSample) {}
    fn pfc(&mut self, _: &PfcEvent) {}
    fn rate(&mut self, s: &RateSample) {
        if self.bad.is_some() { return; }
        let Some(&(rate, _)) = self.reference.get(&(s.t.as_ns(), s.flow.0)) else { return };
        if rate.abs_diff(s.rate_bps) <= 1 { self.matched += 1 } else { self.bad = Some((s.t.as_ns(), s.flow.0, s.rate_bps)) }
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let topo = parse_topology_file(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let text = std::fs::read_to_string(&a[2]).unwrap();
    let mut flows: Vec<FlowSpec> = text.lines().skip(1).map(|l| {
        let f: Vec<u64> = l.split(',').map(|x| x.parse().unwrap()).collect();
        let mut s = flow(f[1] as u32, f[2] as u32, if f[6] >= 1_000_000_000_000 { u64::MAX } else { f[6] }, Time::from_ns(f[7]));
        s.sport = f[4] as u16;
        s.dport = f[5] as u16;
        s
    }).collect();
    flows.sort_by_key(|f| f.start);
    let n = flows.len() as u32;
    let mut cc = AlgorithmConfig::by_name(&a[3], Profile::Ns3).unwrap();
    for param in std::env::var("PARAMS").unwrap_or_default().split_whitespace() {
        let (key, value) = param.split_once('=').unwrap();
        let raw = match value { "true" | "false" => RawValue::Bool(value == "true"), _ => value.parse().map_or(RawValue::Text(value), RawValue::Float) };
        cc.set(key, raw).unwrap();
    }
    let mut c = config(topo, cc, flows);
    c.fabric.clock = ClockRule::WholeNanoseconds;
    c.fabric.ecmp = EcmpHash::Murmur3;
    c.fabric.ties = TieRule::Insertion;
    c.fabric.headroom = Headroom::TripleDelay;
    c.fabric.pfc_frame = Bytes::new(43);
    c.transport.base_rtt = BaseRttRule::PayloadOnly;
    c.transport.rto = None;
    if std::env::var("WIN").is_ok() { c.transport.window = WindowRule::RateScaled }
    c.fabric.ecn = Some(EcnConfig { kmin: Bytes::new(100_000), kmax: Bytes::new(400_000), pmax: 0.2, per_rate: Some(Rate::from_gbps(25)), at: MarkAt::Dequeue, draws: MarkDraws::LikeNs3 });
    let every = std::env::var("EVERY").map_or(10, |e| e.parse().unwrap());
    c.probes.push(ProbeSpec::Flows { flows: Some((0..n.min(16)).map(FlowId).collect()), every: Time::from_us(every) });
    let reftext = std::fs::read_to_string(&a[4]).unwrap();
    let reference: HashMap<(u64, u32), (u64, f64)> = reftext.lines().skip(1).map(|l| {
        let f: Vec<&str> = l.split(',').collect();
        ((f[0].parse().unwrap(), f[1].parse().unwrap()), (f[4].parse().unwrap(), 0.0))
    }).collect();
    let end = reference.keys().map(|k| k.0).max().unwrap();
    c.stop.at = Some(Time::from_ns(end + 1));
    c.stop.when_flows_done = false;
    let (lo, hi): (u64, u64) = (a[5].parse().unwrap(), a[6].parse().unwrap());
    let mut best: Vec<(u64, u64, String)> = Vec::new();
    for n0 in lo..hi {
        unsafe { std::env::set_var("N0", n0.to_string()) };
        let mut sim = Simulation::new(c.clone());
        let mut k = Check { reference: &reference, matched: 0, bad: None, fct: vec![] };
        while k.bad.is_none() {
            match sim.advance(2000, &mut k) { Ok(p) if !p.finished => {} _ => break }
        }
        let marks = sim.totals().ecn_marks;
        best.push((k.matched, n0, format!("{:?} of {} bad {:?} ref {:?} marks {marks}", k.matched, reference.len(), k.bad, k.bad.and_then(|b| reference.get(&(b.0, b.1))))));
    }
    best.sort();
    for b in best.iter().rev().take(6) { println!("N0 {} {}", b.1, b.2); }
}
