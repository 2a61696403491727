//! The runs of ns-3 and their results: `runs.csv` and `pairs.csv` in `validation/ns3-tcp`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::csv::{Row, Table};

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// The first algorithm's part of the goodput.
    Share,
    Goodput,
    Jain,
    MeanQueue,
    PeakQueue,
    Drops,
    Marks,
    Retransmitted,
    Recoveries,
    MeanFct,
    MedianFct,
    TailFct,
    Late,
    Timeouts,
}

impl Metric {
    /// Returns `true` if the metric is shown only to explain others: it depends on which flow loses which packet.
    pub fn is_context(self) -> bool {
        self == Self::Timeouts
    }

    /// Returns the name of the metric in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Goodput => "goodput",
            Self::Jain => "Jain index",
            Self::MeanQueue => "mean queue",
            Self::PeakQueue => "peak queue",
            Self::Drops => "drops",
            Self::Marks => "marks",
            Self::Retransmitted => "segments sent again",
            Self::Recoveries => "recoveries",
            Self::MeanFct => "mean FCT",
            Self::MedianFct => "median FCT",
            Self::TailFct => "p99 FCT",
            Self::Late => "flows beyond 100 ms",
            Self::Timeouts => "timeouts",
        }
    }

    /// Returns the unit of the metric.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Share => "%",
            Self::Goodput => "Mb/s",
            Self::MeanQueue | Self::PeakQueue => "packets",
            Self::MeanFct | Self::MedianFct | Self::TailFct => "us",
            _ => "",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Goodput => "goodput_mbps",
            Self::Jain => "jain",
            Self::MeanQueue => "q_mean",
            Self::PeakQueue => "q_peak",
            Self::Drops => "drops",
            Self::Marks => "marks",
            Self::Retransmitted => "retransmitted",
            Self::Recoveries => "recoveries",
            Self::MeanFct => "fct_mean_us",
            Self::MedianFct => "fct_p50_us",
            Self::TailFct => "fct_p99_us",
            Self::Late => "late",
            Self::Timeouts => "timeouts",
        }
    }
}

/// The second algorithm of a pair.
pub struct Beside {
    pub cc: String,
    /// Number of its flows.
    pub n: u32,
    /// `true` if its packets can be marked.
    pub ecn: bool,
    /// All flows of the pair start within this time.
    pub spread_ms: u64,
}

/// One run of ns-3, or several runs of a pair of algorithms with other starts, whose means are compared.
pub struct Case {
    pub run: String,
    pub cc: String,
    /// The second algorithm, whose flows are those after the first `n`.
    pub beside: Option<Beside>,
    /// Name of the list of flows; `None`: `n` endless flows that start a millisecond apart.
    pub list: Option<String>,
    pub n: u32,
    pub edge: String,
    pub bottleneck: String,
    pub edge_delay_us: u64,
    pub bottleneck_delay_us: u64,
    pub queue_packets: u64,
    pub red_k: Option<u64>,
    pub delayed_ack: u32,
    pub rto_min_ms: u64,
    pub loss: f64,
    pub seed: u64,
    pub stop_s: f64,
    pub warm_s: f64,
    pub measured: BTreeMap<Metric, f64>,
}

impl Case {
    /// Returns `true` if other starts or losses give a different run.
    pub fn is_chaotic(&self) -> bool {
        self.beside.is_some() || 1 < self.n || 0.0 < self.loss
    }

    /// Returns the number of flows of both algorithms.
    pub fn n_flows(&self) -> u32 {
        self.n + self.beside.as_ref().map_or(0, |beside| beside.n)
    }

    /// Returns the names of the algorithms.
    pub fn algorithm(&self) -> String {
        match &self.beside {
            Some(beside) => format!("{}+{}", self.cc, beside.cc),
            None => self.cc.clone(),
        }
    }
}

/// Reads all runs.
pub fn load(dir: &Path) -> Result<Vec<Case>, String> {
    let (runs, pairs) = (Table::read(&dir.join("runs.csv"))?, Table::read(&dir.join("pairs.csv"))?);
    runs.rows().map(|row| read(&row)).chain(pairs.rows().map(|row| read_pair(&row))).collect()
}

