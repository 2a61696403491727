//! The results: a row a minute, what daemons use, and the verdict.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::daemons::Daemons;
use crate::load::Count;
use crate::watch::{LEASE, TOO_MUCH, Tally, UPDATE};

/// Least share of the offered bytes that have to arrive.
const LEAST_GOODPUT: f64 = 0.95;
/// Growth of a daemon's memory after the first tenth that is too much, in KiB, and of its descriptors.
const GROWTH_KIB: u64 = 4 * 1024;
const GROWTH_DESCRIPTORS: u64 = 16;

const MINUTES: &str = "minute,fault,seconds,offered_bytes,received_bytes,done,broken,flows_mean,sum_max,sum_with_dead_max,above_ms,\
                       beyond_ms,gap_ms,awake_gap_ms,latency_p50_ms,latency_p99_ms,unrated,sample_pause_ms";

/// Largest use of a daemon in the first tenth of the run and after it: memory in KiB, and descriptors.
#[derive(Default)]
struct Peaks {
    rss_kib: [u64; 2],
    descriptors: [u64; 2],
}

/// The files of the results, and their sums so far.
pub struct Record {
    dir: PathBuf,
    minutes: File,
    daemons: File,
    gaps: File,
    began: Instant,
    first_tenth: Duration,
    n_minutes: (u32, u32),
    count: Count,
    tally: Tally,
    peaks: BTreeMap<String, Peaks>,
}

impl Record {
    /// Opens the files in `dir` for a run of `minutes`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn open(dir: &Path, minutes: u32) -> io::Result<Self> {
        let file = |name: &str, head: &str| -> io::Result<File> {
            let mut file = File::create(dir.join(name))?;
            writeln!(file, "{head}")?;
            Ok(file)
        };
        println!("{}", head());
        Ok(Self {
            minutes: file("minutes.csv", MINUTES)?,
            daemons: file("daemons.csv", "second,daemon,process,rss_kib,descriptors")?,
            gaps: file("gaps.csv", "minute,src,dst,second,gap_ms,age_ms,since_ack_ms,backoff")?,
            dir: dir.to_owned(),
            began: Instant::now(),
            first_tenth: Duration::from_secs(60 * u64::from(minutes)) / 10,
            n_minutes: (0, minutes),
            count: Count::default(),
            tally: Tally::default(),
            peaks: BTreeMap::new(),
        })
    }

    /// Writes down what the daemons use.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn look(&mut self, daemons: &Daemons) -> io::Result<()> {
        let second = self.began.elapsed();
        let mut lines = String::new();
        for uses in daemons.uses() {
            let of = (uses.process, uses.rss_kib, uses.descriptors);
            let _ = writeln!(lines, "{:.0},{},{},{},{}", second.as_secs_f64(), uses.name, of.0, of.1, of.2);
            let peaks = self.peaks.entry(uses.name).or_default();
            let at = usize::from(self.first_tenth <= second);
            peaks.rss_kib[at] = peaks.rss_kib[at].max(uses.rss_kib);
            peaks.descriptors[at] = peaks.descriptors[at].max(uses.descriptors);
        }
        self.daemons.write_all(lines.as_bytes())
    }

    /// Writes the row of a minute with its `fault`, of which `length` is over, and prints it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn minute(&mut self, n: u32, fault: &str, length: Duration, count: Count, tally: Tally) -> io::Result<()> {
        let row = Row::new(&count, &tally);
        let Row { flows, p50, p99, .. } = row;
        let csv = format!(
            "{n},{fault},{:.1},{},{},{},{},{flows:.1},{:.4},{:.4},{:.1},{:.1},{:.1},{:.1},{p50:.1},{p99:.1},{},{:.1}\n",
            length.as_secs_f64(),
            count.offered,
            count.received,
            count.done,
            count.broken,
            tally.largest_sum,
            tally.largest_with_dead,
            ms(tally.longest_above),
            ms(tally.longest_beyond),
            ms(tally.longest_gap),
            ms(tally.longest_awake_gap),
            tally.unrated,
            ms(tally.longest_pause)
        );
        self.minutes.write_all(csv.as_bytes())?;
        for gap in &tally.gaps {
            let (second, since_ack) = (gap.from.as_secs_f64(), ms(gap.since_ack));
            let (src, dst, length, age) = (gap.src, gap.dst, ms(gap.length), ms(gap.age));
            writeln!(self.gaps, "{n},{src},{dst},{second:.3},{length:.0},{age:.0},{since_ack:.0},{}", gap.backoff)?;
        }
        println!("{}", row.line(&n.to_string(), fault));
        self.n_minutes.0 = n;
        self.count.offered += count.offered;
        self.count.received += count.received;
        self.count.done += count.done;
        self.count.broken += count.broken;
        self.tally.add(&tally);
        Ok(())
    }

    /// Prints the sums and the verdict, and writes them to `verdict.txt`. Returns `true` if all rules hold.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(&self, hosts: u32) -> io::Result<bool> {
        let row = Row::new(&self.count, &self.tally);
        let mut text = row.line("all", &format!("{} hosts", hosts)) + "\n\n";
        let (done, asked) = self.n_minutes;
        if done < asked || self.began.elapsed() < 10 * self.first_tenth {
            let _ = writeln!(text, "interrupted in minute {done} of {asked}: the rules hold for what was measured");
        }
        let rules = self.rules();
        for (holds, rule) in &rules {
            let _ = writeln!(text, "{}  {rule}", if *holds { "holds" } else { "FAILS" });
        }
        print!("\n{text}");
        let (beside, file) = (self.dir.join("verdict.new"), self.dir.join("verdict.txt"));
        std::fs::write(&beside, text)?;
        std::fs::rename(beside, file)?;
        Ok(rules.iter().all(|(holds, _)| *holds))
    }

    /// Returns the rules, each with `true` if it holds.
    fn rules(&self) -> Vec<(bool, String)> {
        let Self { tally, count, .. } = self;
        let goodput = count.received as f64 / count.offered.max(1) as f64;
        let mut rules = vec![
            (
                tally.longest_beyond.is_zero(),
                format!(
                    "no link is above {TOO_MUCH} for longer than a round trip, {} ms and late samples: {:.1} ms beyond; above for {:.1} ms at most, {:.3} at most",
                    ms(UPDATE),
                    ms(tally.longest_beyond),
                    ms(tally.longest_above),
                    tally.largest_sum
                ),
            ),
            (
                tally.longest_gap <= LEASE,
                format!(
                    "no flow is without a rate for longer than {} ms: {:.1} ms, {:.1} ms without the lateness of samples",
                    ms(LEASE),
                    ms(tally.longest_gap),
                    ms(tally.longest_awake_gap)
                ),
            ),
            (LEAST_GOODPUT <= goodput, format!("at least {LEAST_GOODPUT} of the offered bytes arrive: {goodput:.4}")),
            (count.broken == 0, format!("no connection breaks: {} of {}", count.broken, count.broken + count.done)),
        ];
        let grown = |of: fn(&Peaks) -> [u64; 2]| {
            let all = self.peaks.iter().map(|(name, peaks)| {
                let [first, after] = of(peaks);
                (after.saturating_sub(first), name.as_str(), first, after)
            });
            all.max().unwrap_or((0, "none", 0, 0))
        };
        let (more, name, first, after) = grown(|peaks| peaks.rss_kib);
        rules.push((
            more <= GROWTH_KIB,
            format!(
                "memory grows by at most {GROWTH_KIB} KiB after the first tenth: {name} from {first} to {after} KiB"
            ),
        ));
        let (more, name, first, after) = grown(|peaks| peaks.descriptors);
        rules.push((
            more <= GROWTH_DESCRIPTORS,
            format!("descriptors grow by at most {GROWTH_DESCRIPTORS}: {name} from {first} to {after}"),
        ));
        rules
    }
}

