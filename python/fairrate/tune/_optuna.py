"""What the versions of Optuna have in common."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from fairrate._errors import Error


def require() -> None:
    """Raises an :class:`Error` if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        message = "`fairrate.tune` needs Optuna, which is not installed"
        raise Error(message, code="tune::no_optuna", suggestion="pip install 'fairrate[tune]', or pip install optuna") from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps Optuna from reporting every step, and from warning of what is experimental in it."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def has_set_constraint() -> bool:
    """Returns ``True`` for Optuna 5, in which trials have constraints; in Optuna 4 samplers have a function for them."""
    import optuna

    return hasattr(optuna.trial.Trial, "set_constraint")
