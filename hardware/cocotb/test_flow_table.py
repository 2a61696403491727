"""RoCC's flow table, with 8 entries of 16 bits: the protocol, and the corners of a circle."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY = 4
ENTRIES = 8


async def start(dut, rounds_max=5):
    cocotb.start_soon(Clock(dut.clk, 5, unit="ns").start())
    dut.rounds_max.value = rounds_max
    dut.add.value = dut.get.value = 0
    dut.flow.value = 0
    dut.rst.value = 1
    for _ in range(LATENCY):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def run(dut, steps):
    """Gives the module a step a clock: (flow or None, get). Returns the answers of the readings."""
    answers = []
    for flow, get in [*steps, *[(None, False)] * LATENCY]:
        dut.add.value = flow is not None
        dut.flow.value = flow or 0
        dut.get.value = get
        await FallingEdge(dut.clk)
        if dut.read.value:
            answers.append(int(dut.recipient.value) if dut.told.value else None)
    return answers


def frames(*flows):
    return [(flow, False) for flow in flows]


ALL = [(None, True)] * ENTRIES


@cocotb.test()
async def an_empty_table_has_no_recipients(dut):
    await start(dut)
    assert await run(dut, ALL) == [None] * ENTRIES


@cocotb.test()
async def frames_back_to_back_are_one_entry(dut):
    await start(dut)
    assert await run(dut, frames(7, 7, 3, 7, 3, 3) + ALL) == [7, 3, *[None] * 6]


@cocotb.test()
async def a_new_flow_takes_the_oldest_entry(dut):
    await start(dut)
    # Nine flows: the ninth is written over the first, though that was seen last.
    assert await run(dut, frames(1, 2, 3, 4, 5, 6, 7, 8, 1, 9) + ALL) == [9, 2, 3, 4, 5, 6, 7, 8]
    # A frame of the flow that has just been written over is a new one, in the next clock already.
    assert await run(dut, frames(10, 2, 3) + ALL) == [9, 10, 2, 3, 5, 6, 7, 8]


@cocotb.test()
async def the_reader_drops_a_silent_flow(dut):
    await start(dut, rounds_max=2)
    await run(dut, frames(1, 2))
    assert await run(dut, ALL) == [1, 2, *[None] * 6]
    assert await run(dut, frames(2) + ALL) == [1, 2, *[None] * 6]
    assert await run(dut, ALL) == [None, 2, *[None] * 6]
    # The flow comes back in the next entry of the circle.
    assert await run(dut, frames(1) + ALL) == [None, None, 1, *[None] * 5]


@cocotb.test()
async def a_frame_counts_before_the_reading_of_its_clock(dut):
    await start(dut, rounds_max=1)
    # The entry is empty, new and read in one clock; read again, it is silent; with a frame in that clock it lives on.
    assert await run(dut, [(5, True), *ALL[1:]]) == [5, *[None] * 7]
    assert await run(dut, [(5, True), *ALL[1:]]) == [5, *[None] * 7]
    assert await run(dut, ALL) == [None] * 8


@cocotb.test()
async def the_reader_stops_and_goes_on(dut):
    await start(dut)
    assert await run(dut, frames(1, 2, 3) + ALL[:2]) == [1, 2]
    assert await run(dut, ALL) == [3, *[None] * 5, 1, 2]
