use super::*;

/// Returns the shape of a network of racks of `hosts` hosts under two spines, and the totals of its ports.
fn racks(racks: usize, hosts: usize) -> (Shape, Vec<LinkTotals>) {
    let mut nodes: Vec<(String, usize)> = (0..racks * hosts).map(|i| (format!("h{i}"), 0)).collect();
    nodes.extend((0..racks).map(|i| (format!("tor{i}"), 1)));
    nodes.extend((0..2).map(|i| (format!("spine{i}"), 2)));
    let (tor, spine) = (racks * hosts, racks * hosts + racks);
    let mut links: Vec<(usize, usize)> = (0..racks * hosts).map(|i| (i, tor + i / hosts)).collect();
    links.extend((0..racks).flat_map(|i| [(tor + i, spine), (tor + i, spine + 1)]));
    let ports: Vec<(usize, usize)> = links.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let total = |&(from, to): &(usize, usize)| LinkTotals {
        port: format!("{}->{}", nodes[from].0, nodes[to].0),
        rate_bps: 8e9,
        // 1 byte a ns: half of what 1,000 ns allow.
        tx_bytes: 500.0,
        ..LinkTotals::default()
    };
    let totals = ports.iter().map(total).collect();
    (Shape { nodes, ports }, totals)
}

#[test]
fn tiers_are_rows_and_ports_go_up_and_down() {
    let (shape, mut links) = racks(2, 3);
    // tor0 to h0 is the second port, and drops.
    (links[1].tx_bytes, links[1].drops) = (960.0, vec![("buffer_full", 4)]);
    let picture = Picture::of(&shape, &links, 1_000.0);
    assert_eq!(picture.rows.iter().map(Vec::len).collect::<Vec<_>>(), [6, 2, 2]);
    let tor = &picture.rows[1][0];
    assert_eq!((tor.up.ports, tor.down.ports, tor.down.drops), (2, 3, 4));
    assert_eq!((tor.down.busiest, tor.down.busiest_port.as_str()), (0.96, "tor0->h0"));
    // 6 hosts with a link each, and 2 switches with two.
    assert_eq!(picture.bundles.len(), 10);
    let html = section(&shape, &links, 1_000.0);
    assert!(html.contains("tor0\nup: 2 ports") && html.contains("busiest tor0-&gt;h0 96.0 %, 4 drops"), "{html}");
    assert!(
        html.contains("aria-label=\"Utilisation of the ports of a network of 2 spine, 2 tor, 6 h. The busiest"),
        "{html}"
    );
}

#[test]
fn a_large_network_has_few_boxes_and_a_small_picture() {
    let (shape, links) = racks(64, 16);
    let picture = Picture::of(&shape, &links, 1_000.0);
    assert_eq!(picture.rows.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2]);
    assert_eq!(picture.rows[0][1].names, ("h16".to_owned(), "h31".to_owned()));
    let html = section(&shape, &links, 1_000.0);
    assert!(html.len() < 120_000, "{}", html.len());
    assert!(html.contains("a box is of up to 16 neighbouring nodes"));
}

#[test]
fn totals_of_another_network_are_not_drawn() {
    let (shape, links) = racks(2, 2);
    assert_eq!(section(&shape, &links[1..], 1.0), "");
    assert_eq!((section(&shape, &[], 1.0), file(&shape, &[], 1.0)), (String::new(), None));
}
