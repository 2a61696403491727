"""Windows of one TCP and of two coupled subflows at the same rate of losses, round trip by round trip.

Each packet is lost with probability p. A round trip with a loss halves the subflow's window, any other lets it grow: by one
packet (TCP), or by a packet times alpha w_r / W (RFC 6356, equal round-trip times, W the sum of windows). Alpha is max(w)/W as
the RFC has it, or 1/2, which is its value for equal windows. OLIA without its term for good paths grows by (w_r/W)^2.

    python coupled.py

prints the mean of W over TCP's mean window. It is not compared with a run of fairrate: docs/coexistence.md quotes it.
"""

import random

ROUNDS = 400_000

GROWTH = {
    "tcp": lambda windows: [1.0],
    "lia": lambda windows: [max(windows) * w / sum(windows) ** 2 for w in windows],
    "lia, alpha of 1/2": lambda windows: [0.5 * w / sum(windows) for w in windows],
    "olia, alpha_r of 0": lambda windows: [(w / sum(windows)) ** 2 for w in windows],
}


def mean_window(kind, loss, seed=1):
    """Returns the mean of the sum of windows, in packets."""
    draws = random.Random(seed)
    windows = [40.0] if kind == "tcp" else [20.0, 20.0]
    total = 0.0
    for _ in range(ROUNDS):
        total += sum(windows)
        growth = GROWTH[kind](windows)
        for i, window in enumerate(windows):
            lost = draws.random() < 1.0 - (1.0 - loss) ** window
            windows[i] = max(window / 2.0, 1.0) if lost else window + growth[i]
    return total / ROUNDS


if __name__ == "__main__":
    for loss in (1 / 2_000, 1 / 8_000, 1 / 20_000):
        tcp = mean_window("tcp", loss)
        ratios = ", ".join(f"{kind} {mean_window(kind, loss) / tcp:.2f}" for kind in list(GROWTH)[1:])
        print(f"a loss in {1 / loss:.0f} packets: TCP has {tcp:.0f} packets; {ratios}")
