"""Algorithms in Python."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import polars
import pytest

import fairrate
from fairrate import Ack, Allowance, Controller, Flow, Needs, Packet, Port, PortAgent, Scenario

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from theta_powertcp import ThetaPowerTcp  # noqa: E402


class Fixed(Controller):
    """A window of ten packets."""

    def on_start(self, flow: Flow) -> Allowance:
        self.window = 10 * flow.mtu_bytes
        return Allowance(cwnd_bytes=self.window)

    def on_ack(self, ack: Ack) -> None:
        assert ack.in_flight <= self.window


@pytest.mark.parametrize("threads", [1, 2])
def test_theta_powertcp_is_fairrates_own_to_the_bit(incast: Scenario, threads: int) -> None:
    ours = fairrate.run(incast, cc=ThetaPowerTcp, threads=threads)
    theirs = fairrate.run(incast, cc="theta-powertcp")
    assert ours.fingerprint == theirs.fingerprint
    assert ours.summary["cc"] == ours.label == "ThetaPowerTcp"
    for mine, built_in in [(ours.rates, theirs.rates), (ours.ports, theirs.ports)]:
        assert mine.to_polars().drop("cc", "label").equals(built_in.to_polars().drop("cc", "label"))


def test_no_answer_changes_nothing(incast: Scenario) -> None:
    result = fairrate.run(incast, cc=Fixed)
    rates = result.rates.to_polars()
    assert set(rates["cwnd_bytes"]) == {10_000} and set(rates["rate_bps"]) == {25_000_000_000}


def test_a_sweep_has_it_beside_others(incast: Scenario, tmp_path: Path) -> None:
    sweep = fairrate.sweep(incast, ["theta-powertcp", ThetaPowerTcp], seeds=[1, 2], cache=tmp_path)
    assert sweep.labels == ["theta-powertcp", "ThetaPowerTcp"]
    prints = sweep.frame()["fingerprint"]
    assert prints[0] == prints[2] and prints[1] == prints[3]
    again = fairrate.sweep(incast, ["theta-powertcp", ThetaPowerTcp], seeds=[1, 2], cache=tmp_path)
    assert [run.taken_over for run in again] == [True, True, False, False]


class Failing(Fixed):
    """Fails at its hundredth acknowledgment."""

    def on_start(self, flow: Flow) -> Allowance:
        self.n = 0
        return super().on_start(flow)

    def on_ack(self, ack: Ack) -> None:
        self.n += 1
        if self.n == 100:
            raise LookupError("the hundredth")


def test_an_exception_ends_the_run_with_its_traceback(incast: Scenario, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="the hundredth") as caught:
        fairrate.run(incast, cc=Failing, out=tmp_path)
    assert "raise LookupError" in "".join(traceback.format_exception(caught.value))
    summary = fairrate.load(tmp_path).summary
    assert summary["state"] == "failed" and "exception" in summary["error"]


def test_what_is_no_algorithm(incast: Scenario) -> None:
    class Silent(Controller):
        def on_start(self, flow: Flow) -> Allowance:
            return Allowance()

    with pytest.raises(NotImplementedError, match="Silent has no `on_ack`"):
        fairrate.run(incast, cc=Silent)

    class Wrong(Fixed):
        def on_ack(self, ack: Ack) -> int:  # type: ignore[override]
            return 3

    with pytest.raises(TypeError):
        fairrate.run(incast, cc=Wrong)
    with pytest.raises(ValueError, match="cwnd_bytes"):
        Allowance(cwnd_bytes=float("nan"))
    powertcp = type("powertcp", (Fixed,), {})
    with pytest.raises(ValueError, match="another name"):
        fairrate.run(incast, cc=powertcp)


def test_an_algorithm_gets_what_it_needs(incast: Scenario) -> None:
    seen: dict[str, int] = {"hops": 0, "timers": 0, "sent": 0}

    class Nosy(Fixed):
        needs = Needs(telemetry=True, data_overhead_bytes=42, ecn=True)

        def on_start(self, flow: Flow) -> Allowance:
            super().on_start(flow)
            return Allowance(cwnd_bytes=self.window, timer_ns=flow.start_ns + 1_000)

        def on_ack(self, ack: Ack) -> None:
            seen["hops"] = max(seen["hops"], len(ack.int))
            assert all(hop.rate_bps == 25e9 for hop in ack.int)

        def on_timer(self, now_ns: float) -> Allowance | None:
            seen["timers"] += 1
            return None

        def on_sent(self, now_ns: float, n_bytes: int) -> None:
            seen["sent"] += n_bytes

    result = fairrate.run(incast, cc=Nosy)
    # One switch on the way, a timer a flow that rings once, and payload only.
    assert (seen["hops"], seen["timers"]) == (1, 11)
    assert 0 < seen["sent"] <= result.summary["bytes_sent"]


def test_ports_mark_write_headers_and_send_notices(incast: Scenario) -> None:
    heard: list[tuple[int, float]] = []
    rung: list[int] = []

    class Marker(PortAgent):
        def on_start(self, port: Port) -> None:
            self.port, self.timer_ns = port, 10_000

        def on_enqueue(self, now_ns: float, queue_bytes: int, packet: Packet) -> list[tuple[int, list[float]]] | None:
            if packet.kind != "data":
                return None
            packet.mark = queue_bytes > 20_000
            packet.header = [packet.header[0] + 1, float(queue_bytes)]
            return [(packet.flow, [7.0])] if packet.mark and self.port.rate_bps == 25_000_000_000 else None

        def on_timer(self, now_ns: float, queue_bytes: int) -> None:
            rung.append(self.port.port)

    class Listening(Fixed):
        needs = Needs(ecn=True, header_words=2, ports="switches")
        port = Marker

        def stamp(self, now_ns: float, header: list[float]) -> None:
            header[0] = 5.0

        def on_ack(self, ack: Ack) -> None:
            # The sender's five, and one switch on the way.
            assert ack.header[0] == 6.0
            assert ack.ecn_marked == (ack.header[1] > 20_000)

        def on_notice(self, now_ns: float, port: int, values: object) -> None:
            heard.append((port, values[0]))  # type: ignore[index]

    result = fairrate.run(incast, cc=Listening)
    assert result.summary["ecn_marks"] > 0
    # Some are on their way at the end.
    assert 0 < len(heard) <= result.summary["notices"]
    assert {value for _, value in heard} == {7.0}
    assert len(rung) == len(set(rung)) > 0
    assert isinstance(result.rates.to_polars(), polars.DataFrame)


def test_control_packets_go_round_and_ports_write_to_them(incast: Scenario) -> None:
    asked: list[int | None] = []
    back: list[list[float]] = []

    class Stamping(PortAgent):
        def on_enqueue(self, now_ns: float, queue_bytes: int, packet: Packet) -> None:
            if packet.kind == "control":
                packet.header = [packet.header[0], packet.header[1] + 1]

    class Asking(Fixed):
        needs = Needs(control_bytes=64, header_words=2, ports="switches")
        port = Stamping
        waits = False

        def control_packet(self, now_ns: float, unsent_bytes: int | None, header: list[float]) -> bool:
            asked.append(unsent_bytes)
            if self.waits:
                return False
            assert header == [0.0, 0.0]
            header[0], self.waits = 5.0, True
            return True

        def on_control(self, now_ns: float, header: Sequence[float]) -> Allowance | None:
            back.append(list(header))
            self.waits = False
            return None

    # The long flow has no end.
    result = fairrate.run(incast.with_(**{"traffic.1.bytes": "5KB"}), cc=Asking)
    assert 0 < len(back) <= result.summary["control_packets"]
    # The sender's five, and one switch on the way.
    assert back.count([5.0, 1.0]) == len(back)
    assert {0, None} <= set(asked)

    class Wrong(Asking):
        needs = Needs(control_bytes=0)

    with pytest.raises(ValueError, match="control_bytes"):
        fairrate.run(incast, cc=Wrong)


def test_a_flow_over_tcp_hears_of_its_pauses() -> None:
    text = """
