"""A reconfigurable network and reTCP: the arithmetic of a week of circuits.

V. Addanki et al., "PowerTCP", NSDI 2022, section 5 has the network; M. Mukerjee et al., NSDI 2020, has reTCP. In matching k,
ToR i has a circuit to ToR i + k + 1 for a day; then comes a night. While its circuit is there it alone serves a VOQ, and it
sends nothing that the day would cut off; otherwise the uplink does, whose VOQs take turns.

A backlogged VOQ sends floor(day / packet) packets in its day, and by the uplink its share of the rest of the week. reTCP's
window doubles with the first acknowledgment of a packet that came by circuit, and halves with the first one after it that
did not. The time of both is a sum of delays: hosts' links have the rate of the circuit, so no queue stands but in the VOQ. Left
out: all that NewReno does between the jumps, so the model does not say how full the circuit is.

Tolerances, written before the first comparison:

DAY       Packets of a day: exact, both are integers and the rule leaves no choice.
UPLINK    Packets by uplink in a week: the one on the wire as a day begins and as it ends, two.
CAP       Most bytes in a VOQ: whether the packet on the wire counts is not said: one packet.
FACTOR    Window after a jump over that before: the window is compared 0.1 us apart, in which NewReno adds at most two packets
          to a hundred: 0.04 up, 0.01 down.
JUMP      Time of a jump: samples are 0.1 us apart, a packet may be on the uplink as the circuit comes (0.34 us), and the
          circuit stays dark for what is left of a day after its last whole packet (0.08 us): 0.52 us.
"""

import numpy as np

DAY = 0
UPLINK = 2
CAP = 1048
FACTOR_UP, FACTOR_DOWN = 0.04, 0.01
JUMP = 0.52

DAY_US, NIGHT_US, TORS = 225.0, 20.0, 4
WEEK_US = (TORS - 1) * (DAY_US + NIGHT_US)
BITS, ACK = 1048 * 8, 60 * 8
CIRCUIT, UP = 100e3, 25e3  # bits in a microsecond
HOST_DELAY, UPLINK_DELAY, CIRCUIT_DELAY = 1.0, 4.62, 9.9  # us
VOQ, ENLARGED, PREBUFFER_US = 144_000, 450_000, 200.0


def between(series, begin, end):
    """Returns by how much a counter grows between two times in us."""
    t, count = series
    before, after = np.searchsorted(t * 1e6, [begin, end])
    return count[after] - count[before]


def sent(results, port, begin, end):
    """Returns the packets that `port` has handed to the wire; a VOQ's own are those of its circuit."""
    return between(results.series("ports", "tx_bytes")[port], begin, end) / 1048


def delivered(results, flows, begin, end):
    """Returns the packets that the receivers of `flows` have got."""
    series = results.series("rates", "delivered_bytes")
    return sum(between(series[flow], begin, end) for flow in flows) / 1000


def one_voq(results):
    """The only VOQ of its ToR, backlogged: the second week."""
    day, rest = DAY_US * CIRCUIT // BITS, (WEEK_US - DAY_US) * UP / BITS
    yield "packets of a day", day, sent(results, "tor0->tor1", WEEK_US, WEEK_US + DAY_US), DAY
    yield "packets by uplink, rest of week", rest, sent(results, "tor0->core0", WEEK_US + DAY_US, 2 * WEEK_US), UPLINK
    yield "packets delivered in a week", day + rest, delivered(results, range(4), WEEK_US, 2 * WEEK_US), UPLINK


def two_voqs(results):
    """Two VOQs, backlogged: each has the uplink alone while the other has its circuit, and half of it in the rest."""
    day, share = DAY_US * CIRCUIT // BITS, (DAY_US + (WEEK_US - 2 * DAY_US) / 2) * UP / BITS
    for k, (voq, flows) in enumerate({"tor0->tor1": [0, 1], "tor0->tor2": [2, 3]}.items()):
        begin = WEEK_US + k * (DAY_US + NIGHT_US)
        yield f"packets of a day, {voq}", day, sent(results, voq, begin, begin + DAY_US), DAY
        # A receiver's link is still behind for a time after the day; at the day's begin it is not.
        yield f"delivered in a week, {voq}", day + share, delivered(results, flows, begin, begin + WEEK_US), UPLINK


def retcp_voq(results):
    """Flows that start at once far from a day, and again within the prebuffering: the queue is full, and drops."""
    t, queue = results.series("ports", "qlen_bytes")["tor0->tor1"]
    early = t * 1e6 < WEEK_US - PREBUFFER_US
    yield "VOQ at most, B", VOQ // 1048 * 1048, max(queue[early]), CAP
    yield "VOQ at most, prebuffering, B", ENLARGED // 1048 * 1048, max(queue[~early]), CAP


def retcp(results):
    """One flow of reTCP: the two jumps of its window, in all weeks but the first two."""
    t, window = results.series("rates", "cwnd_bytes")[0]
    u, ratio = t[1:] * 1e6, window[1:] / window[:-1]
    late = u > 2 * WEEK_US
    up, down = late & (ratio > 1.8), late & (ratio < 0.6) & (u % WEEK_US > DAY_US) & (u % WEEK_US < DAY_US + 100)
    # The acknowledgment goes by the uplink: the way back has its circuit in another matching.
    back = 2 * (HOST_DELAY + UPLINK_DELAY) + 2 * ACK / UP + 2 * ACK / CIRCUIT
    by_circuit = CIRCUIT_DELAY + HOST_DELAY + 2 * BITS / CIRCUIT + back
    by_uplink = 2 * UPLINK_DELAY + HOST_DELAY + 2 * BITS / UP + BITS / CIRCUIT + back
    yield "window at a jump up, factor", 2, np.median(ratio[up]), FACTOR_UP
    yield "window at a jump down, factor", 0.5, np.median(ratio[down]), FACTOR_DOWN
    yield "jump up after a day begins, us", by_circuit, np.median(u[up] % WEEK_US), JUMP
    yield "jump down after a day ends, us", by_uplink, np.median(u[down] % WEEK_US) - DAY_US, JUMP


RETCP = {"transport.kind": "tcp", "transport.cc": "retcp", "transport.window": "algorithm"}
LONG = {"duration": "8.1ms", "topology.host_rate": "100Gbps", "traffic.0.path": "rdcn-retcp.csv"}
CASES = {
    "rdcn-one": ("rdcn", {}, one_voq),
    "rdcn-two": ("rdcn", {"traffic.0.path": "rdcn-two.csv"}, two_voqs),
    "retcp": ("rdcn", RETCP | LONG, retcp),
    "retcp-voq": ("rdcn", RETCP | {"duration": "800us", "traffic.0.path": "rdcn-burst.csv"}, retcp_voq),
}
