// int_stamp: PowerTCP's telemetry of an egress port, stamped into the header of each packet that leaves.
//
// V. Addanki et al., "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022, section 3.6: switches write
// qlen, timestamp, txBytes and bandwidth into the header, as HPCC's do. The Rust law is `IntHop::encoded` in
// crates/fairrate-control/src/int.rs with `int_format = "packed"`: the 64 bits of HPCC's public code.
//
// bits     | field                                       | unit, and what of it is kept
// ---------|---------------------------------------------|-------------------------------------------
// 63 .. 61 | rate of the port                            | a code that the configuration has
// 60 .. 37 | time at which the packet leaves             | ns, modulo 2^24
// 36 .. 17 | bytes sent before it, or bytes ever queued  | 128 bytes, modulo 2^20
// 16 .. 0  | bytes left in the queue                     | 80 bytes, modulo 2^17
//
// The state is three counters: bytes in the queue, bytes sent, bytes ever queued. PowerTCP as published reads the bytes
// sent; its public code reads the bytes queued, whose slope is the arrival rate (`of_arrivals`).
//
// Widths. A length has 16 bits. The queue has 32 bits, as in Rust. Of the other two counters only 27 bits are ever read, so no
// more are kept: Rust's have 64.
//
// Latency. `stamped` comes LATENCY = 4 clocks after `leave`, and a packet may leave in every clock. A packet may join in the
// same clock: it counts as in the queue when the other leaves, as it does in the simulator.
//
// Differences from the Rust law:
// - Rust divides the queue by 80. Here it is cut by 4 bits and multiplied by 1/5: floor(n / 5) = floor(n ceil(2^35 / 5) / 2^35) for
//   n below 2^32, as the factor's error is 2/5 of 2^-35. Only the lower 17 bits of the quotient are kept.
// - Rust takes picoseconds; here a counter of nanoseconds comes in (`now_ns`), as a switch's clock gives them.
// - Rust keeps a rate as a number. Here it is HPCC's code of three bits, which hosts know.
module int_stamp (
    input  logic        clk,
    input  logic        rst,
    input  logic [2:0]  rate_code,
    input  logic        of_arrivals,  // stamp the bytes ever queued in place of the bytes sent
    input  logic [23:0] now_ns,
    input  logic        join_queue,   // a packet joins the queue
    input  logic [15:0] join_bytes,
    input  logic        leave,        // a packet leaves
    input  logic [15:0] leave_bytes,
    output logic        stamped,
    output logic [63:0] header
);
  localparam int BYTES = 27;  // 20 bits of 128 bytes
  localparam logic [32:0] FIFTH = 33'd6871947674;  // ceil(2^35 / 5)

  // Stage 1: the counters.
  logic [31:0] queue, queue_next;
  logic [BYTES-1:0] sent, queued, queued_next;
  assign queue_next  = queue + (join_queue ? 32'(join_bytes) : 32'd0) - (leave ? 32'(leave_bytes) : 32'd0);
  assign queued_next = queued + (join_queue ? BYTES'(join_bytes) : '0);

  // Stage 1: what the packet takes along. Stages 2 and 3: the quotient. Stage 4: the header.
  logic [3:1] stage;
  logic [23:0] ns_1, ns_2, ns_3;
  logic [19:0] bytes_1, bytes_2, bytes_3;
  logic [27:0] cells_1;
  logic [60:0] product_2, product_3;
  always_ff @(posedge clk) begin
    queue  <= queue_next;
    queued <= queued_next;
    if (leave) sent <= sent + BYTES'(leave_bytes);

    stage   <= {stage[2:1], leave};
    ns_1    <= now_ns;
    bytes_1 <= of_arrivals ? queued_next[BYTES-1:7] : sent[BYTES-1:7];
    cells_1 <= queue_next[31:4];

    {ns_2, bytes_2} <= {ns_1, bytes_1};
    product_2 <= cells_1 * FIFTH;
    {ns_3, bytes_3} <= {ns_2, bytes_2};
    product_3 <= product_2;

    stamped <= stage[3];
    header  <= {rate_code, ns_3, bytes_3, product_3[51:35]};
    if (rst) begin
      {stage, stamped} <= '0;
      {queue, sent, queued} <= '0;
    end
  end
endmodule
