// A picture of a network: links as lines and ports as cells, in colours that say how busy they are.

import { LEVELS, level } from "./colours.js";
import { layout } from "./layout.js";

/** Largest number of links that are all drawn in colour; of more, the ports with the largest values are. */
const LINES_ALL = 2500;
const LINES_SOME = 1500;
/** Distance from a line at which a click still means it, in pixels. */
const REACH = 5;
const ZOOM_MAX = 60;

export class Picture {
  /** Makes the picture in `parent`. `onPick` is called with a port or a node that is clicked, `onView` when the view moves. */
  constructor(parent, title, { onPick, onView, describe }) {
    this.figure = document.createElement("figure");
    this.figure.className = "picture";
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    this.stage = document.createElement("div");
    this.stage.className = "stage";
    this.stage.tabIndex = 0;
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", `${title}: the network as a picture. The tables below have the same numbers.`);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.layers = ["base", "lines", "cells", "marks"].map((name) => {
      const canvas = document.createElement("canvas");
      canvas.className = name;
      this.stage.append(canvas);
      return canvas;
    });
    this.stage.append(this.tip);
    this.figure.append(caption, this.stage);
    parent.append(this.figure);
    [this.onPick, this.onView, this.describe] = [onPick, onView, describe];
    this.view = { k: 1, x: 0, y: 0 };
    this.marks = { port: -1, nodes: [] };
    this.listen();
  }

  /** Sets the network, and its size from that of the page. */
  show(network) {
    this.network = network;
    this.resize();
  }

  resize() {
    const { clientWidth, clientHeight } = this.stage;
    if (!this.network || clientWidth === 0) return;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of this.layers) {
      canvas.width = Math.round(clientWidth * this.ratio);
      canvas.height = Math.round(clientHeight * this.ratio);
    }
    this.layout = layout(this.network, clientWidth, clientHeight);
    const pixels = this.layers[2].getContext("2d").createImageData(this.layers[2].width, this.layers[2].height);
    this.image = pixels;
    this.pixels = new Uint32Array(pixels.data.buffer);
    this.levels = new Uint8Array(2 * this.network.links.length);
    this.drawBase();
    this.drawMarks();
    this.redraw();
  }

  /** Draws `values` of the ports whose places in it are in `column`; `place` says where a value is from 0 to 1. */
  draw(values, column, place, map, centre) {
    this.last = { values, column, place, map, centre };
    this.redraw();
  }

  redraw() {
    if (!this.last || !this.layout) return;
    const { values, column, place, map, centre } = this.last;
    const { levels } = this;
    for (let port = 0; port < levels.length; port += 1) {
      const at = column[port];
      const value = at < 0 || !values ? NaN : values[at];
      levels[port] = Number.isNaN(value) ? 255 : level(place(value), 0, 1);
    }
    this.drawLines(map, centre);
    this.drawCells(map);
  }

  /** Draws what does not change with time: nodes, links without colour, and the names of rows. */
  drawBase() {
    const context = this.clear(0);
    const style = getComputedStyle(this.stage);
    const { boxes, lines, rows } = this.layout;
    const { k } = this.view;
    context.strokeStyle = style.getPropertyValue("--faint");
    context.lineWidth = (lines.length <= LINES_ALL ? 0.8 : 0.35) / k;
    context.beginPath();
    for (const line of lines) {
      if (!line) continue;
      context.moveTo(line[0], line[1]);
      context.lineTo(line[2], line[3]);
    }
    context.stroke();
    context.fillStyle = style.getPropertyValue("--box");
    for (const box of boxes) {
      if (box) context.fillRect(box.x, box.y, box.w, box.h);
    }
    context.fillStyle = style.getPropertyValue("--text");
    context.font = `${12 / k}px system-ui, sans-serif`;
    // The names of rows stay at the left edge, wherever the view is.
    for (const row of rows) context.fillText(row.name, (6 - this.view.x) / k, (row.top + row.bottom) / 2 + 4 / k);
  }

  /** Writes the names of nodes whose boxes are wide enough, over the links. */
  drawNames(context, k) {
    if (this.layout.size * k <= 8) return;
    context.fillStyle = getComputedStyle(this.stage).getPropertyValue("--text");
    context.font = `${12 / k}px system-ui, sans-serif`;
    this.layout.boxes.forEach((box, node) => {
      const name = this.network.nodes[node];
      if (box && !box.isInBlock && name.length * 7 < box.w * k) context.fillText(name, box.x, box.y - 3 / k);
    });
  }

  /** Draws the links in colour: each half in that of the port at its end. */
  drawLines(map, centre) {
    const context = this.clear(1);
    const { lines } = this.layout;
    const wanted = this.wanted(lines, centre);
    const isLarge = LINES_ALL < lines.length;
    context.globalAlpha = isLarge ? 0.5 : 1;
    for (let i = 0; i < LEVELS; i += 1) {
      const ports = wanted[i];
      if (ports.length === 0) continue;
      const heat = centre ? Math.abs(i - LEVELS / 2) / (LEVELS / 2) : i / LEVELS;
      context.strokeStyle = map.css[i];
      context.lineWidth = (isLarge ? 0.6 : 1 + 2 * heat) / Math.sqrt(this.view.k);
      context.beginPath();
      for (const port of ports) {
        const [ax, ay, bx, by] = lines[port >> 1];
        const [mx, my] = [(ax + bx) / 2, (ay + by) / 2];
        if (port & 1) context.moveTo(bx, by); else context.moveTo(ax, ay);
        context.lineTo(mx, my);
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Returns the ports to draw, by the number of their colour. */
  wanted(lines, centre) {
    const { levels } = this;
    const by = Array.from({ length: LEVELS }, () => []);
    const counts = new Uint32Array(LEVELS + 1);
    const heat = (i) => (centre ? Math.abs(2 * i - LEVELS + 1) : i);
    for (let port = 0; port < levels.length; port += 1) {
      if (levels[port] !== 255 && lines[port >> 1]) counts[heat(levels[port])] += 1;
    }
    let least = 0;
    if (LINES_ALL < lines.length) {
      for (let i = LEVELS, n = 0; 0 < i; i -= 1) {
        n += counts[i - 1];
        least = i;
        if (LINES_SOME < n) break;
      }
    }
    for (let port = 0; port < levels.length; port += 1) {
      if (levels[port] !== 255 && lines[port >> 1] && least <= heat(levels[port])) by[levels[port]].push(port);
    }
    return by;
  }

  /** Draws the ports as cells, pixel by pixel: there may be tens of thousands. */
  drawCells(map) {
    const { levels, pixels } = this;
    const { cells } = this.layout;
    const { width, height } = this.layers[2];
    const k = this.view.k * this.ratio;
    const [dx, dy] = [this.view.x * this.ratio, this.view.y * this.ratio];
    pixels.fill(0);
    for (let port = 0; port < levels.length; port += 1) {
      if (levels[port] === 255) continue;
      const at = 4 * port;
      const [w, h] = [cells[at + 2] * k, cells[at + 3] * k];
      const gap = 4 <= w && 4 <= h ? 1 : 0;
      const left = Math.max(0, Math.round(cells[at] * k + dx));
      const top = Math.max(0, Math.round(cells[at + 1] * k + dy));
      const right = Math.min(width, Math.max(left + 1, Math.round(cells[at] * k + dx + w) - gap));
      const bottom = Math.min(height, Math.max(top + 1, Math.round(cells[at + 1] * k + dy + h) - gap));
      const colour = map.pixels[levels[port]];
      for (let y = top; y < bottom; y += 1) pixels.fill(colour, y * width + left, y * width + right);
    }
    this.layers[2].getContext("2d").putImageData(this.image, 0, 0);
  }

  /** Marks a port, or nodes. */
  mark(port, nodes) {
    this.marks = { port, nodes };
    this.drawMarks();
  }

  drawMarks() {
    if (!this.layout) return;
    const context = this.clear(3);
    const { cells, boxes, lines } = this.layout;
    this.drawNames(context, this.view.k);
    context.strokeStyle = getComputedStyle(this.stage).getPropertyValue("--mark");
    context.lineWidth = 2 / this.view.k;
    const around = (x, y, w, h) => {
      const pad = 3 / this.view.k;
      context.strokeRect(x - pad, y - pad, w + 2 * pad, h + 2 * pad);
    };
    for (const node of this.marks.nodes) {
      const box = boxes[node];
      if (box) around(box.x, box.y, box.w, box.h);
    }
    const { port } = this.marks;
    if (port < 0) return;
    around(...cells.subarray(4 * port, 4 * port + 4));
    const line = lines[port >> 1];
    if (!line) return;
    context.beginPath();
    context.moveTo(line[0], line[1]);
    context.lineTo(line[2], line[3]);
    context.stroke();
  }

  /** Empties a layer. Returns its context, moved as the view is. */
  clear(layer) {
    const canvas = this.layers[layer];
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const { k, x, y } = this.view;
    const r = this.ratio;
    context.setTransform(k * r, 0, 0, k * r, x * r, y * r);
    return context;
  }

  /** Moves the view as another picture's. */
  move(view) {
    this.view = { ...view };
    if (!this.layout) return;
    this.drawBase();
    this.redraw();
    this.drawMarks();
  }

  setView(view) {
    const { clientWidth, clientHeight } = this.stage;
    const k = Math.min(ZOOM_MAX, Math.max(1, view.k));
    const within = (offset, size) => Math.min(0, Math.max(size * (1 - k), offset));
    this.onView({ k, x: within(view.x, clientWidth), y: within(view.y, clientHeight) });
  }

  zoom(factor, x, y) {
    const { k } = this.view;
    const next = Math.min(ZOOM_MAX, Math.max(1, k * factor));
    const keep = (offset, at) => at - ((at - offset) * next) / k;
    this.setView({ k: next, x: keep(this.view.x, x), y: keep(this.view.y, y) });
  }

  /** Returns the port at a place of the stage, or -1. */
  portAt(x, y) {
    const [wx, wy] = [(x - this.view.x) / this.view.k, (y - this.view.y) / this.view.k];
    const { boxes, cells, lines } = this.layout;
    if (boxes.some((box) => box && box.x <= wx && wx < box.x + box.w && box.y <= wy && wy < box.y + box.h)) {
      for (let port = 0; port < cells.length / 4; port += 1) {
        const at = 4 * port;
        const [left, top] = [cells[at], cells[at + 1]];
        if (left <= wx && wx < left + cells[at + 2] && top <= wy && wy < top + cells[at + 3]) return port;
      }
    }
    let [best, found] = [REACH / this.view.k, -1];
    lines.forEach((line, link) => {
      if (!line) return;
      const [ax, ay, bx, by] = line;
      const [ux, uy] = [bx - ax, by - ay];
      const along = Math.min(1, Math.max(0, ((wx - ax) * ux + (wy - ay) * uy) / (ux * ux + uy * uy || 1)));
      const away = Math.hypot(ax + along * ux - wx, ay + along * uy - wy);
      if (away < best) [best, found] = [away, 2 * link + (along < 0.5 ? 0 : 1)];
    });
    return found;
  }

  listen() {
    const { stage } = this;
    let from = null;
    const place = (event) => {
      const { left, top } = stage.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), ...place(event));
    }, { passive: false });
    stage.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (from && (from.moved || 4 < Math.hypot(event.clientX - from.x, event.clientY - from.y))) {
        from.moved = true;
        const { view } = from;
        this.setView({ k: view.k, x: view.x + event.clientX - from.x, y: view.y + event.clientY - from.y });
      }
      this.showTip(...place(event));
    });
    stage.addEventListener("pointerup", (event) => {
      if (from && !from.moved && this.layout) {
        const port = this.portAt(...place(event));
        if (0 <= port) this.onPick(port);
      }
      from = null;
    });
    stage.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    stage.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const { clientWidth, clientHeight } = this.stage;
    const [middle, step] = [[clientWidth / 2, clientHeight / 2], 60];
    const { k, x, y } = this.view;
    const moves = {
      ArrowLeft: () => this.setView({ k, x: x + step, y }),
      ArrowRight: () => this.setView({ k, x: x - step, y }),
      ArrowUp: () => this.setView({ k, x, y: y + step }),
      ArrowDown: () => this.setView({ k, x, y: y - step }),
      "+": () => this.zoom(1.4, ...middle),
      "-": () => this.zoom(1 / 1.4, ...middle),
      0: () => this.setView({ k: 1, x: 0, y: 0 }),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  showTip(x, y) {
    const port = this.layout ? this.portAt(x, y) : -1;
    this.tip.hidden = port < 0;
    if (port < 0) return;
    this.tip.textContent = this.describe(port);
    this.tip.style.left = `${Math.min(x + 12, this.stage.clientWidth - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${y + 14}px`;
  }
}
