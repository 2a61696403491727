// rocc_cp: the congestion point of RoCC at one egress port, Algorithm 1 with auto-tuning in whole units.
//
// D. Menikkumbura et al., "Congestion Control for Datacenter Networks: A Control-Theoretic Approach", IEEE TPDS 34(5), 2023.
// The Rust law is `FairRate<i128>::next` in crates/fairrate-control/src/rocc/law.rs.
//
// line    | Algorithm 1                               | stage
// --------|-------------------------------------------|------------------------------------------------
//         | Qcur in units of dQ                       | 1 to 5: bytes times 2^34/dQ, upper bits
// 15 - 19 | AUTO_TUNE: ratio = 1, 2, 4, 8, 16 or 32   | before 7: `shift` = log2(ratio), from F alone
//  2      | Qcur >= Qmax and F > Fmax/8               | 7: `to_min`
//  4      | Qcur - Qold >= Qmid and F > Fmax/8        | 7: `to_half`
//  8, 20  | a (Qcur - Qref) + b (Qcur - Qold)         | 6 to 11: two differences, two products, one sum
//  8, 20  | ... / ratio, rounded down                 | 12: an arithmetic shift right by 32 + `shift`
//  3, 5, 8| the new F                                 | 13
//  9 - 13 | limits Fmin and Fmax, Qold = Qcur         | 14
//
// Widths. F has F_BITS bits, in steps of 2^-fraction dF. The fraction is a matter of the configuration: with 8 bits, as the
// simulator has by default, 24 bits reach 655 Gb/s in units of 10 Mb/s; with 0, as the authors' code has it, F is a whole
// number of units. Gains have 32 bits behind the point, in steps of F for each dQ. A queue has BYTE_BITS bits, 16 MiB.
//
// Latency. `done` comes LATENCY = 14 clocks after `tick`. F is fed back, so a tick must not come before `done`; a period T of
// 40 us has thousands of clocks. The stages could be fewer: they are for the clock's frequency.
//
// Differences from the Rust law:
// - Rust divides bytes by dQ. Here they are multiplied by `unit_recip`, ceil(2^34/dQ), and shifted. For 24 bits of bytes
//   and a dQ up to 1,024 the result is the same: the error of the factor is below dQ/2^34 of it, so that of the quotient is
//   below 2^24/2^34 = 1/1,024 of a unit, and a quotient is at least 1/dQ below the next whole number.
// - Rust has no largest Qcur. Here it is 2^17 - 1 units: above 78 MB in units of 600 bytes, 10.5 MB in units of 80.
// - Rust shifts F up by the gains' fraction, subtracts, and shifts down. Here only the change is shifted down and then added:
//   floor((F 2^s + c) / 2^s) = F + floor(c / 2^s), as F is whole. Differences have the sign that makes c a rise.
module rocc_cp #(
    parameter int F_BITS = 24,
    parameter int BYTE_BITS = 24,
    parameter int GAIN_BITS = 42,
    parameter int Q_BITS = 17
) (
    input  logic                 clk,
    input  logic                 rst,
    // The configuration, which does not change between reset and reset.
    input  logic [F_BITS-1:0]    f_first,      // F before the first period: Fmax, or 0 as in the authors' code
    input  logic [F_BITS-1:0]    f_min,
    input  logic [F_BITS-1:0]    f_max,
    input  logic [Q_BITS-1:0]    q_ref,
    input  logic [Q_BITS-1:0]    q_mid,
    input  logic [Q_BITS-1:0]    q_max,
    input  logic [Q_BITS-1:0]    whole_below,  // while both queue lengths are below this, gains are whole; 0 as printed
    input  logic [GAIN_BITS-1:0] alpha,
    input  logic [GAIN_BITS-1:0] beta,
    input  logic [31:0]          unit_recip,   // ceil(2^34/dQ)
    // The end of a period.
    input  logic                 tick,
    input  logic [BYTE_BITS-1:0] queue_bytes,
    // The result.
    output logic                 done,
    output logic [F_BITS-1:0]    f
);
  localparam int RECIP_SHIFT = 34;
  localparam int GAIN_SHIFT = 32;
  localparam int MOST_SHIFT = 5;
  localparam int LATENCY = 14;
  localparam int P_BITS = GAIN_BITS + 1 + Q_BITS + 1;  // a product of a gain with a signed difference
  localparam int S_BITS = P_BITS + 1 - GAIN_SHIFT;     // the change of F, without fraction

  // Bit n is set while stage n+2 works. What a stage has computed stands until the next tick.
  logic [LATENCY-2:0] stage;
  logic [Q_BITS-1:0]  q_old;

  // Stages 1 to 5: Qcur = floor(bytes / dQ), saturated, from two halves of the factor. Here and below, each product passes two
  // registers: a DSP slice of an FPGA has both inside.
  logic [BYTE_BITS-1:0] bytes;
  logic [BYTE_BITS+15:0] low_inside, high_inside, scaled_low, scaled_high;
  logic [BYTE_BITS+31:0] scaled;  // its lower bits are the fraction
  logic [BYTE_BITS+31-RECIP_SHIFT:0] units;
  logic [Q_BITS-1:0] q_cur;
  assign units = scaled[BYTE_BITS+31:RECIP_SHIFT];
  always_ff @(posedge clk) begin
    if (tick) bytes <= queue_bytes;
    low_inside  <= bytes * unit_recip[15:0];
    high_inside <= bytes * unit_recip[31:16];
    scaled_low  <= low_inside;
    scaled_high <= high_inside;
    scaled <= {16'b0, scaled_low} + {scaled_high, 16'b0};
    q_cur <= (|units[BYTE_BITS+31-RECIP_SHIFT:Q_BITS]) ? '1 : units[Q_BITS-1:0];
  end

  // Lines 15 to 19, and the second condition of lines 2 and 4. F stands still until stage 14.
  logic [2:0] shift;
  logic [MOST_SHIFT-1:0] is_less;
  logic fast;
  always_ff @(posedge clk) begin
    for (int i = 0; i < MOST_SHIFT; i++) is_less[i] <= ({{MOST_SHIFT{1'b0}}, f} << (i + 1)) < {{MOST_SHIFT{1'b0}}, f_max};
  end
  always_ff @(posedge clk) begin
    fast <= {3'b0, f_max} < {f, 3'b0};
    // `is_less` is a run of ones from bit 0 on.
    casez (is_less)
      5'b????0: shift <= 0;
      5'b???01: shift <= 1;
      5'b??011: shift <= 2;
      5'b?0111: shift <= 3;
      5'b01111: shift <= 4;
      default:  shift <= 5;
    endcase
  end

  // Stage 6: differences, with the sign of the change of F. Stage 7: the comparisons of lines 2 and 4.
  logic signed [Q_BITS:0] error, growth;
  logic is_low, to_min, to_half;
  logic [2:0] tuned;
  always_ff @(posedge clk) begin
    error   <= $signed({1'b0, q_ref}) - $signed({1'b0, q_cur});
    growth  <= $signed({1'b0, q_old}) - $signed({1'b0, q_cur});
    is_low  <= q_cur < whole_below && q_old < whole_below;
    to_min  <= fast && q_max <= q_cur;
    to_half <= fast && growth <= -$signed({1'b0, q_mid});
    tuned   <= is_low ? 3'd0 : shift;
  end

  // Stages 7 to 9: products, from two parts of each gain. Stages 10 and 11: their sum, in two parts too.
  localparam int LOW = 24;
  localparam int HIGH = GAIN_BITS - LOW;
  logic signed [LOW+Q_BITS+1:0]  al_inside, bl_inside, alpha_low, beta_low;
  logic signed [HIGH+Q_BITS+1:0] ah_inside, bh_inside, alpha_high, beta_high;
  logic signed [P_BITS-1:0] of_error, of_growth;
  logic [GAIN_SHIFT-1:0] fraction;  // not used: the change is rounded down
  logic carry;
  logic signed [S_BITS-1:0] change;
  always_ff @(posedge clk) begin
    al_inside  <= $signed({1'b0, alpha[LOW-1:0]}) * error;
    ah_inside  <= $signed({1'b0, alpha[GAIN_BITS-1:LOW]}) * error;
    bl_inside  <= $signed({1'b0, beta[LOW-1:0]}) * growth;
    bh_inside  <= $signed({1'b0, beta[GAIN_BITS-1:LOW]}) * growth;
    alpha_low  <= al_inside;
    alpha_high <= ah_inside;
    beta_low   <= bl_inside;
    beta_high  <= bh_inside;
    of_error   <= alpha_low + (alpha_high <<< LOW);
    of_growth  <= beta_low + (beta_high <<< LOW);
    {carry, fraction} <= of_error[GAIN_SHIFT-1:0] + of_growth[GAIN_SHIFT-1:0];
    change <= $signed(of_error[P_BITS-1:GAIN_SHIFT]) + $signed(of_growth[P_BITS-1:GAIN_SHIFT]) + $signed({1'b0, carry});
  end

  // Stage 12: the change of F, rounded down.
  logic signed [S_BITS-1:0] step;
  always_ff @(posedge clk) step <= change >>> tuned;

  // Stage 13: lines 3, 5 and 8. Stage 14: lines 9 to 13.
  logic signed [S_BITS:0] next;
  always_ff @(posedge clk) begin
    if (to_min) next <= $signed({1'b0, f_min});
    else if (to_half) next <= $signed({1'b0, f >> 1});
    else next <= $signed({1'b0, f}) + step;
  end

  always_ff @(posedge clk) begin
    stage <= {stage[LATENCY-3:0], tick};
    done  <= stage[LATENCY-2];
    if (stage[LATENCY-2]) begin
      q_old <= q_cur;
      if (next < $signed({1'b0, f_min})) f <= f_min;
      else if ($signed({1'b0, f_max}) < next) f <= f_max;
      else f <= next[F_BITS-1:0];
    end
    if (rst) begin
      stage <= '0;
      done  <= 1'b0;
      q_old <= '0;
      f     <= f_first;
    end
  end
endmodule
