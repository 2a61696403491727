//! `cc` and `transport` of `[[traffic]]`: the algorithm and the transport of a block's flows, if they are not those of
//! `[transport]`.

use fairrate_control::{NetworkNeeds, PortScope, Profile, Queueing};
use fairrate_sim::{EcnConfig, SimConfig, Stack, Transport, TransportConfig};

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
    /// By stack: bit c is set if a block of it sends in class c, as far as that is known: lists may have a column.
    classes: Vec<u8>,
    /// The classes that have a `[[class]]`.
    pub(super) listed: Vec<u8>,
    /// Set if `[switch]` says how switches mark.
    pub(super) gives_ecn: bool,
}

/// The transport and algorithm of a block.
struct Of {
    stack: u8,
    /// Those of its `algorithms`, by name, with what the resolved scenario says of them.
    named: Vec<(String, u8, Output)>,
    /// Its `transport` for the resolved scenario; `None` if it is that of `[transport]`.
    out: Option<Output>,
    /// Its place: where it says so, or the block's.
    site: Site,
}

impl Stacks {
    /// Returns the first stack, that of `[transport]`.
    pub(super) fn first(&self) -> &Stack {
        &self.all[0]
    }

    /// Returns the transport that losses harm most: the first one that sends nothing again after a timeout, or else
    /// that of `[transport]`.
    pub(super) fn weakest_transport(&self) -> &TransportConfig {
        let is_patient =
            |stack: &&Stack| stack.transport.rto.is_none() && !matches!(stack.transport.kind, Transport::Tcp(_));
        let weakest = self.all.iter().find(is_patient).unwrap_or(self.first());
        &weakest.transport
    }

    /// Adds a stack, which has its place at `site`, if it is another one; returns its number, or `None` if there are
    /// too many.
    fn add(&mut self, root: &Section<'_>, stack: Stack, site: Site) -> Option<u8> {
        let at = self.all.iter().position(|known| *known == stack);
        let number = at.unwrap_or_else(|| {
            self.all.push(stack);
            self.all.len() - 1
        });
        if number == SimConfig::MAX_STACKS {
            let message = format!("more than {} kinds of transport or algorithm", SimConfig::MAX_STACKS);
            let help = "give several blocks the same `cc` and `transport`";
            root.report.problem("scenario::out_of_range", site, message, "one more", help);
            return None;
        }
        if at.is_none() {
            check_beside(root, self, site);
        }
        Some(number as u8)
    }

    /// Notes the classes in which blocks send.
    fn note_classes(&mut self, root: &Section<'_>) {
        self.classes = vec![0; self.all.len()];
        if let Some(Node { value: Value::Array(blocks), .. }) = root.peek("traffic") {
            for (at, block) in blocks.iter().enumerate() {
                let stack = usize::from(self.of_block(at));
                let own = if let Value::Table(table) = &block.value { number(table, "class") } else { None };
                self.classes[stack] |= 1u8.unbounded_shl(own.unwrap_or(self.all[stack].transport.data_class).into());
                let named: Vec<usize> = self.named(at).iter().map(|&(_, stack, _)| usize::from(stack)).collect();
                for stack in named {
                    self.classes[stack] |= 1u8.unbounded_shl(self.all[stack].transport.data_class.into());
                }
            }
        }
        for (classes, stack) in self.classes.iter_mut().zip(&self.all) {
            if *classes == 0 {
                *classes = 1u8.unbounded_shl(stack.transport.data_class.into());
            }
        }
    }

    /// Returns the number of the stack of a block.
    pub(super) fn of_block(&self, block: usize) -> u8 {
        self.of_block.get(block).map_or(0, |of| of.stack)
    }

    /// Returns the names of a block's `algorithms`, each with the number of its stack and its keys for the resolved
    /// scenario.
    pub(super) fn named(&self, block: usize) -> &[(String, u8, Output)] {
        self.of_block.get(block).map_or(&[], |of| &of.named)
    }

    /// Returns the `transport` of a block for the resolved scenario, if it has one.
    pub(super) fn output(&self, block: usize) -> Option<Output> {
        self.of_block.get(block)?.out.clone()
    }

    /// Returns the classes in which the flows of stack number `at` send.
    pub(super) fn classes_of(&self, at: usize) -> Vec<u8> {
        (0..8).filter(|class| self.classes[at] >> class & 1 == 1).collect()
    }

    /// Returns what the network has to do for all of them, with the marks that the first one is made for. Other needs
    /// on which the algorithms do not agree have been reported.
    pub(super) fn network_needs(&self) -> NetworkNeeds {
        let all: Vec<usize> = (0..self.all.len()).collect();
        self.needs_of(&all).expect("there is a first stack")
    }

