"""θ-PowerTCP (PowerTCP, NSDI 2022, Alg. 2) in Python: the same bits as fairrate's own, as the tests see."""

from fairrate import Ack, Allowance, Controller, Flow, Needs


class ThetaPowerTcp(Controller):
    """Divides the window by power, which round-trip times and their slope tell."""

    needs = Needs(data_overhead_bytes=8, first_ack_only_stored=True)  # a timestamp on data
    gamma, beta_bps, floor = 0.9, 150e6, 0.5

    def on_start(self, flow: Flow) -> Allowance:
        self.tau_ns, self.tau_s = flow.base_rtt_ns, flow.base_rtt_s
        self.most = self.cwnd = flow.line_rate_bps * self.tau_s / 8
        self.least = min(flow.mtu_bytes, self.most)
        self.beta = self.beta_bps * self.tau_s / 8  # bytes a round trip
        self.previous: tuple[float, float] | None = None  # prevRTT and its time
        self.power: float | None = None
        self.last_update = 0
        return self.allowance()

    def on_ack(self, ack: Ack) -> Allowance:
        if self.previous and self.previous[1] + self.tau_ns + ack.rtt_ns < ack.now_ns:
            self.previous = None  # idle for more than τ
        if self.previous is None:
            self.power, self.last_update = None, max(self.last_update, ack.snd_nxt)
        elif self.previous[1] == ack.now_ns:
            return self.allowance()
        else:
            self.update(ack, self.smoothed(ack, *self.previous))
        self.previous = ack.rtt_ns, ack.now_ns
        return self.allowance()

    def smoothed(self, ack: Ack, rtt_ns: float, at_ns: float) -> float:
        dt = ack.now_ns - at_ns
        current = max((ack.rtt_ns - rtt_ns) / dt + 1.0, self.floor)  # θ̇ + 1
        power = current * ack.rtt_ns / self.tau_ns
        dt = min(dt, self.tau_ns)
        self.power = power if self.power is None else (self.power * (self.tau_ns - dt) + power * dt) / self.tau_ns
        return self.power

    def update(self, ack: Ack, power: float) -> None:
        if self.last_update < ack.ack_seq:  # once a round trip
            old = max(ack.cwnd_at_send, self.least) / max(power, 1e-9)
            cwnd = self.gamma * (old + self.beta) + round((1 - self.gamma) * 1e9) / 1e9 * self.cwnd
            self.cwnd = min(max(cwnd, self.least), self.most)
            self.last_update = max(self.last_update, ack.snd_nxt)

    def allowance(self) -> Allowance:
        return Allowance(cwnd_bytes=self.cwnd, rate_bps=self.cwnd * 8 / self.tau_s)
