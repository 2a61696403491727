// Holds int_stamp against the Rust law, step by step. A line of +vectors=FILE is one of
//   0 rate_code of_arrivals                          the configuration, which resets the module
//   1 now_ns joining leaving header                  a clock; lengths are 0 if no packet joins or leaves. The header is decimal
// Inputs change at falling edges of the clock, and outputs are read there.
module int_stamp_bench;
  localparam int LATENCY = 4;

  logic clk = 0, rst = 1, of_arrivals = 0, join_queue = 0, leave = 0, stamped;
  logic [2:0] rate_code = 0;
  logic [23:0] now_ns = 0;
  logic [15:0] join_bytes = 0, leave_bytes = 0;
  logic [63:0] header;
  int_stamp dut (.*);

  always #1 clk = ~clk;

  string path;
  int file, op, n_read, code, arrivals, steps = 0, differ = 0;
  longint unsigned ns, joining, leaving, given;
  logic [63:0] expected[LATENCY];
  logic [LATENCY-1:0] due = 0;

  task automatic clock(input logic is_due, input logic [63:0] answer);
    @(negedge clk);
    for (int i = LATENCY - 1; i > 0; i--) expected[i] = expected[i-1];
    expected[0] = answer;
    due = {due[LATENCY-2:0], is_due};
    if (stamped != due[LATENCY-1] || (stamped && header != expected[LATENCY-1])) begin
      differ++;
      if (differ <= 5) $display("step %0d: stamped %0d, header %h, not %h", steps, stamped, header, expected[LATENCY-1]);
    end
  endtask

  initial begin
    if (!$value$plusargs("vectors=%s", path)) $fatal(1, "+vectors=FILE is missing");
    file = $fopen(path, "r");
    if (file == 0) $fatal(1, "%s cannot be read", path);
    repeat (5) @(negedge clk);
    while ($fscanf(file, "%d", op) == 1) begin
      if (op == 0) begin
        n_read = $fscanf(file, "%d %d", code, arrivals);
        {join_queue, leave} = 0;
        repeat (LATENCY) clock(0, 0);
        rate_code = code[2:0];
        of_arrivals = arrivals[0];
        rst = 1;
        clock(0, 0);
        rst = 0;
      end else begin
        n_read = $fscanf(file, "%d %d %d %d", ns, joining, leaving, given);
        if (n_read != 4) $fatal(1, "%s: a step is cut", path);
        now_ns = ns[23:0];
        join_queue = joining != 0;
        join_bytes = joining[15:0];
        leave = leaving != 0;
        leave_bytes = leaving[15:0];
        clock(leave, given);
        steps++;
      end
    end
    {join_queue, leave} = 0;
    repeat (LATENCY) clock(0, 0);
    $display("steps %0d, differ %0d", steps, differ);
    $finish;
  end
endmodule
