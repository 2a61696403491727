//! The runs of ns-3 and their results: `validation/ns3-tcp/runs.csv`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ns3::tables::{Row, Table};

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
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
            Self::Goodput => "Mb/s",
            Self::MeanQueue | Self::PeakQueue => "packets",
            Self::MeanFct | Self::MedianFct | Self::TailFct => "us",
            _ => "",
        }
    }

    fn column(self) -> &'static str {
        match self {
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

/// One run of ns-3.
pub struct Case {
    pub run: String,
    pub cc: String,
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
        1 < self.n || 0.0 < self.loss
    }
}

/// Reads all runs.
pub fn load(dir: &Path) -> Result<Vec<Case>, String> {
    Table::read(dir.join("runs.csv"))?.rows().map(|row| read(&row)).collect()
}

fn read(row: &Row<'_>) -> Result<Case, String> {
    let given = |column: &str| row.text(column).map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
    let case = Case {
        run: row.text("run")?.to_owned(),
        cc: row.text("cc")?.to_owned(),
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
