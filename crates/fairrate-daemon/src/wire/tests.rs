use fairrate_control::flowtune;
use proptest::prelude::*;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;
use crate::rate::Weight;

fn start(flow: Flow) -> Start {
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Start { flow, src, dst, weight: Weight::ONE }
}

fn decoded<M: Message>(bytes: &[u8], cut: usize) -> Result<Vec<M>, FrameError> {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for piece in bytes.chunks(cut) {
        decoder.read(piece, |message| messages.push(message))?;
    }
    Ok(messages)
}

#[test]
fn records_have_the_papers_lengths() {
    let of_paper = |message: flowtune::Message| message.bytes() as usize;
    assert_eq!(FromAgent::record_len(2), Some(of_paper(flowtune::Message::Start { flow: 0 })));
    assert_eq!(FromAgent::record_len(3), Some(of_paper(flowtune::Message::End { flow: 0 })));
    let update = flowtune::Message::Update { flow: 0, rate_bps: 0.0 };
    assert_eq!(FromAllocator::record_len(18), Some(of_paper(update)));
}

#[test]
fn messages_of_a_kind_share_a_frame() {
    let mut out = Vec::new();
    encode([FromAgent::Start(start(1)), FromAgent::Start(start(2)), FromAgent::End(3)], &mut out);
    assert_eq!(out.len(), (3 + 16 + 16) + (3 + 4));
    assert_eq!(out[..3], [0, 33, 2]);
    out.clear();
    // 1,023 starts fill a frame of 16 KiB.
    encode((0..1_024).map(|flow| FromAgent::Start(start(flow))), &mut out);
    assert_eq!(out.len(), (3 + 1_023 * 16) + (3 + 16));
    assert_eq!(decoded::<FromAgent>(&out, 1_000).map(|messages| messages.len()), Ok(1_024));
}

#[test]
fn what_is_no_message_is_an_error() {
    let error = |bytes: &[u8]| decoded::<FromAgent>(bytes, 7).expect_err("it is wrong").to_string();
    assert_eq!(error(&[0, 0]), "a frame is empty");
    assert_eq!(error(&[0xff, 0xff, 2]), "a frame of 65535 bytes is longer than 16384");
    assert_eq!(error(&[0, 7, 18, 0, 0, 0, 1, 0, 1]), "there is no message of kind 18");
    assert_eq!(error(&[0, 4, 3, 0, 0, 0]), "a frame of kind 3 has 3 bytes of records");
    assert_eq!(error(&[0, 1, 3]), "a frame of kind 3 has 0 bytes of records");
    assert_eq!(error(&[0, 2, 4, 0]), "a frame of kind 4 has 1 bytes of records");
    let weightless = [0, 17, 2, 0, 0, 0, 9, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0];
    assert_eq!(error(&weightless), "the weight of flow 9 is 0");
}

#[test]
fn flags_that_mean_nothing_yet_are_an_error() {
    let mut bytes = Vec::new();
    encode([FromAgent::Start(start(7))], &mut bytes);
    for place in [bytes.len() - 2, bytes.len() - 1] {
        let mut flagged = bytes.clone();
        flagged[place] = 1;
        let error = decoded::<FromAgent>(&flagged, 7).expect_err("it is wrong").to_string();
        assert_eq!(error, "the flags of flow 7 are not zero");
    }
    let mut bytes = Vec::new();
    encode([FromAgent::Stamp(AgentStamp { is_willing: true, ..AgentStamp::default() })], &mut bytes);
    assert!(decoded::<FromAgent>(&bytes, 7).is_ok());
    *bytes.last_mut().expect("it has flags") |= 0x10;
    let error = decoded::<FromAgent>(&bytes, 7).expect_err("it is wrong").to_string();
    assert_eq!(error, "reserved flags of a stamp are not zero");
}

