//! Names of traffic blocks, from the text of a scenario.

use crate::tree::{self, Value};

/// Returns the names of the `[[traffic]]` blocks in `text`, a scenario that was read before, in their order; empty for
/// those without one. Needs no algorithm: results of an algorithm that is not at hand have their names, too.
pub fn traffic_block_names(text: &str) -> Vec<String> {
    let table = tree::parse_quietly(text);
    let Some(Value::Array(blocks)) = table.as_ref().and_then(|t| t.get("traffic")).map(|entry| &entry.node.value)
    else {
        return Vec::new();
    };
    let name_of = |block: &Value| {
        let Value::Table(block) = block else { return None };
        let Value::Text(name) = &block.get("name")?.node.value else { return None };
        Some(name.clone())
    };
    blocks.iter().map(|block| name_of(&block.value).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_names_whatever_the_algorithm() {
        let text = "[transport]\ncc = \"unheard-of\"\n[[traffic]]\nkind = \"incast\"\n[[traffic]]\nname = \"bursts\"\n";
        assert_eq!(traffic_block_names(text), ["", "bursts"]);
        for text in ["", "traffic = 1", "[[traffic]", "traffic = [1]", "seed = 1e3082"] {
            assert!(traffic_block_names(text).iter().all(String::is_empty), "{text}");
        }
    }
}
