// Holds flow_table against the Rust law, clock by clock. A line of +vectors=FILE is one of
//   0 rounds_max                         the configuration, which resets the module
//   1 add flow get told recipient        a clock with a frame, if `add` is 1, and a reading, if `get` is 1, and its answer
//   2 n flow_1 .. flow_n                 readings of all entries, of which n have recipients, in this order
// Flows are numbers in the file, and 5-tuples in the table. Inputs change at falling edges, and outputs are read there. Answers
// come LATENCY clocks later: they wait in a queue.
// The table here has 64 entries: the text of the module is the same, and one of 1,024 takes 150 us a clock to simulate.
module flow_table_bench #(
    parameter int ENTRIES = 64
);
  localparam int WIDTH = 104;
  localparam int LATENCY = 4;

  logic clk = 0, rst = 1, add = 0, get = 0, read, told;
  logic [2:0] rounds_max = 1;
  logic [WIDTH-1:0] flow, recipient;
  flow_table #(.ENTRIES(ENTRIES), .WIDTH(WIDTH)) dut (.*);

  always #1 clk = ~clk;

  // An IPv4 5-tuple: source, destination, ports, protocol. Different numbers give different tuples.
  function automatic logic [WIDTH-1:0] tuple(input int number);
    return {32'h0a000000 ^ number, 32'hc0a80000 ^ ~number, number[15:0] ^ 16'h5aa5, 16'd4791, 8'd17};
  endfunction

  string path;
  int file, op, n_read, n, number, steps = 0, differ = 0;
  int expected[LATENCY], answers = 0;  // -2: no reading; -1: no recipient
  int given, is_add, is_get, is_told;

  // A clock: checks the outputs of LATENCY clocks ago, after the inputs have been set.
  task automatic clock(input int answer);
    @(negedge clk);
    answers = expected[LATENCY-1];
    for (int i = LATENCY - 1; i > 0; i--) expected[i] = expected[i-1];
    expected[0] = answer;
    // The clock that has just passed is the first one of `answer`.
    answers = expected[LATENCY-1];
    if (read != (answers != -2) || (read && told != (answers != -1)) || (read && told && recipient != tuple(answers))) begin
      differ++;
      if (differ <= 5) $display("step %0d: read %0d, told %0d, recipient %h, not %0d", steps, read, told, recipient, answers);
    end
  endtask

  task automatic drain;
    add = 0;
    get = 0;
    repeat (LATENCY + 2) clock(-2);
  endtask

  initial begin
    for (int i = 0; i < LATENCY; i++) expected[i] = -2;
    if (!$value$plusargs("vectors=%s", path)) $fatal(1, "+vectors=FILE is missing");
    file = $fopen(path, "r");
    if (file == 0) $fatal(1, "%s cannot be read", path);
    repeat (4) @(negedge clk);
    while ($fscanf(file, "%d", op) == 1) begin
      case (op)
        0: begin
          drain();
          n_read = $fscanf(file, "%d", n);
          rounds_max = n[2:0];
          rst = 1;
          clock(-2);
          rst = 0;
        end
        1: begin
          n_read = $fscanf(file, "%d %d %d %d %d", is_add, number, is_get, is_told, given);
          if (n_read != 5) $fatal(1, "%s: a step is cut", path);
          add = is_add[0];
          get = is_get[0];
          flow = tuple(number);
          clock(!get ? -2 : is_told != 0 ? given : -1);
          steps++;
        end
        default: begin
          // Which entries have no recipient is the table's affair: recipients come in order.
          drain();
          n_read = $fscanf(file, "%d", n);
          get = 1;
          for (int i = 0; i < ENTRIES + LATENCY - 1; i++) begin
            if (i == ENTRIES) get = 0;
            @(negedge clk);
            if (read && told) begin
              n--;
              n_read = $fscanf(file, "%d", given);
              if (n < 0 || recipient != tuple(given)) begin
                differ++;
                if (differ <= 5) $display("step %0d: recipient %h, not %0d", steps, recipient, given);
              end
            end
          end
          @(negedge clk);
          if (n != 0) begin
            differ++;
            if (differ <= 5) $display("step %0d: %0d recipients are missing", steps, n);
          end
          steps++;
        end
      endcase
    end
    drain();
    $display("steps %0d, differ %0d", steps, differ);
    $finish;
  end
endmodule
