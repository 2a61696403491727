"""PERC's port, with 8 flows: the protocol, and answers worked by hand."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

FLOWS = 8
RATE_BITS = 56
MOST = (1 << RATE_BITS) - 1


async def start(dut, capacity=100):
    cocotb.start_soon(Clock(dut.clk, 5, unit="ns").start())
    dut.capacity.value = capacity
    dut.ask.value = dut.leave.value = 0
    dut.flow.value = dut.demand.value = 0
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    await FallingEdge(dut.clk)


async def send(dut, kind, flow, demand=0):
    """Sends a packet. Returns the share, and the clocks that it took."""
    assert dut.ready.value == 1
    getattr(dut, kind).value = 1
    dut.flow.value, dut.demand.value = flow, demand
    await FallingEdge(dut.clk)
    getattr(dut, kind).value = 0
    dut.flow.value, dut.demand.value = 0, 0
    clocks = 1
    while not dut.done.value:
        assert clocks < 200
        await FallingEdge(dut.clk)
        clocks += 1
    return int(dut.share.value), clocks


async def ask(dut, flow, demand=MOST):
    return (await send(dut, "ask", flow, demand))[0]


@cocotb.test()
async def a_link_answers_what_the_asking_flow_would_get(dut):
    await start(dut)
    # Alone: all of it. Then half, a third; a flow that needs 10 leaves 45 to each of two others.
    messages = [(1, MOST), (2, MOST), (1, MOST), (3, MOST), (3, 10), (1, MOST), (2, MOST)]
    assert [await ask(dut, *message) for message in messages] == [100, 50, 50, 33, 33, 45, 45]


@cocotb.test()
async def demands_that_fit_leave_the_rest(dut):
    await start(dut)
    assert [await ask(dut, flow, demand) for flow, demand in [(1, 10), (2, 20), (1, 10), (2, 20)]] == [100, 90, 80, 90]
    # No demand at all is a flow all the same, and gets what the others leave.
    assert [await ask(dut, 3, 0), await ask(dut, 3, 0)] == [70, 70]


@cocotb.test()
async def an_exit_message_makes_room(dut):
    await start(dut)
    for flow in (1, 2, 3):
        await ask(dut, flow)
    _, clocks = await send(dut, "leave", 2)
    assert clocks == 3
    assert await ask(dut, 1) == 50
    # A flow that is not there changes nothing.
    await send(dut, "leave", 2)
    assert await ask(dut, 1) == 50


@cocotb.test()
async def a_full_table_answers_and_says_so(dut):
    await start(dut, capacity=900)
    for flow in range(FLOWS):
        await ask(dut, flow)
        assert dut.full.value == 0
    assert await ask(dut, 100) == 100, "900 for eight others and the one that asks"
    assert dut.full.value == 1
    assert await ask(dut, 3) == 112, "flow 100 was not stored: 900 / 8, rounded down"
    assert dut.full.value == 0


@cocotb.test()
async def clocks_are_bounded(dut):
    await start(dut)
    for n in range(FLOWS):
        _, clocks = await send(dut, "ask", n, MOST)
        assert clocks == (n + RATE_BITS // 2 + 10 if n else RATE_BITS // 2 + 5)
