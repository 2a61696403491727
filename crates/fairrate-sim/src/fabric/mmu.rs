//! The memory management of a shared-memory switch: admission of packets to the buffer, and PFC pauses.
//!
//! Every byte in a switch is charged twice: to its (ingress port, class), which decides about PFC and headroom, and to
//! its egress queue, which the port itself counts. Both are bounded by Dynamic Thresholds: alpha times the free shared
//! buffer.

use fairrate_units::{Bytes, Rate};

use super::DropCause;
use super::port::{MOST_FRAMES, N_CLASSES, tx_time_ps};
use crate::config::{ClassConfig, ClockRule, FabricConfig, Headroom, PauseLevels, Pfc};
use crate::huge_pages;
use crate::ids::{PortIdx, SwitchIdx};
use crate::table::Table;
use crate::topology::Link;

/// The decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Buffered.
    Accept,
    /// Buffered, and the sender of this (ingress port, class) must pause.
    AcceptAndPause,
    /// Dropped.
    Drop(DropCause),
}

/// The place of a packet in a buffer, by the state before the packet is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// In the shared part.
    Shared,
    /// In the headroom of its ingress port: it is over the threshold, or a packet before it was and the headroom has
    /// not been empty since. The sender must be paused.
    Headroom,
    /// Nowhere.
    Drop(DropCause),
}

/// Charges of one (ingress port, class).
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    /// All bytes, headroom included.
    bytes: u32,
    /// Bytes in headroom, included in `bytes`.
    headroom: u32,
    /// Set while the upstream port is paused.
    paused: bool,
}

impl Ingress {
    /// Returns `true` if it uses headroom or has paused its upstream port.
    #[inline]
    fn has_pressure(self) -> bool {
        0 < self.headroom || self.paused
    }
}

/// Shared buffer of one switch.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// Size of the buffer, headroom not included.
    buffer: u64,
    /// Bytes below which the switch admits everything and pauses no port, for any ingress and egress ports of the bytes
    /// it holds.
    sure_below: u64,
    /// All bytes in the switch.
    used: u64,
    /// Bytes in headroom, included in `used`.
    headroom_used: u64,
    /// Headroom of all ports of the switch together.
    headroom_total: u64,
    /// Number of (ingress port, class) of the switch that use headroom or have paused their upstream ports.
    n_under_pressure: u32,
    /// Set when only `used` is valid, and the charges of the switch's ingress ports are not.
    is_stale: bool,
}

/// The thresholds of a class.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Infinite if there is no limit. Infinity times an exhausted buffer is NaN, which as an integer threshold is 0: so
    /// a lossless ingress pauses when the buffer is full, and a lossy ingress never drops at a threshold.
    ingress_alpha: f64,
    egress_alpha: Option<f64>,
    /// Set if the ingress pauses, and has headroom.
    pfc: bool,
}

/// The buffers of all switches.
pub struct Mmu {
    limits: [Limits; N_CLASSES],
    /// Fixed levels by ingress port, in place of `ingress_alpha` and the offsets.
    levels: Option<Table<PortIdx, PauseLevels>>,
    xon_offset: u64,
    xon_floor: u32,
    pools: Table<SwitchIdx, Pool>,
    /// By ingress port and class: see [`charge_of`].
    ingress: Vec<Ingress>,
    /// Headroom by ingress port and class, as `ingress`; only by ingress port if it is the same for all classes.
    headroom: Vec<u32>,
    /// Headrooms of a port: one, or one for each class.
    n_headrooms: usize,
    /// Largest number of bytes that any switch has held.
    peak: u64,
}

