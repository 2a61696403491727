// rocc_cp between shift registers, so that it fits the pins of a small device: for place and route alone.
module rocc_cp_route (
    input  logic clk,
    input  logic rst,
    input  logic in,
    output logic out
);
  localparam int INPUTS = 3 * 24 + 4 * 17 + 2 * 42 + 32 + 1 + 24;
  localparam int OUTPUTS = 1 + 24;
  logic [INPUTS-1:0] inputs;
  logic [OUTPUTS-1:0] outputs, held;
  rocc_cp dut (
      .clk, .rst,
      .f_first(inputs[23:0]), .f_min(inputs[47:24]), .f_max(inputs[71:48]),
      .q_ref(inputs[88:72]), .q_mid(inputs[105:89]), .q_max(inputs[122:106]), .whole_below(inputs[139:123]),
      .alpha(inputs[181:140]), .beta(inputs[223:182]), .unit_recip(inputs[255:224]),
      .tick(inputs[256]), .queue_bytes(inputs[280:257]),
      .done(outputs[24]), .f(outputs[23:0])
  );
  always_ff @(posedge clk) begin
    inputs <= {inputs[INPUTS-2:0], in};
    held   <= held[OUTPUTS-1] ? outputs : {held[OUTPUTS-2:0], held[0]};
    out    <= held[OUTPUTS-1];
  end
endmodule
