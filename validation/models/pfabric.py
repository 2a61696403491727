"""pFabric: packets of flows from hosts of their own to one receiver, whose port has the queue.

M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, sections 4.1 and 4.2.

Port: when full, it drops the packet with the largest remaining size, the last of several; it sends the earliest packet of the flow
that has the packet with the least. Host: a window of a bandwidth-delay product, slow start, 1.25 of it at most; acknowledgments
say what has arrived, and only a timer of three round trips says what is lost; after five in a row, probes of a header.
Left out: the other direction (acknowledgments are a delay, as nothing else goes there), and more than one queue.

Tolerances, written before the first comparison:

ALONE     A flow that never has to wait, against its time alone in the model: the packet on the wire before its first, and one before
          any later packet that comes after a gap: two packets' times.
DROPS     Packets dropped of the first windows, before any acknowledgment. Starts are 0.1 us apart, so that no two packets tie;
          whether the packet on the wire counts to the limit is not said: two.
HANDOVER  A flow that waits for a better one goes on with its next timeout or probe. What restarts its timer is TCP's detail, so
          the phase is not known: one timeout (three RTTs) for each flow with less to send that it can have waited for.
LAST      The last completion: half of a timeout for each hand-over, as early and late ones add up.
"""

import csv
import heapq
import itertools
import math
from pathlib import Path

BYTE, DELAY = 800, 2_950_000  # ps of a byte, and of every link of `cases/pfabric-*.toml`; times are whole ps
PACKET, HEADER, ACK = 1048, 48, 60
RTT = 4 * DELAY + 2 * (PACKET + ACK) * BYTE
RTO = 3 * RTT
BDP = RTT / BYTE / PACKET  # packets

ALONE, DROPS, HANDOVER, LAST = 2 * PACKET * BYTE / 1e6, 2, RTO / 1e6, RTO / 2e6


class Flow:
    """The sender and the receiver of `n` packets from `start` on."""

    def __init__(self, start, n):
        self.start, self.n, self.fresh, self.in_order, self.again = start, n, 0, 0, []
        self.flying, self.acked, self.got = set(), set(), set()
        self.cwnd, self.most, self.ssthresh = math.ceil(BDP), math.ceil(1.25 * BDP), math.inf
        self.timer, self.in_a_row, self.free, self.done = math.inf, 0, start, None

    def next_packet(self):
        """Returns the next packet that the window lets go, or `None`."""
        if self.in_a_row >= 5 or len(self.flying) + 1 > self.cwnd:
            return None
        self.again = [p for p in self.again if p not in self.acked]
        if self.again:
            return self.again.pop(0)
        if self.fresh == self.n:
            return None
        self.fresh += 1
        return self.fresh - 1


def simulate(flows, limit):
    """Returns the completion times of `flows`, and the time of each drop, with a queue of `limit` bytes."""
    order, events, queue, drops = itertools.count(), [], [], []
    # Of what happens at the same time, arrivals are first.
    post = lambda t, what, *item: heapq.heappush(events, (t, what != "arrive", next(order), what, item))
    busy = False

    def send(t, a):
        flow = flows[a]
        if t < flow.free:
            return
        packet = flow.next_packet()
        if packet is not None:
            flow.flying.add(packet)
            put(t, a, packet, PACKET)
            post(flow.free, "send", a)
            flow.timer = min(flow.timer, t + RTO)
            post(flow.timer, "timer", a)

    def put(t, a, packet, size):
        flow = flows[a]
        flow.free = max(t, flow.free) + size * BYTE
        post(flow.free + DELAY, "arrive", a, packet, size, flow.n - len(flow.acked))

    def serve(t):
        nonlocal busy
        busy = bool(queue)
        if queue:
            best = min(queue, key=lambda x: x[3])[0]
            item = next(x for x in queue if x[0] == best)
            queue.remove(item)
            post(t + item[2] * BYTE, "sent", *item)

    for a, flow in enumerate(flows):
        post(flow.start, "send", a)
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
            if item[1] is not None:
                flow.got.add(item[1])
            if len(flow.got) == flow.n and flow.done is None:
                flow.done = t + DELAY - flow.start
            post(t + 3 * DELAY + 2 * ACK * BYTE, "ack", a, item[1])
        elif what == "ack":
            packet = item[1]
            if packet is None and flow.in_a_row >= 5:  # the answer of a probe: go on with a window of one packet
                flow.in_a_row, flow.timer = 0, math.inf
            elif packet is not None and packet not in flow.acked:
                flow.in_a_row = 0
                flow.acked.add(packet)
                flow.flying.discard(packet)
                if packet == flow.in_order:
                    flow.cwnd = min(flow.cwnd + (1 if flow.cwnd < flow.ssthresh else 1 / flow.cwnd), flow.most)
                    while flow.in_order in flow.acked:
                        flow.in_order += 1
                flow.timer = t + RTO if flow.flying else math.inf
                if flow.flying:
                    post(flow.timer, "timer", a)
            send(t, a)
        elif what == "timer" and t == flow.timer and len(flow.acked) < flow.n:
            flow.ssthresh, flow.cwnd, flow.in_a_row = max(flow.cwnd / 2, 2), 1.0, flow.in_a_row + 1
            flow.again = sorted({*flow.again, *flow.flying})
            flow.flying.clear()
            flow.timer = t + RTO
            post(flow.timer, "timer", a)
            if flow.in_a_row >= 5:
                put(t, a, None, HEADER)
            send(t, a)
        elif what == "send":
            send(t, a)
    return [flow.done for flow in flows], drops


def check(results):
    """Returns the rows of a case: drops of the first windows, and the completion time of every flow."""
    with (Path(__file__).parent / "cases" / results.scenario["traffic"][0]["path"]).open() as file:
        flows = [Flow(int(x["start_ns"]) * 1000, int(x["bytes"]) // 1000) for x in csv.DictReader(file)]
    limit = int(results.scenario["switch"]["queue_limit"][:-1])
    done, drops = simulate(flows, limit)
    table, port = results.table("flows"), results.table("ports")
    got = dict(zip(table["id"], table["fct_ns"] * 1e3))
    if drops:
        last = port["t_ns"][port["t_ns"] < RTT / 1e3][-1]
        first = port["drops"][port["t_ns"] == last][0]
        yield "drops of the first windows", sum(t < last * 1000 for t in drops), first, DROPS
    order = sorted(range(len(flows)), key=lambda a: flows[a].n)
    for place, a in enumerate(order):
        # A flow that ends before a better one starts has not waited for it.
        waited = sum(flows[b].start < flows[a].start + done[a] for b in order[:place])
        yield f"completion of {flows[a].n} packets, us", done[a] / 1e6, got[a] / 1e6, HANDOVER * waited or ALONE
    end = lambda times: max(flow.start + times[a] for a, flow in enumerate(flows)) / 1e6
    yield "last completion, us", end(done), end(got), LAST * (len(flows) - 1)


CASES = {"pfabric-burst": check, "pfabric-srpt": check, "pfabric-incast": check}
