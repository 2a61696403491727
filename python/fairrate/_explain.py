"""Why flows and iterations took as long as they did."""

from __future__ import annotations

import json
import os
from typing import Any

from fairrate import _checks, _native
from fairrate._result import Result


def explain(
    result: Result | str | os.PathLike[str],
    flow: int | None = None,
    *,
    worst: int = 1,
    size: str | None = None,
    block: str | None = None,
    iteration: int | None = None,
) -> dict[str, Any]:
    """Says what the completion times of flows, or the time of an iteration, are made of, as ``fairrate explain --json`` does.

    The scenario is run again with observers, and the fingerprint is checked. The run uses one thread and takes about four times as long
    as the first one; for an iteration it is run twice. Ctrl-C ends it.

    Args:
        result: The results of a run, or their directory.
        flow: Number of a flow, as in the column ``id`` of :attr:`Result.flows`.
        worst: Without ``flow``: how many flows, those with the largest slowdowns. An unfinished flow has the slowdown that it has at
            least.
        size: Only flows of this size: ``"short"``, ``"10-100KB"``, ``"medium"`` or ``"long"``.
        block: Only flows of this traffic block, by its name or its number as text. With ``iteration``: the training job or
            the collective, if there are several.
        iteration: The critical path of this iteration, from 0, in place of flows.

    Returns:
        The content of ``fairrate explain --json``: ``schema``, ``scenario``, ``cc``, ``seed``, ``fingerprint`` and ``flows``.

            A flow has

            - ``flow``, ``from`` and ``to``, ``block`` and ``block_name``, ``bytes``, ``start_ps``, ``slowdown``, ``delivered_bytes``,
              ``sentence``;
            - ``finished``, and ``fct_ps``, which is ``None`` if it has not finished;
            - ``time_ps``: its completion time, or its time until the run ended, in ps. It is the sum of ``ps`` over ``chain``, and
              over ``sender``;
            - ``round_trips`` and ``losses`` that the chain follows;
            - ``chain`` and ``sender``: the two accounts, as lists of sums. Each has a ``reason`` with ``port``, ``way`` (``data`` or
              ``ack``), ``behind_flow`` and ``behind_block``, ``loss_port`` and ``loss_cause``; ``ps``; ``bytes`` on the wire; its number
              of ``pieces``, and from where to where they reach in ``first_ps`` and ``last_ps``, in ps of simulated time. ``down_ps``
              has the times for which the link was down, ``slow`` those for which it had only a share of its rate.

            With ``iteration`` the content of ``fairrate explain --iteration --json``: ``schema``, ``scenario``, ``block``, ``iteration``,
            ``start_ps``, ``time_ps`` and ``stages``. The stages follow each other without gaps, and their ``ps`` add up to ``time_ps``. Each
            has

            - ``doing``: ``computes``, ``moves`` (a message on its way), ``leaves`` (a message until its last byte is at the NIC),
              ``adds`` (a rank adds up what it has received) or ``waits``;
            - ``operation`` and ``kind``: the name of the operation, which is empty in a collective block, and ``compute``, ``message`` or
              the collective operation;
            - ``rank``, ``start_ps`` and ``ps``;
            - of a message ``message``, with ``flow``, ``from`` and ``to``, ``bytes``, ``link`` (the slowest one of its path) and
              ``is_inside_server``;
            - of a message that can be explained ``reasons``, which add up to ``ps``: sums as in ``chain``.

            The reasons and the paths are those of docs/explain.md.

    Raises:
        ResultsError: If there are no results or no such flow or iteration, or the run cannot be explained.
        ValueError: If arguments exclude each other, or a number is out of range.
        TypeError: If a number is no whole number.
        KeyboardInterrupt: After Ctrl-C.
    """
    dir = result.dir if isinstance(result, Result) else result
    worst = _checks.whole(worst, "`worst`", 1)
    flow = None if flow is None else _checks.whole(flow, "a flow", 0, _checks.LARGEST_FLOW)
    iteration = None if iteration is None else _checks.whole(iteration, "an iteration", 0, _checks.LARGEST_FLOW)
    if iteration is not None and (flow is not None or worst != 1 or size is not None):
        raise ValueError("an iteration excludes flow, worst and size")
    if flow is not None and (worst != 1 or size is not None or block is not None):
        raise ValueError("a flow by its number excludes worst, size and block")
    if iteration is not None:
        text = _native.explain_iteration(dir, iteration, block)
    else:
        text = _native.explain(dir, flow, worst, size, block)
    found: dict[str, Any] = json.loads(text)
    return found
