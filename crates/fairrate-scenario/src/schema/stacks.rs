//! `cc` and `transport` of `[[traffic]]`: the algorithm and the transport of a block's flows, if they are not those of `[transport]`.

use fairrate_control::{NetworkNeeds, PortScope, Profile, Queueing};
use fairrate_sim::{EcnConfig, SimConfig, Stack};

use super::algorithm::Algorithms;
use super::files::Files;
use super::{ecn, routing, transport};
use crate::error::Site;
use crate::reader::{Output, Section};
use crate::tree::{Entry, Node, Table, Value};

/// All transports and algorithms of a run.
pub(super) struct Stacks {
    /// That of `[transport]`, then those of blocks, each once.
    pub(super) all: Vec<Stack>,
    /// By block.
    of_block: Vec<Of>,
}

/// The transport and algorithm of a block.
struct Of {
    stack: u8,
    /// Its `transport` for the resolved scenario; `None` if it is that of `[transport]`.
    out: Option<Output>,
}

impl Stacks {
    /// Returns the first stack, that of `[transport]`.
    pub(super) fn first(&self) -> &Stack {
        &self.all[0]
    }

    /// Returns the number of the stack of a block.
    pub(super) fn of_block(&self, block: usize) -> u8 {
        self.of_block.get(block).map_or(0, |of| of.stack)
    }

    /// Returns the `transport` of a block for the resolved scenario, if it has one.
    pub(super) fn output(&self, block: usize) -> Option<Output> {
        self.of_block.get(block)?.out.clone()
    }

    /// Returns `true` if there are several.
    pub(super) fn are_several(&self) -> bool {
        1 < self.all.len()
    }

    /// Returns what the network has to do for all of them, with the marks that the first one is made for. What else the algorithms do not
    /// agree on has been reported.
    pub(super) fn network_needs(&self) -> NetworkNeeds {
        let needs = self.all.iter().map(|stack| stack.cc.needs().network);
        let both = |all: NetworkNeeds, more: NetworkNeeds| {
            let red = if all.ecn { all.red } else { more.red };
            let unmarked = |needs: NetworkNeeds| NetworkNeeds { red: None, ..needs };
            NetworkNeeds { red, ..unmarked(all).union(&unmarked(more)).unwrap_or(all) }
        };
        needs.reduce(both).expect("there is a first stack")
    }
}

/// Reads `[transport]`, and those of all blocks.
pub(super) fn read(root: &mut Section<'_>, profile: Profile, files: &Files<'_>, algorithms: &Algorithms) -> Stacks {
    let n_before = root.report.count();
    let first = transport::read(root, profile, files, algorithms.clone());
    let is_broken = n_before < root.report.count();
    let mut stacks = Stacks { all: vec![first], of_block: Vec::new() };
    let Some(Node { value: Value::Array(blocks), .. }) = root.peek("traffic") else { return stacks };
    let by_hosts = routing::is_by_hosts(root);
    let usual = match root.peek("transport") {
        Some(Node { value: Value::Table(table), .. }) => table.clone(),
        _ => Table::default(),
    };
    for block in blocks {
        let Value::Table(keys) = &block.value else { continue };
        // A block with the keys of `[transport]` has its problems too, which are told once.
        let own = table_of(root, &usual, keys).filter(|_| !is_broken || keys.get("transport").is_some());
        let Some((table, site)) = own else {
            stacks.of_block.push(Of { stack: 0, out: None });
            continue;
        };
        let section = Section::new(root.report, site, "`transport` of `[[traffic]]`", Some(&table));
        let mtu = Some(stacks.first().transport.mtu);
        let (stack, mut out) = transport::read_stack(section, profile, files, algorithms.clone(), (by_hosts, mtu));
        let (name, is_tcp) = (stack.cc.info().name, matches!(stack.transport.kind, fairrate_sim::Transport::Tcp(_)));
        out.tables.retain(|(section, _)| section == name || section == "tcp" && is_tcp || section == "uet");
        let at = stacks.all.iter().position(|known| *known == stack);
        let number = at.unwrap_or_else(|| {
            stacks.all.push(stack);
            stacks.all.len() - 1
        });
        if number == SimConfig::MAX_STACKS {
            let message = format!("more than {} kinds of transport or algorithm", SimConfig::MAX_STACKS);
            let help = "give several blocks the same `cc` and `transport`";
            root.report.problem("scenario::out_of_range", site, message, "one more", help);
            break;
        }
        if at.is_none() {
            check_beside(root, profile, &stacks, site);
        }
        stacks.of_block.push(Of { stack: number as u8, out: Some(out).filter(|_| 0 < number) });
    }
    stacks
}

