"""XCP: packets of a few flows through three links, each with its own efficiency and fairness controller.

D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002, section 3, in
bytes of window, with control intervals d of the mean RTT:

    phi = alpha d (C - y) - beta Q            h = max(0, gamma y d - |phi|)
    H   = (h + max(phi, 0))/d rtt x / sum x - (h + max(-phi, 0))/d rtt s / sum s      x = rtt s / cwnd
    cwnd <- max(cwnd + H, one packet), with the least H of the path

Q is the least queue that an arriving packet has seen, without the packet on the wire; sums are those of the interval before. A
flow's first packets carry no RTT and get no feedback. Left out: losses, the other direction (acknowledgments are a delay).
The phases of intervals are draws of fairrate's: the model is the mean of eight runs with draws of its own.

Tolerances, written before the first comparison:

RTTS      Times: a window moves once an interval, each of three links has its phase, and a rise has to pass all three: two.
USE       Steady utilisation: a packet more or less in an interval of 114: 1 %.
QUEUE     Mean steady queue: flows are bunched as their start and their phases have it: two packets.
DECAY     Factor by which old and new flows approach each other in an RTT, by a fit over 20 RTTs: the gap ends at a tenth, known
          to a packet of 25 a flow, so 4 % of its start over a factor of ten: 0.01.
WINDOWS   Distance of windows over time, as a share of the fair window, old and new flows apart: 5 %, half an interval
          of a gap that closes by a tenth in an interval, or two packets of the fair 28.
"""

import heapq
import itertools
import random

import numpy as np

RTTS = 2.0
USE = 0.01
QUEUE = 2 * 1.048
DECAY = 0.01
WINDOWS = 0.05

ALPHA, BETA, GAMMA = 0.4, 0.226, 0.1
BITS, ACK = 1048 * 8, 60 * 8
PAYLOAD = 1000
PATH = [(100e9, 1e-6), (40e9, 9.80056e-6), (100e9, 1e-6)]  # bit/s and s of the links of `cases/xcp-*.toml`
D = sum(2 * delay + (BITS + ACK) / c for c, delay in PATH)


class Link:
    """A FIFO link with XCP's two controllers. Amounts are bytes, and bytes/s."""

    def __init__(self, capacity, phase):
        self.capacity, self.busy, self.d = capacity / 8, 0.0, D
        self.end = self.begin = phase * D
        self.clear()
        self.gain = self.loss = 0.0  # per x and rtt, per s and rtt

    def clear(self):
        self.input = self.x = self.rtt_x = 0.0
        self.queue = np.inf

    def tick(self):
        """Ends an interval and returns the time of the next end."""
        y, queue = self.input / self.d, 0.0 if self.queue == np.inf else self.queue
        phi = ALPHA * self.d * (self.capacity - y) - BETA * queue
        h = max(0.0, GAMMA * self.input - abs(phi))
        self.gain = (h + max(phi, 0.0)) / self.d / self.x if self.x else 0.0
        self.loss = (h + max(-phi, 0.0)) / self.d / self.input if self.input else 0.0
        if self.x:
            self.d = self.rtt_x / self.x
        self.clear()
        self.end += self.d
        return self.end

    def forward(self, t, packet):
        """Returns when `packet` has left, and lowers its feedback."""
        size = BITS / 8
        self.queue = min(self.queue, max(0.0, (self.busy - t) * self.capacity - size))
        self.input += size
        if packet["rtt"]:
            x = packet["rtt"] * size / packet["cwnd"]
            self.x += x
            self.rtt_x += packet["rtt"] * x
            feedback = self.gain * packet["rtt"] * x - self.loss * packet["rtt"] * size
            packet["feedback"] = min(packet["feedback"], feedback)
        self.busy = max(self.busy, t) + size / self.capacity
        return self.busy


