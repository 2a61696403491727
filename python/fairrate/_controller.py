"""Algorithms in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fairrate._native import Ack, Allowance, Flow, Packet, Port

Notices = Sequence[tuple[int, Sequence[float]]] | None
"""What a port tells sources: pairs of a flow and up to four numbers."""


@dataclass(frozen=True)
class Needs:
    """What an algorithm asks of network and receiver.

    Attributes:
        telemetry: Switches stamp in-band telemetry into data packets: :attr:`Ack.int`.
        ecn: Switches mark ECN on its packets: :attr:`Ack.ecn_marked`.
        cnp_interval_ns: Receivers answer marked packets with at most one CNP a flow in this time; ``None``: none.
        data_overhead_bytes: Bytes that it adds to every data packet.
        ack_overhead_bytes: Bytes that it adds to every acknowledgment.
        first_ack_only_stored: A flow's first acknowledgment leads to no decision.
        header_words: Words of header on every data packet: :attr:`Ack.header`.
        header_words_per_hop: The same for each link of the longest path.
        control_bytes: Flows exchange control packets of this size on the wire, which ports may write to; ``None``: none.
        ports: Which egress ports run :attr:`Controller.port`.
    """

    telemetry: bool = False
    ecn: bool = False
    cnp_interval_ns: float | None = None
    data_overhead_bytes: int = 0
    ack_overhead_bytes: int = 0
    first_ack_only_stored: bool = False
    header_words: int = 0
    header_words_per_hop: int = 0
    control_bytes: int | None = None
    ports: Literal["none", "switches", "all"] = "none"


class PortAgent:
    """What one egress port computes. An object is made for every port that :attr:`Needs.ports` names, without arguments.

    Methods that a class does not have cost nothing. Times are nanoseconds; ``queue_bytes`` are those that wait, without the packet.
    """

    timer_ns: float | None = None
    """When to call :meth:`on_timer`; set it in any method. It rings once."""

    def on_start(self, port: Port) -> None:
        """The port is made."""

    def on_enqueue(self, now_ns: float, queue_bytes: int, packet: Packet) -> Notices:
        """A packet joins the queue; ``packet.mark`` and ``packet.header`` may be set. Answers notices to sources."""

    def on_dequeue(self, now_ns: float, queue_bytes: int, packet: Packet) -> Notices:
        """A packet leaves for the wire; as :meth:`on_enqueue`."""

    def on_timer(self, now_ns: float, queue_bytes: int) -> Notices:
        """The time of :attr:`timer_ns` has come."""


class Controller:
    """The control of one flow at its sender. An object is made for every flow, without arguments.

    Methods answer what the flow may do from then on, or ``None`` for no change. Only :meth:`on_start` and :meth:`on_ack` have to be
    there; those that a class does not have cost nothing. An exception ends the run and comes out of :func:`fairrate.run`.

    With several threads, flows are controlled in turn: Python runs one thread at a time.
    """

    needs: ClassVar[Needs] = Needs()
    """What it asks of network and receiver."""

    port: ClassVar[type[PortAgent] | None] = None
    """What egress ports compute, if :attr:`Needs.ports` asks for any."""

    def on_start(self, flow: Flow) -> Allowance | None:
        """The flow starts. Without an answer it sends at line rate, with no window."""
        raise NotImplementedError(f"{type(self).__qualname__} has no `on_start`")

    def on_ack(self, ack: Ack) -> Allowance | None:
        """An acknowledgment arrived."""
        raise NotImplementedError(f"{type(self).__qualname__} has no `on_ack`")

    def on_loss(self, now_ns: float, kind: Literal["gap", "timeout"]) -> Allowance | None:
        """The transport saw a loss; it retransmits by itself."""

    def on_cnp(self, now_ns: float) -> Allowance | None:
        """A congestion notification arrived."""

    def on_timer(self, now_ns: float) -> Allowance | None:
        """The time of :attr:`Allowance.timer_ns` has come."""

    def on_sent(self, now_ns: float, n_bytes: int) -> Allowance | None:
        """Bytes were handed to the wire."""

    def on_idle(self, now_ns: float, timeouts: int) -> Allowance | None:
        """Over TCP, the flow is about to send again after a pause of so many retransmission timeouts."""

    def on_notice(self, now_ns: float, port: int, values: Sequence[float]) -> Allowance | None:
        """A port has sent this flow a notice of four numbers."""

    def on_control(self, now_ns: float, header: Sequence[float]) -> Allowance | None:
        """The flow's control packet is back with what the ports of the path wrote."""

    def stamp(self, now_ns: float, header: list[float]) -> None:
        """Writes the header of a data packet that is about to leave, in place."""

    def control_packet(self, now_ns: float, unsent_bytes: int | None, header: list[float]) -> bool:
        """Answers whether a control packet leaves now; if so, writes its header, which is all zeros before, in place.

        Asked after every decision, and when the last payload byte is handed to the wire. ``unsent_bytes`` is ``None`` of an
        endless flow.
        """
        return False


def name_of(controller: type[Controller]) -> str:
    """What results call an algorithm: the name of its class."""
    return controller.__name__
