"""The native half: crates/fairrate-python."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypedDict

_Path = str | PathLike[str]
_Value = int | float | str

VERSION: str
SOURCES: str

class Scenario:
    @staticmethod
    def load(path: _Path) -> Scenario: ...
    @staticmethod
    def from_toml(text: str, file_name: str, base_dir: _Path) -> Scenario: ...
    @staticmethod
    def with_files(text: str, file_name: str, files: Sequence[tuple[str, bytes]], plug_in: PlugIn | None) -> Scenario: ...
    def with_plug_in(self, plug_in: PlugIn, sets: Sequence[tuple[str, str]]) -> Scenario: ...
    def with_sets(self, sets: Sequence[tuple[str, str]]) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def cc(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def hash(self) -> str: ...
    @property
    def n_flows(self) -> int: ...
    @property
    def traffic_blocks(self) -> list[str]: ...
    @property
    def duration_ns(self) -> float | None: ...
    @property
    def resolved(self) -> str: ...
    @property
    def files(self) -> list[tuple[str, bytes]]: ...

class Table:
    @staticmethod
    def of_results(dir: _Path, name: str) -> Table: ...
    @staticmethod
    def read(path: _Path) -> Table: ...
    @staticmethod
    def units_of(path: _Path) -> list[tuple[str, str]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def units(self) -> list[tuple[str, str]]: ...
    def addresses(self, column: str) -> list[int]: ...

class Column:
    @property
    def label(self) -> str: ...
    @property
    def point(self) -> str: ...
    @property
    def grid(self) -> list[tuple[str, str]]: ...
    @property
    def place(self) -> list[tuple[str, str]]: ...
    def names(self, cc: str, seed: int | None) -> tuple[str, str, str]: ...
    @property
    def cc(self) -> str | None: ...
    @property
    def sets(self) -> list[tuple[str, str]]: ...
    @property
    def tags(self) -> list[tuple[str, _Value]]: ...

class Cache:
    def __init__(self, root: _Path, name: str) -> None: ...
    def place(self, name: str, scenario: Scenario) -> tuple[Path, Path | None]: ...

class PlugIn:
    def __init__(
        self,
        name: str,
        controller: object,
        parameters: Sequence[tuple[str, bool | int | float | str]],
        of_sender: set[str],
        of_port: set[str],
    ) -> None: ...

class Allowance:
    """Permission of a flow: what it may do from now until the next decision.

    Fractions of bytes and of bit/s are cut.

    Args:
        cwnd_bytes: Most unacknowledged payload, in bytes; ``None``: no window.
        rate_bps: Pacing rate, in bits on the wire per second; ``None``: that of the link; 0: nothing may be sent.
        timer_ns: When to call ``on_timer``, in nanoseconds since the run began; ``None``: never.

    Raises:
        ValueError: If a number is negative or NaN.
    """

    def __init__(
        self, cwnd_bytes: float | None = None, rate_bps: float | None = None, timer_ns: float | None = None
    ) -> None: ...
    @property
    def cwnd_bytes(self) -> float | None:
        """Most unacknowledged payload, in bytes, at least 1; ``None``: no window."""
    @property
    def rate_bps(self) -> float | None:
        """Pacing rate, in bits on the wire per second, at most that of the link; ``None``: that of the link; 0: nothing may
        be sent."""
    @property
    def timer_ns(self) -> float | None:
        """Time at which to call ``on_timer``, in nanoseconds since the run began, not from now; ``None``: never."""

class Flow:
    """The properties of a flow that a sender has before its first packet. Times are nanoseconds of simulated time."""

    @property
    def line_rate_bps(self) -> int:
        """Rate of the sender's NIC, in bits per second."""
    @property
    def base_rtt_ns(self) -> float:
        """Largest base round-trip time in the network, in nanoseconds: one value for all flows (the papers' τ)."""
    @property
    def base_rtt_s(self) -> float:
        """The same in seconds: ``line_rate_bps * base_rtt_s / 8`` is the bandwidth-delay product in bytes."""
    @property
    def path_base_rtt_ns(self) -> float:
        """Base round-trip time of this flow's own path, in nanoseconds."""
    @property
    def mtu_bytes(self) -> int:
        """Payload of a full packet, in bytes."""
    @property
    def wire_mtu_bytes(self) -> int:
        """Size of a full packet on the wire, in bytes, headers included."""
    @property
    def n_hops(self) -> int:
        """Number of links from sender to receiver."""
    @property
    def weight(self) -> float:
        """Weight of the flow in shares, without a unit; 1.0 unless the workload sets another."""
    @property
    def start_ns(self) -> float:
        """Time of the flow's start, in nanoseconds since the run began."""
    @property
    def size_bytes(self) -> int | None:
        """Payload of the flow, in bytes; ``None``: endless."""
    @property
    def demand_bps(self) -> int | None:
        """Highest rate at which the application offers data, in bits per second; ``None``: no limit. The transport enforces
        it."""
    @property
    def deadline_ns(self) -> float | None:
        """Time after the start by which the last byte should arrive, in nanoseconds; ``None``: no deadline."""
    @property
    def seed(self) -> int:
        """Seed of the flow's own random draws: a function of the run's seed and the flow alone."""

