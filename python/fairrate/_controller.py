"""Algorithms in Python."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fairrate import _native
from fairrate._errors import ScenarioError
from fairrate._native import Ack, Allowance, Flow, Packet, Port
from fairrate._scenario import toml

Parameter = bool | int | float | str
"""The value of a parameter of an algorithm."""

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
    """What one egress port computes. An object is made for every port that :attr:`Needs.ports` names.

    Arguments of ``__init__`` with a default are parameters of the algorithm, as those of its :class:`Controller` are; one name is
    one parameter of both.

    Methods that a class does not have cost nothing. Times are nanoseconds; ``queue_bytes`` are those that wait, without the packet.
    """

    timer_ns: float | None = None
    """When to call :meth:`on_timer`, in nanoseconds since the run began; ``None``: never. Set it in any method. It rings once."""

    def on_start(self, port: Port) -> None:
        """The port is made, before its first packet."""

    def on_enqueue(self, now_ns: float, queue_bytes: int, packet: Packet) -> Notices:
        """A packet joins the queue; ``packet.mark`` and ``packet.header`` may be set.

        Args:
            now_ns: Time, in nanoseconds since the run began.
            queue_bytes: Bytes that wait in the port's queues, without the packet.
            packet: The packet, valid during the call.

        Returns:
            Notices to sources: pairs of :attr:`Packet.flow` and up to four numbers, which arrive at :meth:`Controller.on_notice`;
            ``None``: none.
        """

    def on_dequeue(self, now_ns: float, queue_bytes: int, packet: Packet) -> Notices:
        """A packet leaves for the wire; arguments and answer as of :meth:`on_enqueue`."""

    def on_timer(self, now_ns: float, queue_bytes: int) -> Notices:
        """The time of :attr:`timer_ns` has come; arguments and answer as of :meth:`on_enqueue`."""


class Controller:
    """The control of one flow at its sender. An object is made for every flow.

    Arguments of ``__init__`` whose defaults are numbers, bools or texts are the parameters of the algorithm: see :meth:`with_`.

    Methods answer what the flow may do from then on, or ``None`` for no change. Only :meth:`on_start` and :meth:`on_ack` have to be
    there; those that a class does not have cost nothing. An exception ends the run and comes out of :func:`fairrate.run`.

    With several threads, flows are controlled in turn: Python runs one thread at a time.
    """

    needs: ClassVar[Needs] = Needs()
    """What it asks of network and receiver."""

    port: ClassVar[type[PortAgent] | None] = None
    """What egress ports compute, if :attr:`Needs.ports` asks for any."""

    @classmethod
    def with_(cls, **parameters: Parameter) -> Configured:
        """The algorithm with other parameters, for :func:`fairrate.run` and :func:`fairrate.sweep`.

        Results call it by class and parameters, as ``Aimd:gain=0.5``, and resolved scenarios list all parameters. A value has the
        type of the default; a whole number will do for a real one. ``grid={"transport.Aimd.gain": [...]}`` varies one over a grid.

        Raises:
            ScenarioError: If there is no such parameter, or a text has characters that no label has.
        """
        return _configured(cls, parameters)

    def on_start(self, flow: Flow) -> Allowance | None:
        """The flow starts. Without an answer it sends at line rate, with no window.

        Raises:
            NotImplementedError: If a class does not have the method.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no `on_start`")

    def on_ack(self, ack: Ack) -> Allowance | None:
        """An acknowledgment arrived.

        Raises:
            NotImplementedError: If a class does not have the method.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no `on_ack`")

    def on_loss(self, now_ns: float, kind: Literal["gap", "timeout"]) -> Allowance | None:
        """The transport saw a loss; it retransmits by itself.

        Args:
            now_ns: Time, in nanoseconds since the run began.
            kind: ``"gap"``: the receiver reported one; ``"timeout"``: the retransmission timer expired.
        """

    def on_cnp(self, now_ns: float) -> Allowance | None:
        """A congestion notification packet (CNP) arrived at ``now_ns``. Needs ``Needs(cnp_interval_ns=...)``."""

    def on_timer(self, now_ns: float) -> Allowance | None:
        """The time of :attr:`Allowance.timer_ns`, which is ``now_ns``, has come. Without a new one it does not come again."""

    def on_sent(self, now_ns: float, n_bytes: int) -> Allowance | None:
        """``n_bytes`` of payload were handed to the wire at ``now_ns``."""

    def on_idle(self, now_ns: float, timeouts: int) -> Allowance | None:
        """Over TCP, the flow is about to send again after ``timeouts`` retransmission timeouts without a packet."""

    def on_notice(self, now_ns: float, port: int, values: Sequence[float]) -> Allowance | None:
        """A port has sent this flow a notice.

        Args:
            now_ns: Time of arrival, in nanoseconds since the run began.
            port: Number of the port: :attr:`Port.port`.
            values: Four numbers; those that the port left out are 0.
        """

    def on_control(self, now_ns: float, header: Sequence[float]) -> Allowance | None:
        """The flow's control packet is back at ``now_ns``; ``header`` has what the ports of the path wrote."""

    def stamp(self, now_ns: float, header: list[float]) -> None:
        """Writes the header of a data packet that is about to leave at ``now_ns``, in place.

        ``header`` has the words that :attr:`Needs.header_words` asks for; its length must stay.
        """

    def control_packet(self, now_ns: float, unsent_bytes: int | None, header: list[float]) -> bool:
        """Answers whether a control packet leaves now; if so, writes its header, which is all zeros before, in place.

        Asked after every decision, and when the last payload byte is handed to the wire. ``unsent_bytes`` is ``None`` of an
        endless flow.
        """
        return False


