"""PERC: exact max-min rates, and control packets that travel through links without data.

L. Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets 2015, sections 3.2 and 4.2.

A link answers a control packet as it passes, the source sends the next one at once, and a rate rises only after two base
RTTs of the path. Links are delays: data and acknowledgments are left out, so a control packet never waits.

Tolerances, written before the first comparison:

RATE      Settled rates are exact. 1e-6 of the max-min rate allows for whole bit/s.
settling  A control packet has priority, but waits for the packet on the wire: at most a full data packet at each link of the
          path, and an acknowledgment at each link of the way back. The time of settling may be late by that for each round
          trip until then. Of many flows, a small delay changes who asks first: one base RTT (PHASE_RTTS).
DISTANCE  Distance of rates over time in the first 20 round trips, as a share of the optimum: a flow's rate changes about five
          times, each change up to the above late. 2 % in the mean.
"""

import heapq
import itertools

import numpy as np

RATE = 1e-6
PHASE_RTTS = 1.0
DISTANCE = 0.02
DATA, ACK, CONTROL = 1048 * 8, 60 * 8, 40 * 8  # bits on the wire
UNITS = {"Gbps": 1e9, "us": 1e-6, "ns": 1e-9, "ms": 1e-3}


def quantity(text):
    return next(float(text[: -len(unit)]) * factor for unit, factor in UNITS.items() if text.endswith(unit))


def network(topology):
    """Returns `route(src, dst)` of `topology`: the links of the path as (name, capacity, delay)."""
    if topology["kind"] == "star":
        link = quantity(topology["rate"]), quantity(topology["delay"])
        return lambda src, dst: [(f"up{src}", *link), (f"down{dst}", *link)]
    n, delay = topology["hosts_per_switch"], quantity(topology["link_delay"])
    host = quantity(topology["host_rate"]), quantity(topology["host_delay"])
    between = [(f"link{i}", quantity(rate), delay) for i, rate in enumerate(topology["link_rates"])]
    return lambda src, dst: [(f"up{src}", *host), *between[src // n : dst // n], (f"down{dst}", *host)]


def max_min(routes):
    """Returns the max-min rates: again and again the link with the least share fixes the flows it has left."""
    rates, left = {}, {link[0]: link[1] for route in routes for link in route}
    while len(rates) < len(routes):
        names = [{link[0] for link in route} for route in routes]
        active = {x: [a for a in range(len(routes)) if a not in rates and x in names[a]] for x in left}
        share, tightest = min((left[x] / len(active[x]), x) for x in left if active[x])
        for a in active[tightest]:
            rates[a] = share
            left |= {name: left[name] - share for name in names[a]}
    return [rates[a] for a in range(len(routes))]


class Link:
    """A link of eq. (2): a flow is told the share that it would get if its own demand had no limit."""

    def __init__(self, capacity):
        self.capacity, self.demands = capacity, {}

    def answer(self, flow, hop, message):
        self.demands[flow] = message[hop]
        others, taken = sorted(d for a, d in self.demands.items() if a != flow), 0.0
        shares = []
        for i, demand in enumerate([*others, np.inf]):
            shares.append((self.capacity - taken) / (len(others) + 1 - i))
            if shares[-1] <= demand:
                break
            taken += demand
        return [*message[:hop], shares[-1], *message[hop + 1 :]]

    @staticmethod
    def first(route):
        return [np.inf] * len(route)

    @staticmethod
    def turn(shares):
        """Returns the target rate, and the demands of the next message by eq. (1)."""
        return min(shares), [min(shares[:i] + shares[i + 1 :], default=np.inf) for i in range(len(shares))]


def rtt(route, out, back):
    return sum(2 * delay + (out + back) / capacity for _, capacity, delay in route)


def targets_of(flows, kind, until):
    """Returns the targets (time, rate) of each of `flows` (route, start) up to `until`, with links of class `kind`."""
    links = {name: kind(capacity) for route, _ in flows for name, capacity, _ in route}
    targets, order = [[] for _ in flows], itertools.count()
    events = [(start, next(order), a, 0, kind.first(route)) for a, (route, start) in enumerate(flows)]
    heapq.heapify(events)
    while events[0][0] < until:
        t, _, a, hop, message = heapq.heappop(events)
        route, _ = flows[a]
        if hop < len(route):
            name, capacity, delay = route[hop]
            t, hop, message = t + delay + CONTROL / capacity, hop + 1, links[name].answer(a, hop, message)
        else:
            t, hop = t + rtt(route, CONTROL, CONTROL) / 2, 0
            target, message = kind.turn(message)
            targets[a].append((t, target))
        heapq.heappush(events, (t, next(order), a, hop, message))
    return targets


def rate(targets, wait, t):
    """Returns the rate at time `t`: the least target in force during the last `wait`."""
    ends = [u for u, _ in targets[1:]] + [np.inf]
    return min((r for (u, r), end in zip(targets, ends) if u <= t and end > t - wait), default=0.0)


def check(kind, few):
    """Returns the check of a case with links of class `kind`; `few`: the phases of control packets are known."""

    def rows(results):
        route, until = network(results.scenario["topology"]), quantity(results.scenario["duration"])
        flows = [(route(src, dst), start / 1e9) for start, src, dst, _ in results.flows()]
        targets, optimum = targets_of(flows, kind, until), max_min([route for route, _ in flows])
        waits, last = [2 * rtt(route, DATA, ACK) for route, _ in flows], max(start for _, start in flows)
        steps = sorted({t for a, w in zip(targets, waits) for u, _ in a for t in (u, u + w) if last <= t < until})
        near = [all(abs(rate(a, w, t) - o) <= 0.1 * o for a, w, o in zip(targets, waits, optimum)) for t in steps]
        settled = steps[len(near) - near[::-1].index(False)] - last
        late = settled / (max(waits) / 2) * max(rtt(route, DATA, ACK) - rtt(route, 0, 0) for route, _ in flows)
        changes, got = results.table("convergence"), results.series("rates", "rate_bps")
        yield "worst error of settled rates", 0, max(abs(got[a][1][-1] / o - 1) for a, o in enumerate(optimum)), RATE
        time = changes["time_ns"][changes["converged"]][-1] / 1e3
        yield "time of settling, us", settled * 1e6, time, 1e6 * (late if few else PHASE_RTTS * max(waits) / 2)
        if few:
            gap = 0.0
            for a, o in enumerate(optimum):
                first = got[a][0] < 20 * max(waits) / 2
                want = [rate(targets[a], waits[a], u) for u in got[a][0][first]]
                gap = max(gap, np.mean(np.abs(got[a][1][first] - want)) / o)
            yield "worst distance of rates over time", 0, gap, DISTANCE

    return rows


CASES = {
    "perc-chain": ("chain", {}, check(Link, True)),
    "perc-late": ("chain", {"traffic.0.path": "chain-late.csv"}, check(Link, False)),
    "perc-chain5": ("chain5", {}, check(Link, True)),
    "perc-star": ("star", {}, check(Link, False)),
}
