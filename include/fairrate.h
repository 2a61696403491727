/* The interface for algorithms from shared libraries: docs/own-algorithm.md.
 *
 * Written by `cargo xtask header` from crates/fairrate-plugin/src/abi.rs: change it there. Times are picoseconds, rates bits
 * per second, sizes bytes. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Version of this interface. fairrate refuses a library that was built for another one.
#define FAIRRATE_ABI 1

// Value that means "none": an endless flow, no deadline, no window limit, no timer.
#define FAIRRATE_NONE UINT64_MAX

// Flag for the field needs: switches stamp telemetry into data packets, and acknowledgments return it to the sender.
#define FAIRRATE_NEEDS_TELEMETRY 1

// Flag for the field needs: switches mark ECN on the flow's packets.
#define FAIRRATE_NEEDS_ECN 2

// Flag for the field needs: a flow's first acknowledgment is only stored, so that it leads to no decision.
#define FAIRRATE_FIRST_ACK_ONLY_STORED 4

// Kind of loss: the receiver reported a gap.
#define FAIRRATE_LOSS_GAP 0

// Kind of loss: the retransmission timer expired.
#define FAIRRATE_LOSS_TIMEOUT 1

// A parameter, which scenarios set by its name in [transport.NAME].
typedef struct {
  // Key in the scenario.
  const char *name;
  // Meaning and source.
  const char *doc;
  // Default.
  double value;
  // Least value.
  double least;
  // Largest value.
  double most;
} FairrateParameter;

// Properties of a flow that its sender has before the first packet.
typedef struct {
  // The rate of the sender's NIC.
  uint64_t line_rate_bps;
  // The largest base round-trip time in the network (τ of the papers).
  uint64_t base_rtt_ps;
  // The base round-trip time of this flow's own path.
  uint64_t path_base_rtt_ps;
  // Payload bytes of a full packet.
  uint64_t mtu_bytes;
  // Bytes of a full packet on the wire.
  uint64_t wire_mtu_bytes;
  // Links between sender and receiver.
  uint64_t n_hops;
  // The flow's weight; 1 unless the workload says otherwise.
  double weight;
  // Start time of the flow.
  uint64_t start_ps;
  // Payload bytes of the flow, or FAIRRATE_NONE.
  uint64_t size_bytes;
  // Time from the flow's start by which its last byte should have arrived, or FAIRRATE_NONE.
  uint64_t deadline_ps;
  // Seed of the flow's own random draws.
  uint64_t seed;
} FairrateFlow;

// Limits on the sender until the next decision.
typedef struct {
  // Largest number of unacknowledged payload bytes, or FAIRRATE_NONE. Zero counts as one byte.
  uint64_t cwnd_bytes;
  // Pacing rate, in bits on the wire per second; zero: nothing may be sent.
  uint64_t rate_bps;
  // Time of the next call of on_timer, or FAIRRATE_NONE. A time that is not in the future counts as a nanosecond
  // from now.
  uint64_t timer_ps;
} FairrateAllowance;

// Telemetry of one egress port, stamped when a packet leaves its queue.
typedef struct {
  // Time of the dequeue.
  uint64_t ts_ps;
  // Bytes that the port had sent before the packet.
  uint64_t tx_bytes;
  // Bytes left in the port after the packet was removed.
  uint64_t queue_bytes;
  // Rate of the port.
  double rate_bps;
} FairrateHop;

// One acknowledgment, as the sender sees it.
typedef struct {
  // Arrival time of the acknowledgment.
  uint64_t now_ps;
  // Next byte the receiver expects.
  uint64_t ack_seq;
  // Next new byte the sender will send.
  uint64_t snd_nxt;
  // Bytes acknowledged by this and no earlier acknowledgment.
  uint64_t newly_acked;
  // Bytes delivered that no earlier acknowledgment reported, in order or not.
  uint64_t delivered;
  // Bytes newly taken for lost.
  uint64_t lost;
  // Time from the start of the acknowledged packet's transmission to now.
  uint64_t rtt_ps;
  // The congestion window in force when the acknowledged packet was sent, in bytes.
  uint64_t cwnd_at_send;
  // Bytes in flight after this acknowledgment.
  uint64_t in_flight;
  // Delivery rate over the round trip that ends here; zero: not known.
  uint64_t delivery_rate_bps;
  // Bytes that had been delivered when that round trip began, or FAIRRATE_NONE.
  uint64_t prior_delivered;
  // Telemetry records in path order, one for each switch.
  const FairrateHop *hops;
  // Number of records in hops.
  size_t n_hops;
  // Set when the acknowledged packet carried an ECN mark.
  bool ecn_marked;
  // Set when the acknowledged packet was sent while the application had no more to send.
  bool app_limited;
} FairrateAck;

// An algorithm. A library defines a single one, under the name fairrate_algorithm.
//
// Functions may be called by several threads at once, each with a flow of its own. They must not unwind. The comment
// of a function that may be null says so; without that function, the last allowance stays in force.
typedef struct {
  // FAIRRATE_ABI.
  uint32_t abi;
  // Name in scenarios: letters, digits, dashes and underscores.
  const char *name;
  // Name in prose and plots.
  const char *title;
  // Publication that describes it.
  const char *paper;
  // Its idea in one line.
  const char *idea;
  // Sum of the flags that apply, FAIRRATE_NEEDS_... and FAIRRATE_FIRST_ACK_ONLY_STORED, or zero.
  uint64_t needs;
  // Interval in which a receiver answers marked packets with at most one notification (CNP); zero: with none.
  uint64_t cnp_interval_ps;
  // Bytes added to every data packet.
  uint64_t data_overhead_bytes;
  // Bytes added to every acknowledgment.
  uint64_t ack_overhead_bytes;
  // The parameters; may be null if there are none.
  const FairrateParameter *parameters;
  // Number of parameters.
  size_t n_parameters;
  // Creates and returns a flow's state, which all other functions get. parameters has a value for each parameter, in
  // order.
  void *(*make)(const FairrateFlow *flow, const double *parameters);
  // Frees the state; may be null.
  void (*free)(void *state);
  // Called when the flow starts; returns the first window and rate.
  FairrateAllowance (*on_start)(void *state, uint64_t now_ps);
  // Called when an acknowledgment arrives.
  FairrateAllowance (*on_ack)(void *state, const FairrateAck *ack);
  // Called when the transport detects a loss, of kind FAIRRATE_LOSS_...; may be null.
  FairrateAllowance (*on_loss)(void *state, uint64_t now_ps, uint32_t loss);
  // Called when a notification (CNP) arrives; may be null.
  FairrateAllowance (*on_cnp)(void *state, uint64_t now_ps);
  // Called when the time timer_ps is reached; may be null.
  FairrateAllowance (*on_timer)(void *state, uint64_t now_ps);
} FairrateAlgorithm;

/* The functions that a library defines. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
const FairrateAlgorithm fairrate_algorithm;
