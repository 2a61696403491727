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
        self.previous: Ack | None = None
        self.power: float | None = None
        self.last_update = 0
        return self.allowance()

    def on_ack(self, ack: Ack) -> Allowance:
        before, tau = self.previous, self.tau_ns
        if before is None or before.now_ns + tau + ack.rtt_ns < ack.now_ns:  # the first, or idle for more than τ
            self.power, self.last_update = None, max(self.last_update, ack.snd_nxt)
        elif before.now_ns == ack.now_ns:
            return self.allowance()
        else:
            dt = ack.now_ns - before.now_ns
            power = max((ack.rtt_ns - before.rtt_ns) / dt + 1.0, self.floor) * ack.rtt_ns / tau  # (θ̇ + 1) θ / τ
            dt = min(dt, tau)
            self.power = power if self.power is None else (self.power * (tau - dt) + power * dt) / tau
            if self.last_update < ack.ack_seq:  # once a round trip
                old = max(ack.cwnd_at_send, self.least) / max(self.power, 1e-9)
                cwnd = self.gamma * (old + self.beta) + round((1 - self.gamma) * 1e9) / 1e9 * self.cwnd
                self.cwnd = min(max(cwnd, self.least), self.most)
                self.last_update = max(self.last_update, ack.snd_nxt)
        self.previous = ack
        return self.allowance()

    def allowance(self) -> Allowance:
        return Allowance(cwnd_bytes=self.cwnd, rate_bps=self.cwnd * 8 / self.tau_s)