@dataclass(frozen=True)
class Configured:
    """An algorithm in Python with other parameters than its defaults: what :meth:`Controller.with_` makes. Lists of algorithms take it.

    Attributes:
        controller: The class.
        parameters: Names and values of the parameters that differ, in the order given.
    """

    controller: type[Controller]
    parameters: tuple[tuple[str, Parameter], ...]

    def __str__(self) -> str:
        """The algorithm as results call it, as ``Aimd:gain=0.5``."""
        values = (f"{name}={value if isinstance(value, str) else toml(value)}" for name, value in self.parameters)
        return ":".join([name_of(self.controller), *values])


Algorithm = str | type[Controller] | Configured
"""An algorithm: a name, as ``"hpcc"`` or ``"hpcc:eta=0.9"``, the path of a library, a class, or a class with parameters."""


def name_of(controller: type[Controller]) -> str:
    """What results call an algorithm: the name of its class."""
    return controller.__name__


def written(algorithm: Algorithm) -> str:
    """An algorithm as the command line would write it."""
    if isinstance(algorithm, str | Configured):
        return str(algorithm)
    return name_of(_checked(algorithm))


def class_of(algorithm: Algorithm) -> type[Controller] | None:
    """The class of an algorithm in Python; ``None`` of others."""
    if isinstance(algorithm, str):
        return None
    return algorithm.controller if isinstance(algorithm, Configured) else _checked(algorithm)


def _checked(algorithm: Any) -> type[Controller]:
    if isinstance(algorithm, type) and issubclass(algorithm, Controller):
        return algorithm
    if isinstance(algorithm, Controller):
        name = type(algorithm).__name__
        raise ScenarioError(f"an object of {name} is no algorithm", suggestion=f"give the class, as {name} or {name}.with_(...)")
    raise ScenarioError(
        f"{algorithm!r} is no algorithm", suggestion='give a name, as "hpcc", or a class of fairrate.Controller'
    )


def plug_in(controller: type[Controller]) -> _native.PlugIn:
    """A class as an algorithm of the simulator."""
    of_sender = parameters_of(controller)
    of_port = parameters_of(controller.port) if controller.port is not None else {}
    both = {**of_port, **of_sender}
    return _native.PlugIn(name_of(controller), controller, list(both.items()), set(of_sender), set(of_port))


def parameters_of(cls: type) -> dict[str, Parameter]:
    """The parameters of a class with their defaults: its arguments whose defaults are numbers, bools or texts.

    Raises:
        ScenarioError: If an argument has no default.
    """
    found: dict[str, Parameter] = {}
    for name, argument in inspect.signature(cls).parameters.items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
            continue
        if argument.default is argument.empty:
            message = f"argument `{name}` of {cls.__name__} has no default, and flows and ports have no other value for it"
            raise ScenarioError(message, suggestion=f"give it one, as `{name}=1.0`")
        if isinstance(argument.default, bool | int | float | str):
            found[name] = argument.default
    return found


def _configured(controller: type[Controller], given: Mapping[str, Any]) -> Configured:
    known = parameters_of(controller)
    if controller.port is not None:
        known = {**parameters_of(controller.port), **known}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            names = ", ".join(f"`{each}`" for each in known) or "none; arguments of `__init__` with a default are parameters"
            suggestion = f"did you mean `{near[0]}`?" if near else f"its parameters are {names}"
            raise ScenarioError(f"{name_of(controller)} has no parameter `{name}`", key=name, suggestion=suggestion)
        if isinstance(value, str) and not re.fullmatch(r"[\w.@/%+-]+", value):
            message = f"parameter `{name}` of {name_of(controller)} cannot be {value!r}, as labels and files name it"
            raise ScenarioError(message, key=name, suggestion="give a word of letters, digits and any of `_.@/%+-`")
    return Configured(controller, tuple(given.items()))
