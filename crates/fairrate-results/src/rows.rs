//! The tables of a results directory and their rows.

use crate::ResultsError;
use crate::columns::TableWriter;
use crate::read::{Group, Results};
use crate::table::{ColumnSpec, Row, TableSpec, tables};
use crate::value::{Cell, Text, Value as _};

// Flows are few and each matters; samples are many. Hence the different sizes of row groups.
tables! {
    /// A row of `flows.parquet`: a flow, when it finishes or at the end of the run.
    flows: FlowRow, by 4_096 {
        /// Number of the flow, or the id that its flow list gives it.
        id: u32, "flow";
        /// Id of the sender.
        src: u32, "node";
        /// Id of the receiver.
        dst: u32, "node";
        /// Payload; absent if endless.
        bytes: Option<u64>, "B";
        /// Time of the start; for a flow that waits for another one, the time at which it did start.
        start_ns: u64, "ns";
        /// Time from start to the last byte at the receiver; absent if unfinished.
        fct_ns: Option<u64>, "ns";
        /// Time from start to the last acknowledgment at the sender; absent if unfinished.
        fct_ack_ns: Option<u64>, "ns";
        /// Completion time of the flow alone on an idle network: store-and-forward over its path at line rate, headers
        /// counted; absent if endless.
        ideal_fct_ns: Option<u64>, "ns";
        /// `fct_ns / ideal_fct_ns`; absent if unfinished.
        slowdown: Option<f64>, "1";
        /// Payload retransmitted.
        retransmitted_bytes: u64, "B";
        /// `true` if the last byte of a finite flow has reached the receiver, so that there is an `fct_ns`.
        finished: bool, "bool";
        /// Payload that the receiver has in order.
        delivered_bytes: u64, "B";
        /// Number of its `[[traffic]]` block, or the group that its flow list gives it.
        group: u32, "traffic block";
        /// Payload that arrived and waited for bytes before it that came over other paths; 0 unless TCP has several
        /// subflows.
        reordered_bytes: u64, "B";
        /// Mean time that such a byte waited; absent if there was none.
        reordering_mean_ns: Option<u64>, "ns";
        /// The longest such time; absent if there was none.
        reordering_max_ns: Option<u64>, "ns";
        /// Data packets, without copies of what had arrived in order, that came after one that was sent later; 0 where
        /// packets of a flow, or of each of its subflows, take one path that no fault reorders, and for HOMA.
        late_packets: u64, "packets";
        /// Largest reorder extent: from the first byte of a late packet to that of the furthest one that had arrived; 0
        /// likewise.
        reorder_extent_bytes: u64, "B";
        /// Largest distance from the byte expected next to the end of the furthest one that had arrived, which a buffer
        /// for reordering has to hold; 0 likewise.
        reorder_span_bytes: u64, "B";
        /// Retransmission timeouts of the sender, or of all subflows, without those of a handshake.
        timeouts: u32, "1";
        /// Losses found and repaired without a timeout: recoveries of TCP, gaps reported to RDMA senders.
        recoveries: u32, "1";
        /// Time from start to the end of the handshake; absent without one.
        connected_ns: Option<u64>, "ns";
        /// Time from start to the deadline of the last byte; absent without a deadline.
        deadline_ns: Option<u64>, "ns";
    }

    /// A row of `ports.parquet`: a sample of a probed port, or of the receive buffer of a host. Rows are in order of
    /// time.
    ports: PortRow, by 32_768 {
        /// Time of the sample, before anything else of that time.
        t_ns: u64, "ns";
        /// Id of the node the port sends from, or of the host.
        node: u32, "node";
        /// Name of the port; `host-rx->h3` is the receive buffer of `h3`.
        port: Text, "from->to";
        /// Bytes waiting in all classes, without the packet on the wire; in a receive buffer, all that is not in
        /// memory.
        qlen_bytes: u64, "B";
        /// Bytes handed to the wire since the start; of a VOQ, those that its circuits took; of a receive buffer, those
        /// of data in memory.
        tx_bytes: u64, "B";
        /// Packets dropped at the port since the start, on their way into it or out of its queue. Those that its wire
        /// lost, and those dropped at a host, do not count.
        drops: u64, "packets";
        /// Packets marked with ECN since the start.
        ecn_marks: u64, "packets";
        /// Time during which the peer paused any class of the port since the start; of a receive buffer, for which it
        /// paused its switch.
        pfc_pause_ns: u64, "ns";
    }

    /// A row of `rates.parquet`: a sample of a probed flow, while it is active. Rows are in order of time.
    rates: RateRow, by 32_768 {
        /// Time of the sample.
        t_ns: u64, "ns";
        /// Number of the flow.
        flow: u32, "flow";
        /// Congestion window in payload bytes; absent if the algorithm has none.
        cwnd_bytes: Option<u64>, "B";
        /// Pacing rate, of bytes on the wire.
        rate_bps: u64, "bit/s";
        /// Payload that the receiver has in order.
        delivered_bytes: u64, "B";
        /// Smoothed round-trip time; absent in simulations.
        rtt_ns: Option<u64> = None, "ns";
        /// Payload retransmitted since the start; absent in simulations.
        retransmitted_bytes: Option<u64> = None, "B";
    }

    /// A row of `pfc.parquet`: a pause or resume frame that took effect. Rows are in order of time.
    pfc: PfcRow, by 32_768 {
        /// Time at which the frame arrived.
        t_ns: u64, "ns";
        /// Id of the node that stops or resumes sending.
        node: u32, "node";
        /// Name of its paused egress port.
        port: Text, "from->to";
        /// `true` for a pause frame, `false` for a resume frame.
        pause: bool, "bool";
        /// Priority class of the frame.
        class: u8, "priority class";
    }

    /// A row of `links.parquet`: an egress port over the whole run. Rows are in order of ports; there are none until
    /// the run has ended.
    links: LinkRow, by 4_096 {
        /// Id of the node the port sends from.
        node: u32, "node";
        /// Name of the port.
        port: Text, "from->to";
        /// Rate of the port, without faults.
        rate_bps: u64, "bit/s";
        /// Bytes handed to the wire.
        tx_bytes: u64, "B";
        /// Packets marked with ECN.
        ecn_marks: u64, "packets";
        /// Time during which the peer paused any class of the port.
        pfc_pause_ns: u64, "ns";
        /// Packets dropped here for all causes: on their way into the port, from its queue, on its wire or at the host
        /// to which it leads.
        drops: u64, "packets";
        /// Those of them that an egress queue over its Dynamic Threshold refused.
        drops_egress_threshold: u64, "packets";
        /// Those for which what had come by one port and class was over its Dynamic Threshold.
        drops_ingress_threshold: u64, "packets";
        /// Those that found the shared buffer full.
        drops_buffer_full: u64, "packets";
        /// Those that found the headroom of a lossless class used up.
        drops_headroom: u64, "packets";
        /// Those over the port's own limit.
        drops_queue_limit: u64, "packets";
        /// Those of RED.
        drops_early: u64, "packets";
        /// Those of CoDel.
        drops_sojourn: u64, "packets";
        /// Those of pFabric.
        drops_priority: u64, "packets";
        /// Those that a faulty link lost.
        drops_faults: u64, "packets";
        /// Those without any live way on.
        drops_unreachable: u64, "packets";
        /// Those that found the receive buffer of the host full.
        drops_host: u64, "packets";
    }

    /// A row of `rtts.parquet`: a range of round-trip times of the flows of a block, if a probe counts them. Rows are
    /// in order of blocks and ranges; there are none until the run has ended.
    rtts: RttRow, by 4_096 {
        /// Number of the `[[traffic]]` block.
        group: u32, "traffic block";
        /// Least time of the range.
        from_ns: u64, "ns";
        /// End of the range, which is not in it: about 2 % longer.
        to_ns: u64, "ns";
        /// Acknowledgments of the measuring window with a time in the range.
        acks: u64, "1";
    }

    /// A row of `convergence.parquet`: an arrival or departure of a flow, if a probe watches the convergence of rates.
    /// Changes at the same time have one row, and one that leaves no flow has none.
    convergence: ConvergenceRow, by 32_768 {
        /// Time of the arrival or departure.
        t_ns: u64, "ns";
        /// Number of the flow.
        flow: u32, "flow";
        /// `true` for an arrival, `false` for a departure.
        arrival: bool, "bool";
        /// Number of active flows after the change.
        n_flows: u32, "flows";
        /// Time from the change until all rates were near the optimum and stayed there; absent if they were not.
        time_ns: Option<u64>, "ns";
        /// That time in base RTTs of the network.
        rtts: Option<f64>, "base RTTs";
        /// `true` if rates have converged, so that there is a `time_ns`.
        converged: bool, "bool";
    }

    /// A row of `collectives.parquet`: a rank in an iteration of a collective operation, when the iteration is complete
    /// or at the end of the run. Rows are in order of iterations.
    collectives: CollectiveRow, by 4_096 {
        /// Number of its `[[traffic]]` block.
        group: u32, "traffic block";
        /// Number of the iteration.
        iteration: u32, "iteration";
        /// Number of the rank.
        rank: u32, "rank";
        /// Id of its host.
        node: u32, "node";
        /// Start at this rank: that of the block, or when it was done with the iteration before and has computed.
        start_ns: u64, "ns";
        /// Arrival of the last message at this rank, or of the last one from it if it receives none; absent if the
        /// iteration is not complete.
        end_ns: Option<u64>, "ns";
        /// Time from start to end.
        time_ns: Option<u64>, "ns";
        /// Least time that the slowest link of a rank allows, at line rate and without headers.
        ideal_ns: u64, "ns";
        /// Bytes of the operation as nccl-tests count them.
        bytes: u64, "B";
        /// `bytes` over `time_ns`, as nccl-tests' `algbw`.
        algbw_bytes_per_s: Option<f64>, "B/s";
        /// The same times the share of it that links carry, as nccl-tests' `busbw`.
        busbw_bytes_per_s: Option<f64>, "B/s";
    }

    /// A row of `operations.parquet`: a rank in an operation of a training job, when it has ended there. Rows are in
    /// order of ends.
    operations: OperationRow, by 32_768 {
        /// Number of its `[[traffic]]` block.
        group: u32, "traffic block";
        /// Number of the iteration.
        iteration: u32, "iteration";
        /// Number of the operation; all ranks that take part have a row with it.
        operation: u32, "operation";
        /// Number of the rank.
        rank: u32, "rank";
        /// Id of its host.
        node: u32, "node";
        /// `compute`, the collective operation as `all-reduce`, `send` or `receive`.
        kind: Text, "1";
        /// The part of the model, or what it moves, as `attention` or `gradients`.
        name: Text, "1";
        /// Name of the process group, as `tp3`; empty for computations and messages.
        process_group: Text, "1";
        /// Bytes as nccl-tests count them, or of the message; absent for computations.
        bytes: Option<u64>, "B";
        /// Time at which the rank had done all that it waits for.
        start_ns: u64, "ns";
        /// Time at which the rank had computed, or had received all that it receives and handed all that it sends to
        /// the NIC.
        end_ns: u64, "ns";
    }

    /// A row of `iterations.parquet`: a rank in an iteration of a training job that is complete. Rows are in order of
    /// iterations.
    iterations: IterationRow, by 4_096 {
        /// Number of its `[[traffic]]` block.
        group: u32, "traffic block";
        /// Number of the iteration.
        iteration: u32, "iteration";
        /// Number of the rank.
        rank: u32, "rank";
        /// Id of its host.
        node: u32, "node";
        /// End of the iteration before at this rank, or start of the block.
        start_ns: u64, "ns";
        /// End at this rank.
        end_ns: u64, "ns";
        /// Time of the iteration: from the end of the one before at the last rank to the end at the last rank.
        time_ns: u64, "ns";
        /// Time in which this rank computes.
        compute_ns: u64, "ns";
        /// Exposed communication: time in which it does not compute and takes part in a collective operation.
        exposed_ns: u64, "ns";
        /// Time in which it does neither, and has a message to send or receive: it waits for other stages of the
        /// pipeline.
        pipeline_ns: u64, "ns";
        /// Time in which it does nothing of these.
        idle_ns: u64, "ns";
    }
}
