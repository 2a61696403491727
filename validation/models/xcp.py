"""XCP: packets of a few flows through three links, each with its own efficiency and fairness controller.

D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002, section 3, in
bytes of window, with control intervals d of the mean RTT:

    phi = alpha d (C - y) - beta Q            h = max(0, gamma y d - |phi|)
    H   = (h + max(phi, 0))/d rtt x / sum x - (h + max(-phi, 0))/d rtt s / sum s      x = rtt s / cwnd
    cwnd <- max(cwnd + H, one packet), with the least H of the path

Q is the least queue that an arriving packet has seen, without the packet on the wire; sums are those of the interval before. A
flow's first packets carry no RTT and get no feedback. Phases of intervals are drawn: the model is the mean of eight runs. Left
out: losses, and the other direction (acknowledgments are a delay).

Tolerances, written before the first comparison:

RTTS      Times: a window moves once an interval, three links have phases of their own, and a rise has to pass all: two.
USE       Steady utilisation: a packet more or less in an interval of 114: 1 %.
QUEUE     Mean steady queue: flows are bunched as starts and phases have it: two packets.
DECAY     Factor by which old and new flows approach each other in an RTT, by a fit over 20 RTTs in which the gap falls to
          a tenth: known to a packet of 25, so 4 % of its start: 0.01.
WINDOWS   Distance of windows over time, old and new flows apart: half an interval of a gap that closes by a tenth in
          one, or two packets of the fair 28: 5 % of the fair window.
"""

import heapq
import itertools
import random

import numpy as np

RTTS, USE, QUEUE, DECAY, WINDOWS = 2.0, 0.01, 2 * 1.048, 0.01, 0.05
ALPHA, BETA, GAMMA = 0.4, 0.226, 0.1
SIZE, PAYLOAD, BITS, ACK = 1048, 1000, 1048 * 8, 60 * 8  # bytes of a packet, and of its payload; bits
PATH = [(100e9, 1e-6), (40e9, 9.80056e-6), (100e9, 1e-6)]  # bit/s and s of the links of `cases/link.toml`
D = sum(2 * delay + (BITS + ACK) / c for c, delay in PATH)
PIPE = PATH[1][0] * D / BITS * PAYLOAD  # bytes of payload


class Link:
    """A FIFO link with XCP's two controllers. Amounts are bytes, and bytes/s."""

    def __init__(self, capacity, phase):
        self.capacity, self.busy, self.d, self.end = capacity / 8, 0.0, D, phase * D
        self.input = self.x = self.rtt_x = self.gain = self.loss = 0.0
        self.queue = np.inf

    def waiting(self, t):
        return max(0.0, (self.busy - t) * self.capacity - SIZE)

    def tick(self):
        """Ends an interval and returns the time of the next end."""
        phi = ALPHA * (self.d * self.capacity - self.input) - (BETA * self.queue if self.input else 0.0)
        h = max(0.0, GAMMA * self.input - abs(phi))
        self.gain = (h + max(phi, 0.0)) / self.d / self.x if self.x else 0.0
        self.loss = (h + max(-phi, 0.0)) / self.d / self.input if self.input else 0.0
        if self.x:
            self.d = self.rtt_x / self.x
        self.input, self.x, self.rtt_x, self.queue, self.end = 0.0, 0.0, 0.0, np.inf, self.end + self.d
        return self.end

    def forward(self, t, packet):
        """Returns when `packet` has left, and lowers its feedback."""
        self.queue, self.input = min(self.queue, self.waiting(t)), self.input + SIZE
        if rtt := packet["rtt"]:
            x = rtt * SIZE / packet["cwnd"]
            self.x, self.rtt_x = self.x + x, self.rtt_x + rtt * x
            packet["feedback"] = min(packet["feedback"], self.gain * rtt * x - self.loss * rtt * SIZE)
        self.busy = max(self.busy, t) + SIZE / self.capacity
        return self.busy


