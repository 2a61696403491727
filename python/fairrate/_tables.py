"""The tables of results, as `fairrate-results/src/rows.rs` declares them; its tests write this file."""

from __future__ import annotations

from functools import cached_property

from fairrate._table import Table


class Tables:
    """The tables of a run by their names. Each is read when it is first asked for."""

    def _table(self, name: str) -> Table:
        raise NotImplementedError

    @cached_property
    def flows(self) -> Table:
        """A row of ``flows.parquet``: a flow, when it finishes or at the end of the run.

        Columns:
            id (flow): Number of the flow, or the id that its flow list gives it.
            src (node): Id of the sender.
            dst (node): Id of the receiver.
            bytes (B): Payload; absent if endless.
            start_ns (ns): Time of the start; for a flow that waits for another one, the time at which it did start.
            fct_ns (ns): Time from start to the last byte at the receiver; absent if unfinished.
            fct_ack_ns (ns): Time from start to the last acknowledgment at the sender; absent if unfinished.
            ideal_fct_ns (ns): Completion time of the flow alone on an idle network: store-and-forward over its path at
                line rate, headers counted; absent if endless.
            slowdown (1): ``fct_ns / ideal_fct_ns``; absent if unfinished.
            retransmitted_bytes (B): Payload retransmitted.
            finished (bool): ``true`` if the last byte of a finite flow has reached the receiver, so that there is an
                ``fct_ns``.
            delivered_bytes (B): Payload that the receiver has in order.
            group (traffic block): Number of its ``[[traffic]]`` block, or the group that its flow list gives it.
            reordered_bytes (B): Payload that arrived and waited for bytes before it that came over other paths; 0
                unless TCP has several subflows.
            reordering_mean_ns (ns): Mean time that such a byte waited; absent if there was none.
            reordering_max_ns (ns): The longest such time; absent if there was none.
            late_packets (packets): Data packets, without copies of what had arrived in order, that came after one that
                was sent later; 0 where packets of a flow, or of each of its subflows, take one path that no fault
                reorders, and for HOMA.
            reorder_extent_bytes (B): Largest reorder extent: from the first byte of a late packet to that of the
                furthest one that had arrived; 0 likewise.
            reorder_span_bytes (B): Largest distance from the byte expected next to the end of the furthest one that had
                arrived, which a buffer for reordering has to hold; 0 likewise.
            timeouts (1): Retransmission timeouts of the sender, or of all subflows, without those of a handshake.
            recoveries (1): Losses found and repaired without a timeout: recoveries of TCP, gaps reported to RDMA
                senders.
            connected_ns (ns): Time from start to the end of the handshake; absent without one.
            deadline_ns (ns): Time from start to the deadline of the last byte; absent without a deadline.
        """
        return self._table("flows")

    @cached_property
    def ports(self) -> Table:
        """A row of ``ports.parquet``: a sample of a probed port, or of the receive buffer of a host. Rows are in order
        of time.

        Columns:
            t_ns (ns): Time of the sample, before anything else of that time.
            node (node): Id of the node the port sends from, or of the host.
            port (from->to): Name of the port; ``host-rx->h3`` is the receive buffer of ``h3``.
            qlen_bytes (B): Bytes waiting in all classes, without the packet on the wire; in a receive buffer, all that
                is not in memory.
            tx_bytes (B): Bytes handed to the wire since the start; of a VOQ, those that its circuits took; of a receive
                buffer, those of data in memory.
            drops (packets): Packets dropped at the port since the start, on their way into it or out of its queue.
                Those that its wire lost, and those dropped at a host, do not count.
            ecn_marks (packets): Packets marked with ECN since the start.
            pfc_pause_ns (ns): Time during which the peer paused any class of the port since the start; of a receive
                buffer, for which it paused its switch.
        """
        return self._table("ports")

    @cached_property
    def rates(self) -> Table:
        """A row of ``rates.parquet``: a sample of a probed flow, while it is active. Rows are in order of time.

        Columns:
            t_ns (ns): Time of the sample.
            flow (flow): Number of the flow.
            cwnd_bytes (B): Congestion window in payload bytes; absent if the algorithm has none.
            rate_bps (bit/s): Pacing rate, of bytes on the wire.
            delivered_bytes (B): Payload that the receiver has in order.
            rtt_ns (ns): Smoothed round-trip time; absent in simulations.
            retransmitted_bytes (B): Payload retransmitted since the start; absent in simulations.
        """
        return self._table("rates")

    @cached_property
    def pfc(self) -> Table:
        """A row of ``pfc.parquet``: a pause or resume frame that took effect. Rows are in order of time.

        Columns:
            t_ns (ns): Time at which the frame arrived.
            node (node): Id of the node that stops or resumes sending.
            port (from->to): Name of its paused egress port.
            pause (bool): ``true`` for a pause frame, ``false`` for a resume frame.
            class (priority class): Priority class of the frame.
        """
        return self._table("pfc")

    @cached_property
    def links(self) -> Table:
        """A row of ``links.parquet``: an egress port over the whole run. Rows are in order of ports; there are none
        until the run has ended.

        Columns:
            node (node): Id of the node the port sends from.
            port (from->to): Name of the port.
            rate_bps (bit/s): Rate of the port, without faults.
            tx_bytes (B): Bytes handed to the wire.
            ecn_marks (packets): Packets marked with ECN.
            pfc_pause_ns (ns): Time during which the peer paused any class of the port.
            drops (packets): Packets dropped here for all causes: on their way into the port, from its queue, on its
                wire or at the host to which it leads.
            drops_egress_threshold (packets): Those of them that an egress queue over its Dynamic Threshold refused.
            drops_ingress_threshold (packets): Those for which what had come by one port and class was over its Dynamic
                Threshold.
            drops_buffer_full (packets): Those that found the shared buffer full.
            drops_headroom (packets): Those that found the headroom of a lossless class used up.
            drops_queue_limit (packets): Those over the port's own limit.
            drops_early (packets): Those of RED.
            drops_sojourn (packets): Those of CoDel.
            drops_priority (packets): Those of pFabric.
            drops_faults (packets): Those that a faulty link lost.
            drops_unreachable (packets): Those without any live way on.
            drops_host (packets): Those that found the receive buffer of the host full.
        """
        return self._table("links")

    @cached_property
    def rtts(self) -> Table:
        """A row of ``rtts.parquet``: a range of round-trip times of the flows of a block, if a probe counts them. Rows
        are in order of blocks and ranges; there are none until the run has ended.

        Columns:
            group (traffic block): Number of the ``[[traffic]]`` block.
            from_ns (ns): Least time of the range.
            to_ns (ns): End of the range, which is not in it: about 2 % longer.
            acks (1): Acknowledgments of the measuring window with a time in the range.
        """
        return self._table("rtts")

    @cached_property
    def convergence(self) -> Table:
        """A row of ``convergence.parquet``: an arrival or departure of a flow, if a probe watches the convergence of
        rates. Changes at the same time have one row, and one that leaves no flow has none.

        Columns:
            t_ns (ns): Time of the arrival or departure.
            flow (flow): Number of the flow.
            arrival (bool): ``true`` for an arrival, ``false`` for a departure.
            n_flows (flows): Number of active flows after the change.
            time_ns (ns): Time from the change until all rates were near the optimum and stayed there; absent if they
                were not.
            rtts (base RTTs): That time in base RTTs of the network.
            converged (bool): ``true`` if rates have converged, so that there is a ``time_ns``.
        """
        return self._table("convergence")

    @cached_property
    def collectives(self) -> Table:
        """A row of ``collectives.parquet``: a rank in an iteration of a collective operation, when the iteration is
        complete or at the end of the run. Rows are in order of iterations.

        Columns:
            group (traffic block): Number of its ``[[traffic]]`` block.
            iteration (iteration): Number of the iteration.
            rank (rank): Number of the rank.
            node (node): Id of its host.
            start_ns (ns): Start at this rank: that of the block, or when it was done with the iteration before and has
                computed.
            end_ns (ns): Arrival of the last message at this rank, or of the last one from it if it receives none;
                absent if the iteration is not complete.
            time_ns (ns): Time from start to end.
            ideal_ns (ns): Least time that the slowest link of a rank allows, at line rate and without headers.
            bytes (B): Bytes of the operation as nccl-tests count them.
            algbw_bytes_per_s (B/s): ``bytes`` over ``time_ns``, as nccl-tests' ``algbw``.
            busbw_bytes_per_s (B/s): The same times the share of it that links carry, as nccl-tests' ``busbw``.
        """
        return self._table("collectives")

    @cached_property
    def operations(self) -> Table:
        """A row of ``operations.parquet``: a rank in an operation of a training job, when it has ended there. Rows are
        in order of ends.

        Columns:
            group (traffic block): Number of its ``[[traffic]]`` block.
            iteration (iteration): Number of the iteration.
            operation (operation): Number of the operation; all ranks that take part have a row with it.
            rank (rank): Number of the rank.
            node (node): Id of its host.
            kind (1): ``compute``, the collective operation as ``all-reduce``, ``send`` or ``receive``.
            name (1): The part of the model, or what it moves, as ``attention`` or ``gradients``.
            process_group (1): Name of the process group, as ``tp3``; empty for computations and messages.
            bytes (B): Bytes as nccl-tests count them, or of the message; absent for computations.
            start_ns (ns): Time at which the rank had done all that it waits for.
            end_ns (ns): Time at which the rank had computed, or had received all that it receives and handed all that
                it sends to the NIC.
        """
        return self._table("operations")

    @cached_property
    def iterations(self) -> Table:
        """A row of ``iterations.parquet``: a rank in an iteration of a training job that is complete. Rows are in order
        of iterations.

        Columns:
            group (traffic block): Number of its ``[[traffic]]`` block.
            iteration (iteration): Number of the iteration.
            rank (rank): Number of the rank.
            node (node): Id of its host.
            start_ns (ns): End of the iteration before at this rank, or start of the block.
            end_ns (ns): End at this rank.
            time_ns (ns): Time of the iteration: from the end of the one before at the last rank to the end at the last
                rank.
            compute_ns (ns): Time in which this rank computes.
            exposed_ns (ns): Exposed communication: time in which it does not compute and takes part in a collective
                operation.
            pipeline_ns (ns): Time in which it does neither, and has a message to send or receive: it waits for other
                stages of the pipeline.
            idle_ns (ns): Time in which it does nothing of these.
        """
        return self._table("iterations")
