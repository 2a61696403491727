"""RCP: the fluid equation of one link whose flows all follow its rate R one round trip later.

N. Dukkipati's thesis, in the form of L. Jose et al., HotNets 2015 (PERC), section 2.1, with T = d = base RTT:

    R <- R (1 + (alpha (gamma C - y) - beta q/d) / C')      C' = gamma C, R between 0.01 packets a round trip and C'
    dq/dt = y - C,  y(t) = sum over flows of R(t - d)

A packet is stamped as it leaves the queue, so waiting in it does not delay the loop. Left out: packets, pacing, the hosts'
links (2.5 times as fast as the bottleneck), and the question of which packet brings a new rate. The phase of the link's
intervals is a draw of fairrate's; the model is run with 48 phases, and the one nearest in rates over time is compared.

Tolerances, written before the first comparison:

STEADY    Mean rate of the last 40 round trips: an interval holds 114 packets, so one packet more or less is 1 %.
DISTANCE  Mean distance of rates over time from the first rate to the end, as a share of the settled rate: 5 %, four packets
          of 114 in an interval (four flows that send in step), and 2 % for the grain of phases.
TIME      R moves once in a round trip, so a threshold is crossed up to one round trip earlier or later, and a flow at
          its lowest rate hears of R up to one round trip late: two.
QUEUE     Largest queue: N packets that arrive together, and half of one phase step (1 %) of a round trip's input: 10 %.
LOWEST    Lowest rate: the time of the deepest dip is within an interval of the update, and R falls by a power: 10 %.
"""

import numpy as np

STEADY = 0.01
DISTANCE = 0.05
TIME_RTTS = 2.0
QUEUE = 0.10
LOWEST = 0.10

C = 40e9  # bit/s, of the bottleneck
D = 24e-6  # s, the base RTT of `cases/link.toml`
TO_LINK = 1e-6 + 1048 * 8 / 100e9  # s, from a host to the end of its first link
STEPS, PHASES = 240, 48  # of a round trip


def fluid(starts, phase, until, alpha=0.5, beta=0.5, gamma=1.0, initial=0.5):
    """Returns the rate R and the queue in bits at every step until the time `until`."""
    dt, capacity = D / STEPS, gamma * C
    least = 0.01 * 8000 / D
    n = int(until / dt)
    rates, queues = np.empty(n), np.empty(n)
    # The first data arrives a round trip after the flow's request has passed the link.
    first = [int((start + TO_LINK) / dt) + STEPS for start in starts]
    r, q, bits, to_update = initial * C, 0.0, 0.0, int(phase * STEPS)
    for i in range(n):
        if to_update == 0:
            change = (alpha * (capacity - bits / D) - beta * q / D) / capacity
            r, bits, to_update = min(max(r * (1 + change), least), capacity), 0.0, STEPS
        to_update -= 1
        # Nothing but the request tells a flow of R before its first data is back.
        y = sum(rates[i - STEPS if i >= f + STEPS else f - STEPS] for f in first if i >= f)
        bits += y * dt
        q = max(0.0, q + (y - C) * dt)
        rates[i], queues[i] = r, q
    return rates, queues


def at_source(rates, t):
    """Returns the rate that a source has at the times `t`: what left the link half a loop ago."""
    i = np.floor((t + TO_LINK - D) / D * STEPS).astype(int)
    return rates[np.clip(i, 0, len(rates) - 1)]


def check(**parameters):
    """Returns the check of a case of one link with these parameters of RCP."""

    def rows(results):
        starts = [start / 1e9 for start, *_ in results.flows()]
        t, got = results.series("rates", "rate_bps")[0]
        t, got = t[t > 1.5 * D], got[t > 1.5 * D]
        queue_t, queue = results.series("ports", "qlen_bytes")["sw0->sw1"]
        settled = parameters.get("gamma", 1.0) * C / len(starts)
        runs = [fluid(starts, phase / PHASES, t[-1] + D, **parameters) for phase in range(PHASES)]
        distance, rates, queues = min(
            ((np.mean(np.abs(at_source(r, t) - got)) / settled, r, q) for r, q in runs), key=lambda run: run[0]
        )
        want, join = at_source(rates, t), starts[-1]
        far = [t[np.flatnonzero(np.abs(x - settled) > 0.1 * settled)[-1]] for x in (want, got)]
        yield "steady rate, Gb/s", settled / 1e9, np.mean(got[t > t[-1] - 40 * D]) / 1e9, STEADY * settled / 1e9
        yield "distance of rates over time", 0, distance, DISTANCE
        yield "within 10 % for good, RTTs", (far[0] - join) / D, (far[1] - join) / D, TIME_RTTS
        first = int((join + D) / D * STEPS)
        peak = max(queues[first:]) / 8e3
        yield "largest queue, kB", peak, max(queue[queue_t > join + D]) / 1e3, QUEUE * peak + len(starts) * 1.048
        after = t > join + D
        low = min(want[after])
        yield "lowest rate, Gb/s", low / 1e9, min(got[after]) / 1e9, LOWEST * low / 1e9

    return rows


def case(name, **parameters):
    settings = {"transport.cc": "rcp", "traffic.0.path": f"link-{name}.csv"}
    return "link", settings | {f"transport.rcp.{key}": value for key, value in parameters.items()}, check(**parameters)


CASES = {
    "rcp-start": case("start"),
    "rcp-join": case("join"),
    "rcp-gentle": case("three", alpha=0.25, beta=0.25, gamma=0.9),
}