def simulate(starts, until, seed):
    """Returns lists of (t, payload of the window) by flow, and of (t, waiting time) of the bottleneck's arrivals."""
    draw, order = random.Random(seed), itertools.count()
    # Every flow has a first and a last link of its own.
    links = [Link(capacity, draw.random()) for capacity, _ in [PATH[1]] + [PATH[0], PATH[2]] * len(starts)]
    paths = [[links[2 * a + 1], links[0], links[2 * a + 2]] for a in range(len(starts))]
    cwnd, flying, rtt = [2.0 * SIZE for _ in starts], [0] * len(starts), [None] * len(starts)
    windows, queue, back = [[] for _ in starts], [], sum(delay + ACK / c for c, delay in PATH)
    events = [(link.end, next(order), "tick", link) for link in links]
    events += [(start, next(order), "start", {"flow": a}) for a, start in enumerate(starts)]
    heapq.heapify(events)
    while events[0][0] < until:
        t, _, what, item = heapq.heappop(events)
        if what == "tick":
            heapq.heappush(events, (item.tick(), next(order), what, item))
            continue
        a = item["flow"]
        if what in (0, 1, 2):  # the link that a packet comes to
            if what == 1:
                queue.append((t, max(0.0, links[0].busy - t)))
            after = paths[a][what].forward(t, item) + PATH[what][1] + (back if what == 2 else 0.0)
            heapq.heappush(events, (after, next(order), "ack" if what == 2 else what + 1, item))
            continue
        if what == "ack":
            flying[a] -= SIZE
            if item["rtt"]:
                cwnd[a] = max(cwnd[a] + item["feedback"], SIZE)
            rtt[a] = t - item["sent"]
        windows[a].append((t, cwnd[a] / SIZE * PAYLOAD))
        while flying[a] + SIZE <= cwnd[a]:
            flying[a] += SIZE
            packet = {"flow": a, "rtt": rtt[a], "cwnd": cwnd[a], "feedback": np.inf, "sent": t}
            heapq.heappush(events, (t, next(order), 0, packet))
    return windows, queue


def sample(series, t):
    """Returns the values of `series`, times and values, at the times `t`; 0 before the first."""
    return np.r_[0.0, series[1]][np.searchsorted(series[0], t, "right")]


def times(t, windows, join):
    """Returns when the pipe is full; or when flows that join have their share, and how fast the gap to the others closes."""
    if join == 0:
        return {"windows at 95 % of the pipe, RTTs": (t[windows.sum(0) < 0.95 * PIPE][-1] / D, RTTS)}
    jain = windows.sum(0) ** 2 / 4 / (windows**2).sum(0)
    fair = (t[(jain < 0.99) & (t > join)][-1] - join) / D
    fit = (join + 5 * D < t) & (t < join + 25 * D)
    gap = np.log(windows[:2, fit].sum(0) - windows[2:, fit].sum(0))
    decay = np.exp(np.polyfit(t[fit] / D, gap, 1)[0])
    return {"Jain index 0.99 after joining, RTTs": (fair, RTTS), "gap of old and new, factor an RTT": (decay, DECAY)}


def check(results):
    """Returns the rows of a case of four flows, of hosts of their own; the last two start together."""
    starts = [start / 1e9 for start, *_ in results.flows()]
    (sent_t, sent), (_, waiting) = (results.series("ports", x)["sw0->sw1"] for x in ("tx_bytes", "qlen_bytes"))
    until, join, half, t = sent_t[-1], starts[-1], sent_t > sent_t[-1] / 2, np.arange(1e-6, sent_t[-1], 1e-6)
    got = np.array([sample(series, t) for _, series in sorted(results.series("rates", "cwnd_bytes").items())])
    runs = [simulate(starts, until, seed) for seed in range(8)]
    models = [np.array([sample(np.transpose(w), t) for w in run]) for run, _ in runs]
    late = [[wait for u, wait in queue if u > until / 2] for _, queue in runs]
    use = np.array([np.mean([*map(len, late)]) * BITS, (sent[-1] - sent[half][0]) * 8])
    yield "steady utilisation", *use / (PATH[1][0] * until / 2), USE
    # Little's law: bytes that wait are the rate of arrivals times how long they do.
    queue = np.mean([sum(waits) for waits in late]) * SIZE / (until / 2)
    yield "steady queue, kB", queue / 1e3, np.mean(waiting[half]) / 1e3, QUEUE
    for name, (value, tolerance) in times(t, got, join).items():
        yield name, np.mean([times(t, model, join)[name][0] for model in models]), value, tolerance
    gap = (np.mean(models, 0) - got)[:, t < join + 40 * D]
    distance = max(np.abs(pair.mean(0)).mean() for pair in (gap[:2], gap[2:]))
    yield "worst distance of windows over time", 0, distance / (PIPE / 4), WINDOWS


CASES = {
    "xcp-start": ("link", {"transport.cc": "xcp", "traffic.0.path": "link-start.csv"}, check),
    "xcp-join": ("link", {"transport.cc": "xcp", "traffic.0.path": "link-two-and-two.csv"}, check),
}