impl Mmu {
    /// Creates empty buffers. `links` has the link of each port, and `switch_of` the port's switch, if it belongs to a
    /// switch. Each port has headroom for each of `lossless`, the classes that PFC may pause.
    pub fn new(
        config: &FabricConfig,
        links: impl Iterator<Item = Link>,
        switch_of: &Table<PortIdx, Option<SwitchIdx>>,
        wire_mtu: Bytes,
        lossless: &[u8],
    ) -> Self {
        let classes = config.all_classes();
        let are_alike = classes.iter().all(|class| class.headroom == config.headroom);
        let n_headrooms = if are_alike { 1 } else { N_CLASSES };
        let (mut headroom, mut rates) = (Vec::new(), Vec::new());
        for link in links {
            headroom.extend(classes[..n_headrooms].iter().map(|class| headroom_bytes(config, class, &link, wire_mtu)));
            rates.push(link.rate.as_bps());
        }
        headroom.shrink_to_fit();
        let rates: Table<PortIdx, u64> = rates.into();
        let n_switches = switch_of.iter().flatten().max().map_or(0, |&last| last.index() + 1);
        let mut pools: Table<SwitchIdx, Pool> = vec![Pool::default(); n_switches].into();
        let mut total_bps: Table<SwitchIdx, u64> = vec![0; n_switches].into();
        for (port, switch) in switch_of.numbered() {
            if let Some(switch) = switch {
                let of_class = |&class: &u8| u64::from(headroom[headroom_of(n_headrooms, port, class)]);
                pools[*switch].headroom_total += lossless.iter().map(of_class).sum::<u64>();
                total_bps[*switch] += rates[port];
            }
        }
        let n_ingress = switch_of.len() * N_CLASSES;
        let mut ingress = huge_pages::with_capacity(n_ingress);
        ingress.resize(n_ingress, Ingress::default());
        let levels = match config.pfc {
            Pfc::IngressLevels(levels) => Some(rates.iter().map(|&bps| levels.at(Rate::from_bps(bps))).collect()),
            Pfc::Off | Pfc::Ingress | Pfc::Egress(_) => None,
        };
        let has_no_alpha = matches!(config.pfc, Pfc::Egress(_) | Pfc::IngressLevels(_));
        let limits = classes.map(|class| Limits {
            ingress_alpha: class.ingress_alpha.filter(|_| !(has_no_alpha && class.pfc)).unwrap_or(f64::INFINITY),
            egress_alpha: class.egress_alpha,
            pfc: config.pauses_by_ingress() && class.pfc,
        });
        let mut mmu = Self {
            limits,
            levels,
            xon_offset: config.xon_offset.as_u64(),
            xon_floor: config.xon_floor.as_u64() as u32,
            pools,
            ingress,
            headroom,
            n_headrooms,
            peak: 0,
        };
        // An upper bound of the bytes of frames that ever wait at a port.
        let most_frames = 4 * N_CLASSES as u64 * config.pfc_frame.as_u64();
        for (switch, &bps) in total_bps.numbered() {
            let buffer = config.buffer_of(bps);
            let sure_below = first_not(buffer, |most| mmu.admits_all_of(buffer, most, most_frames));
            (mmu.pools[switch].buffer, mmu.pools[switch].sure_below) = (buffer, sure_below);
        }
        mmu
    }

    /// Returns `true` if a switch with this buffer that holds up to `most` bytes, with up to `most_frames` bytes of
    /// frames at each port, admits all of them.
    fn admits_all_of(&self, buffer: u64, most: u64, most_frames: u64) -> bool {
        let free = buffer.saturating_sub(most) as f64;
        let admits = |of: &Limits| {
            most as f64 <= of.ingress_alpha * free
                && of.egress_alpha.is_none_or(|alpha| (most + most_frames) as f64 <= alpha * free)
        };
        most < buffer
            && self.limits.iter().all(admits)
            && self.levels.as_ref().is_none_or(|levels| levels.iter().all(|of| most <= of.pause.as_u64()))
    }

    /// Returns the largest number of bytes that any switch has held.
    #[inline]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Decides about a packet of `wire` bytes from `ingress` that would join an egress queue of `egress_bytes`, and
    /// charges the packet if it is accepted.
    #[inline]
    pub fn admit(&mut self, switch: SwitchIdx, ingress: PortIdx, class: u8, wire: u16, egress_bytes: u32) -> Admission {
        let pool = &mut self.pools[switch];
        let slot = &mut self.ingress[charge_of(ingress, class)];
        let bytes = u64::from(wire);
        if pool.n_under_pressure == 0 && pool.used + bytes < pool.sure_below {
            pool.used += bytes;
            self.peak = self.peak.max(pool.used);
            slot.bytes += u32::from(wire);
            return Admission::Accept;
        }
        let judgement = self.judge(switch, ingress, class, wire, egress_bytes);
        if let Judgement::Drop(cause) = judgement {
            return Admission::Drop(cause);
        }
        let (pool, slot) = (&mut self.pools[switch], &mut self.ingress[charge_of(ingress, class)]);
        pool.used += bytes;
        self.peak = self.peak.max(pool.used);
        slot.bytes += u32::from(wire);
        if judgement == Judgement::Shared {
            return Admission::Accept;
        }
        pool.n_under_pressure += u32::from(!slot.has_pressure());
        slot.headroom += u32::from(wire);
        pool.headroom_used += bytes;
        if slot.paused {
            return Admission::Accept;
        }
        slot.paused = true;
        Admission::AcceptAndPause
    }