    /// Returns the same for the stacks with these numbers; `None` if there are none.
    pub(super) fn needs_of(&self, stacks: &[usize]) -> Option<NetworkNeeds> {
        let needs = stacks.iter().map(|&at| self.all[at].cc.needs().network);
        let both = |all: NetworkNeeds, more: NetworkNeeds| {
            let red = if all.ecn { all.red } else { more.red };
            let unmarked = |needs: NetworkNeeds| NetworkNeeds { red: None, ..needs };
            NetworkNeeds { red, ..unmarked(all).union(&unmarked(more)).unwrap_or(all) }
        };
        needs.reduce(both)
    }
}

/// Reads `[transport]`, and those of all blocks.
pub(super) fn read(root: &mut Section<'_>, profile: Profile, files: &Files<'_>, algorithms: &Algorithms) -> Stacks {
    let n_before = root.report.count();
    let first = transport::read(root, profile, files, algorithms.clone());
    let is_broken = n_before < root.report.count();
    let gives_ecn = match root.peek("switch") {
        Some(Node { value: Value::Table(switch), .. }) => switch.get("ecn").is_some(),
        _ => false,
    };
    let listed = class_sections(root).into_iter().map(|(class, _)| class).collect();
    let mut stacks = Stacks { all: vec![first], of_block: Vec::new(), classes: Vec::new(), listed, gives_ecn };
    read_blocks(root, profile, files, algorithms, (&mut stacks, is_broken));
    stacks.note_classes(root);
    check_all_marks(root, profile, &stacks);
    stacks
}

/// Reads the transports and algorithms of blocks. `is_broken`: `[transport]` has problems.
fn read_blocks(
    root: &mut Section<'_>,
    profile: Profile,
    files: &Files<'_>,
    algorithms: &Algorithms,
    (stacks, is_broken): (&mut Stacks, bool),
) {
    let Some(Node { value: Value::Array(blocks), .. }) = root.peek("traffic") else { return };
    let by_hosts = routing::is_by_hosts(root);
    let usual = match root.peek("transport") {
        Some(Node { value: Value::Table(table), .. }) => table.clone(),
        _ => Table::default(),
    };
    for block in blocks {
        let Value::Table(keys) = &block.value else { continue };
        let mut read = |(table, site): (Table, Site)| {
            let section = Section::new(root.report, site, "`transport` of `[[traffic]]`", Some(&table));
            let mtu = Some(stacks.first().transport.mtu);
            let (stack, mut out) = transport::read_stack(section, profile, files, algorithms.clone(), (by_hosts, mtu));
            let (name, is_tcp) =
                (stack.cc.info().name, matches!(stack.transport.kind, fairrate_sim::Transport::Tcp(_)));
            out.tables.retain(|(section, _)| section == name || section == "tcp" && is_tcp || section == "uet");
            Some((stacks.add(root, stack, site)?, out))
        };
        // A block with the keys of `[transport]` has its problems too, which are told once.
        let own = table_of(root, &usual, keys).filter(|_| !is_broken || keys.get("transport").is_some());
        let site = own.as_ref().map_or(block.site, |(_, site)| *site);
        let own = own.map(&mut read);
        let named = named_tables(root, &usual, keys).into_iter().filter(|_| !is_broken);
        let named = named.filter_map(|(name, table, site)| read((table, site)).map(|(stack, out)| (name, stack, out)));
        let named = named.collect();
        match own {
            None => stacks.of_block.push(Of { stack: 0, named, out: None, site }),
            Some(Some((stack, out))) => {
                stacks.of_block.push(Of { stack, named, out: Some(out).filter(|_| 0 < stack), site });
            }
            Some(None) => break,
        }
    }
}

/// Returns the keys of the transports that `algorithms` of a block names, and their places. Each is a table as
/// `transport` is, or a text: `"cubic"` or `"cubic/tcp"`.
fn named_tables(root: &Section<'_>, usual: &Table, block: &Table) -> Vec<(String, Table, Site)> {
    let Some(given) = block.get("algorithms") else { return Vec::new() };
    let wrong = |site: Site, found: &Value| {
        let message = format!("expected algorithms by name, found {}", found.describe());
        let help = "write `algorithms = { old = \"cubic/tcp\", new = \"swift\" }`, and the names in the column `cc` of the list";
        root.report.problem("scenario::wrong_type", site, message, "`algorithms`", help);
    };
    let Value::Table(entries) = &given.node.value else {
        wrong(given.node.site, &given.node.value);
        return Vec::new();
    };
    let mut tables = Vec::new();
    for entry in &entries.entries {
        let site = entry.node.site;
        let table = match &entry.node.value {
            Value::Table(table) => table.clone(),
            Value::Text(text) => {
                let (cc, kind) = text.split_once('/').map_or((text.as_str(), None), |(cc, kind)| (cc, Some(kind)));
                let text = |key: &str, value: &str| Entry {
                    key: key.into(),
                    key_site: site,
                    node: Node { value: Value::Text(value.into()), site },
                };
                let mut table = if kind.is_none() { usual.clone() } else { Table::default() };
                table.entries.retain(|entry| entry.key != "cc");
                table.entries.extend(kind.map(|kind| text("kind", kind)));
                table.entries.push(text("cc", cc));
                table
            }
            other => {
                wrong(site, other);
                continue;
            }
        };
        tables.push((entry.key.clone(), table, site));
    }
    tables
}

