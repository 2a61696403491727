use fairrate_units::{Rate, Time};

use crate::config::{Param, Parameters, Profile, RawValue, SetParamError};
use crate::controller::{AlgorithmSpec, Controller, FlowContext, MadeFor};
#[allow(unused_imports)]
use crate::coupled::{CoupledController, CoupledSpec};
use crate::custom::CustomAlgorithm;
use crate::needs::Needs;
use crate::port::{Actions, PortAgent, PortContext, PortPacket, PortPacketKind, PortStep, PortView};

/// The entry of an algorithm in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmInfo {
    /// Name on the command line and in scenarios.
    pub name: &'static str,
    /// Name in prose and plots.
    pub title: &'static str,
    /// Its publication.
    pub paper: &'static str,
    /// Its idea in one line.
    pub idea: &'static str,
}

/// Turns the table below into the enum, the names, the listing and the dispatch.
macro_rules! registry {
    ($(
        $name:literal => $module:ident::{$type:ident, $config:ident $(, coupled $connection:ident)?},
        $title:literal, $paper:literal, $idea:literal;
    )+) => {
        /// The controller of a flow, dispatched without indirection; user-defined algorithms are the variant `Custom`.
        #[allow(clippy::large_enum_variant, missing_docs)]
        pub enum Algorithm {
            $($type(crate::$module::$type),)+
            Custom(Box<dyn Controller + Send>),
        }

        /// The controller of a connection of several subflows, for algorithms that couple them.
        #[allow(clippy::large_enum_variant, missing_docs)]
        pub enum CoupledAlgorithm {
            $($($connection(crate::$module::$connection),)?)+
            Custom(Box<dyn CoupledController + Send>),
        }

        impl CoupledController for CoupledAlgorithm {
            crate::forward_coupled!(self => { $($(Self::$connection(c) => c,)?)+ Self::Custom(c) => c });
        }

        impl AlgorithmConfig {
            /// Builds the controller of a connection with one subflow for each context; returns `None` if the algorithm
            /// does not couple subflows, so that each has a separate controller.
            #[allow(unused_variables)]
            pub fn build_connection(&self, subflows: &[FlowContext]) -> Option<CoupledAlgorithm> {
                match self {
                    $($(Self::$type(c) => Some(CoupledAlgorithm::$connection(c.build_connection(subflows))),)?)+
                    Self::Custom(c) => c.build_connection(subflows).map(CoupledAlgorithm::Custom),
                    _ => None,
                }
            }
        }

        /// The algorithm's agent at an egress port, dispatched without indirection.
        #[allow(clippy::large_enum_variant, missing_docs)]
        pub enum PortAlgorithm {
            $($type(<crate::$module::$config as AlgorithmSpec>::Port),)+
            Custom(Box<dyn PortAgent + Send>),
        }

        /// The configuration of an algorithm of the table, or of a user-defined one.
        #[allow(missing_docs)]
        #[derive(Clone, Debug, PartialEq)]
        pub enum AlgorithmConfig {
            $($type(crate::$module::$config),)+
            Custom(CustomAlgorithm),
        }

        /// Every algorithm, in the order of the table.
        pub const ALGORITHMS: &[AlgorithmInfo] =
            &[$(AlgorithmInfo { name: $name, title: $title, paper: $paper, idea: $idea },)+];

        impl AlgorithmConfig {
            /// Returns the algorithm called `name` with the defaults of `profile`, or `None` if there is no such
            /// algorithm.
            pub fn by_name(name: &str, profile: Profile) -> Option<Self> {
                match name {
                    $($name => Some(Self::$type(crate::$module::$config::new(profile))),)+
                    _ => None,
                }
            }
            /// Returns the configuration with the defaults for TCP, where they differ.
            #[must_use]
            pub fn over_tcp(self) -> Self {
                match self { $(Self::$type(c) => Self::$type(c.over_tcp()),)+ Self::Custom(c) => Self::Custom(c.over_tcp()) }
            }
            /// Returns the algorithm's entry in [`ALGORITHMS`], or the listing of a user-defined algorithm.
            pub fn info(&self) -> &AlgorithmInfo {
                let name = match self { $(Self::$type(_) => $name,)+ Self::Custom(c) => return c.info() };
                ALGORITHMS.iter().find(|a| a.name == name).expect("every variant is in the table")
            }
            /// Returns the algorithm's needs from network and transport.
            pub fn needs(&self) -> Needs {
                match self { $(Self::$type(c) => c.needs(),)+ Self::Custom(c) => c.needs() }
            }
            /// Returns the parameters whose published defaults are for hosts of certain line rates.
            pub fn made_for(&self) -> &'static [MadeFor] {
                match self { $(Self::$type(c) => c.made_for(),)+ Self::Custom(c) => c.made_for() }
            }
            /// Builds the controller of `flow`.
            pub fn build(&self, flow: &FlowContext) -> Algorithm {
                match self {
                    $(Self::$type(c) => Algorithm::$type(c.build(flow)),)+
                    Self::Custom(c) => Algorithm::Custom(c.build(flow)),
                }
            }
        }

        impl AlgorithmConfig {
            /// Builds the agent of an egress port; returns `None` if the algorithm has none there.
            pub fn build_port(&self, port: &PortContext) -> Option<PortAlgorithm> {
                match self {
                    $(Self::$type(c) => c.build_port(port).map(PortAlgorithm::$type),)+
                    Self::Custom(c) => c.build_port(port).map(PortAlgorithm::Custom),
                }
            }
        }

        impl PortAgent for PortAlgorithm {
            fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
                match self {
                    $(Self::$type(c) => c.on_enqueue(view, packet, actions),)+
                    Self::Custom(c) => c.on_enqueue(view, packet, actions),
                }
            }
            fn on_dequeue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
                match self {
                    $(Self::$type(c) => c.on_dequeue(view, packet, actions),)+
                    Self::Custom(c) => c.on_dequeue(view, packet, actions),
                }
            }
            fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
                match self { $(Self::$type(c) => c.watches(kind, step),)+ Self::Custom(c) => c.watches(kind, step) }
            }
            fn assign(&self, class: u8, flow: u32) -> Option<u16> {
                match self { $(Self::$type(c) => c.assign(class, flow),)+ Self::Custom(c) => c.assign(class, flow) }
            }
            fn on_flow_pause(&mut self, flow: u32, pause: bool) {
                match self {
                    $(Self::$type(c) => c.on_flow_pause(flow, pause),)+
                    Self::Custom(c) => c.on_flow_pause(flow, pause),
                }
            }
            fn on_rate(&mut self, rate: Rate) {
                match self { $(Self::$type(c) => c.on_rate(rate),)+ Self::Custom(c) => c.on_rate(rate) }
            }
            fn on_timer(&mut self, view: &PortView, actions: &mut Actions) {
                match self {
                    $(Self::$type(c) => c.on_timer(view, actions),)+
                    Self::Custom(c) => c.on_timer(view, actions),
                }
            }
            fn timer(&self) -> Time {
                match self { $(Self::$type(c) => c.timer(),)+ Self::Custom(c) => c.timer() }
            }
        }

        impl Parameters for AlgorithmConfig {
            fn params(&self) -> Vec<Param> {
                match self { $(Self::$type(c) => c.params(),)+ Self::Custom(c) => c.params() }
            }
            fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
                match self {
                    $(Self::$type(c) => c.set(name, value),)+
                    Self::Custom(c) => c.set(name, value),
                }
            }
        }

        impl Controller for Algorithm {
            crate::forward_controller!(self => { $(Self::$type(c) => c,)+ Self::Custom(c) => c });
        }
    };
}