    /// Returns the place of a packet of `wire` bytes from `ingress` that would join an egress queue of `egress_bytes`.
    #[inline]
    fn judge(&self, switch: SwitchIdx, ingress: PortIdx, class: u8, wire: u16, egress_bytes: u32) -> Judgement {
        let (pool, slot) = (&self.pools[switch], &self.ingress[charge_of(ingress, class)]);
        let limits = &self.limits[usize::from(class) % N_CLASSES];
        let bytes = u64::from(wire);
        let shared = pool.used - pool.headroom_used;
        let free = pool.buffer.saturating_sub(shared) as f64;
        let held = u64::from(slot.bytes) + bytes;
        if limits.egress_alpha.is_some_and(|alpha| alpha * free < (u64::from(egress_bytes) + bytes) as f64) {
            return Judgement::Drop(DropCause::EgressThreshold);
        }
        if !limits.pfc {
            return if pool.buffer < shared + bytes {
                Judgement::Drop(DropCause::BufferFull)
            } else if limits.ingress_alpha * free < held as f64 {
                Judgement::Drop(DropCause::IngressThreshold)
            } else {
                Judgement::Shared
            };
        }
        let headroom = || self.headroom[headroom_of(self.n_headrooms, ingress, class)];
        if slot.headroom > 0 && headroom() < slot.headroom + u32::from(wire) {
            return Judgement::Drop(DropCause::Headroom);
        }
        if pool.buffer + pool.headroom_total < pool.used + bytes {
            return Judgement::Drop(DropCause::BufferFull);
        }
        // The packet itself counts as used when its ingress is checked.
        let threshold = match &self.levels {
            Some(levels) => levels[ingress].pause.as_u64(),
            None => (limits.ingress_alpha * pool.buffer.saturating_sub(shared + bytes) as f64) as u64,
        };
        if slot.headroom == 0 && held <= threshold { Judgement::Shared } else { Judgement::Headroom }
    }

    /// Returns `true` if a packet of `wire` bytes that leaves at once, by a port where no packet of its class waits,
    /// needs no charge: [`Mmu::admit`] would accept it and [`Mmu::release`] would uncharge all of it.
    #[inline(always)]
    pub fn admits_now(&mut self, switch: SwitchIdx, ingress: PortIdx, class: u8, wire: u16) -> bool {
        let most = self.pools[switch].used + u64::from(wire);
        let passes = self.surely_admits(switch, most) || self.passes_at_thresholds(switch, ingress, class, wire);
        if passes {
            self.peak = self.peak.max(most);
        }
        passes
    }

    /// Decides as [`Mmu::admits_now`], for a switch that holds too many bytes for a sure admission.
    fn passes_at_thresholds(&self, switch: SwitchIdx, ingress: PortIdx, class: u8, wire: u16) -> bool {
        !self.ingress[charge_of(ingress, class)].has_pressure()
            && self.judge(switch, ingress, class, wire, 0) == Judgement::Shared
    }

    /// Returns the classes for which the sender at the other end of `ingress` has been paused.
    pub fn paused_classes(&self, ingress: PortIdx) -> impl Iterator<Item = u8> + '_ {
        (0u8..).zip(&self.ingress[charge_of(ingress, 0)..][..N_CLASSES]).filter(|(_, i)| i.paused).map(|(c, _)| c)
    }

    /// Uncharges a packet that leaves; returns `true` if the sender of its (ingress port, class) may resume.
    #[inline]
    pub fn release(&mut self, switch: SwitchIdx, ingress: PortIdx, class: u8, wire: u16) -> bool {
        let pool = &mut self.pools[switch];
        let slot = &mut self.ingress[charge_of(ingress, class)];
        debug_assert!(!pool.is_stale, "charges are right where they are looked at");
        let had_pressure = slot.has_pressure();
        pool.used -= u64::from(wire);
        slot.bytes -= u32::from(wire);
        if !had_pressure {
            return false;
        }
        let from_headroom = slot.headroom.min(u32::from(wire));
        slot.headroom -= from_headroom;
        pool.headroom_used -= u64::from(from_headroom);
        if !slot.paused || slot.headroom > 0 {
            pool.n_under_pressure -= u32::from(!slot.has_pressure());
            return false;
        }
        if let Some(levels) = &self.levels {
            let resume = u64::from(slot.bytes) <= levels[ingress].resume.as_u64();
            slot.paused = !resume;
            pool.n_under_pressure -= u32::from(resume);
            return resume;
        }
        let free = pool.buffer.saturating_sub(pool.used - pool.headroom_used);
        // Without a limit an ingress pauses when the buffer is full, and resumes by the size of the free buffer.
        let ingress_alpha = self.limits[usize::from(class) % N_CLASSES].ingress_alpha;
        let has_limit = ingress_alpha.is_finite();
        let threshold =
            if has_limit { (ingress_alpha * free as f64) as u64 } else { u64::from(slot.bytes).saturating_add(free) };
        // No further packet leaves an empty ingress, so it resumes at any offsets.
        let is_low = slot.bytes == 0 || slot.bytes < self.xon_floor;
        let resume = is_low || u64::from(slot.bytes) + self.xon_offset <= threshold;
        slot.paused = !resume;
        pool.n_under_pressure -= u32::from(resume);
        resume
    }

    /// Returns the bytes that a switch holds.
    #[inline]
    pub fn used(&self, switch: SwitchIdx) -> u64 {
        self.pools[switch].used
    }

    /// Returns `true` if `switch`, while it holds up to `most` bytes, would admit every packet from any ingress and
    /// send no pause or resume. Then only the number of bytes it holds matters to the outcome: see [`Mmu::set_used`].
    #[inline]
    pub fn surely_admits(&self, switch: SwitchIdx, most: u64) -> bool {
        let pool = &self.pools[switch];
        pool.n_under_pressure == 0 && most < pool.sure_below
    }

    /// Sets the number of bytes that `switch` holds, after a time for which [`Mmu::surely_admits`] held. The charges of
    /// its ingress ports become stale.
    #[inline]
    pub fn set_used(&mut self, switch: SwitchIdx, used: u64) {
        let pool = &mut self.pools[switch];
        (pool.used, pool.is_stale) = (used, true);
    }

    /// Records `used`, the bytes that some switch holds, in the peak.
    #[inline]
    pub fn note_peak(&mut self, used: u64) {
        self.peak = self.peak.max(used);
    }

    /// Returns `true` if the charges of the switch's ingress ports are stale.
    #[inline]
    pub fn is_stale(&self, switch: SwitchIdx) -> bool {
        self.pools[switch].is_stale
    }

    /// Clears the charges of `ports`, the ports of `switch`, so that they can be counted anew with [`Mmu::account`].
    pub fn begin_accounts(&mut self, switch: SwitchIdx, ports: impl Iterator<Item = PortIdx>) {
        self.pools[switch].is_stale = false;
        for port in ports {
            self.ingress[charge_of(port, 0)..][..N_CLASSES].fill(Ingress::default());
        }
    }

    /// Charges a packet that a switch holds to `ingress` and `class`, without changing the switch's total.
    pub fn account(&mut self, ingress: PortIdx, class: u8, wire: u16) {
        self.ingress[charge_of(ingress, class)].bytes += u32::from(wire);
    }
}

