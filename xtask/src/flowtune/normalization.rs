//! Section 6.6: what rates exceed links by without normalisation (Figure 12), and what normalised rates are of the
//! optimum (Figure 13).

use std::sync::{Arc, OnceLock};

use fairrate_allocate::{FlowKey, Gradient, LinkId, Method, Ned, Normaliser, Num, NumConfig, RateEngine, RealTime};
use fairrate_report::stats;

use super::churn::{self, Churn, Iterates, NETWORK, SERVERS_BPS, Sends};
use super::network::seeds;
use crate::paper::{Claims, Job, Measured, Numbers, Options, Says, Unit, numbers};
use crate::seeds::{Estimate, each, over_seeds};

/// Section 6.2.
const NED: Method = Method::Ned(Ned { gamma: 0.4 });
/// Flow sizes with their names in job names. The paper has no word on which Figures 12 and 13 are of; section 6.2 makes
/// it the first.
const WORKLOADS: [(&str, &str); 3] = [("web", "fb-web"), ("cache", "fb-cache"), ("hadoop", "fb-hadoop-all")];
/// Methods of Figure 12; Figure 13 has the first two.
const METHODS: [&str; 3] = ["ned", "gradient", "fgm"];
/// F-NORM whose ratios count no more of a flow than it can be told.
const BOUNDED: &str = "f-bounded";
/// Two of them in single precision.
const NED_RT: &str = "ned-rt";
const GRADIENT_RT: &str = "gradient-rt";

/// The largest step of the gradient method for a workload, once somebody has looked for it.
type Step = Arc<OnceLock<Result<f64, String>>>;

/// Loads in tenths.
fn loads(options: &Options, workload: &str) -> Vec<u32> {
    match (options.quick, options.full) {
        (true, _) => vec![2, 4, 6, 8],
        (false, false) if workload != "web" => vec![4, 8],
        _ => (2..=9).collect(),
    }
}

/// The load at which variants are measured too.
const VARIANTS_AT: u32 = 8;
/// Steps of NED that the paper calls similar, besides its 0.4.
const NED_GAMMAS: [(&str, f64); 3] = [("0.2", 0.2), ("1.0", 1.0), ("1.5", 1.5)];

/// For how long: iterations of 10 us.
fn churn(options: &Options, workload: &'static str, tenths: u32) -> Churn {
    let (warm_up, iterations) = match (options.quick, options.full) {
        (true, _) => (2_000, 2_000),
        (false, false) => (5_000, 5_000),
        (false, true) => (10_000, 20_000),
    };
    let load = f64::from(tenths) / 10.0;
    Churn { workload, load, seed: 1, iterates: Iterates::ByTime, warm_up, iterations, optimum_every: 50, snapshots: 0 }
}

/// A run with several seeds.
fn job(
    name: String,
    seeds: u64,
    churn: Churn,
    measure: impl Fn(Churn) -> Result<Numbers, String> + Send + Sync + 'static,
) -> Job {
    Job::new(name, "", move || over_seeds(seeds, |seed| measure(Churn { seed, ..churn.clone() })))
}

/// All runs.
pub fn jobs(options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    let seeds = seeds(options);
    for (name, workload) in &WORKLOADS[..if options.quick { 1 } else { 3 }] {
        let step = Step::default();
        let at = |tenths| churn(options, workload, tenths);
        let (shared, seen) = (Arc::clone(&step), at(VARIANTS_AT));
        jobs.push(Job::new(format!("gamma-{name}"), "", move || Ok(numbers([("gamma", gamma(&shared, &seen)?)]))));
        for tenths in loads(options, name) {
            for method in [NED_RT, GRADIENT_RT] {
                let step = Arc::clone(&step);
                let measure = move |churn: Churn| {
                    let engine =
                        if method == NED_RT { real_time(0.4) } else { real_time(gamma(&step, &churn)?).gradient() };
                    over_capacity(&churn, Sends::AsCarried, Box::new(engine.raw()))
                };
                jobs.push(job(format!("fig12-{name}-{tenths}-{method}"), seeds, at(tenths), measure));
            }
            for method in METHODS {
                for (sends, how) in [(Sends::AsCarried, ""), (Sends::AsAllocated, "-as-allocated")] {
                    if sends == Sends::AsAllocated && tenths != VARIANTS_AT {
                        continue;
                    }
                    let step = Arc::clone(&step);
                    let measure = move |churn: Churn| {
                        let method = named(method, &step, &churn)?;
                        over_capacity(&churn, sends, Box::new(allocator(method, Normaliser::None)))
                    };
                    jobs.push(job(format!("fig12-{name}-{tenths}-{method}{how}"), seeds, at(tenths), measure));
                }
                let step = Arc::clone(&step);
                let measure = move |churn: Churn| of_optimum(&churn, &normalised(named(method, &step, &churn)?));
                jobs.push(job(format!("fig13-{name}-{tenths}-{method}"), seeds, at(tenths), measure));
            }
        }
        for tenths in loads(options, name) {
            for (gamma, value) in NED_GAMMAS {
                let method = Method::Ned(Ned { gamma: value });
                let measure = move |churn: Churn| of_optimum(&churn, &normalised(method)[..1]);
                jobs.push(job(gamma_job(name, gamma, tenths), seeds, at(tenths), measure));
            }
        }
        let (rt, each) = (at(VARIANTS_AT), Churn { iterates: Iterates::ByChange, ..at(VARIANTS_AT) });
        let measure = move |churn: Churn| {
            let make: Make = Box::new(|| Box::new(real_time(0.4)));
            of_optimum(&churn, &[("f", make)])
        };
        jobs.push(job(format!("fig13-{name}-ned-rt"), seeds, rt, measure));
        let measure = move |churn: Churn| of_optimum(&churn, &normalised(NED)[..2]);
        jobs.push(job(format!("fig13-{name}-each-change"), seeds, each, measure));
    }
    jobs
}

