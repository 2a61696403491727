// Places of nodes and ports in a picture of a given size.

/** Largest and smallest height of a port's cell. */
const CELLS = [14, 11, 9, 7, 6, 5, 4, 3, 2, 1.5, 1];
/** Least height between two rows of nodes, where there is room, as a share of the picture. */
const GAP = 0.07;
/** Space above the highest and below the lowest row, and for the names of rows on the left. */
const MARGIN = 18;
const NAMES = 92;

/**
 * Returns the layout of a network: `boxes`, one for each node (`x`, `y`, `w`, `h`), `cells`, four numbers for each port,
 * `lines`, two ends for each link (`null` where the cells say it all), and the rows with their names.
 */
export function layout(network, width, height) {
  const ports = portsOf(network);
  const inner = width - NAMES - 8;
  const room = height - 2 * MARGIN - GAP * height * (network.rows.length - 1);
  const size = CELLS.find((cell) => contentHeight(network, ports, inner, cell) <= room) ?? CELLS.at(-1);
  const rows = network.rows.map((row) => rowOf(row, ports, inner, size));
  const content = rows.reduce((sum, row) => sum + row.height, 0);
  const gap = rows.length < 2 ? 0 : Math.max(8, (height - 2 * MARGIN - content) / (rows.length - 1));
  const boxes = new Array(network.nodes.length);
  const cells = new Float32Array(8 * network.links.length);
  const isBlock = new Uint8Array(network.nodes.length);
  let bottom = Math.max(height - MARGIN, content + gap * (rows.length - 1) + MARGIN);
  for (const row of rows) {
    row.bottom = bottom;
    row.top = bottom - row.height;
    for (const slot of row.slots) placeSlot(slot, row, ports, size, { boxes, cells, isBlock });
    bottom = row.top - gap;
  }
  return { width, height, size, boxes, cells, lines: lines(network, boxes, isBlock), rows };
}

/** Returns the ports of each node: those to higher rows, and the others. */
function portsOf({ nodes, links, rows }) {
  const level = new Int32Array(nodes.length);
  const order = new Float64Array(nodes.length);
  rows.forEach((row, i) => row.slots.forEach((slot) => slot.nodes.forEach((node, at) => {
    level[node] = i;
    order[node] = slot.from + at * 1e-9;
  })));
  const ports = nodes.map(() => ({ up: [], down: [] }));
  links.forEach(([a, b], link) => {
    ports[a][level[a] < level[b] ? "up" : "down"].push([2 * link, order[b]]);
    ports[b][level[b] < level[a] ? "up" : "down"].push([2 * link + 1, order[a]]);
  });
  for (const node of ports) {
    for (const side of ["up", "down"]) node[side] = node[side].sort((p, q) => p[1] - q[1]).map(([port]) => port);
  }
  return ports;
}

/** Returns the measures of a slot: how many cells are side by side and above each other. */
function measure(slot, ports, width, size) {
  const w = Math.min((slot.to - slot.from) * width * 0.92, 64 * size);
  if (slot.nodes.length === 1) {
    const { up, down } = ports[slot.nodes[0]];
    const columns = Math.max(1, Math.min(Math.max(up.length, down.length), Math.floor(w / size)));
    return { w, columns, n: Math.ceil(up.length / columns) + Math.ceil(down.length / columns) };
  }
  // A block of nodes: each as high as it has ports, so that all ports have cells of the same size.
  const each = Math.max(1, ...slot.nodes.map((node) => ports[node].up.length + ports[node].down.length));
  const columns = Math.max(1, Math.min(slot.nodes.length, Math.floor(w / size)));
  return { w, columns, each, n: Math.ceil(slot.nodes.length / columns) * each };
}

function contentHeight(network, ports, width, size) {
  const heights = network.rows.map((row) => Math.max(1, ...row.slots.map((slot) => measure(slot, ports, width, size).n)));
  return heights.reduce((sum, n) => sum + n * size, 0);
}

function rowOf(row, ports, width, size) {
  const slots = row.slots.map((slot) => ({
    ...slot, ...measure(slot, ports, width, size), middle: NAMES + ((slot.from + slot.to) / 2) * width,
  }));
  return { name: row.name, slots, height: size * Math.max(1, ...slots.map((slot) => slot.n)) };
}

function placeSlot(slot, row, ports, size, out) {
  const cell = Math.min(size * 2, slot.w / slot.columns);
  const left = slot.middle - (cell * slot.columns) / 2;
  if (slot.nodes.length === 1) {
    const node = slot.nodes[0];
    // Hosts hang from the top of their row, switches stand on its bottom.
    const y = row.bottom - slot.n * size;
    out.boxes[node] = { x: left, y, w: cell * slot.columns, h: slot.n * size };
    const up = placeCells(ports[node].up, left, y, cell, size, slot, out.cells);
    placeCells(ports[node].down, left, y + up * size, cell, size, slot, out.cells);
    return;
  }
  slot.nodes.forEach((node, i) => {
    const x = left + (i % slot.columns) * cell;
    const y = row.top + Math.floor(i / slot.columns) * slot.each * size;
    const all = [...ports[node].up, ...ports[node].down];
    out.boxes[node] = { x, y, w: cell, h: slot.each * size, isInBlock: true };
    placeCells(all, x, y, cell, size, { columns: 1 }, out.cells);
    out.isBlock[node] = slot.columns < slot.nodes.length ? 1 : 0;
  });
}

/** Places the cells of `ports` in rows from the left and top. Returns the number of rows. */
function placeCells(ports, left, top, w, h, { columns }, cells) {
  const rows = Math.ceil(ports.length / columns);
  const inLast = Math.min(columns, ports.length);
  const shift = ((columns - inLast) * w) / 2;
  ports.forEach((port, i) => {
    const [x, y] = [left + shift + (i % columns) * w, top + Math.floor(i / columns) * h];
    cells.set([x, y, w, h], 4 * port);
  });
  return rows;
}

/** Returns the two ends of each link; links of hosts that are stacked are left out, as their cells lie side by side. */
function lines({ links }, boxes, isBlock) {
  return links.map(([a, b]) => {
    if (isBlock[a] || isBlock[b]) return null;
    const [one, two] = [boxes[a], boxes[b]];
    const middle = (box) => box.x + box.w / 2;
    if (one.y + one.h <= two.y) return [middle(one), one.y + one.h, middle(two), two.y];
    if (two.y + two.h <= one.y) return [middle(one), one.y, middle(two), two.y + two.h];
    // In the same row.
    const [left, right] = one.x < two.x ? [one.x + one.w, two.x] : [one.x, two.x + two.w];
    return [left, one.y + one.h / 2, right, two.y + two.h / 2];
  });
}
