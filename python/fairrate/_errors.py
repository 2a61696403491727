"""Exceptions: one tree, as the command line's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairrate._sweep import Sweep


class Error(Exception):
    """What goes wrong in fairrate.

    Attributes:
        message: What is wrong.
        code: What kind of error, such as ``scenario::unknown_key``.
        path: The file or directory it is about, if there is one.
        suggestion: What to do; may be empty.
    """

    def __init__(
        self, message: str, *, code: str = "", path: str | None = None, suggestion: str | None = None, **more: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = path
        self.suggestion = suggestion or ""
        for name, value in more.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}\n  help: {self.suggestion}" if self.suggestion else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.message, {k: v for k, v in self.__dict__.items() if k != "message"})


def _rebuilt(kind: type[Error], message: str, attributes: dict[str, Any]) -> Error:
    error = kind(message)
    error.__dict__.update(attributes)
    return error


class ScenarioError(Error, ValueError):
    """A scenario, or what is asked of it, is wrong. Nothing was run or written.

    Attributes:
        key: The dotted key it is about, lists counted from 0, as ``traffic.0.load``.
        line: Line in the text, from 1.
        column: Character of the line, from 1.
        others: Further errors found with it.
    """

    key: str | None = None
    line: int | None = None
    column: int | None = None
    others: list[ScenarioError]

    def __init__(self, message: str, **attributes: Any) -> None:
        self.others = []
        super().__init__(message, **attributes)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        where = f"{place} (`{self.key}`)" if place and self.key else place or (f"`{self.key}`" if self.key else "")
        return (f"{where}: " if where else "") + super().__str__()


class ResultsError(Error):
    """Results cannot be read or written."""


class RunError(Error):
    """A run came to a bad end. What there was until then is in ``path``."""


class TuneError(Error, ValueError):
    """A study cannot be made so, or its directory is another one's."""


class SweepError(RunError):
    """Some runs of a sweep came to a bad end.

    Attributes:
        failures: Label, seed and error of each.
        sweep: The runs that did not fail.
    """

    failures: list[tuple[str, int, BaseException]]
    sweep: Sweep