#[test]
fn a_flow_of_ipv6_has_a_longer_record_and_an_ipv4_address_one_form() {
    let mut bytes = Vec::new();
    let of = |src: &str, dst: &str| Start { src: src.parse().unwrap(), dst: dst.parse().unwrap(), ..start(7) };
    encode([FromAgent::Start(of("fd00::1", "fd00::2"))], &mut bytes);
    assert_eq!((bytes.len(), &bytes[..3]), (3 + 40, &[0, 41, 10][..]));
    assert_eq!(decoded(&bytes, 5), Ok(vec![FromAgent::Start(of("fd00::1", "fd00::2"))]));
    // Whoever writes 10.0.0.1 as an address of IPv6 means the same host.
    bytes.clear();
    let short = of("10.0.0.1", "10.0.0.2");
    encode([FromAgent::Start(of("fd00::1", "fd00::2"))], &mut bytes);
    bytes[7..23].copy_from_slice(&Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets());
    bytes[23..39].copy_from_slice(&Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped().octets());
    assert_eq!(decoded(&bytes, 5), Ok(vec![FromAgent::Start(short)]));
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits)).to_canonical()),
    ]
}

fn any_from_agent() -> impl Strategy<Value = FromAgent> {
    prop_oneof![
        (any::<u8>(), any::<u64>()).prop_map(|(version, session)| FromAgent::Hello { version, session }),
        (any::<u32>(), any_address(), any_address(), 1..=u16::MAX).prop_map(|(flow, src, dst, weight)| {
            let weight = Weight::from_bits(weight).expect("it is above 0");
            FromAgent::Start(Start { flow, src, dst, weight })
        }),
        any::<u32>().prop_map(FromAgent::End),
        Just(FromAgent::Alive),
        Just(FromAgent::Synced),
        Just(FromAgent::Reported),
        any::<u32>().prop_map(FromAgent::Ack),
        (any::<u32>(), any::<u16>()).prop_map(|(flow, rate)| FromAgent::InForce { flow, rate: WireRate(rate) }),
        (any::<[u64; 3]>(), any::<[u32; 3]>(), any::<[bool; 4]>()).prop_map(|(clocks, numbers, flags)| {
            let [is_grown, has_others, is_willing, is_reported] = flags;
            let ([sent, ack, epoch], [voters, agents, quiet_ms]) = (clocks, numbers);
            let epoch = Epoch(epoch);
            FromAgent::Stamp(AgentStamp {
                sent,
                ack,
                epoch,
                voters,
                agents,
                quiet_ms,
                is_grown,
                has_others,
                is_willing,
                is_reported,
            })
        }),
        (0..Reason::ALL.len()).prop_map(|i| FromAgent::Bye(Reason::ALL[i])),
    ]
}

fn any_from_allocator() -> impl Strategy<Value = FromAllocator> {
    prop_oneof![
        (any::<u8>(), any::<u64>(), any::<u32>()).prop_map(|(version, instance, ms)| FromAllocator::Hello {
            version,
            instance,
            lease: Duration::from_millis(ms.into()),
        }),
        (any::<u32>(), any::<u16>()).prop_map(|(flow, rate)| FromAllocator::Rate { flow, rate: WireRate(rate) }),
        any::<u32>().prop_map(FromAllocator::Mark),
        any::<u32>().prop_map(FromAllocator::Seen),
        (any::<[u64; 3]>(), any::<[u32; 3]>()).prop_map(|([sent, echo, epoch], [us, voters, agents])| {
            let (epoch, valid) = (Epoch(epoch), Duration::from_micros(us.into()));
            FromAllocator::Stamp(AllocatorStamp { sent, echo, epoch, valid, voters, agents })
        }),
        (0..Reason::ALL.len()).prop_map(|i| FromAllocator::Bye(Reason::ALL[i])),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        up in prop::collection::vec(any_from_agent(), 0..200),
        down in prop::collection::vec(any_from_allocator(), 0..200),
        cut in 1_usize..100,
    ) {
        let (mut bytes, mut back) = (Vec::new(), Vec::new());
        encode(up.iter().copied(), &mut bytes);
        encode(down.iter().copied(), &mut back);
        prop_assert_eq!(decoded::<FromAgent>(&bytes, cut), Ok(up));
        prop_assert_eq!(decoded::<FromAllocator>(&back, cut), Ok(down));
    }
}