/// Returns the first number below `end` for which `holds` is false, if it is true below some number and false from
/// there on; `end` if it is true for all.
fn first_not(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (0, end);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Returns the index of the charges of an (ingress port, class).
#[inline]
fn charge_of(ingress: PortIdx, class: u8) -> usize {
    ingress.index() * N_CLASSES + usize::from(class)
}

/// Returns the index of the headroom of a class at `ingress`, where each port has `n_headrooms`: one, or one for each
/// class.
#[inline]
fn headroom_of(n_headrooms: usize, ingress: PortIdx, class: u8) -> usize {
    ingress.index() * n_headrooms + (usize::from(class) & (n_headrooms - 1))
}

/// Returns the headroom of a class at one end of a link, in bytes.
fn headroom_bytes(config: &FabricConfig, class: &ClassConfig, link: &Link, wire_mtu: Bytes) -> u32 {
    let one_way = most_on_the_way(link, config.clock, wire_mtu);
    let bytes = match class.headroom {
        // The pause waits for a packet that is being sent, travels, and meets a packet that is being sent; bytes sent
        // before that are still in flight. One packet of slack at each end, or room for the frames that may wait ahead
        // of the pause, if that is more.
        Headroom::Auto => {
            let frames = u64::from(MOST_FRAMES) * config.pfc_frame.as_u64();
            2 * one_way + 2 * wire_mtu.as_u64() + frames.max(2 * wire_mtu.as_u64()) + config.pfc_frame.as_u64()
        }
        Headroom::TripleDelay => {
            (u128::from(link.rate.as_bps()) * u128::from(link.delay.as_ps()) * 3 / 8_000_000_000_000) as u64
        }
        Headroom::Fixed(bytes) => bytes.as_u64(),
    };
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Returns the most bytes that may be in flight on a link. Where serialisation times are cut to whole nanoseconds,
/// packets follow each other faster than the link's rate: most of all packets whose time lost nearly a nanosecond.
/// Packet sizes with a time of zero are not counted, since any number of such packets may be in flight.
fn most_on_the_way(link: &Link, clock: ClockRule, wire_mtu: Bytes) -> u64 {
    let exact = link.rate.bytes_in(link.delay).as_u64();
    if clock != ClockRule::WholeNanoseconds {
        return exact;
    }
    let of_size = |wire: u64| {
        let time_ps = tx_time_ps(link.rate, wire, clock);
        (wire * link.delay.as_ps()).checked_div(time_ps)
    };
    (1..=wire_mtu.as_u64()).filter_map(of_size).max().unwrap_or(0).max(exact)
}

#[cfg(test)]
mod tests;