def simulate(starts, until, seed):
    """Returns lists of (t, cwnd) by flow, and of the bottleneck's (t, bytes waiting) at arrivals."""
    draw = random.Random(seed)
    # Every flow has a first and a last link of its own.
    links = [[Link(PATH[0][0], draw.random()), None, Link(PATH[2][0], draw.random())] for _ in starts]
    bottleneck = Link(PATH[1][0], draw.random())
    for path in links:
        path[1] = bottleneck
    cwnd, flying, rtt = [2.0 * PAYLOAD for _ in starts], [0] * len(starts), [None] * len(starts)
    windows, queue, order = [[] for _ in starts], [], itertools.count()
    events = [(link.end, next(order), "tick", link) for link in {id(l): l for path in links for l in path}.values()]
    events += [(start, next(order), "ack", {"flow": a, "rtt": None, "first": True}) for a, start in enumerate(starts)]
    heapq.heapify(events)
    back = sum(delay + ACK / c for c, delay in PATH)
    while events[0][0] < until:
        t, _, what, item = heapq.heappop(events)
        if what == "tick":
            heapq.heappush(events, (item.tick(), next(order), "tick", item))
            continue
        a = item["flow"]
        if what == "ack":
            if "first" not in item:
                flying[a] -= PAYLOAD
                if item["rtt"]:
                    cwnd[a] = max(cwnd[a] + item["feedback"], PAYLOAD)
                rtt[a] = t - item["sent"]
            windows[a].append((t, cwnd[a]))
            while flying[a] + PAYLOAD <= cwnd[a]:
                flying[a] += PAYLOAD
                packet = {"flow": a, "rtt": rtt[a], "cwnd": cwnd[a], "feedback": np.inf, "sent": t}
                heapq.heappush(events, (t, next(order), 0, packet))
            continue
        if what == 1:
            queue.append((t, max(0.0, (bottleneck.busy - t) * bottleneck.capacity - BITS / 8)))
        left = links[a][what].forward(t, item) + PATH[what][1]
        after = (left, next(order), what + 1, item) if what < 2 else (left + back, next(order), "ack", item)
        heapq.heappush(events, after)
    return windows, queue


def numbers(t, windows, starts, use, queue):
    """Returns the compared numbers of windows by flow at the times `t`, and the windows."""
    join, pipe = starts[-1], PATH[1][0] * D / 8 * PAYLOAD / (BITS / 8)
    found = {"steady utilisation": use, "steady queue, kB": queue / 1e3}
    if join == 0:
        found["windows at 95 % of the pipe, RTTs"] = t[np.flatnonzero(sum(windows) < 0.95 * pipe)[-1]] / D
        return found
    jain = sum(windows) ** 2 / len(windows) / sum(w**2 for w in windows)
    found["Jain index 0.99 after joining, RTTs"] = (t[np.flatnonzero((jain < 0.99) & (t > join))[-1]] - join) / D
    gap = np.mean(windows[: len(windows) // 2], 0) - np.mean(windows[len(windows) // 2 :], 0)
    fit = (join + 5 * D < t) & (t < join + 25 * D)
    found["gap of old and new, factor an RTT"] = np.exp(np.polyfit(t[fit] / D, np.log(np.maximum(gap[fit], 1)), 1)[0])
    return found


TOLERANCES = [USE, QUEUE, RTTS, DECAY]


def check(*starts):
    """Returns the check of a case whose flows, of hosts of their own, have these `starts`."""

    def rows(results):
        table, port = results.table("rates"), results.table("ports")
        until = port["t_ns"][-1] / 1e9
        t = np.arange(1e-6, until, 1e-6)
        at = lambda ts, ws: np.r_[0.0, ws][np.searchsorted(ts, t, "right")]
        models, mean = [], []
        for seed in range(8):
            windows, queue = simulate(starts, until, seed)
            sampled = [at(*zip(*w)) for w in windows]
            late = [q for u, q in queue if u > until / 2]
            use = len(late) * BITS / PATH[1][0] / (until / 2)
            models.append(numbers(t, sampled, starts, use, np.mean(late)))
            mean.append(sampled)
        of = [table["flow"] == a for a in range(len(starts))]
        got = [at(table["t_ns"][f] / 1e9, table["cwnd_bytes"][f]) for f in of]
        half = port["t_ns"] / 1e9 > until / 2
        sent = port["tx_bytes"][half]
        use = (sent[-1] - sent[0]) * 8 / PATH[1][0] / (until / 2)
        found = numbers(t, got, starts, use, np.mean(port["qlen_bytes"][half]))
        for (name, value), tolerance in zip(found.items(), TOLERANCES):
            yield name, np.mean([m[name] for m in models]), value, tolerance
        groups = [slice(0, 2), slice(2, 4)]
        gap = max(np.mean(np.abs(np.mean(np.mean(mean, 0)[g], 0) - np.mean(got[g], 0))[t < starts[-1] + 40 * D]) for g in groups)
        yield "worst distance of windows over time", 0, gap / (PATH[1][0] * D / 8 * 1000 / 1048 / len(starts)), WINDOWS

    return rows


CASES = {"xcp-start": check(0.0, 0.0, 0.0, 0.0), "xcp-join": check(0.0, 0.0, 1.2e-3, 1.2e-3)}
