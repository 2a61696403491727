use super::*;
use crate::model::PortSeries;
use crate::synthetic;

fn page(variants: &[Variant]) -> String {
    let comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
    super::page(variants, &comparison, "", &figures::all(variants, &comparison, &figures::Selection::default()))
}

#[test]
fn the_page_is_complete_in_itself() {
    let html = page(&synthetic::comparison(&["powertcp", "hpcc", "dcqcn"], &[1]));
    for outside in ["http://", "https://", "src=", "href=\"", "@import", "url("] {
        let allowed = html.matches(outside).count() - own_uses(outside);
        assert_eq!(allowed, 0, "{outside}");
    }
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}

/// Counts `text` in the script and the style themselves, which name the SVG namespace and a clip path.
fn own_uses(text: &str) -> usize {
    SCRIPT.iter().chain([&STYLE]).map(|s| s.matches(text).count()).sum()
}

#[test]
fn the_same_runs_give_the_same_bytes_whatever_the_clock_said() {
    let one = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2]);
    let mut other = one.clone();
    other[0].runs[0].totals.wall_s *= 3.0;
    assert!(page(&one) == page(&other));
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let mut variants = synthetic::comparison(&["powertcp"], &[1]);
    variants[0].runs[0].scenario = "</script><b>\"&".into();
    variants[0].runs[0].ports[0].name = "<!--</script>".into();
    let html = page(&variants);
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(!html.contains("<b>") && !html.contains("<!--<"));
}

#[test]
fn cards_are_of_named_blocks_and_of_percentiles_that_flows_carry() {
    let cards = |variants: &[Variant]| {
        let html = page(variants);
        let titles =
            html.split("<section class=\"card\"><h3>").skip(1).map(|s| s.split('<').next().unwrap().to_owned());
        titles.filter(|title| title.contains("slowdown") || title.contains("queries")).collect::<Vec<_>>()
    };
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
    assert_eq!(cards(&variants), ["FCT slowdown, 99th percentile", "FCT slowdown, median"]);
    for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
        run.blocks = vec!["background".into(), "shuffle".into()];
        // Thirty flows of the second block: ten queries of three.
        for flow in run.flows.iter_mut().take(30) {
            (flow.block, flow.start_ns) = (1, f64::from(flow.id / 3) * 1e3);
        }
    }
    let want = [
        "FCT slowdown of background, 99th percentile",
        "FCT slowdown of shuffle, 95th percentile",
        "Completion of queries of shuffle, median",
    ];
    assert_eq!(cards(&variants), want);
}

#[test]
fn the_head_says_which_flows_are_measured() {
    let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
    variants[0].runs.iter_mut().for_each(|run| run.measured.until_ns = 3_000_000);
    let want = "Measured are the flows that started between 0 ns and 3.00 ms, and queues and rates in between.";
    assert!(page(&variants).contains(want));
    variants[0].runs[0].measured.until_ns = 2_000_000;
    let each = "between 0 ns and 2.00 ms..3.00 ms, and queues and rates in between (each run has its own window).";
    assert!(page(&variants).contains(each));
}

#[test]
fn a_partial_run_says_so() {
    let mut variants = synthetic::comparison(&["powertcp"], &[1]);
    variants[0].runs[0].state = "interrupted".into();
    assert!(page(&variants).contains("Partial results: powertcp seed 1 interrupted"));
}

#[test]
fn a_long_run_gives_a_page_that_can_be_mailed() {
    let mut variants = synthetic::comparison(&["a", "b", "c", "d", "e", "f", "g", "h"], &[1]);
    for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
        run.totals.end_ns = 5e7;
        let port = &mut run.ports[0];
        let t_ns: Vec<f64> = (0..50_000).map(|i| f64::from(i) * 1e3).collect();
        let cycled = |v: &[f64]| v.iter().copied().cycle().take(t_ns.len()).collect();
        (port.qlen_bytes, port.tx_bytes) = (cycled(&port.qlen_bytes), t_ns.iter().map(|t| t * 3.0).collect());
        port.t_ns = t_ns;
        let first = port.clone();
        run.ports = (0..6).map(|i| PortSeries { name: format!("port {i}"), ..first.clone() }).collect();
    }
    let bytes = page(&variants).len();
    assert!(bytes < 4_000_000, "{bytes}");
}
