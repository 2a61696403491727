// Holds rocc_cp against the Rust law, step by step. A line of +vectors=FILE is a configuration,
//   0 f_first f_min f_max q_ref q_mid q_max whole_below alpha beta unit_recip
// which resets the module, or the end of a period with the bytes in the queue and the F that follows,
//   1 queue_bytes f
// Inputs change at falling edges of the clock, and outputs are read there.
module rocc_cp_bench;
  localparam int LATENCY = 14;

  logic clk = 0, rst = 1, tick = 0, done;
  logic [23:0] f_first, f_min, f_max, f, queue_bytes;
  logic [16:0] q_ref, q_mid, q_max, whole_below;
  logic [41:0] alpha, beta;
  logic [31:0] unit_recip;
  rocc_cp dut (.*);

  always #1 clk = ~clk;

  string path;
  int file, op, n_read, clocks, steps = 0, differ = 0;
  longint bytes, expected;

  initial begin
    if (!$value$plusargs("vectors=%s", path)) $fatal(1, "+vectors=FILE is missing");
    file = $fopen(path, "r");
    if (file == 0) $fatal(1, "%s cannot be read", path);
    while ($fscanf(file, "%d", op) == 1) begin
      if (op == 0) begin
        n_read = $fscanf(file, "%d %d %d %d %d %d %d %d %d %d", f_first, f_min, f_max, q_ref, q_mid, q_max, whole_below,
                         alpha, beta, unit_recip);
        if (n_read != 10) $fatal(1, "%s: a configuration is cut", path);
        rst = 1;
        @(negedge clk);
        rst = 0;
        // What depends on F alone has settled when the first period ends.
        repeat (4) @(negedge clk);
      end else begin
        n_read = $fscanf(file, "%d %d", bytes, expected);
        if (n_read != 2) $fatal(1, "%s: a step is cut", path);
        tick = 1;
        queue_bytes = bytes[23:0];
        @(negedge clk);
        tick = 0;
        queue_bytes = 'x;
        for (clocks = 1; !done && clocks < 100; clocks++) @(negedge clk);
        if (clocks != LATENCY || f != expected[23:0]) begin
          differ++;
          if (differ <= 5) $display("step %0d: %0d bytes give %0d after %0d clocks, not %0d", steps, bytes, f, clocks, expected);
        end
        steps++;
      end
    end
    $display("steps %0d, differ %0d", steps, differ);
    $finish;
  end
endmodule
