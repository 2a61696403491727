"""Charny: one stamped rate for all links, in the loop of control packets of `perc.py`, with its tolerances.

A. Charny, D. D. Clark, R. Jain, "Congestion Control with Explicit Rate Indication", ICC 1995, as the peer that PERC is
compared with. A message is (u-bit, stamp).
"""

import numpy as np

from perc import check


class Link:
    """A link with one advertised rate mu. Flows with a stamp of at most mu are marked: other links limit them."""

    def __init__(self, capacity):
        self.capacity, self.mu, self.stamps = capacity, capacity, {}

    def answer(self, flow, hop, message):
        self.stamps[flow] = message[1]
        marked, n = list(self.stamps.values()), len(self.stamps)
        for _ in range(2):
            marked = [stamp for stamp in marked if stamp <= self.mu]
            spare = self.capacity - sum(marked)
            self.mu = spare / (n - len(marked)) if n > len(marked) else spare + max(marked)
        if message[1] >= self.mu * (1 - 1e-9):
            message = (True, self.mu)
        self.stamps[flow] = message[1]
        return message

    @staticmethod
    def first(_):
        return False, np.inf

    @staticmethod
    def turn(message):
        """Returns the target rate, and the next message: the same stamp if a link has lowered it, else no limit."""
        return message[1], (False, message[1] if message[0] else np.inf)


CASES = {
    "charny-chain": ("chain", {"transport.cc": "charny"}, check(Link, True)),
    "charny-chain5": ("chain5", {"transport.cc": "charny"}, check(Link, True)),
    "charny-star": ("star", {"transport.cc": "charny"}, check(Link, False)),
}
