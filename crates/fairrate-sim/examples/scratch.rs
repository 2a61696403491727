#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use fairrate_control::*;
use fairrate_sim::topology::parse_topology_file;
use fairrate_sim::*;
use fairrate_units::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let topo = parse_topology_file(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let text = std::fs::read_to_string(&a[2]).unwrap();
    let mut flows: Vec<FlowSpec> = text
        .lines()
        .skip(1)
        .map(|l| {
            let f: Vec<u64> = l.split(',').map(|x| x.parse().unwrap()).collect();
            let mut s = flow(
                f[1] as u32,
                f[2] as u32,
                if f[6] >= 1_000_000_000_000 { u64::MAX } else { f[6] },
                Time::from_ns(f[7]),
            );
            s.sport = f[4] as u16;
            s.dport = f[5] as u16;
            s
        })
        .collect();
    flows.sort_by_key(|f| f.start);
    let ns3 = a[4] == "ns3";
    let mut cc = AlgorithmConfig::by_name(&a[3], if ns3 { Profile::Ns3 } else { Profile::Paper }).unwrap();
    for param in std::env::var("PARAMS").unwrap_or_default().split_whitespace() {
        let (key, value) = param.split_once('=').unwrap();
        let raw = match value {
            "true" | "false" => RawValue::Bool(value == "true"),
            _ => value.parse().map_or(RawValue::Text(value), RawValue::Float),
        };
        cc.set(key, raw).unwrap();
    }
    let endless = flows.iter().any(|f| f.bytes == Bytes::MAX);
    let mut c = config(topo, cc, flows);
    if ns3 {
        c.fabric.clock = ClockRule::WholeNanoseconds;
        c.fabric.ecmp = EcmpHash::Murmur3;
        c.fabric.ties = TieRule::Insertion;
        c.fabric.headroom = Headroom::TripleDelay;
        c.fabric.pfc_frame = Bytes::new(43);
        c.transport.base_rtt = BaseRttRule::PayloadOnly;
        c.transport.rto = None;
        c.fabric.ecn = Some(EcnConfig {
            kmin: Bytes::new(100_000),
            kmax: Bytes::new(400_000),
            pmax: 0.2,
            per_rate: Some(Rate::from_gbps(25)),
            at: MarkAt::Dequeue,
            draws: MarkDraws::LikeNs3,
        });
    }
    if endless {
        c.stop.at = Some(Time::from_us(a[5].parse().unwrap()));
        c.stop.when_flows_done = false;
    }
    for p in a.iter().skip(6) {
        let (x, y) = p.split_once('-').unwrap();
        probe(
            &mut c,
            x.parse().unwrap(),
            y.parse().unwrap(),
            Time::from_us(std::env::var("EVERY").map_or(1, |e| e.parse().unwrap())),
        );
    }
    let mut rec = Recorder::default();
    let t = std::time::Instant::now();
    let mut sim = Simulation::new(c);
    let built = t.elapsed();
    let r = sim.run(&mut rec);
    let w = t.elapsed();
    let tot = sim.totals();
    println!(
        "{r:?}\nbuild {built:?} wall {w:?} {:.1} ns/hop {:.2} events/hop\n{tot:?}",
        (w - built).as_nanos() as f64 / tot.packet_hops as f64,
        tot.events as f64 / tot.packet_hops as f64
    );
    if let Ok(p) = std::env::var("PORTS") {
        let mut s = String::new();
        for q in &rec.ports {
            s += &format!("{},{},{},{}\n", q.t.as_ns(), q.port.0, q.qlen_bytes, q.tx_bytes);
        }
        std::fs::write(p, s).unwrap();
    }
    let peak = rec.ports.iter().map(|p| p.qlen_bytes).max();
    println!("peak q {peak:?}");
    rec.flows.sort_by_key(|f| f.flow);
    if let Ok(p) = std::env::var("FCT") {
        let mut s = String::new();
        for f in &rec.flows {
            s += &format!("{},{}\n", f.flow.0, f.fct_ack.map_or(0, |t| t.as_ns()));
        }
        std::fs::write(p, s).unwrap();
    }
    for f in rec.flows.iter().take(12) {
        println!(
            "{} fct {:?} ack {:?} slow {:.3}",
            f.flow.0,
            f.fct.map(|t| t.as_ns()),
            f.fct_ack.map(|t| t.as_ns()),
            f.fct.map_or(0.0, |t| t.as_ps() as f64 / f.ideal_fct.as_ps() as f64)
        );
    }
}
