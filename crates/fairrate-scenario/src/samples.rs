//! Small documents that between them have every section of a scenario with every key.

use fairrate_sim::topology::TOPOLOGIES;
use fairrate_sim::{BALANCES, QUEUES};

use fairrate_control::Registry;

use crate::error::{Report, ScenarioError, Site};
use crate::reader::Output;
use crate::schema::{self, Algorithms, Extent, Files, Place};
use crate::tree;

/// The files that the documents name, with their texts.
const FILES: &[(&str, &str)] = &[
    ("sizes.txt", include_str!("../tests/docs_files/sizes.txt")),
    ("flows.csv", include_str!("../tests/docs_files/flows.csv")),
    ("operations.csv", include_str!("../tests/docs_files/operations.csv")),
    ("topology.txt", include_str!("../tests/docs_files/topology.txt")),
    ("placement.txt", include_str!("../tests/docs_files/placement.txt")),
    ("exchange.csv", include_str!("../tests/docs_files/exchange.csv")),
];

const TRAFFIC: &[&str] = &[
    "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\nmax_flows = 9",
    "kind = \"poisson\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.5\nstop = \"1us\"",
    "kind = \"poisson\"\nsizes = \"file\"\npath = \"sizes.txt\"\nload = 0.5\nmax_flows = 9\nhosts = [0]",
    "kind = \"closed-loop\"\nsizes = \"websearch\"\nload = 0.5\nstop = \"9ms\"",
    "kind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.5",
    "kind = \"closed-loop\"\nsizes = \"file\"\npath = \"sizes.txt\"\nload = 0.5\nsenders = [0, 1]\nreceivers = [\"sw0\"]",
    "kind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"1KB\"",
    "kind = \"incast-queries\"\nrequest_size = \"1KB\"\nresponders = 1\nrate_per_host_per_s = 1e6\nstop = \"90us\"",
    "kind = \"incast-queries\"\nrequest_size = \"1KB\"\nresponders = 1\nload = 0.2\nstop = \"90us\"",
    "kind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"endless\"\nburst = \"1KB\"\npause = \"1us\"",
    "kind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"1KB\"\ndeadline = { mean = \"1us\" }",
    "kind = \"staggered\"\nreceiver = 0\nsenders = 1\ninterval = \"1us\"",
    "kind = \"permutation\"\nbytes = \"1KB\"\nhosts = [0, 1, 2]",
    "kind = \"stride\"\nstride = 1\nbytes = \"1KB\"\nhosts = [0, 1, 2]",
    "kind = \"all-to-all\"\nbytes = \"1KB\"\nhosts = [0, 1, 2]",
    "kind = \"churn\"\nflows = 2\nchanges = 2\n[[probe]]\nconvergence = true",
    "kind = \"list\"\npath = \"flows.csv\"\nalgorithms = { old = \"dctcp\" }",
    "kind = \"collective\"\nop = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nbytes = \"1KB\"\nhosts = [0, 1]",
    "kind = \"collective\"\nop = \"all-to-all\"\npath = \"exchange.csv\"\nhosts = [0, 1]",
    "kind = \"collective\"\nop = \"all-to-all\"\nbytes = \"1KB\"\nhosts = [0, 1]",
    "kind = \"collective\"\nop = \"all-gather\"\nbytes = \"1KB\"\nhosts = [0, 1]",
    "kind = \"collective\"\nop = \"all-gather\"\nbytes = \"1KB\"\ncompute = \"1us\"\nstragglers = [0]\nstraggler_factor = 1.5\nplacement = \"file\"\nplacement_path = \"placement.txt\"\nalpha = \"1us\"",
    "kind = \"trace\"\npath = \"operations.csv\"\nhosts = [0, 1]\nstragglers = [0]\nstraggler_factor = 1.5\nalpha = \"1us\"",
    "kind = \"trace\"\npath = \"operations.csv\"\nplacement = \"file\"\nplacement_path = \"placement.txt\"",
    "kind = \"training\"\nlayers = 1\nhidden = 8\nheads = 1\nvocabulary = 8\nsequence = 8\ndp = 2\nexperts = 2\ntflops = 1.0\nhosts = [0, 1]",
    "kind = \"training\"\nlayers = 1\nhidden = 8\nheads = 1\nvocabulary = 8\nsequence = 8\ndp = 2\nforward = \"1us\"\nplacement = \"file\"\nplacement_path = \"placement.txt\"\nstragglers = [0]\nstraggler_factor = 1.5\nalpha = \"1us\"",
];

const INCAST: &str = "[[traffic]]\nname = \"incast\"\nkind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"1KB\"";

