//! The warning about what happens to packets in a run without any.

use fairrate_sim::{FaultConfig, SimConfig};
use fairrate_text::one_of;

/// Returns a warning if an oracle sets rates, and faults or hosts are of packets: fluids know slow links, and nothing
/// else of them.
pub(super) fn warning(config: &SimConfig) -> Option<String> {
    config.cc.needs().feedback.oracle?;
    let none = FaultConfig::NONE;
    let has = |of: &dyn Fn(&FaultConfig) -> bool| config.faults.iter().any(of);
    let all = [
        ("loss", has(&|fault| fault.loss != none.loss || fault.burst.is_some())),
        ("corrupt", has(&|fault| fault.corrupt != none.corrupt)),
        ("duplicate", has(&|fault| fault.duplicate != none.duplicate)),
        ("reorder", has(&|fault| fault.reorder != none.reorder)),
        ("jitter", has(&|fault| fault.jitter != none.jitter)),
        ("down_at", has(&|fault| fault.flap.is_some())),
        ("[host]", !config.hosts.is_empty()),
    ];
    let without: Vec<&str> = all.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect();
    (!without.is_empty()).then(|| {
        let name = config.cc.info().name;
        format!(
            "`{name}` has no packets, and runs as if there were no {}; slow links (`rate`) it knows",
            one_of(&without)
        )
    })
}
