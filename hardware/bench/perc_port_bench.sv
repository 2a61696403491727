// Holds perc_port against the Rust law, packet by packet. A line of +vectors=FILE is one of
//   0 capacity                        the configuration, which resets the module
//   1 flow demand share n             a control packet, its answer, and the number of other flows in the table
//   2 flow                            an exit message
// Rates are in units of the module. Inputs change at falling edges of the clock, and outputs are read there.
module perc_port_bench;
  logic clk = 0, rst = 1, ask = 0, leave = 0, ready, done, full;
  logic [55:0] capacity = 0, demand = 0, share;
  logic [23:0] flow = 0;
  perc_port dut (.*);

  always #1 clk = ~clk;

  string path;
  int file, op, n_read, number, n, clocks, expected_clocks, steps = 0, differ = 0;
  longint unsigned given, wanted;

  initial begin
    if (!$value$plusargs("vectors=%s", path)) $fatal(1, "+vectors=FILE is missing");
    file = $fopen(path, "r");
    if (file == 0) $fatal(1, "%s cannot be read", path);
    while ($fscanf(file, "%d", op) == 1) begin
      if (op == 0) begin
        n_read = $fscanf(file, "%d", wanted);
        capacity = wanted[55:0];
        rst = 1;
        @(negedge clk);
        rst = 0;
        @(negedge clk);
      end else begin
        n_read = op == 1 ? $fscanf(file, "%d %d %d %d", number, wanted, given, n) : $fscanf(file, "%d", number);
        if (n_read != (op == 1 ? 4 : 1) || !ready) $fatal(1, "%s: a step is cut, or the module is not ready", path);
        ask = op == 1;
        leave = op == 2;
        flow = number[23:0];
        demand = wanted[55:0];
        @(negedge clk);
        {ask, leave} = 0;
        flow = 'x;
        demand = 'x;
        for (clocks = 1; !done && clocks < 1000; clocks++) @(negedge clk);
        expected_clocks = op == 2 ? 3 : n == 0 ? 33 : n + 38;
        if (clocks != expected_clocks || (op == 1 && (full || share != given[55:0]))) begin
          differ++;
          if (differ <= 5) $display("step %0d: flow %0d gets %0d after %0d clocks, not %0d after %0d", steps, number, share, clocks, given, expected_clocks);
        end
        steps++;
      end
    end
    $display("steps %0d, differ %0d", steps, differ);
    $finish;
  end
endmodule
