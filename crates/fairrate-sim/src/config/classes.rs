//! Classes that switches treat in their own way.

use super::fabric::{EcnConfig, FabricConfig, Headroom};

/// The treatment of one class by all switches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassConfig {
    /// Weight of the class among those that have one. These share what classes without a weight leave, which are served
    /// first, the lowest number before others. `None`: the class is one of the latter.
    pub weight: Option<f64>,
    /// Set if PFC pauses the class, where it pauses any.
    pub pfc: bool,
    /// As [`FabricConfig::ingress_alpha`].
    pub ingress_alpha: Option<f64>,
    /// As [`FabricConfig::egress_alpha`].
    pub egress_alpha: Option<f64>,
    /// As [`FabricConfig::headroom`].
    pub headroom: Headroom,
    /// As [`FabricConfig::ecn`]; all classes that are marked are marked at the same step.
    pub ecn: Option<EcnConfig>,
    /// Set if telemetry of its packets tells of the class alone; it needs a weight.
    pub own_telemetry: bool,
    /// Set if switches cut data of the class to its header, where they cut any.
    pub trim: bool,
}

impl FabricConfig {
    /// Returns the treatment of `class`: its own, or else that of all.
    #[must_use]
    pub fn class(&self, class: u8) -> ClassConfig {
        self.classes.get(&class).copied().unwrap_or(ClassConfig {
            weight: None,
            pfc: true,
            ingress_alpha: self.ingress_alpha,
            egress_alpha: self.egress_alpha,
            headroom: self.headroom,
            ecn: self.ecn,
            own_telemetry: false,
            trim: true,
        })
    }

    /// Returns the treatments of all classes.
    pub(crate) fn all_classes(&self) -> [ClassConfig; 8] {
        std::array::from_fn(|class| self.class(class as u8))
    }

    /// Returns the marking of all classes that have one.
    pub fn all_ecn(&self) -> impl Iterator<Item = EcnConfig> {
        self.ecn.into_iter().chain(self.classes.values().filter_map(|class| class.ecn))
    }
}