class IntHop:
    """A record of in-band telemetry: what one switch port wrote into a packet that left it."""

    @property
    def ts_ns(self) -> float:
        """Time at which the packet left the port's queue, in nanoseconds."""
    @property
    def tx_bytes(self) -> int:
        """Bytes that the port had sent before this packet, since the run began. Its difference between two packets, over that
        of ``ts_ns``, is the rate of sending."""
    @property
    def qlen_bytes(self) -> int:
        """Bytes left in the port's queue after the packet was removed."""
    @property
    def rate_bps(self) -> float:
        """Rate of the port's link, in bits per second."""

class Ack:
    """An acknowledgment as the sender sees it. Sequence numbers and windows are bytes of payload."""

    @property
    def now_ns(self) -> float:
        """Time of arrival, in nanoseconds since the run began."""
    @property
    def ack_seq(self) -> int:
        """Next byte that the receiver expects: all bytes before it have arrived."""
    @property
    def snd_nxt(self) -> int:
        """Next new byte that the sender will send. A decision taken now shows in acknowledgments from this byte on."""
    @property
    def newly_acked(self) -> int:
        """Bytes that this acknowledgment acknowledges and no earlier one did; 0 for a duplicate."""
    @property
    def delivered(self) -> int:
        """Bytes delivered that no earlier acknowledgment reported, in order or not."""
    @property
    def lost(self) -> int:
        """Bytes that the sender declares lost on this acknowledgment."""
    @property
    def rtt_ns(self) -> float:
        """Time from the start of the acknowledged packet's transmission to now, in nanoseconds."""
    @property
    def cwnd_at_send(self) -> int:
        """Window in force when the acknowledged packet was sent, in bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight after this acknowledgment: sent, and neither delivered nor declared lost."""
    @property
    def delivery_rate_bps(self) -> int:
        """Delivery rate over the round trip that ends now, in bits per second; 0: unknown."""
    @property
    def prior_delivered(self) -> int | None:
        """Bytes of the flow that had been delivered when that round trip began; ``None``: the transport does not know."""
    @property
    def penalty(self) -> int:
        """128ths of the newly acknowledged bytes by which a receiver of Ultra Ethernet in trouble asks the window to shrink, up to 127."""
    @property
    def app_limited(self) -> bool:
        """``True`` if the application had no more data to send as the acknowledged packet was sent."""
    @property
    def ecn_marked(self) -> bool:
        """``True`` if the acknowledged packet carried an ECN mark (CE). Needs ``Needs(ecn=True)``."""
    @property
    def header(self) -> list[float]:
        """Words of the acknowledged packet's header as the last port left it, as many as :attr:`Needs.header_words` says;
        else empty."""
    @property
    def int(self) -> list[IntHop]:
        """Telemetry of the acknowledged packet, a record a switch in order of the path; empty without
        ``Needs(telemetry=True)``."""

class Port:
    """The properties of an egress port before its first packet."""

    @property
    def port(self) -> int:
        """Number of the port, unique in the network."""
    @property
    def rate_bps(self) -> int:
        """Rate of its link, in bits per second."""
    @property
    def base_rtt_ns(self) -> float:
        """Largest base round-trip time in the network, in nanoseconds."""
    @property
    def wire_mtu_bytes(self) -> int:
        """Size of a full data packet on the wire, in bytes, headers included."""
    @property
    def of_host(self) -> bool:
        """``True`` if it is the port of a host, ``False`` if of a switch."""
    @property
    def seed(self) -> int:
        """Seed of the agent's random draws."""