/// Returns the documents, for tests of the reference and for [`json_schema`](crate::json_schema()). They name
/// `sizes.txt`, `flows.csv`, `operations.csv`, `topology.txt`, `placement.txt` and `exchange.csv`.
#[must_use]
pub fn samples() -> Vec<String> {
    let star = |rest: &str| format!("[topology]\nkind = \"star\"\n{INCAST}\n{rest}");
    let mut documents = Vec::new();
    for shape in TOPOLOGIES {
        let path = if shape.name == "file" { "path = \"topology.txt\"" } else { "" };
        // Packets dropped by circuits must be retransmitted, which needs `rto`.
        let rto = if shape.name == "rdcn" { "[transport]\nrto = \"4ms\"" } else { "" };
        documents.push(format!("[topology]\nkind = \"{}\"\n{path}\n{INCAST}\n{rto}", shape.name));
    }
    let in_servers = "[topology]\nkind = \"star\"\nscale_up = { size = 8 }\n";
    documents.push(format!("{in_servers}{INCAST}"));
    for block in TRAFFIC.iter().filter(|block| block.contains("alpha = ")) {
        documents.push(format!("{in_servers}[[traffic]]\n{block}\nalpha_inside = \"1us\""));
    }
    let rates = "link_rates = [\"25Gbps\", \"10Gbps\"]";
    documents.push(format!("[topology]\nkind = \"parking-lot\"\n{rates}\n{INCAST}"));
    for block in TRAFFIC {
        // A block with queries needs racks; the flow list names hosts of a star.
        let shape = if block.contains("queries") { "leaf-spine" } else { "star" };
        documents.push(format!("duration = \"99us\"\n[topology]\nkind = \"{shape}\"\n[[traffic]]\n{block}"));
    }
    for scheme in BALANCES {
        let entropy = if scheme.name == "host" { "entropy = \"reps\"" } else { "" };
        documents
            .push(star(&format!("[routing]\nbalance = \"{}\"\n[transport]\ncc = \"dctcp\"\n{entropy}", scheme.name)));
    }
    documents.push(star("[routing]\nreroute_delay = \"1ms\"\n[transport]\ncc = \"dctcp\""));
    for queue in QUEUES.iter().filter(|q| q.name != "pfabric") {
        documents.push(star(&format!("[switch]\nqueue = \"{}\"\n[transport]\nrto = \"4ms\"", queue.name)));
    }
    documents.push(format!("[topology]\nkind = \"star\"\nhost_queues = true\n{INCAST}\n[transport]\nkind = \"tcp\""));
    for stack in ["cc = \"dctcp\"", "transport = \"tcp\""] {
        documents.push(format!("[topology]\nkind = \"star\"\n{INCAST}\n{stack}"));
    }
    documents.push(star("[transport]\ncc = \"nscc\""));
    documents.push(star("[[class]]\nclass = 3\n[transport]\ncc = \"nscc\""));
    documents.push(star("[transport]\ncc = \"rccc\""));
    documents.push(star("[transport]\ncc = \"eqds\""));
    documents.push(star("[transport]\ncc = \"ndp\""));
    documents.push(star("[switch]\necn = { phantom = 0.9 }"));
    documents.push(star("[switch]\necn = { non_ect = \"drop\" }"));
    documents.push(star("[switch]\necn = { average = 0.2, draws = \"per-port\" }"));
    documents.push(star("[[class]]\nclass = 3\n[switch]\necn = { compare = \"port\" }"));
    documents.push(star("[switch]\nbuffer_per = \"10Gbps\""));
    documents.push(star("[switch]\necn = { kmin = \"1KB\" }"));
    documents.push(star("[switch]\necn = { kmax = \"1MB\" }"));
    documents.push(star("[switch]\npfc = { pause = \"500KB\" }\n[transport]\nrto = \"4ms\""));
    let outage = "[[allocator.outage]]\ndown_at = \"1us\"\n[[allocator.external]]\nsrc = 0\ndst = 1";
    documents.push(star(&format!("[transport]\nkind = \"tcp\"\ncc = \"flowtune\"\n{outage}")));
    documents.push(star("[[fault]]\nswitches = [\"sw0\"]\ndown_at = \"1us\"\n[transport]\nrto = \"1ms\""));
    for fault in ["loss = 0.1\nburst = { good = 9, bad = 2 }", "down_at = \"1us\""] {
        documents.push(star(&format!("[[fault]]\nlinks = \"host-links\"\n{fault}\n[transport]\nrto = \"1ms\"")));
    }
    for host in [
        "jitter = { distribution = \"lognormal\", mean = \"1us\", sigma = 0.5 }\nnoise = { period = \"1ms\", length = \"1us\" }",
        "hosts = \"h0\"\nrx_rate = [{ at = \"0s\", rate = \"5Gbps\" }]",
        "hosts = [\"h0\", 1]\nrx_rate = \"5Gbps\"",
    ] {
        documents.push(star(&format!("[[host]]\n{host}")));
    }
    for probe in [
        "queue = \"sw0->h0\"",
        "queues = \"host-links\"",
        "host_rx = [\"h0\"]",
        "flows = \"all\"",
        "flows = [0]",
        "rtts = true",
        "convergence = true",
    ] {
        documents.push(star(&format!("[[probe]]\n{probe}")));
    }
    documents
}

/// Reads a document that names no files but [`FILES`], and returns it with every default filled in.
pub(crate) fn understood(text: &str) -> Result<Output, ScenarioError> {
    let report = Report::default();
    let source = report.add_source("sample.toml", text.to_owned());
    let table = tree::parse(text, source, &report).unwrap_or_default();
    let files = Files::new(Place::Texts(FILES));
    let algorithms = Algorithms::new(&Registry::new(), &table);
    Ok(schema::read(&table, Site::new(source, 0..0), "sample", &files, &algorithms, Extent::Whole, &report)?.output)
}