/// Returns the keys of a block's transport, and their place; `None` if the block has the transport and the algorithm of
/// `[transport]`, whose keys are `usual`.
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
fn check_beside(root: &Section<'_>, stacks: &Stacks, site: Site) {
    let Some((new, earlier)) = stacks.all.split_last() else { return };
    let name = new.cc.info().name;
    let problem = |message: String, help: &str| {
        root.report.problem("scenario::conflict", site, message, "this block", help);
    };
    for other in earlier {
        let (a, b, beside) = (other.cc.needs(), new.cc.needs(), other.cc.info().name);
        let is_alone = |needs: &fairrate_control::Needs| needs.feedback.oracle.is_some() || needs.feedback.allocator;
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
        let (first, second) = (NetworkNeeds { red: None, ..a.network }, NetworkNeeds { red: None, ..b.network });
        if let Err(conflict) = first.union(&second) {
            problem(format!("`{beside}` and `{name}` do not fit into one network: {conflict}"), "choose another `cc`");
        }
    }
}

/// Checks that algorithms which send in the same class are made for the same marks, unless the scenario says where
/// switches mark.
fn check_all_marks(root: &Section<'_>, profile: Profile, stacks: &Stacks) {
    let (everywhere, of_class) = (gives_marks(root.peek("switch")), class_sections(root));
    for at in 1..stacks.all.len() {
        for before in 0..at {
            let [a, b] = [before, at].map(|at| &stacks.all[at].cc);
            let shared = stacks.classes[before] & stacks.classes[at];
            let is_given =
                |class: u8| everywhere || of_class.iter().any(|&(of, section)| of == class && gives_marks(section));
            if (0..8).all(|class| shared >> class & 1 == 0 || is_given(class)) {
                continue;
            }
            if let Some(first) = ecn::default_ecn(profile, &a.needs().network)
                && let Some(second) = ecn::default_ecn(profile, &b.needs().network)
                && a.needs().network.ecn
                && b.needs().network.ecn
                && first != second
            {
                let range = |ecn: &EcnConfig| format!("from {} to {}", ecn.kmin, ecn.kmax);
                let (of_first, of_second) = (range(&first), range(&second));
                let (beside, name) = (a.info().name, b.info().name);
                let message = format!(
                    "alone, `{beside}` has marks {of_first} and `{name}` {of_second}, and a class is marked in one way"
                );
                let help = "say where switches mark: `ecn = { kmin = \"30KB\", kmax = \"30KB\" }` in `[switch]`; \
                            or give one of them a `class` of its own, with a `[[class]]`";
                let site = stacks.of_block.iter().find(|of| usize::from(of.stack) == at).map(|of| of.site);
                root.report.problem(
                    "scenario::conflict",
                    site.unwrap_or(root.anchor.site),
                    message,
                    "this block",
                    help,
                );
            }
        }
    }
}

/// Returns the sections of classes, with the number that each gives.
fn class_sections<'a>(root: &Section<'a>) -> Vec<(u8, Option<&'a Node>)> {
    let Some(Node { value: Value::Array(items), .. }) = root.peek("class") else { return Vec::new() };
    let class = |item: &'a Node| match &item.value {
        Value::Table(table) => Some((number(table, "class")?, Some(item))),
        _ => None,
    };
    items.iter().filter_map(class).collect()
}

/// Returns a small number that a table gives.
fn number(table: &Table, key: &str) -> Option<u8> {
    match table.get(key)?.node.value {
        Value::Integer(number) => u8::try_from(number).ok(),
        _ => None,
    }
}

/// Returns `true` if a section says where switches mark.
fn gives_marks(section: Option<&Node>) -> bool {
    let Some(Node { value: Value::Table(section), .. }) = section else { return false };
    match section.get("ecn").map(|entry| &entry.node.value) {
        Some(Value::Table(ecn)) => ["kmin", "kmax"].iter().all(|key| ecn.get(key).is_some()),
        Some(Value::Bool(on)) => !on,
        _ => false,
    }
}
