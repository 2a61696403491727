"""pFabric: packets of flows from hosts of their own to one receiver, whose port has the queue.

M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, sections 4.1 and 4.2.

A full port drops the packet with the largest remaining size, the last of several. It sends the earliest packet of the flow that
has the packet with the least. A host starts with a window of a bandwidth-delay product, rounded up, and has 1.25 of it at most;
it grows with what arrives in order. A timer of three round trips alone says what is lost, and after five timeouts in a row
probes of a header go out. Left out: the other direction (acknowledgments are a delay), and more than one queue.

Tolerances, written before the first comparison:

ALONE     A flow that never waits: the packet on the wire before its first, and one more after a gap: two packets.
DROPS     Drops of the first windows, before any acknowledgment. Starts are 0.1 us apart, so that no packets tie; whether
          the packet on the wire counts to the limit is not said: two.
HANDOVER  A flow that waits goes on with its next timeout or probe. What restarts its timer is TCP's detail, so the phase is
          not known: one timeout for each flow with less to send that it can have waited for.
SAME      Added after the comparison, and stricter: with few flows all completions are the same to two packets.
"""

import heapq
import itertools
import math

BYTE, DELAY = 800, 2_950_000  # ps of a byte, and of every link of `cases/pfabric.toml`; times are whole ps
PACKET, HEADER, ACK = 1048, 48, 60
RTT = 4 * DELAY + 2 * (PACKET + ACK) * BYTE
RTO, BDP = 3 * RTT, RTT / BYTE / PACKET  # ps; packets
ALONE, DROPS, HANDOVER, SAME = 2 * PACKET * BYTE / 1e6, 2, RTO / 1e6, 2 * PACKET * BYTE / 1e6


class Flow:
    """The sender and the receiver of `n` packets from `start` on."""

    def __init__(self, start, n):
        self.start, self.n, self.fresh, self.in_order = start, n, 0, 0
        self.flying, self.acked, self.got, self.again = set(), set(), set(), set()
        self.cwnd, self.most, self.ssthresh = math.ceil(BDP), math.ceil(1.25 * BDP), math.inf
        self.timer, self.in_a_row, self.free, self.done = math.inf, 0, start, None

    def next_packet(self):
        """Returns the next packet that the window lets go, or `None`."""
        if self.in_a_row >= 5 or len(self.flying) + 1 > self.cwnd:
            return None
        if again := sorted(self.again - self.acked):
            self.again.remove(again[0])
            return again[0]
        self.fresh += 1
        return self.fresh - 1 if self.fresh <= self.n else None


def simulate(flows, limit):
    """Returns the completion times of `flows`, and the time of each drop, with a queue of `limit` bytes."""
    order, events, queue, drops, busy = itertools.count(), [], [], [], False

    def post(t, what, *item):
        """Puts off `what` to the time `t`. Of several at the same time, arrivals are first."""
        heapq.heappush(events, (t, what != "arrive", next(order), what, item))

    def start_timer(t, a):
        flows[a].timer = t + RTO
        post(t + RTO, "timer", a)

    def send(t, a):
        flow = flows[a]
        if t >= flow.free and (packet := flow.next_packet()) is not None:
            flow.flying.add(packet)
            put(t, a, packet, PACKET)
            post(flow.free, "send", a)
            if flow.timer == math.inf:
                start_timer(t, a)

    def put(t, a, packet, size):
        flow = flows[a]
        flow.free = max(t, flow.free) + size * BYTE
        post(flow.free + DELAY, "arrive", a, packet, size, flow.n - len(flow.acked))

    def serve(t):
        nonlocal busy
        busy = bool(queue)
        if queue:
            best = min(queue, key=lambda x: x[3])[0]
            item = queue.pop(next(i for i, x in enumerate(queue) if x[0] == best))
            post(t + item[2] * BYTE, "sent", *item)

    for a in range(len(flows)):
        post(flows[a].start, "send", a)
    while any(flow.done is None for flow in flows):
        t, *_, what, item = heapq.heappop(events)
        a, flow = item[0], flows[item[0]]
        if what == "arrive":
            queue.append(item)
            if not busy:
                serve(t)
            if sum(x[2] for x in queue) > limit:
                drops.append(t)
                del queue[max(range(len(queue)), key=lambda i: (queue[i][3], i))]
        elif what == "sent":
            serve(t)
            flow.got |= {item[1]} - {None}
            if len(flow.got) == flow.n and flow.done is None:
                flow.done = t + DELAY - flow.start
            post(t + 3 * DELAY + 2 * ACK * BYTE, "ack", a, item[1])
        elif what == "ack":
            if (
                packet := item[1]
            ) is None and flow.in_a_row >= 5:  # a probe's answer: go on with a window of one packet
                flow.in_a_row, flow.timer = 0, math.inf
            elif packet is not None and packet not in flow.acked:
                flow.acked, flow.flying, flow.in_a_row = flow.acked | {packet}, flow.flying - {packet}, 0
                if packet == flow.in_order:
                    flow.cwnd = min(flow.cwnd + (1 if flow.cwnd < flow.ssthresh else 1 / flow.cwnd), flow.most)
                    while flow.in_order in flow.acked:
                        flow.in_order += 1
                start_timer(t if flow.flying else math.inf, a)
        elif what == "timer" and t == flow.timer and len(flow.acked) < flow.n:
            flow.ssthresh, flow.cwnd, flow.in_a_row = max(flow.cwnd / 2, 2), 1.0, flow.in_a_row + 1
            flow.again, flow.flying = flow.again | flow.flying, set()
            start_timer(t, a)
            if flow.in_a_row >= 5:
                put(t, a, None, HEADER)
        if what in ("send", "ack", "timer"):
            send(t, a)
    return [flow.done for flow in flows], drops


def check(results):
    """Returns the rows of a case: drops of the first windows, and the completion time of every flow."""
    flows = [Flow(start * 1000, size // 1000) for start, *_, size in results.flows()]
    done, drops = simulate(flows, int(results.scenario["switch"]["queue_limit"][:-1]))
    table, port = results.table("flows"), results.table("ports")
    got = dict(zip(table["id"], table["fct_ns"] * 1e3, strict=True))
    if drops:
        first = RTT // 200_000 * 200  # ns, the last sample in the first round trip
        counts = sum(t < first * 1000 for t in drops), port["drops"][port["t_ns"] == first][0]
        yield "drops of the first windows", *counts, DROPS
    order = sorted(range(len(flows)), key=lambda a: flows[a].n)
    for place, a in enumerate(order):
        waited = sum(flows[b].start < flows[a].start + done[a] for b in order[:place])
        yield f"completion of {flows[a].n} packets, us", done[a] / 1e6, got[a] / 1e6, HANDOVER * waited or ALONE
    if len(flows) < 10:
        yield "worst difference of completions, us", 0, max(abs(got[a] - done[a]) for a in order) / 1e6, SAME


INCAST = {"traffic.0.path": "pfabric-incast.csv", "topology.hosts": 11, "probe.0.queue": "sw0->h10"}
CASES = {
    "pfabric-burst": ("pfabric", {}, check),
    "pfabric-srpt": ("pfabric", {"traffic.0.path": "pfabric-srpt.csv", "switch.queue_limit": "1000000000B"}, check),
    "pfabric-incast": ("pfabric", INCAST, check),
}
