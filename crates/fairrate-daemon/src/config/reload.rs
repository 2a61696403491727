//! The values that a running allocator cannot take over from a new configuration.

use super::Config;

impl Config {
    /// Returns the keys whose values differ from those of `before` and need a restart.
    pub fn needs_restart(&self, before: &Self) -> Vec<&'static str> {
        let (new, old) = (&self.limits, &before.limits);
        let (engine, before_engine) = (&self.engine, &before.engine);
        let changed = [
            ("listen", self.listen != before.listen),
            ("metrics", self.metrics != before.metrics),
            ("control", self.control != before.control),
            ("insecure", self.insecure != before.insecure),
            ("insecure_beyond_loopback", self.insecure_beyond_loopback != before.insecure_beyond_loopback),
            ("lease", self.lease != before.lease),
            ("engine.interval", engine.interval != before_engine.interval),
            ("engine.gamma", engine.gamma != before_engine.gamma),
            ("engine.alpha", engine.alpha != before_engine.alpha),
            ("engine.threshold", engine.threshold != before_engine.threshold),
            ("engine.wait", engine.wait != before_engine.wait),
            ("engine.batch", engine.batch != before_engine.batch),
            ("engine.rest_after", engine.rest_after != before_engine.rest_after),
            ("limits.connections", new.connections != old.connections),
            ("limits.sessions_per_agent", new.sessions_per_agent != old.sessions_per_agent),
            ("limits.updates_per_second", new.updates_per_second != old.updates_per_second),
        ];
        changed.into_iter().filter(|(_, has_changed)| *has_changed).map(|(key, _)| key).collect()
    }
}