/// The numbers of a line.
struct Row {
    offered_mbit: f64,
    goodput: f64,
    flows: f64,
    sum: f64,
    above: f64,
    beyond: f64,
    gap: f64,
    p50: f64,
    p99: f64,
}

impl Row {
    fn new(count: &Count, tally: &Tally) -> Self {
        let mut sorted = tally.latencies.clone();
        sorted.sort_unstable();
        let quantile = |share: f64| {
            let at = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(at.clamp(1, sorted.len().max(1)) - 1).map_or(0.0, |latency| ms(*latency))
        };
        Self {
            offered_mbit: count.offered as f64 * 8e-6,
            goodput: count.received as f64 / count.offered.max(1) as f64,
            flows: tally.flows as f64 / tally.samples.max(1) as f64,
            sum: tally.largest_sum,
            above: ms(tally.longest_above),
            beyond: ms(tally.longest_beyond),
            gap: ms(tally.longest_gap),
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }

    fn line(&self, minute: &str, fault: &str) -> String {
        format!(
            "{minute:>6}  {fault:<24}  {:>9.0}  {:>7.3}  {:>5.1}  {:>5.3}  {:>6.1}  {:>6.1}  {:>6.1}  {:>5.1}  {:>6.1}",
            self.offered_mbit,
            self.goodput,
            self.flows,
            self.sum,
            self.above,
            self.beyond,
            self.gap,
            self.p50,
            self.p99
        )
    }
}

/// Returns the head of the printed lines.
fn head() -> String {
    format!(
        "{:>6}  {:<24}  {:>9}  {:>7}  {:>5}  {:>5}  {:>6}  {:>6}  {:>6}  {:>5}  {:>6}",
        "minute", "fault", "offered", "arrived", "flows", "sum", "above", "beyond", "gap", "p50", "p99"
    ) + "\n"
        + &format!(
            "{:>6}  {:<24}  {:>9}  {:>7}  {:>5}  {:>5}  {:>6}  {:>6}  {:>6}  {:>5}  {:>6}",
            "", "", "Mbit", "share", "", "link", "ms", "ms", "ms", "ms", "ms"
        )
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