duration = "5ms"

[topology]
kind = "star"
hosts = 2
rate = "10Gbps"
delay = "1us"

[transport]
kind = "tcp"
cc = "cubic"

[transport.tcp]
rto_min = "100us"

[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h0"]
bytes = "endless"
burst = "15KB"
pause = "1ms"
"""
    heard: list[int] = []

    class Pausing(Fixed):
        def on_idle(self, now_ns: float, timeouts: int) -> Allowance | None:
            heard.append(timeouts)
            return None

    fairrate.run(Scenario.from_toml(text), cc=Pausing)
    assert heard and min(heard) >= 1


def test_an_exception_of_a_port_ends_the_run(incast: Scenario) -> None:
    class Broken(PortAgent):
        def on_dequeue(self, now_ns: float, queue_bytes: int, packet: Packet) -> None:
            packet.header = [1.0]

    class Under(Fixed):
        needs = Needs(header_words=2, ports="all")
        port = Broken

    with pytest.raises(ValueError, match="a header of 2 words was made one of 1"):
        fairrate.run(incast, cc=Under)


class Threshold(PortAgent):
    """Marks packets that find more than ``kmin`` bytes waiting."""

    def __init__(self, kmin: int = 20_000) -> None:
        self.kmin = kmin

    def on_enqueue(self, now_ns: float, queue_bytes: int, packet: Packet) -> None:
        packet.mark = queue_bytes > self.kmin


class Gentle(Fixed):
    """A window of ``packets`` packets, less at every mark."""

    needs = Needs(ecn=True, ports="switches")
    port = Threshold

    def __init__(self, packets: int = 10, left: float = 1.0, holds: bool = False, mode: str = "plain") -> None:
        assert mode in ("plain", "odd")
        self.packets, self.left, self.holds = packets, left, holds

    def on_start(self, flow: Flow) -> Allowance:
        self.mtu, self.window = flow.mtu_bytes, float(self.packets * flow.mtu_bytes)
        return Allowance(cwnd_bytes=self.window)

    def on_ack(self, ack: Ack) -> Allowance:  # type: ignore[override]
        if ack.ecn_marked and not self.holds:
            self.window = max(self.window * self.left, self.mtu)
        return Allowance(cwnd_bytes=self.window)


def test_classes_have_parameters(incast: Scenario) -> None:
    assert fairrate.run(incast, cc=Gentle).fingerprint == fairrate.run(incast, cc=Gentle.with_(packets=10)).fingerprint
    result = fairrate.run(incast, cc=Gentle.with_(packets=7, mode="odd", left=1))
    assert (result.label, result.summary["cc"]) == ("Gentle:packets=7:mode=odd:left=1", "Gentle")
    assert set(result.rates.to_polars()["cwnd_bytes"]) == {7_000}
    scenario = (result.dir / "scenario.toml").read_text()
    section = scenario.split("[transport.Gentle]\n")[1].split("\n\n")[0]
    # All of them, those of the port's class too.
    assert section.splitlines() == ["kmin = 20000", "packets = 7", "left = 1.0", "holds = false", 'mode = "odd"']
    marks = [fairrate.run(incast, cc=Gentle.with_(kmin=kmin)).summary["ecn_marks"] for kmin in (5_000, 50_000)]
    assert marks[0] > marks[1]


def test_a_sweep_over_parameters(incast: Scenario, tmp_path: Path) -> None:
    cc = [Gentle.with_(left=0.5), "dctcp", Gentle, "Gentle:left=0.9"]
    sweep = fairrate.sweep(incast, cc, variants=["Gentle:holds=true: switch.buffer=1MB"], cache=tmp_path)
    assert sweep.labels == ["Gentle:left=0.5", "dctcp", "Gentle", "Gentle:left=0.9", "Gentle:holds=true buffer=1MB"]
    assert [run.cc for run in sweep] == ["Gentle", "dctcp", "Gentle", "Gentle", "Gentle"]
    for run, alone in [(sweep[0], Gentle.with_(left=0.5)), (sweep[1], "dctcp"), (sweep[2], Gentle)]:
        assert run.result.fingerprint == fairrate.run(incast, cc=alone).fingerprint
    grid = fairrate.sweep(incast, [Gentle, "dctcp"], grid={"transport.Gentle.left": [0.5, 0.9]})
    assert [run.label for run in grid] == ["Gentle left=0.5", "dctcp left=0.5", "Gentle left=0.9", "dctcp left=0.9"]
    prints = [run.result.fingerprint for run in grid]
    assert prints[1] == prints[3] and prints[0] == sweep[0].result.fingerprint != prints[2]


def test_a_sweep_is_of_the_scenario_that_a_run_is_of(examples: Path) -> None:
    """The thresholds for marking are those of the class, not those of the algorithm that the scenario names."""
    scenario = Scenario.load(examples / "incast10.toml").with_(duration="1.2ms", **{"transport.cc": "dctcp"})

    class Marked(Gentle):
        needs = Needs(ecn=True)
        port = None  # type: ignore[assignment]

    (run,) = fairrate.sweep(scenario, [Marked.with_(left=0.5)])
    assert run.result.fingerprint == fairrate.run(scenario, cc=Marked.with_(left=0.5)).fingerprint


def test_what_is_no_parameter(incast: Scenario) -> None:
    with pytest.raises(fairrate.ScenarioError, match="Gentle has no parameter `lefd`") as caught:
        Gentle.with_(lefd=0.5)
    assert caught.value.suggestion == "did you mean `left`?"
    with pytest.raises(fairrate.ScenarioError, match="cannot be 'a:b'"):
        Gentle.with_(mode="a:b")
    for wrong in ({"packets": 2.5}, {"left": True}, {"holds": 1}, {"mode": 3}):
        with pytest.raises(fairrate.ScenarioError, match="another type than the default"):
            fairrate.sweep(incast, [Gentle.with_(**wrong)])
    with pytest.raises(fairrate.ScenarioError, match="lefd"):
        fairrate.sweep(incast, [Gentle, "Gentle:lefd=0.5"])

    class Needy(Fixed):
        def __init__(self, gain: float) -> None:
            self.gain = gain

    with pytest.raises(fairrate.ScenarioError, match="argument `gain` of Needy has no default"):
        fairrate.run(incast, cc=Needy)
    other = type("Gentle", (Fixed,), {})
    with pytest.raises(fairrate.ScenarioError, match="two classes are called `Gentle`"):
        fairrate.sweep(incast, [Gentle, other])
    with pytest.raises(fairrate.ScenarioError, match="an object of Fixed is no algorithm"):
        fairrate.sweep(incast, [Fixed()])  # type: ignore[list-item]
