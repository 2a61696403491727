//! Process groups: of a file of groups, of metadata in traces, and of logical dimensions.

use std::collections::HashMap;

use serde_json::Value;

use super::attributes::Attribute;
use super::node::Node;
use super::{Choices, Problem};

/// The process groups of all ranks.
#[derive(Default)]
pub(super) struct Groups {
    /// The name in the list of operations, and the ranks.
    pub(super) all: Vec<(String, Vec<u32>)>,
    /// Places in `all` by ranks.
    by_ranks: HashMap<Vec<u32>, usize>,
    /// For each name, the number of groups that have it or one made of it.
    by_name: HashMap<String, usize>,
}

/// The groups that traces call by name.
pub(super) type Named = HashMap<String, Vec<u32>>;

impl Groups {
    /// Returns the number of the group of `ranks`, which gets the name `name` or one like it if it is new.
    pub(super) fn number(&mut self, name: &str, ranks: &[u32]) -> usize {
        if let Some(&at) = self.by_ranks.get(ranks) {
            return at;
        }
        let mut free = name.to_owned();
        while self.by_name.contains_key(&free) {
            let n = self.by_name.entry(name.to_owned()).or_default();
            *n += 1;
            free = format!("{name} ({n})");
        }
        self.by_name.insert(free.clone(), 1);
        self.by_ranks.insert(ranks.to_vec(), self.all.len());
        self.all.push((free, ranks.to_vec()));
        self.all.len() - 1
    }
}

/// Reads a file of groups, as `{"1": [0, 1], "2": [2, 3]}`.
///
/// # Errors
/// It is no such file, or a group has a rank that there is not, or one twice.
pub fn read_groups(text: &str, n_ranks: u32) -> Result<HashMap<String, Vec<u32>>, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Object(entries) = json else { return Err("expected groups by name, as {\"1\": [0, 1]}".to_owned()) };
    entries.iter().map(|(name, ranks)| Ok((name.clone(), ranks_of(name, ranks, n_ranks)?))).collect()
}

/// Returns the ranks of a group; an empty list is all of them.
fn ranks_of(name: &str, ranks: &Value, n_ranks: u32) -> Result<Vec<u32>, String> {
    let name = name.escape_debug();
    let Value::Array(ranks) = ranks else { return Err(format!("group `{name}` has no list of ranks")) };
    if ranks.is_empty() {
        return Ok((0..n_ranks).collect());
    }
    if ranks.len() > n_ranks as usize {
        return Err(format!("group `{name}` has {} ranks, and there are {n_ranks}", ranks.len()));
    }
    let mut known = vec![false; n_ranks as usize];
    let mut all = Vec::new();
    for rank in ranks {
        // Some writers quote ranks.
        let number = rank.as_u64().or_else(|| rank.as_str()?.parse().ok());
        let Some(at) = number.and_then(|rank| usize::try_from(rank).ok()).filter(|&rank| rank < known.len()) else {
            return Err(format!("group `{name}` has {rank}, which is none of the {n_ranks} ranks"));
        };
        if std::mem::replace(&mut known[at], true) {
            return Err(format!("group `{name}` has rank {at} twice"));
        }
        all.push(at as u32);
    }
    Ok(all)
}

/// Most ranks that the groups of a trace have in all.
const MOST_MEMBERS: usize = 10_000_000;

/// Adds the groups that a node of metadata has in its inputs, if it has some: a list in quotes around JSON.
pub(super) fn add_of_metadata(node: &Node, n_ranks: u32, named: &mut Named) -> Result<(), Problem> {
    let inner = node.values.get(2..node.values.len().saturating_sub(2)).unwrap_or_default();
    if !inner.contains("pg_name") {
        return Ok(());
    }
    let problem = |message: String| node.problem("inputs.values", &message);
    let json: Value =
        serde_json::from_str(inner).map_err(|error| problem(format!("the groups are no JSON: {error}")))?;
    let mut n_members: usize = named.values().map(Vec::len).sum();
    for entry in json.as_array().ok_or_else(|| problem("the groups are no list".to_owned()))? {
        let name = match &entry["pg_name"] {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(problem("a group has no `pg_name`".to_owned())),
        };
        let ranks = ranks_of(&name, &entry["ranks"], n_ranks).map_err(problem)?;
        if named.get(&name).is_some_and(|known| *known != ranks) {
            return Err(problem(format!("group `{}` has other ranks elsewhere", name.escape_debug())));
        }
        n_members += ranks.len();
        if MOST_MEMBERS < n_members {
            return Err(problem(format!("groups of more than {MOST_MEMBERS} ranks in all")));
        }
        named.insert(name, ranks);
    }
    Ok(())
}

/// Returns the name and the ranks of the group of a collective of `rank`.
pub(super) fn of_collective(
    node: &Node,
    rank: u32,
    (n_ranks, named): (u32, &Named),
    choices: &Choices,
) -> Result<(String, Vec<u32>), Problem> {
    let (field, name) = match node.attribute("pg_name", Attribute::text)? {
        Some(name) if !name.is_empty() => ("pg_name", name),
        _ => ("comm_group", node.attribute("comm_group", Attribute::text)?.unwrap_or_default()),
    };
    let ranks = match named.get(&name) {
        Some(ranks) => ranks.clone(),
        None if name.is_empty() || name == "0" => return of_dimensions(node, rank, n_ranks, choices),
        None => {
            let message = format!("there is no group `{}`", name.escape_debug());
            return Err(node.problem(field, &message).help("name a file of groups by `--groups FILE`"));
        }
    };
    if !ranks.contains(&rank) {
        return Err(node.problem(field, &format!("rank {rank} is not in group `{}`", name.escape_debug())));
    }
    Ok((format!("pg{name}"), ranks))
}

/// Returns the ranks that differ from `rank` in those logical dimensions alone that take part.
fn of_dimensions(node: &Node, rank: u32, n_ranks: u32, choices: &Choices) -> Result<(String, Vec<u32>), Problem> {
    let all = || ("all".to_owned(), (0..n_ranks).collect());
    let Some(involved) = node.attribute("involved_dim", Attribute::truths)? else { return Ok(all()) };
    let dims: &[u32] = &choices.logical_dims;
    let relevant = if dims.is_empty() { &involved[..] } else { involved.get(..dims.len()).unwrap_or(&involved) };
    if relevant.iter().all(|is| *is) {
        return Ok(all());
    }
    let problem = |message: &str, help: &str| Err(node.problem("involved_dim", message).help(help));
    if dims.is_empty() {
        return problem(
            "it leaves out dimensions, and the trace does not say how large they are",
            "add `--logical-dims`, as 8,2",
        );
    }
    if relevant.iter().all(|is| !is) || involved.len() < dims.len() {
        let message =
            format!("it has {} values for {} dimensions, of which one at least takes part", involved.len(), dims.len());
        return problem(&message, "correct `--logical-dims`");
    }
    let (mut ranks, mut stride) = (vec![0], 1);
    for (&size, is_relevant) in dims.iter().zip(relevant) {
        let own = rank / stride % size;
        let places = if *is_relevant { 0..size } else { own..own + 1 };
        ranks = places.flat_map(|place| ranks.iter().map(move |rank| rank + place * stride)).collect::<Vec<u32>>();
        stride *= size;
    }
    let words: Vec<String> = (0..dims.len()).filter(|&at| relevant[at]).map(|at| at.to_string()).collect();
    Ok((format!("dim{} of {}", words.join("+"), ranks[0]), ranks))
}
