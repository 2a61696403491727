use std::collections::BTreeMap;

use super::*;
use crate::config::{AdmissionConfig, Balance, EcmpHash, QueueConfig, TieRule};
use crate::ids::NodeId;
use fairrate_units::{Rate, Time};
use proptest::prelude::*;

const SWITCH: SwitchIdx = SwitchIdx(0);
const INGRESS: PortIdx = PortIdx(1);

fn config(pfc: bool) -> FabricConfig {
    FabricConfig {
        buffer: Bytes::new(80_000),
        buffer_per: None,
        ingress_alpha: Some(0.125),
        egress_alpha: None,
        pfc: if pfc { Pfc::Ingress } else { Pfc::Off },
        headroom: Headroom::TripleDelay,
        xon_offset: Bytes::new(2_496),
        xon_floor: Bytes::new(1_248),
        pfc_frame: Bytes::new(43),

        frame_overhead: Bytes::ZERO,
        ecn: None,
        queue: QueueConfig::FIFO,
        clock: ClockRule::Picoseconds,
        balance: Balance::Ecmp,
        reroute: None,
        admission: AdmissionConfig::default(),
        ecmp: EcmpHash::Mix,
        ties: TieRule::Entity,
        classes: BTreeMap::new(),
    }
}

fn mmu(pfc: bool) -> Mmu {
    mmu_of(&config(pfc))
}

fn mmu_of(config: &FabricConfig) -> Mmu {
    let link = Link { a: NodeId(0), b: NodeId(1), rate: Rate::from_gbps(25), delay: Time::from_us(1) };
    Mmu::new(config, [link, link].into_iter(), &vec![None, Some(SWITCH)].into(), Bytes::new(1_090), &[3])
}

/// A buffer of 80 KB for 25 Gb/s: the switch with a port of 100 Gb/s besides has 400 KB.
#[test]
fn buffers_go_by_the_rates_of_ports() {
    let by_rate = FabricConfig { buffer_per: Some(Rate::from_gbps(25)), ..config(false) };
    let link = |gbps| Link { a: NodeId(0), b: NodeId(1), rate: Rate::from_gbps(gbps), delay: Time::from_us(1) };
    let links = [link(25), link(25), link(100)];
    let switch_of = vec![Some(SwitchIdx(0)), Some(SwitchIdx(1)), Some(SwitchIdx(1))].into();
    let most = |switch: u32, config: &FabricConfig| {
        let mut mmu = Mmu::new(config, links.iter().copied(), &switch_of, Bytes::new(1_090), &[3]);
        (0..1_000)
            .take_while(|_| mmu.admit(SwitchIdx(switch), PortIdx(switch), 3, 1_000, 0) == Admission::Accept)
            .count()
    };
    let full = FabricConfig { ingress_alpha: None, ..by_rate.clone() };
    assert_eq!([most(0, &full), most(1, &full)], [80, 400]);
    // At an alpha of 1/8 an ingress gets a ninth.
    assert_eq!([most(0, &by_rate), most(1, &by_rate)], [9, 44]);
    assert_eq!([most(0, &config(false)), most(1, &config(false))], [9, 9]);
}

#[test]
fn pauses_over_the_threshold_and_resumes_below_it() {
    let mut mmu = mmu(true);
    // T = (80,000 - used)/8. Eight packets: 8,000 <= 72,000/8 = 9,000. Nine: 9,000 > 71,000/8 = 8,875.
    for _ in 0..8 {
        assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Accept);
    }
    assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::AcceptAndPause);
    assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Accept);
    // Two packets leave from headroom; then 7,000 + 2,496 > 73,000/8, and 6,000 + 2,496 <= 74,000/8.
    let left: Vec<bool> = (0..4).map(|_| mmu.release(SWITCH, INGRESS, 3, 1_000)).collect();
    assert_eq!(left, [false, false, false, true]);
}

#[test]
fn headroom_is_what_the_link_holds_three_times_and_then_drops() {
    let mut mmu = mmu(true);
    let admitted =
        (0..40).take_while(|_| !matches!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Drop(_))).count();
    // Eight to the threshold and floor(9,375/1,000) = 9 of headroom.
    assert_eq!(admitted, 17);
    assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Drop(DropCause::Headroom));
}