/// Returns the keys of a block's transport, and their place; `None` if the block has the transport and the algorithm of `[transport]`,
/// whose keys are `usual`.
fn table_of(root: &Section<'_>, usual: &Table, block: &Table) -> Option<(Table, Site)> {
    let text = |node: &Node| matches!(node.value, Value::Text(_));
    let cc = block.get("cc").filter(|entry| text(&entry.node));
    let given = block.get("transport");
    let mut table = match given.map(|entry| &entry.node) {
        Some(Node { value: Value::Table(table), .. }) => table.clone(),
        Some(kind @ Node { value: Value::Text(_), .. }) => {
            let key_site = given.map_or(kind.site, |entry| entry.key_site);
            Table { entries: vec![Entry { key: "kind".into(), key_site, node: kind.clone() }] }
        }
        Some(other) => {
            let message = format!("expected a transport, found {}", other.value.describe());
            let help = "write `transport = \"tcp\"`, or its keys: `transport = { kind = \"tcp\", cc = \"cubic\" }`";
            root.report.problem("scenario::wrong_type", other.site, message, "`transport`", help);
            return None;
        }
        None => usual.clone(),
    };
    if let Some(cc) = cc {
        if given.is_some()
            && let Some(other) = table.get("cc")
        {
            let help = "write it once: in `transport`, or beside it";
            root.report.problem("scenario::conflict", other.node.site, "a block has one `cc`", "`cc` again", help);
        }
        table.entries.retain(|entry| entry.key != "cc");
        table.entries.push(cc.clone());
    }
    let site = given.or(cc)?.node.site;
    Some((table, site))
}

/// Checks that the last of `stacks` fits into one network with those before it.
fn check_beside(root: &Section<'_>, profile: Profile, stacks: &Stacks, site: Site) {
    let Some((new, earlier)) = stacks.all.split_last() else { return };
    let name = new.cc.info().name;
    let problem = |message: String, help: &str| {
        root.report.problem("scenario::conflict", site, message, "this block", help);
    };
    for other in earlier {
        let (a, b, beside) = (other.cc.needs(), new.cc.needs(), other.cc.info().name);
        let is_alone = |needs: &fairrate_control::Needs| needs.feedback.oracle || needs.feedback.allocator;
        // Its port agents choose queues for its own packets.
        let has_port_queues = |needs: &NetworkNeeds| needs.queueing == Queueing::Own && needs.ports != PortScope::None;
        let has_priorities = |needs: &NetworkNeeds| needs.queueing == Queueing::Priorities;
        if is_alone(&a) || is_alone(&b) {
            let alone = if is_alone(&a) { beside } else { name };
            problem(format!("`{alone}` sets the rates of all flows"), "give all blocks this `cc`, or none");
        } else if let Some(owner) =
            [(&a, beside), (&b, name)].into_iter().find(|(needs, _)| has_port_queues(&needs.network))
        {
            let message = format!("ports serve the queues of `{}` and no others in turn with them", owner.1);
            problem(message, "choose another `cc`");
        } else if has_priorities(&a.network) != has_priorities(&b.network) {
            let message =
                format!("of `{beside}` and `{name}` one has packets with priorities, and ports queue by these");
            problem(message, "choose another `cc`");
        } else if a.feedback.grants.is_some() && b.feedback.grants.is_some()
            || a.feedback.credit.is_some() && b.feedback.credit.is_some()
        {
            let message =
                format!("receivers give credit by one set of rules: `{beside}` has one, and `{name}` another");
            problem(message, "choose another `cc`");
        } else if other.transport.mtu != new.transport.mtu {
            let message = format!("an `mtu` of {} beside one of {}", new.transport.mtu, other.transport.mtu);
            problem(message, "write the same `mtu` in `[transport]`: all full packets carry as much");
        }
        if !gives_marks(root)
            && let Some(first) = ecn::default_ecn(profile, &a.network)
            && let Some(second) = ecn::default_ecn(profile, &b.network)
            && a.network.ecn
            && b.network.ecn
            && first != second
        {
            let range = |ecn: &EcnConfig| format!("from {} to {}", ecn.kmin, ecn.kmax);
            let (of_first, of_second) = (range(&first), range(&second));
            let message =
                format!("alone, `{beside}` has marks {of_first} and `{name}` {of_second}, and a port marks in one way");
            problem(message, "say where switches mark: `ecn = { kmin = \"30KB\", kmax = \"30KB\" }` in `[switch]`");
        }
        let (first, second) = (NetworkNeeds { red: None, ..a.network }, NetworkNeeds { red: None, ..b.network });
        if let Err(conflict) = first.union(&second) {
            problem(format!("`{beside}` and `{name}` do not fit into one network: {conflict}"), "choose another `cc`");
        }
    }
}

/// Returns `true` if the scenario says where switches mark.
fn gives_marks(root: &Section<'_>) -> bool {
    let Some(Node { value: Value::Table(switch), .. }) = root.peek("switch") else { return false };
    match switch.get("ecn").map(|entry| &entry.node.value) {
        Some(Value::Table(ecn)) => ["kmin", "kmax"].iter().all(|key| ecn.get(key).is_some()),
        Some(Value::Bool(on)) => !on,
        _ => false,
    }
}