fn gamma_job(name: &str, gamma: &str, tenths: u32) -> String {
    format!("ned-gamma-{name}-{gamma}-{tenths}")
}

fn named(method: &str, step: &Step, churn: &Churn) -> Result<Method, String> {
    Ok(match method {
        "ned" => NED,
        "fgm" => Method::Fgm,
        _ => Method::Gradient(Gradient { gamma: gamma(step, churn)? }),
    })
}

fn allocator(method: Method, normaliser: Normaliser) -> Num {
    Num::new(NETWORK.capacities_bps(), NumConfig { method, normaliser, unit_bps: NETWORK.server_bps })
}

/// Figure 12.
fn over_capacity(churn: &Churn, sends: Sends, allocator: Box<dyn RateEngine>) -> Result<Numbers, String> {
    let outcome = churn::run(churn, sends, vec![allocator], None)?;
    let over = stats::sorted(outcome.allocated[0].over_bps.iter().map(|bps| bps / 1e9));
    let quantile = |p| stats::percentile(&over, p).unwrap_or(f64::NAN);
    Ok(numbers([
        ("mean", stats::mean(&over).unwrap_or(f64::NAN)),
        ("p99", quantile(0.99)),
        ("max", quantile(1.0)),
        ("flows", outcome.mean_flows),
        ("last_flows", outcome.last_flows as f64),
        ("carried", outcome.carried),
    ]))
}

/// Makes an allocator.
type Make = Box<dyn Fn() -> Box<dyn RateEngine>>;