fn read_pair(row: &Row<'_>) -> Result<Case, String> {
    use Metric::{Drops, Goodput, Marks, MeanQueue, Share, Timeouts};
    let red_k = row.number_if_any("red_k")?;
    let metrics = [Share, Goodput, MeanQueue, Drops, Timeouts].into_iter().chain(red_k.map(|_| Marks));
    let measured = metrics.map(|metric| Ok::<_, String>((metric, row.number(metric.column())?)));
    Ok(Case {
        run: row.text("run")?.to_owned(),
        cc: row.text("cc")?.to_owned(),
        beside: Some(Beside {
            cc: row.text("beside")?.to_owned(),
            n: row.number("n_beside")?,
            ecn: row.text("beside_ecn")? == "true",
            spread_ms: row.number("spread_ms")?,
        }),
        list: None,
        n: row.number("n")?,
        edge: row.text("edge")?.to_owned(),
        bottleneck: row.text("bottleneck")?.to_owned(),
        edge_delay_us: row.number("edge_delay_us")?,
        bottleneck_delay_us: row.number("bottleneck_delay_us")?,
        queue_packets: row.number("queue_packets")?,
        red_k,
        delayed_ack: 1,
        rto_min_ms: row.number("rto_min_ms")?,
        loss: 0.0,
        seed: 1,
        stop_s: row.number("stop_s")?,
        warm_s: row.number("warm_s")?,
        measured: measured.collect::<Result<_, _>>()?,
    })
}

fn read(row: &Row<'_>) -> Result<Case, String> {
    let given = |column: &str| row.text(column).map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
    let case = Case {
        run: row.text("run")?.to_owned(),
        cc: row.text("cc")?.to_owned(),
        beside: None,
        list: given("list")?,
        n: row.number("n")?,
        edge: row.text("edge")?.to_owned(),
        bottleneck: row.text("bottleneck")?.to_owned(),
        edge_delay_us: row.number("edge_delay_us")?,
        bottleneck_delay_us: row.number("bottleneck_delay_us")?,
        queue_packets: row.number("queue_packets")?,
        red_k: given("red_k")?.map(|_| row.number("red_k")).transpose()?,
        delayed_ack: row.number("delayed_ack")?,
        rto_min_ms: row.number("rto_min_ms")?,
        loss: given("loss")?.map_or(Ok(0.0), |_| row.number("loss"))?,
        seed: row.number("seed")?,
        stop_s: row.number("stop_s")?,
        warm_s: row.number("warm_s")?,
        measured: BTreeMap::new(),
    };
    let mut measured = BTreeMap::new();
    for metric in metrics(&case, row.number("timeouts")?) {
        measured.insert(metric, row.number(metric.column())?);
    }
    Ok(Case { measured, ..case })
}

/// Returns the metrics of a run that can be compared. An endless flow that times out sends nothing for 200 ms: then
/// only counts can be compared.
fn metrics(case: &Case, timeouts: u64) -> Vec<Metric> {
    use Metric::{
        Drops, Goodput, Jain, Late, Marks, MeanFct, MeanQueue, MedianFct, PeakQueue, Recoveries, Retransmitted, TailFct,
    };
    let mut metrics = match &case.list {
        Some(list) if list == "s3" => vec![MeanFct, MedianFct, TailFct, Drops],
        Some(_) => vec![MeanFct, MedianFct, Late, Drops],
        None if 0.0 < case.loss => vec![Goodput, Retransmitted, Recoveries],
        None if 0 < timeouts => vec![Drops, PeakQueue],
        None if 1 < case.n => vec![Goodput, Jain, MeanQueue, PeakQueue, Drops],
        None => vec![Goodput, MeanQueue, PeakQueue, Drops, Recoveries],
    };
    if case.red_k.is_some() {
        metrics.push(Marks);
    }
    metrics.push(Metric::Timeouts);
    metrics
}
