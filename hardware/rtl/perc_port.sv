// perc_port: a link's answers to the control packets of PERC, in a bounded number of clocks.
//
// L. Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets 2015, section 3.2, eq. (2), asynchronous. The
// Rust law is `PercPort` in crates/fairrate-control/src/perc.rs with its `RateTable`, with the defaults: the link answers with
// the rate that the asking flow would get, so its own demand counts as infinite.
//
//   eq. (2): f is the level at which the demands fill the link, sum over all flows of min(d, f) = C
//
// The table has the flows' demands in ascending order. With d_0 <= ... <= d_n-1 those of the other flows, the load of the link at
// level d_k is
//
//   g_k = d_0 + ... + d_k-1 + d_k (n + 1 - k),   so   g_k = g_k-1 + (d_k - d_k-1) (n + 1 - k),
//
// and g rises with k. The flows with g_k <= C are below the level: m of them, with the sum s. All others, and the one that asks,
// share the rest: f = (C - s) / (n + 1 - m).
//
// state    | work                                                              | clocks
// ---------|-------------------------------------------------------------------|--------------------------
// idle     | takes a packet                                                    | 1
// find     | compares the flow with all entries                                | 1
// remove   | closes the gap; the answer to an exit message is done             | 1
// scan     | a demand a clock: difference, product, sum, comparison            | n + 6
// rest     | C - s and n + 1 - m                                               | 1
// divide   | two bits of the quotient a clock, rounded down; meanwhile the new | RATE_BITS / 2
//          | demand takes its place in the order                               |
//
// Latency. `done` comes n + RATE_BITS / 2 + 10 clocks after `ask`, with n other flows in the table: at most FLOWS + 38, and 3 clocks
// after `leave`. With no other flow the scan takes 1 clock, and the answer 33. At 100 MHz, 102 clocks are a microsecond.
//
// Widths. Rates have RATE_BITS = 56 bits in units of 2^-16 bit/s, the units of the Rust table: 1 Tb/s. A load has
// as many bits more as a number of flows has, so no sum is cut.
//
// Differences from the Rust law:
// - The answer is rounded down to a unit; Rust's is the nearest floating-point number to the same quotient. Links of up to 100 Gb/s
//   have C below 2^53 units, for which the floor of Rust's answer is this one.
// - Rust's table has no end. Here a flow that does not fit is answered but not stored, and `full` tells of it.
// - Rust forgets flows that send nothing for ten RTTs. Here the switch's processor sends an exit message for them.
module perc_port #(
    parameter int FLOWS = 64,
    parameter int RATE_BITS = 56,
    parameter int FLOW_BITS = 24
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic [RATE_BITS-1:0] capacity,
    input  logic                 ask,      // a control packet with a demand
    input  logic                 leave,    // an exit message
    input  logic [FLOW_BITS-1:0] flow,
    input  logic [RATE_BITS-1:0] demand,
    output logic                 ready,    // a packet is taken in this clock
    output logic                 done,
    output logic [RATE_BITS-1:0] share,
    output logic                 full      // with `done`: the flow is not in the table, which is full
);
  localparam int W = RATE_BITS;
  localparam int N = $clog2(FLOWS + 2);  // bits of a number of flows, with the asking one
  localparam int G = W + N;              // bits of a load
  typedef enum logic [2:0] {IDLE, FIND, REMOVE, SCAN, REST, DIVIDE} state_t;
  state_t state;

  // The table: entry i is in bits [i W, (i + 1) W).
  logic [FLOWS*W-1:0] rates;
  logic [FLOWS*FLOW_BITS-1:0] flows;
  logic [N-1:0] n;

  // The packet.
  logic leaving;
  logic [FLOW_BITS-1:0] asking;
  logic [W-1:0] wanted;

  assign ready = state == IDLE && !rst;

  // Entries: `mine` has the packet's flow; `from_mine` is set there and above; `above` has demands above the new one, or is empty.
  logic [FLOWS-1:0] mine, from_mine, above;
  logic place, insert;
  always_comb begin
    from_mine[0] = mine[0];
    for (int i = 1; i < FLOWS; i++) from_mine[i] = from_mine[i-1] || mine[i];
  end
  always_ff @(posedge clk) begin
    if (state == FIND) begin
      for (int i = 0; i < FLOWS; i++) mine[i] <= i < n && flows[i*FLOW_BITS+:FLOW_BITS] == asking;
    end
    if (state == REMOVE) begin
      for (int i = 0; i < FLOWS - 1; i++) begin
        if (from_mine[i]) begin
          rates[i*W+:W] <= rates[(i+1)*W+:W];
          flows[i*FLOW_BITS+:FLOW_BITS] <= flows[(i+1)*FLOW_BITS+:FLOW_BITS];
        end
      end
    end
    if (place) begin
      for (int i = 0; i < FLOWS; i++) above[i] <= n <= i || wanted < rates[i*W+:W];
    end
    if (insert) begin
      for (int i = 0; i < FLOWS; i++) begin
        if (above[i]) begin
          rates[i*W+:W] <= i != 0 && above[i == 0 ? 0 : i-1] ? rates[(i == 0 ? 0 : i-1)*W+:W] : wanted;
          flows[i*FLOW_BITS+:FLOW_BITS] <= i != 0 && above[i == 0 ? 0 : i-1] ? flows[(i == 0 ? 0 : i-1)*FLOW_BITS+:FLOW_BITS] : asking;
        end
      end
    end
  end

  // The scan. Each stage has the demand that belongs to its value; the product passes two registers, as DSP slices have them.
  logic [N-1:0] k, weight, weight_2, n_below;
  logic [5:1] valid;
  logic [W-1:0] d_1, d_2, d_3, d_4, d_5, last, step_2, below;
  logic [G-1:0] product_3, product_4, load_5;
  logic fits;
  always_ff @(posedge clk) begin
    if (state == SCAN) begin
      d_1 <= rates[k*W+:W];
      valid[1] <= k < n;
      if (k < n) k <= k + 1'b1;

      {d_2, valid[2]} <= {d_1, valid[1]};
      step_2   <= d_1 - last;
      weight_2 <= weight;
      if (valid[1]) begin
        last   <= d_1;
        weight <= weight - 1'b1;
      end

      {d_3, valid[3]} <= {d_2, valid[2]};
      product_3 <= step_2 * weight_2;
      {d_4, valid[4]} <= {d_3, valid[3]};
      product_4 <= product_3;
      {d_5, valid[5]} <= {d_4, valid[4]};
      if (valid[4]) load_5 <= load_5 + product_4;

      if (valid[5]) begin
        fits <= fits && load_5 <= {{N{1'b0}}, capacity};
        if (fits && load_5 <= {{N{1'b0}}, capacity}) begin
          below   <= below + d_5;
          n_below <= n_below + 1'b1;
        end
      end
    end else begin
      valid <= '0;
      {k, last, load_5} <= '0;
      // In `remove` the entry still counts.
      weight <= n + 1'b1 - {{N-1{1'b0}}, |mine};
      if (state == FIND) begin
        {below, n_below} <= '0;
        fits <= 1'b1;
      end
    end
  end

  // The quotient: `share` takes the dividend's bits out at the top and the quotient's in at the bottom.
  logic [N:0] rest, rest_1, rest_2;
  logic [N-1:0] divisor;
  logic bit_1, bit_2;
  logic [$clog2(W/2+1)-1:0] n_steps;
  always_comb begin
    rest_1 = {rest[N-1:0], share[W-1]};
    bit_1  = {1'b0, divisor} <= rest_1;
    if (bit_1) rest_1 = rest_1 - {1'b0, divisor};
    rest_2 = {rest_1[N-1:0], share[W-2]};
    bit_2  = {1'b0, divisor} <= rest_2;
    if (bit_2) rest_2 = rest_2 - {1'b0, divisor};
  end

  always_ff @(posedge clk) begin
    {done, place, insert} <= '0;
    case (state)
      IDLE: begin
        leaving <= leave;
        asking  <= flow;
        wanted  <= demand < capacity ? demand : capacity;
        if (ask || leave) state <= FIND;
      end
      FIND: state <= REMOVE;
      REMOVE: begin
        if (|mine) n <= n - 1'b1;
        state <= leaving ? IDLE : SCAN;
        done  <= leaving;
        full  <= 1'b0;
      end
      SCAN: if (n <= k && valid == '0 && !(k < n)) state <= REST;
      REST: begin
        share   <= capacity - below;
        divisor <= n + 1'b1 - n_below;
        rest    <= '0;
        n_steps <= '0;
        place   <= 1'b1;
        state   <= DIVIDE;
      end
      default: begin
        share   <= {share[W-3:0], bit_1, bit_2};
        rest    <= rest_2;
        n_steps <= n_steps + 1'b1;
        if (place) begin
          insert <= n != N'(FLOWS);
          full   <= n == N'(FLOWS);
        end
        if (insert) n <= n + 1'b1;
        if (n_steps == W / 2 - 1) begin
          done  <= 1'b1;
          state <= IDLE;
        end
      end
    endcase
    if (rst) begin
      state <= IDLE;
      n     <= '0;
      {done, place, insert} <= '0;
    end
  end
endmodule