class Packet:
    """A packet at a port. ``header`` and ``mark`` may be set; what is set travels on with the packet."""

    @property
    def flow(self) -> int:
        """Number of its flow, for notices."""
    @property
    def priority(self) -> int:
        """Number of its priority class."""
    @property
    def kind(self) -> str:
        """``"data"``: payload; ``"control"``: a flow's control packet on its way to the receiver; ``"other"``: all else,
        without a header."""
    @property
    def wire_bytes(self) -> int:
        """Size on the wire, in bytes."""
    header: list[float]
    """Words of its header, to read and to set; a list of another length raises a ``ValueError`` that ends the run."""
    mark: bool
    """``True`` if the packet has, or gets, an ECN mark (CE)."""

class RunOfReport(TypedDict):
    source: _Path
    label: str
    seed: int
    line: str
    point: str
    grid: Sequence[tuple[str, str]]
    place: Sequence[tuple[str, str]]

def main(args: list[str]) -> int:
    """Runs the command line. The first argument is the program's name. Returns its exit code."""

def columns(
    cc: Sequence[str],
    variants: Sequence[str],
    grid: Sequence[tuple[str, Sequence[str]]],
    seeded: bool,
    plug_ins: Sequence[PlugIn],
) -> list[Column]: ...
def json_schema() -> str: ...
def tune_ranges(name: str) -> list[tuple[str, tuple[str, str, bool] | None]] | None: ...
def toml_value(json: str) -> str: ...
def toml_document(json: str) -> str: ...
def run(
    scenario: Scenario,
    dir: _Path,
    tags: Sequence[tuple[str, _Value]],
    threads: int,
    watch: Callable[[float, int], object] | None,
    asked: tuple[list[int], list[str], Callable[[int, Sequence[float | None]], bool]] | None = None,
) -> str: ...
def not_of_flows(scenario: Scenario, names: Sequence[str]) -> str | None: ...
def values_at(
    scenario: Scenario, dir: _Path, times_ns: Sequence[int], names: Sequence[str]
) -> list[list[float | None]]: ...
def coexistence(
    a: str, b: str, options: Sequence[str]
) -> tuple[str, list[tuple[str, str]], list[str], list[str], list[str], str]: ...
def coexistence_metrics() -> list[str]: ...
def coexistence_share(values: Sequence[float]) -> tuple[float, float | None, float | None, str] | None: ...
def coexistence_verdict(blocks: Sequence[str], cases: Sequence[tuple[str, str, dict[str, list[float]]]]) -> str: ...
def explain(dir: _Path, flow: int | None, worst: int, class_: str | None, block: str | None) -> str: ...
def explain_iteration(dir: _Path, iteration: int, block: str | None) -> str: ...
def trace(
    dir: _Path,
    out: _Path,
    flows: Sequence[int],
    ports: Sequence[str],
    from_: str,
    until: str | None,
    limit: str | None,
) -> None: ...
def summary(dir: _Path) -> str: ...
def copy(source: _Path, to: _Path) -> None: ...
def publish(dir: _Path, label: str, figures: bool) -> None: ...
def write_report(
    dir: _Path,
    scenario: str,
    runs: Sequence[RunOfReport],
    metrics: Sequence[str],
    refused: Sequence[tuple[str, str]],
    heat_maps: str | None,
) -> None: ...
def runs_of_comparison(dir: _Path) -> list[RunOfReport]: ...
def rewrite_report(dir: _Path, metrics: Sequence[str]) -> None: ...
def metric_units() -> list[tuple[str, str]]: ...
def unknown_metric(name: str, blocks: list[str]) -> str | None: ...
def picture(svg: str, scale: float | None, fonts: Sequence[_Path]) -> bytes: ...
def metrics(dir: _Path) -> list[tuple[str, float | None, bool, str]]: ...
def percentile(values: Sequence[float], p: Sequence[float]) -> list[float | None]: ...
def mean(values: Sequence[float]) -> float | None: ...
def jain(shares: Sequence[float]) -> float | None: ...
def student_half_width(values: Sequence[float]) -> float | None: ...
def estimate(values: Sequence[float]) -> tuple[int, float, tuple[float, float] | None] | None: ...
def difference(
    pairs: Sequence[tuple[float, float]],
) -> tuple[int, float, tuple[float, float] | None, float | None, tuple[float, float] | None, bool] | None: ...