/// A round trip of the link is 6,250 bytes. Frames of 64 bytes fit into the slack of two packets, and frames of 1,000
/// do not: sixteen may be ahead of a pause.
#[test]
fn automatic_headroom_has_room_for_the_frames_ahead_of_a_pause() {
    for (frame, bytes) in [(64, 6_250 + 4 * 1_090 + 64), (1_000, 6_250 + 2 * 1_090 + 17_000)] {
        let config = FabricConfig { headroom: Headroom::Auto, pfc_frame: Bytes::new(frame), ..config(true) };
        let mut mmu = mmu_of(&config);
        let admits = |mmu: &mut Mmu| !matches!(mmu.admit(SWITCH, INGRESS, 3, 10, 0), Admission::Drop(_));
        let admitted = (0..10_000).take_while(|_| admits(&mut mmu)).count();
        // What is below the threshold is (80,000 - n)/8 = n; what has no room there goes to the headroom, and leaves
        // the shared buffer as it is.
        assert_eq!(admitted * 10, 8_880 + bytes / 10 * 10, "{frame}");
    }
}

#[test]
fn lossy_drops_at_the_threshold() {
    let mut mmu = mmu(false);
    let admitted =
        (0..40).take_while(|_| !matches!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Drop(_))).count();
    // After n packets the next needs (n + 1) * 1,000 <= (80,000 - n * 1,000)/8: 9,000 <= 9,000 for n = 8,
    // but 10,000 > 8,875 for n = 9.
    assert_eq!(admitted, 9);
    assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Drop(DropCause::IngressThreshold));
}

#[test]
fn an_empty_ingress_resumes_whatever_the_offsets() {
    let config = FabricConfig { xon_offset: Bytes::new(20_000), xon_floor: Bytes::ZERO, ..config(true) };
    let mut mmu = mmu_of(&config);
    let mut n = 1;
    while mmu.admit(SWITCH, INGRESS, 3, 1_000, 0) == Admission::Accept {
        n += 1;
    }
    let resumes: Vec<bool> = (0..n).map(|_| mmu.release(SWITCH, INGRESS, 3, 1_000)).collect();
    assert_eq!(resumes.iter().filter(|&&resumes| resumes).count(), 1);
    assert!(resumes[n - 1]);
}

#[test]
fn without_a_limit_an_ingress_pauses_when_the_buffer_is_full() {
    let mut mmu = mmu_of(&FabricConfig { ingress_alpha: None, ..config(true) });
    // 79 packets leave 1,000 bytes free, and the 80th none.
    for _ in 0..79 {
        assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::Accept);
    }
    assert_eq!(mmu.admit(SWITCH, INGRESS, 3, 1_000, 0), Admission::AcceptAndPause);
    assert!(!mmu.admits_now(SWITCH, INGRESS, 3, 1_000));
}

#[test]
fn without_a_limit_an_ingress_resumes_when_as_much_is_free_as_the_offset() {
    let mut mmu = mmu_of(&FabricConfig { ingress_alpha: None, xon_offset: Bytes::new(2_500), ..config(true) });
    let admitted = (0..80).map(|_| mmu.admit(SWITCH, INGRESS, 3, 1_000, 0)).last();
    assert_eq!(admitted, Some(Admission::AcceptAndPause));
    assert_eq!([(); 3].map(|()| mmu.release(SWITCH, INGRESS, 3, 1_000)), [false, false, true]);
}

proptest! {
    /// All packets have the same outcome with the bound for sure admission and without it.
    #[test]
    fn the_bound_changes_nothing(
        pfc in any::<bool>(),
        ingress_alpha in prop::option::of(0.01_f64..4.0),
        egress_alpha in prop::option::of(0.01_f64..4.0),
        steps in prop::collection::vec((any::<bool>(), 1_u16..1_500, 0_u8..3), 1..300),
    ) {
        let mut quick = mmu_of(&FabricConfig { ingress_alpha, egress_alpha, ..config(pfc) });
        let mut exact = mmu_of(&FabricConfig { ingress_alpha, egress_alpha, ..config(pfc) });
        exact.pools[SWITCH].sure_below = 0;
        let (mut held, mut waiting) = (Vec::new(), [0; 3]);
        for (comes, wire, class) in steps {
            let queue = &mut waiting[usize::from(class)];
            if comes {
                let admission = quick.admit(SWITCH, INGRESS, class, wire, *queue);
                prop_assert_eq!(admission, exact.admit(SWITCH, INGRESS, class, wire, *queue));
                if !matches!(admission, Admission::Drop(_)) {
                    held.push((class, wire));
                    *queue += u32::from(wire);
                }
            } else if let Some((class, wire)) = held.pop() {
                waiting[usize::from(class)] -= u32::from(wire);
                let resumes = quick.release(SWITCH, INGRESS, class, wire);
                prop_assert_eq!(resumes, exact.release(SWITCH, INGRESS, class, wire));
            }
            let passes = quick.admits_now(SWITCH, INGRESS, class, wire);
            prop_assert_eq!(passes, exact.admits_now(SWITCH, INGRESS, class, wire));
            prop_assert_eq!((quick.peak(), quick.used(SWITCH)), (exact.peak(), exact.used(SWITCH)));
        }
    }
}
