// A chart: lines (or bars in rows) in an SVG that is drawn anew whenever its size, zoom or choice of lines changes.

const hidden = new Set(); // keys of lines that are switched off, on the whole page
const zooms = {}; // link of an x axis -> [low, high]
const charts = [];
let onPaper = false; // charts have the sizes of a sheet of A4, not of the window

function redrawAll() {
  for (const chart of charts) chart.draw();
}

function svg(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function html(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

class Chart {
  constructor(figure, place) {
    this.figure = figure;
    this.zoom = null;
    this.logY = figure.y.log;
    this.plot = html("div", "plot");
    this.svg = svg("svg", { role: "img", "aria-label": `${figure.title}: ${figure.y.label} over ${figure.x.label}` });
    this.tip = html("div", "tip");
    this.tip.hidden = true;
    this.plot.append(this.svg, this.tip);
    place.append(this.plot);
    this.listen();
    charts.push(this);
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  visible() {
    return this.figure.series.filter((s) => !hidden.has(s.key));
  }

  currentZoom() {
    return this.figure.x.link ? zooms[this.figure.x.link] || null : this.zoom;
  }

  setZoom(range) {
    if (this.figure.x.link) zooms[this.figure.x.link] = range;
    else this.zoom = range;
    redrawAll();
  }

  // Range of the x axis: the zoom, or all data of all lines.
  rangeX() {
    const zoom = this.currentZoom();
    if (zoom) return zoom;
    let [low, high] = this.figure.x.range || [Infinity, -Infinity];
    for (const s of this.figure.series) {
      const first = this.figure.x.log ? s.x.find((x) => x > 0) : s.x[0];
      for (const x of [first, s.x[s.x.length - 1]]) {
        if (x === undefined || (this.figure.x.log && x <= 0)) continue;
        low = Math.min(low, x);
        high = Math.max(high, x);
      }
    }
    if (!isFinite(low)) return this.figure.x.log ? [1, 10] : [0, 1];
    if (!(low < high)) return this.figure.x.log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
    if (!this.figure.series.some((s) => s.marks) || this.figure.x.words) return [low, high];
    // Room at the ends, so that no marker is cut in two.
    const room = this.figure.x.log ? (high / low) ** 0.03 : (high - low) * 0.03;
    return this.figure.x.log ? [low / room, high * room] : [low - room, high + room];
  }

  // Range of the y axis: what the visible lines have inside the x range, and the figure's own least range.
  rangeY([x0, x1]) {
    let [low, high] = [Infinity, -Infinity];
    for (const s of this.visible()) {
      const from = s.step ? Math.max(0, lastUpTo(s.x, x0)) : 0;
      for (let i = from; i < s.x.length && s.x[i] <= x1; i++) {
        if (!s.step && s.x[i] < x0) continue;
        for (const y of [s.y[i], s.low && s.low[i], s.high && s.high[i]]) {
          if (y === null || y === undefined || (this.logY && y <= 0)) continue;
          if (y < low) low = y;
          if (y > high) high = y;
        }
      }
    }
    if (!isFinite(low)) [low, high] = this.figure.y.range || [0, 1];
    const own = this.figure.y.range;
    if (this.logY) {
      if (own && own[0] > 0) [low, high] = [Math.min(low, own[0]), Math.max(high, own[1])];
      if (high / low > 1e4 && !this.figure.y.log) low = high / 1e4;
      return low < high ? [low, high * 1.05] : [low / 2, low * 2 || 1];
    }
    if (own) [low, high] = [Math.min(low, own[0]), Math.max(high, own[1])];
    if (!(low < high)) high = low + 1;
    const fraction = own && own[1] === 1 && high <= 1;
    return [low, fraction ? 1 : high + (high - low) * 0.05];
  }

  // Width and height in pixels. On paper they are of a sheet's 695 px, less the gaps and paddings of the style sheet.
  size() {
    const { small, wide, y } = this.figure;
    const paper = wide ? [673, 220] : small ? [204, 150] : [321, 190];
    const width = this.plot.clientWidth && onPaper ? paper[0] : this.plot.clientWidth;
    const height = onPaper ? paper[1] : Math.round(Math.min(small ? 210 : 300, Math.max(200, width * 0.55)));
    return [width, (y.rows ? y.rows.length * 18 + 40 : height) + 13 * this.labels().length];
  }

  // The marks whose labels are above the plot, a line each.
  labels() {
    return this.figure.y.rows ? [] : (this.figure.marks || []).filter((mark) => mark.label);
  }

  draw() {
    const [width, height] = this.size();
    if (!width) return;
    const rows = this.figure.y.rows;
    const [rx, ry] = [this.rangeX(), rows ? [-0.5, rows.length - 0.5] : this.rangeY(this.rangeX())];
    const room = Math.max(2, Math.floor((height - 56) / (onPaper ? 32 : 45)));
    const count = this.figure.y.whole ? Math.max(1, Math.min(room, Math.floor(ry[1] - ry[0]))) : room;
    const yTicks = rows ? rows.map((text, at) => ({ at, text })) : this.logY ? logTicks(...ry, count) : linearTicks(...ry, count);
    const left = 10 + Math.max(...yTicks.map((t) => t.text.length), 1) * 6.8;
    this.box = { left, right: width - 10, top: (rows ? 4 : 22) + 13 * this.labels().length, bottom: height - 36, width, height };
    const { right, top, bottom } = this.box;
    this.x = scale(...rx, left, right, this.figure.x.log);
    this.y = rows ? scale(...ry, top, bottom, false) : scale(...ry, bottom, top, this.logY);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(this.axes(yTicks), this.lines(), (this.over = svg("g", {})));
  }

  axes(yTicks) {
    const { left, right, top, bottom } = this.box;
    const g = svg("g", {});
    this.marks(g);
    for (const tick of yTicks) {
      const y = this.y.px(tick.at);
      g.append(svg("line", { x1: left, x2: right, y1: y, y2: y, stroke: "var(--faint)" }));
      g.append(svg("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, tick.text));
    }
    for (const tick of this.xTicks()) {
      const x = this.x.px(tick.at);
      g.append(svg("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, stroke: "var(--line)" }));
      if (tick.text) g.append(svg("text", { x, y: bottom + 17, "text-anchor": "middle" }, tick.text));
    }
    g.append(svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, stroke: "var(--line)" }));
    g.append(svg("text", { x: right, y: bottom + 33, "text-anchor": "end" }, this.figure.x.label));
    if (this.figure.y.label) g.append(svg("text", { x: 0, y: 12 }, this.figure.y.label));
    return g;
  }

  // The marked stretches of the x axis; labels are above the plot, so that no line crosses them.
  marks(g) {
    const { left, right, top, bottom } = this.box;
    const labels = this.labels();
    for (const mark of this.figure.marks || []) {
      if (mark.from > this.x.high || (mark.to !== null && mark.to < this.x.low)) continue;
      const px = (x) => Math.min(right, Math.max(left, this.x.px(x)));
      const [from, to] = [px(mark.from), mark.to === null ? right : px(mark.to)];
      const above = labels.includes(mark) ? top - 13 * (labels.length - labels.indexOf(mark)) : top;
      g.append(svg("rect", { x: from, y: top, width: Math.max(1, to - from), height: bottom - top, fill: "var(--soft)", opacity: 0.14 }));
      g.append(svg("path", { d: `M${from} ${above}V${bottom}M${to} ${top}V${bottom}`, stroke: "var(--soft)", "stroke-dasharray": "2 3" }));
      if (above === top) continue;
      const fits = from + mark.label.length * 6.8 < right;
      const place = fits ? { x: from + 4, "text-anchor": "start" } : { x: from - 4, "text-anchor": "end" };
      g.append(svg("text", { ...place, y: above + 10 }, mark.label));
    }
  }

  // The figure's own ticks, without labels that would lie on others; else round numbers.
  xTicks() {
    const { left, right } = this.box;
    const { log, ticks } = this.figure.x;
    const about = Math.max(2, Math.floor((right - left) / 75));
    if (!ticks) return log ? logTicks(this.x.low, this.x.high, about) : linearTicks(this.x.low, this.x.high, about);
    let end = -Infinity;
    const label = ([at, text]) => {
      const half = text.length * 3.4;
      const fits = end + 6 <= this.x.px(at) - half;
      if (fits) end = this.x.px(at) + half;
      return { at, text: fits ? text : "" };
    };
    return ticks.filter(([at]) => this.x.low <= at && at <= this.x.high).map(label);
  }

  lines() {
    const { left, right, top, bottom } = this.box;
    const id = `clip${charts.indexOf(this)}`;
    const g = svg("g", {});
    const clip = svg("clipPath", { id });
    clip.append(svg("rect", { x: left, y: top - 3, width: right - left + 1, height: bottom - top + 4 }));
    const inside = svg("g", { "clip-path": `url(#${id})` });
    g.append(clip, inside);
    const shown = this.visible();
    for (const s of shown) if (s.low && !this.figure.x.words) inside.append(this.band(s));
    // The first line is the one a reader looks for: it is drawn last, on top.
    for (let i = shown.length - 1; i >= 0; i--) inside.append(this.figure.y.rows ? this.bars(shown[i]) : this.line(shown[i], i, shown.length));
    return g;
  }

  line(s, i, n) {
    const g = svg("g", {});
    const style = { fill: "none", stroke: colourOf(s.colour), "stroke-width": s.thin ? 1 : s.step ? 1.6 : 2, "stroke-linejoin": "round" };
    if (dashOf(s.dash)) style["stroke-dasharray"] = dashOf(s.dash);
    const aside = this.figure.x.words ? (i - (n - 1) / 2) * 11 : 0;
    if (this.figure.x.words && s.low) g.append(this.whiskers(s, aside));
    if (!this.figure.x.words) g.append(svg("path", { d: this.path(s), ...style }));
    if (s.marks) {
      s.x.forEach((x, k) => {
        if (s.y[k] === null) return;
        const hollow = s.thin || (s.partial && s.partial.includes(k));
        g.append(this.mark(s, this.x.px(x) + aside, this.height(s.y[k]), 1, hollow));
      });
    } else if (n > 1) {
      for (const [x, y] of this.sparse(s, i, n)) g.append(this.mark(s, x, y, 0.8, false));
    }
    return g;
  }

  mark(s, x, y, size, hollow) {
    const fill = hollow ? "var(--card)" : colourOf(s.colour);
    return svg("path", { d: marker(s.marker, x, y, size), fill, stroke: colourOf(s.colour), "stroke-width": 1.4, "stroke-linejoin": "round" });
  }

  height(y) {
    return this.logY && y <= 0 ? this.box.bottom + 2 : this.y.px(y);
  }

  // A few places along a line of many points, each line's beside the others'.
  sparse(s, i, n) {
    const apart = 110;
    const places = [];
    for (let px = this.box.left + ((i + 0.5) / n) * apart; px < this.box.right; px += apart) {
      const k = this.pick(s, px);
      if (k !== null) places.push([s.step ? px : this.x.px(s.x[k]), this.height(s.y[k])]);
    }
    return places;
  }

  // What lies between the low and high ends of the points of a line.
  band(s) {
    const g = svg("g", {});
    const known = (k) => s.low[k] !== null && s.high[k] !== null;
    const at = (k, y) => `${this.x.px(s.x[k]).toFixed(1)} ${this.height(y).toFixed(1)}`;
    for (let from = 0; from < s.x.length; from++) {
      if (!known(from)) continue;
      let to = from;
      while (to + 1 < s.x.length && known(to + 1)) to++;
      const all = [...Array(to - from + 1).keys()].map((k) => k + from);
      const corners = [...all.map((k) => at(k, s.high[k])), ...all.reverse().map((k) => at(k, s.low[k]))];
      g.append(svg("path", { d: `M${corners.join("L")}Z`, fill: colourOf(s.colour), opacity: 0.16 }));
      from = to;
    }
    return g;
  }

  whiskers(s, aside) {
    const d = s.x.map((x, k) => (s.low[k] === null ? "" : `M${this.x.px(x) + aside} ${this.height(s.low[k])}V${this.height(s.high[k])}`));
    return svg("path", { d: d.join(""), stroke: colourOf(s.colour), "stroke-width": 1.6 });
  }

  path(s) {
    const px = (i) => this.x.px(s.x[i]).toFixed(1);
    const py = (i) => this.height(s.y[i]).toFixed(1);
    const first = Math.max(0, lastUpTo(s.x, this.x.low));
    let [d, pen] = ["", false];
    for (let i = first; i < s.x.length; i++) {
      if (s.y[i] === null) {
        pen = false;
        continue;
      }
      if (!pen) d += `M${px(i)} ${py(i)}`;
      else d += s.step ? `H${px(i)}V${py(i)}` : `L${px(i)} ${py(i)}`;
      pen = true;
      if (s.x[i] > this.x.high) break;
    }
    return d;
  }

  bars(s) {
    const g = svg("g", { fill: colourOf(s.colour) });
    const height = s.thin ? 4 : 10;
    if (s.thin) g.setAttribute("stroke", "var(--card)");
    for (let i = 0; i + 1 < s.x.length; i += 2) {
      const [x0, x1] = [this.x.px(s.x[i]), this.x.px(s.x[i + 1])];
      if (x1 < this.box.left || x0 > this.box.right) continue;
      g.append(svg("rect", { x: x0, y: this.y.px(s.y[0]) - height / 2, width: Math.max(1, x1 - x0), height }));
    }
    return g;
  }

  listen() {
    let from = null;
    const where = (event) => {
      const r = this.svg.getBoundingClientRect();
      return [event.clientX - r.left, event.clientY - r.top];
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return this.hover(...where(event));
      from = where(event)[0];
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from !== null) this.selection(from, where(event)[0]);
      else this.hover(...where(event));
    });
    this.svg.addEventListener("pointerup", (event) => {
      const to = where(event)[0];
      if (from !== null && Math.abs(to - from) > 8) {
        const clamp = (p) => Math.min(this.box.right, Math.max(this.box.left, p));
        this.setZoom([from, to].map((p) => this.x.at(clamp(p))).sort((a, b) => a - b));
      }
      from = null;
    });
    this.svg.addEventListener("pointercancel", () => (from = null));
    this.svg.addEventListener("dblclick", () => this.setZoom(null));
    this.svg.addEventListener("pointerleave", () => this.leave());
  }

  leave() {
    this.tip.hidden = true;
    if (this.over) this.over.replaceChildren();
  }

  selection(a, b) {
    const { top, bottom } = this.box;
    const size = { x: Math.min(a, b), y: top, width: Math.abs(a - b), height: bottom - top };
    this.over.replaceChildren(svg("rect", { ...size, fill: "var(--accent)", opacity: 0.15 }));
  }

  // The point of a line that belongs to the pixel: the held one of a step, else the nearest.
  pick(s, px) {
    const at = this.x.at(px);
    let i = lastUpTo(s.x, at);
    if (!s.step && (i < 0 || (i + 1 < s.x.length && this.x.px(s.x[i + 1]) - px < px - this.x.px(s.x[i])))) i++;
    if (i < 0 || s.y[i] === null || s.y[i] === undefined) return null;
    if (i === s.x.length - 1 && px > this.x.px(s.x[i]) + 12) return null;
    return i;
  }

  hover(px, py) {
    const { left, right, top, bottom, width } = this.box || {};
    if (!(left <= px && px <= right)) return this.leave();
    const found = this.figure.y.rows ? this.pickBar(px, py) : this.pickPoints(px);
    if (!found.length) return this.leave();
    this.over.replaceChildren(svg("line", { x1: px, x2: px, y1: top, y2: bottom, stroke: "var(--soft)", "stroke-dasharray": "2 2" }));
    const table = html("table");
    const head = html("div", "", `${this.figure.x.label.replace(/ \(.*/, "")} ${this.nearest(px)}${this.unitOf(this.figure.x)}`);
    for (const f of found.slice(0, 18)) {
      if (f.dot) this.over.append(svg("circle", { cx: f.dot[0], cy: f.dot[1], r: 4, fill: colourOf(f.colour), stroke: "var(--card)" }));
      const tr = html("tr");
      const name = html("td");
      name.append(swatch(f), f.name);
      tr.append(name, html("td", "", f.value));
      table.append(tr);
    }
    this.tip.replaceChildren(head, table);
    this.tip.hidden = false;
    const w = this.tip.offsetWidth;
    const x = px + 16 + w < width ? px + 16 : Math.max(0, px - 16 - w);
    this.tip.style.transform = `translate(${x}px, ${Math.max(0, Math.min(py - 20, bottom - this.tip.offsetHeight))}px)`;
  }

  // Where the pointer is, in words: the nearest of the figure's own ticks if it has any.
  nearest(px) {
    if (!this.figure.x.ticks) return show(this.x.at(px));
    const far = ([at]) => Math.abs(this.x.px(at) - px);
    return this.figure.x.ticks.reduce((a, b) => (far(b) < far(a) ? b : a))[1];
  }

  unitOf(axis) {
    const unit = /\((.*)\)/.exec(axis.label);
    return unit ? " " + unit[1] : "";
  }

  pickPoints(px) {
    const found = [];
    for (const s of this.visible()) {
      const i = this.pick(s, px);
      if (i === null) continue;
      const range = s.low && s.low[i] !== null ? ` [${show(s.low[i])}, ${show(s.high[i])}]` : "";
      const extra = s.hint && s.hint[i] ? `, ${s.hint[i]}` : "";
      const name = s.name || `${s.key}, median`;
      const x = s.step ? px : this.x.px(s.x[i]);
      const value = show(s.y[i]) + range + this.unitOf(this.figure.y) + extra;
      found.push({ ...s, dot: [x, this.height(s.y[i])], y: s.y[i], name, value });
    }
    return found.sort((a, b) => b.y - a.y);
  }

  pickBar(px, py) {
    const row = Math.round(this.y.at(py));
    const found = this.visible().filter((one) => one.y[0] === row);
    return found.map((s) => ({ ...s, name: this.figure.parts ? s.key : s.name, value: s.hint[0] }));
  }
}