// The one table of algorithms. A new algorithm is one file, its `pub mod` in lib.rs, and one entry here.
registry! {
    "line-rate" => line_rate::{LineRate, LineRateConfig}, "line rate",
        "none", "no control: send at line rate and let flow control stop it";
    "ideal" => ideal::{Ideal, IdealConfig}, "ideal",
        "none", "the exact max-min rates at every moment, served as fluids: the reference";
    "powertcp" => powertcp::{PowerTcp, PowerTcpConfig}, "PowerTCP",
        "Addanki et al., NSDI 2022", "divide the window by power: arrival rate times queue plus pipe, from telemetry";
    "theta-powertcp" => theta_powertcp::{ThetaPowerTcp, ThetaPowerTcpConfig}, "θ-PowerTCP",
        "Addanki et al., NSDI 2022", "PowerTCP on round-trip times and their slope, without help from switches";
    "hpcc" => hpcc::{Hpcc, HpccConfig}, "HPCC",
        "Li et al., SIGCOMM 2019", "keep the bytes in flight through every port just below what it holds without queue";
    "timely" => timely::{Timely, TimelyConfig}, "TIMELY",
        "Mittal et al., SIGCOMM 2015", "steer a rate by the slope of round-trip times";
    "patched-timely" => patched_timely::{PatchedTimely, PatchedTimelyConfig}, "patched TIMELY",
        "Zhu et al., CoNEXT 2016", "TIMELY with the distance to a reference delay added, so that rates converge";
    "dcqcn" => dcqcn::{Dcqcn, DcqcnConfig}, "DCQCN",
        "Zhu et al., SIGCOMM 2015", "cut a rate on ECN notifications, recover it by timer and byte counter";
    "dctcp" => dctcp::{Dctcp, DctcpConfig}, "DCTCP",
        "Alizadeh et al., SIGCOMM 2010", "cut the window in proportion to the share of ECN-marked bytes";
    "d2tcp" => d2tcp::{D2tcp, D2tcpConfig}, "D2TCP",
        "Vamanan et al., SIGCOMM 2012", "DCTCP whose cut grows where a deadline is far and shrinks where it is near";
    "flowtune" => flowtune::{Flowtune, FlowtuneConfig}, "Flowtune",
        "Perry et al., MIT-CSAIL-TR-2016-011", "a central allocator solves for all rates and tells every flow its own";
    "newreno" => newreno::{NewReno, NewRenoConfig}, "NewReno",
        "RFC 5681, RFC 6582", "halve the window on a loss, add a segment a round trip otherwise";
    "retcp" => retcp::{Retcp, RetcpConfig}, "reTCP",
        "Mukerjee et al., NSDI 2020", "NewReno that ToRs tell of circuits: its window doubles and halves with them";
    "cubic" => cubic::{Cubic, CubicConfig}, "CUBIC",
        "RFC 9438", "grow the window along a cubic curve through the size at which it last met a loss";
    "bbr" => bbr::{Bbr, BbrConfig}, "BBR",
        "Cardwell et al., ACM Queue 2016", "measure bandwidth and smallest RTT, and send at their product, whatever is lost";
    "swift" => swift::{Swift, SwiftConfig}, "Swift",
        "Kumar et al., SIGCOMM 2020", "hold the delay at a target that grows with hops and with the number of flows";
    "qcn" => qcn::{Qcn, QcnConfig}, "QCN",
        "IEEE 802.1Qau, 2010", "switches sample frames and tell their sources how far the queue is off";
    "dcqcn-pi" => dcqcn_pi::{DcqcnPi, DcqcnPiConfig}, "DCQCN+PI",
        "Zhu et al., CoNEXT 2016", "DCQCN with marks by a PI controller that holds the queue at a reference";
    "pacc" => pacc::{Pacc, PaccConfig}, "PACC (reconstruction)",
        "Zhong et al., INFOCOM 2022", "DCQCN notified by switches directly, as a PI controller decides";
    "rocc" => rocc::{Rocc, RoccConfig}, "RoCC",
        "Menikkumbura et al., TPDS 2023", "a PI controller at each port tells the flows in its queue one fair rate";
    "rcp" => rcp::{Rcp, RcpConfig}, "RCP",
        "Dukkipati, 2007", "every link has one rate for all its flows, moved by spare capacity and queue";
    "xcp" => xcp::{Xcp, XcpConfig}, "XCP",
        "Katabi et al., SIGCOMM 2002", "switches hand out changes of windows: efficiency to all, fairness by shuffling";
    "perc" => perc::{Perc, PercConfig}, "PERC",
        "Jose et al., HotNets 2015", "control packets carry demands to links and fair shares back; nothing is measured";
    "charny" => charny::{Charny, CharnyConfig}, "Charny",
        "Charny et al., ICC 1995", "control packets carry one stamped rate, which every link lowers to what it has";
    "bfc" => bfc::{Bfc, BfcConfig}, "BFC",
        "Goyal et al., NSDI 2022", "switches pause single flows one hop upstream, in queues of their own";
    "pfabric" => pfabric::{PFabric, PFabricConfig}, "pFabric",
        "Alizadeh et al., SIGCOMM 2013", "packets carry what their flow has left; tiny queues send the least, drop the most";
    "homa" => homa::{Homa, HomaConfig}, "HOMA",
        "Montazeri et al., SIGCOMM 2018", "receivers grant the shortest messages, and give each packet one of eight priorities";
    "lia" => lia::{Lia, LiaConfig, coupled LiaConnection}, "LIA",
        "RFC 6356", "subflows share the growth of one TCP on the best path";
    "olia" => olia::{Olia, OliaConfig, coupled OliaConnection}, "OLIA",
        "Khalili et al., ToN 2013", "LIA made Pareto-optimal, with growth moved to good paths with small windows";
    "balia" => balia::{Balia, BaliaConfig, coupled BaliaConnection}, "BALIA",
        "Peng et al., ToN 2016", "between LIA and OLIA: friendly, responsive, and without jumps between paths";
    "xmp" => xmp::{Xmp, XmpConfig, coupled XmpConnection}, "XMP",
        "Cao et al., CoNEXT 2013", "a mark takes a quarter of a window, a round adds a share of one segment";
    "amp" => amp::{Amp, AmpConfig, coupled AmpConnection}, "AMP",
        "Kheirkhah, Lee, Networking 2019", "coupled windows on marks, and one path only while all are at the smallest";
    "mpcc" => mpcc::{Mpcc, MpccConfig, coupled MpccConnection}, "MPCC (as far as public)",
        "Gilad et al., CoNEXT 2020", "every subflow probes for the rate of most utility to the connection";
    "ratemp" => ratemp::{RateMp, RateMpConfig, coupled RateMpConnection}, "RateMP",
        "Han et al., INFOCOM 2024", "rates that balance marks and the connection's total, below a packet a round trip too";
    "hull" => hull::{Hull, HullConfig}, "HULL",
        "Alizadeh et al., NSDI 2012", "DCTCP, paced, on marks of phantom queues slower than their links: queues stay empty";
    "nscc" => nscc::{Nscc, NsccConfig}, "NSCC",
        "Ultra Ethernet Specification 1.0, 2025", "grow while the queue is short, cut by delay on marks, restart from what came through";
    "rccc" => rccc::{Rccc, RcccConfig}, "RCCC",
        "Ultra Ethernet Specification 1.0, 2025", "receivers grant what may be sent to them, at just less than their link's rate";
    "eqds" => eqds::{Eqds, EqdsConfig}, "EQDS",
        "Olteanu et al., NSDI 2022", "receivers pull bytes at just less than their link's rate, from those with cut packets first";
    "ndp" => ndp::{Ndp, NdpConfig}, "NDP",
        "Handley et al., SIGCOMM 2017", "a window at line rate, then a packet for each that arrives, whole or cut, as receivers pull";
}