/// A method with each normaliser, and what the result is called.
fn normalised(method: Method) -> [(&'static str, Make); 5] {
    let make = |normaliser| -> Make { Box::new(move || Box::new(allocator(method, normaliser))) };
    [
        ("f", make(Normaliser::F_NORM)),
        (BOUNDED, make(Normaliser::F_NORM_BOUNDED)),
        ("u", make(Normaliser::U_NORM)),
        ("f-down", make(Normaliser::Flow { scales_up: false, bounded: false })),
        ("u-down", make(Normaliser::Uniform { scales_up: false })),
    ]
}

/// NED and F-NORM in single precision.
fn real_time(gamma: f64) -> RealTime {
    RealTime::general(&NETWORK.capacities_bps(), NETWORK.server_bps, gamma)
}

/// Figure 13: allocators' rates of the optimum for the same flows. Flows send at what the first, F-NORM, gives them: with
/// U-NORM they would pile up, and be other flows.
fn of_optimum(churn: &Churn, allocators: &[(&'static str, Make)]) -> Result<Numbers, String> {
    let optimum = allocator(NED, Normaliser::None);
    let made = allocators.iter().map(|(_, make)| make()).collect();
    let outcome = churn::run(churn, Sends::AsAllocated, made, Some(optimum))?;
    let mut out = numbers([
        ("flows", outcome.mean_flows),
        ("last-flows", outcome.last_flows as f64),
        ("carried", outcome.carried),
        ("without-optimum", f64::from(outcome.without_optimum)),
    ]);
    for ((name, _), allocated) in allocators.iter().zip(&outcome.allocated) {
        let parts = stats::sorted(allocated.of_optimum.iter().copied());
        out.insert((*name).to_owned(), stats::mean(&parts).unwrap_or(f64::NAN));
        out.insert(format!("{name}-max"), parts.last().copied().unwrap_or(f64::NAN));
    }
    Ok(out)
}

/// The largest step that does not oscillate on a workload: flows are taken from runs of NED at loads of 0.2, 0.5 and
/// 0.9, five times each, and the step is lowered from 4 by a factor of the square root of 2 until the rates of none of
/// these sets of flows oscillate. Steps are of prices for capacities in units of a server's link.
fn gamma(step: &Step, like: &Churn) -> Result<f64, String> {
    let search = || {
        let mut sets = Vec::new();
        for load in [0.9, 0.5, 0.2] {
            let churn = Churn { load, seed: 1, snapshots: 5, ..like.clone() };
            let ned = allocator(NED, Normaliser::F_NORM);
            sets.extend(churn::run(&churn, Sends::AsAllocated, vec![Box::new(ned)], None)?.snapshots);
        }
        let mut gamma = 4.0;
        for flows in &sets {
            while oscillates(flows, gamma) {
                gamma /= std::f64::consts::SQRT_2;
            }
        }
        Ok(gamma)
    };
    step.get_or_init(search).clone()
}

/// Whether, 3,000 iterations after all flows came, a flow's rate rises and falls within 100 iterations by more than a
/// thousandth of itself each time.
fn oscillates(flows: &[Vec<LinkId>], gamma: f64) -> bool {
    const ITERATIONS: u32 = 100;
    let mut allocator = allocator(Method::Gradient(Gradient { gamma }), Normaliser::None);
    let keys: Vec<FlowKey> = flows.iter().map(|path| allocator.add(path, 1.0, f64::INFINITY)).collect();
    (0..3_000).for_each(|_| allocator.iterate());
    // Sums of what each flow's rate rose by, fell by, and was.
    let mut sums = vec![[0.0; 3]; keys.len()];
    let mut last: Vec<f64> = keys.iter().map(|&key| allocator.rate_bps(key)).collect();
    for _ in 0..ITERATIONS {
        allocator.iterate();
        for ((sums, last), &key) in sums.iter_mut().zip(&mut last).zip(&keys) {
            let rate = allocator.rate_bps(key);
            sums[0] += (rate - *last).max(0.0);
            sums[1] += (*last - rate).max(0.0);
            sums[2] += rate;
            *last = rate;
        }
    }
    sums.iter().any(|&[up, down, rate]| 1e-3 * rate < f64::min(up, down))
}

/// What the paper says.
pub fn claims(claims: &mut Claims, measured: &Measured, options: &Options) {
    for (name, _) in &WORKLOADS[..if options.quick { 1 } else { 3 }] {
        let loads = loads(options, name);
        let text = format!("{name}: largest step of the gradient method that does not oscillate");
        let job = format!("gamma-{name}");
        claims.add(&job, &job, text, Says::Words, Unit::Ratio, measured.get(&job, "", "gamma"));
        fig12(claims, measured, name, &loads);
        fig13(claims, measured, name, &loads);
        gammas(claims, measured, name, &loads);
        variants(claims, measured, name);
    }
}

fn fig12(claims: &mut Claims, measured: &Measured, name: &str, loads: &[u32]) {
    let get =
        |tenths: u32, method: &str, what: &str| measured.get(&format!("fig12-{name}-{tenths}-{method}"), "", what);
    let worst = loads.iter().map(|&load| get(load, "ned", "mean")).fold(f64::NAN, f64::max);
    let text = format!("Fig 12, {name}: NED exceeds links by, mean of the worst load");
    let job = format!("fig12-{name}-{VARIANTS_AT}-ned");
    claims.add(format!("fig12-{name}-ned"), &job, text, Says::About(140.0, 0.25), Unit::Gbps, worst);
    for &tenths in loads {
        let job = format!("fig12-{name}-{tenths}-ned");
        let mut add = |id: &str, text: &str, says, unit, value| {
            let text = format!("Fig 12, {name}, load 0.{tenths}: {text}");
            claims.add_estimate(format!("fig12-{id}-{name}-{tenths}"), &job, text, says, unit, value);
        };
        let means = |method: &str| each(measured, &format!("fig12-{name}-{tenths}-{method}"), "", "mean");
        let mean = |method: &str| Estimate::of(&means(method));
        for method in METHODS {
            add(method, &format!("{method} exceeds links by, mean"), Says::Words, Unit::Gbps, mean(method));
            if tenths == VARIANTS_AT {
                let method = format!("{method}-as-allocated");
                let text = format!("{method}: the same, flows sending what links do not carry");
                add(&method, &text, Says::Words, Unit::Gbps, mean(&method));
            }
        }
        add(NED_RT, "NED in single precision, mean", Says::Words, Unit::Gbps, mean(NED_RT));
        add(GRADIENT_RT, "gradient in single precision, mean", Says::Words, Unit::Gbps, mean(GRADIENT_RT));
        let ratio = Estimate::of_ratios(&means("ned"), &means("gradient"));
        add("ratio", "NED over gradient (paper: more)", Says::AtLeast(1.0), Unit::Ratio, ratio);
        if 5 <= tenths {
            // Half of what all servers could send is ours for "unrealistic".
            let parts: Vec<f64> = means("fgm").iter().map(|gbps| gbps * 1e9 / SERVERS_BPS).collect();
            let part = Estimate::of(&parts);
            add("fgm-part", "FGM, of all servers' capacity", Says::AtLeast(0.5), Unit::Share, part);
        }
    }
}

fn fig13(claims: &mut Claims, measured: &Measured, name: &str, loads: &[u32]) {
    let mut without = 0.0;
    for &tenths in loads {
        let values = |method: &str, what: &str| each(measured, &format!("fig13-{name}-{tenths}-{method}"), "", what);
        let get = |method: &str, what: &str| Estimate::of(&values(method, what));
        let job = format!("fig13-{name}-{tenths}-ned");
        let mut add = |id: &str, text: &str, says, value| {
            let text = format!("Fig 13, {name}, load 0.{tenths}: {text}");
            claims.add_estimate(format!("fig13-{id}-{name}-{tenths}"), &job, text, says, Unit::Share, value);
        };
        add("ned-f", "NED with F-NORM, of the optimum", Says::AtLeast(0.997), get("ned", "f"));
        add("ned-f-max", "its largest value (paper: sometimes above 1)", Says::AtLeast(1.0), get("ned", "f-max"));
        add("gradient-f", "gradient with F-NORM", Says::About(0.984, 0.01), get("gradient", "f"));
        let text = "NED with F-NORM whose ratios count what flows can be told";
        add("ned-bounded", text, Says::AtLeast(0.997), get("ned", BOUNDED));
        let text = "gradient with that F-NORM";
        add("gradient-bounded", text, Says::About(0.984, 0.01), get("gradient", BOUNDED));
        // The figure's values are not in the text; this is ours for "low in comparison".
        add("ned-u", "NED with U-NORM (paper: low)", Says::AtMost(0.9), get("ned", "u"));
        let less = Estimate::of_differences(&values("gradient", "u"), &values("ned", "u"));
        add("gradient-u", "gradient with U-NORM less NED with it (paper: more)", Says::AtLeast(0.0), less);
        add("fgm-f", "FGM with F-NORM", Says::Words, get("fgm", "f"));
        if tenths == VARIANTS_AT {
            add("ned-f-down", "NED with F-NORM that only scales down", Says::Words, get("ned", "f-down"));
            add("ned-u-down", "NED with U-NORM that only scales down", Says::Words, get("ned", "u-down"));
        }
        without += METHODS.map(|method| get(method, "without-optimum").mean).iter().sum::<f64>();
    }
    let (text, job) = (format!("Fig 13, {name}: optima not reached"), format!("fig13-{name}-{VARIANTS_AT}-ned"));
    claims.add(format!("fig13-without-{name}"), job, text, Says::Words, Unit::Count, without);
}

/// Other steps of NED at each load: "similar performance" (section 6.2). Within a twentieth is ours. As arrivals are the
/// same, the mean number of flows is in proportion to their mean completion time.
fn gammas(claims: &mut Claims, measured: &Measured, name: &str, loads: &[u32]) {
    for &tenths in loads {
        let usual = |what: &str| each(measured, &format!("fig13-{name}-{tenths}-ned"), "", what);
        for (gamma, _) in NED_GAMMAS {
            let job = gamma_job(name, gamma, tenths);
            for (what, id, text) in [("f", "", "share of the optimum"), ("flows", "-fct", "mean completion time")] {
                let text = format!("{name}, load 0.{tenths}: NED with F-NORM, gamma {gamma} over 0.4: {text}");
                let value = Estimate::of_ratios(&each(measured, &job, "", what), &usual(what));
                claims.add_estimate(format!("{job}{id}"), &job, text, Says::About(1.0, 0.05), Unit::Share, value);
            }
        }
    }
}

/// The allocator in single precision, and more iterations.
fn variants(claims: &mut Claims, measured: &Measured, name: &str) {
    let at = format!("{name}, load 0.{VARIANTS_AT}");
    let job = format!("fig13-{name}-ned-rt");
    let text = format!("Fig 13, {at}: NED with F-NORM in single precision");
    let value = Estimate::of(&each(measured, &job, "", "f"));
    claims.add_estimate(&job, &job, text, Says::AtLeast(0.997), Unit::Share, value);
    let job = format!("fig13-{name}-each-change");
    for (what, how) in [("f", ""), (BOUNDED, " whose ratios count what flows can be told")] {
        let text = format!("Fig 13, {at}: NED with F-NORM{how}, an iteration for each change");
        let id = if how.is_empty() { job.clone() } else { format!("{job}-bounded") };
        let value = Estimate::of(&each(measured, &job, "", what));
        claims.add_estimate(id, &job, text, Says::AtLeast(0.997), Unit::Share, value);
    }
}
