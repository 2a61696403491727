// flow_table: the flows to which a congestion point of RoCC sends its rate. Circular, lazy, read round robin.
//
// D. Menikkumbura et al., "Congestion Control for Datacenter Networks: A Control-Theoretic Approach", IEEE TPDS 34(5), 2023,
// sections III-D and IV-C: "the 5-tuple of each frame traversing the egress port is streamed into the table module, which
// performs table updates in a lazy fashion. The flow table uses a circular array to store the flow identifiers, and round
// robin for retrieving them", 1,024 entries, initiation interval 1. The Rust law is `CircularTable` in
// crates/fairrate-control/src/flow_table/circular.rs; the simulator has it as `table = "circular"`.
//
// section | rule                                                            | here
// --------|-----------------------------------------------------------------|---------------------------------------------
// IV-C    | a frame of a flow in the table writes nothing but its age       | `hit`
// IV-C    | a new flow is written at the head of the circle, over whatever  | `insert`, `head`
//         | is there, and the head moves on                                 |
// IV-C    | recipients are read round robin                                 | `cursor`
// III-D 2 | a flow without frames is dropped by its age, and lazily: not    | `rounds`: an entry counts the times it was
//         | when its time is over but when the reader comes by              | read since its last frame
//
// The paper has one sentence. What is ours: the age in rounds of reading (a period of T reads every entry once), so that there
// is no clock in the table, and a reader that passes an empty or dropped entry in a clock of its own.
//
// Widths. WIDTH = 104 bits of an IPv4 5-tuple; 3 bits of age. ENTRIES is a power of two.
//
// Latency. Each clock takes a frame and a reading, both if both come: first the frame, then the reading. The frame is in
// the table 3 clocks after `add`, and `read` with the recipient comes 4 clocks after `get`.
//
// Back to back. A frame is compared in one clock and decides in the next. The frame before it may be written in between, to an
// entry whose comparison is then void: such an entry is `fresh`, and the two frames are compared instead (`same`).
//
// Storage. Every entry's identifier is in registers, where it is compared with a frame's, all at once: that is what one
// frame a clock costs, whatever the flows. The reader has a copy in block RAM, since it takes one entry at a time:
// without it, 104 multiplexers of 1,024 inputs would need about 28,000 LUTs more. 1,024 x 104 bits in registers are 4.36 % of the
// flip-flops of the paper's device, and the paper says 4 %: its table must have been in registers too.
//
// Differences from the Rust law: none in what is told. Rust names a flow by a number, and here it is the 5-tuple. Rust reads all
// entries at the end of a period at once, here a clock each; frames that come in between count as in the order of clocks.
module flow_table #(
    parameter int ENTRIES = 1024,
    parameter int WIDTH = 104
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [2:0]       rounds_max,  // readings without a frame after which a flow is dropped; at least 1
    input  logic             add,
    input  logic [WIDTH-1:0] flow,
    input  logic             get,
    output logic             read,        // an entry was read
    output logic             told,        // ... and it has a recipient
    output logic [WIDTH-1:0] recipient
);
  localparam int AT = $clog2(ENTRIES);
  localparam int IN_BANK = AT > 5 ? 5 : AT - 1;
  localparam int PER_BANK = 1 << IN_BANK;
  localparam int BANKS = ENTRIES / PER_BANK;

  // Stage 1: inputs. Stage 2: the entries compare.
  logic add_1, get_1, adding, getting, same;
  logic [WIDTH-1:0] flow_1, frame;
  always_ff @(posedge clk) begin
    {add_1, get_1}    <= rst ? 2'b0 : {add, get};
    {adding, getting} <= rst ? 2'b0 : {add_1, get_1};
    flow_1 <= flow;
    frame  <= flow_1;
    same   <= flow_1 == frame;
  end

  // Stage 3: they decide, and change.
  logic [AT-1:0] head, cursor;
  logic [BANKS-1:0] hit, lives;
  logic insert;
  assign insert = adding && !(|hit);
  for (genvar i = 0; i < BANKS; i++) begin : bank
    flow_bank #(.ENTRIES(PER_BANK), .WIDTH(WIDTH)) one (
        .clk, .rst, .rounds_max, .flow_1, .frame, .same, .adding,
        .insert(insert && head[AT-1:IN_BANK] == (AT - IN_BANK)'(i)),
        .head(head[IN_BANK-1:0]),
        .getting(getting && cursor[AT-1:IN_BANK] == (AT - IN_BANK)'(i)),
        .cursor(cursor[IN_BANK-1:0]),
        .hit(hit[i]),
        .lives(lives[i])
    );
  end
  always_ff @(posedge clk) begin
    if (insert) head <= head + 1'b1;
    if (getting) cursor <= cursor + 1'b1;
    if (rst) {head, cursor} <= '0;
  end

  // Stages 3 and 4: the reader's copy.
  logic [WIDTH-1:0] copy[ENTRIES];
  logic [WIDTH-1:0] stored, inserted;
  logic was_read, is_told, is_new;
  always_ff @(posedge clk) begin
    if (insert) copy[head] <= frame;
    stored   <= copy[cursor];
    inserted <= frame;
    is_new   <= insert && head == cursor;
    was_read <= getting;
    is_told  <= |lives;
    read      <= was_read && !rst;
    told      <= was_read && (is_told || is_new) && !rst;
    recipient <= is_new ? inserted : stored;
  end
endmodule

// A part of the table's entries.
module flow_bank #(
    parameter int ENTRIES = 32,
    parameter int WIDTH = 104,
    parameter int AT = $clog2(ENTRIES)
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [2:0]       rounds_max,
    input  logic [WIDTH-1:0] flow_1,   // the frame of stage 2
    input  logic [WIDTH-1:0] frame,    // the frame of stage 3, and if the two are of one flow
    input  logic             same,
    input  logic             adding,
    input  logic             insert,   // the frame's flow takes the entry `head`
    input  logic [AT-1:0]    head,
    input  logic             getting,  // the entry `cursor` is read
    input  logic [AT-1:0]    cursor,
    output logic             hit,      // an entry has the frame's flow
    output logic             lives     // an entry is read that has had a recipient before this clock
);
  localparam int PARTS = (WIDTH + 2) / 3;  // three bits of two flows fit a look-up table of six inputs
  (* mem2reg *) logic [WIDTH-1:0] flows[ENTRIES];
  logic [3*ENTRIES-1:0] rounds;
  logic [2:0] round;
  logic [ENTRIES-1:0] valid, equal, fresh, hits, lasts, seen, is_read;
  (* keep *) logic [ENTRIES*PARTS-1:0] alike;
  logic [3*PARTS-1:0] wanted, stored;

  always_comb begin
    wanted = 0;
    wanted[WIDTH-1:0] = flow_1;
    stored = 0;
    for (int i = 0; i < ENTRIES; i++) begin
      stored[WIDTH-1:0] = flows[i];
      for (int p = 0; p < PARTS; p++) alike[i*PARTS+p] = stored[3*p+:3] == wanted[3*p+:3];
    end
  end

  always_comb begin
    for (int i = 0; i < ENTRIES; i++) begin
      hits[i] = adding && valid[i] && (fresh[i] ? same : equal[i]);
      lasts[i] = valid[i] && rounds[3*i+:3] != rounds_max;
      is_read[i] = getting && cursor == i[AT-1:0];
    end
  end
  always_comb begin
    for (int i = 0; i < ENTRIES; i++) seen[i] = hits[i] || (insert && head == i[AT-1:0]);
  end
  assign hit   = |hits;
  assign lives = |(is_read & (lasts | hits));

  always_ff @(posedge clk) begin
    if (insert) flows[head] <= frame;
    for (int i = 0; i < ENTRIES; i++) begin
      round = rounds[3*i+:3];
      equal[i] <= &alike[i*PARTS+:PARTS];
      fresh[i] <= insert && head == i[AT-1:0];
      if (is_read[i]) begin
        valid[i]  <= seen[i] || lasts[i];
        // One more, without a carry chain.
        rounds[3*i+:3] <= seen[i] ? 3'd1 : {round[2] ^ (&round[1:0]), round[1] ^ round[0], ~round[0]};
      end else if (seen[i]) begin
        valid[i]  <= 1'b1;
        rounds[3*i+:3] <= 3'd0;
      end
    end
    if (rst) valid <= '0;
  end
endmodule
