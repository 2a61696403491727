// Builds the page out of the data in it: chapters of figures, legends, buttons.

// A piece of a line: what legends and tips show of it.
function swatch({ colour, dash, marker: shape, thin }) {
  const s = svg("svg", { viewBox: "0 0 34 10", "aria-hidden": "true", class: "swatch" });
  const line = { x1: 1, x2: 33, y1: 5, y2: 5, stroke: colourOf(colour), "stroke-width": thin ? 1 : 2 };
  if (dashOf(dash)) line["stroke-dasharray"] = dashOf(dash);
  s.append(svg("line", line));
  const fill = thin ? "var(--card)" : colourOf(colour);
  s.append(svg("path", { d: marker(shape, 17, 5), fill, stroke: colourOf(colour) }));
  return s;
}

// Buttons that switch lines on and off; a double click leaves only that line.
function legend(entries) {
  const box = html("div", "legend");
  for (const entry of entries) {
    const button = html("button", "", entry.name);
    button.type = "button";
    button.title = "click: hide or show; double click: only this";
    button.dataset.key = entry.key;
    button.prepend(swatch(entry));
    button.addEventListener("click", () => {
      if (!hidden.delete(entry.key)) hidden.add(entry.key);
      refresh();
    });
    button.addEventListener("dblclick", () => {
      const others = entries.filter((e) => e.key !== entry.key);
      const alone = others.every((e) => hidden.has(e.key));
      for (const e of entries) hidden.delete(e.key);
      if (!alone) for (const e of others) hidden.add(e.key);
      refresh();
    });
    box.append(button);
  }
  return box;
}

function refresh() {
  for (const button of document.querySelectorAll(".legend button")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.key)));
  }
  redrawAll();
}

function distinct(series) {
  const seen = new Map();
  for (const s of series) if (s.name && !seen.has(s.key)) seen.set(s.key, s);
  return [...seen.values()];
}

function tools(figure, chart) {
  const box = html("div", "tools");
  if (!figure.y.rows && !figure.y.log) {
    const log = html("button", "", "log");
    log.type = "button";
    log.title = "logarithmic vertical axis";
    log.setAttribute("aria-pressed", "false");
    log.addEventListener("click", () => {
      chart.logY = !chart.logY;
      log.setAttribute("aria-pressed", String(chart.logY));
      chart.draw();
    });
    box.append(log);
  }
  const button = (text, title, act) => {
    const made = html("button", "", text);
    made.type = "button";
    made.title = title;
    made.addEventListener("click", act);
    box.append(made);
  };
  button("SVG", "save this figure for slides and papers", () => saveSvg(figure, chart));
  button("CSV", "save the points of this figure", () => save(csv(figure), `${data.name}-${figure.file}.csv`, "text/csv"));
  return box;
}

function heading(figure) {
  return figure.point ? `${figure.title}, ${figure.point}` : figure.title;
}

// The points of a figure, a line each, with units in the first line.
function csv(figure) {
  const field = (text) => (/[",\n]/.test(text) ? `"${String(text).replace(/"/g, '""')}"` : text);
  const rows = figure.y.rows;
  const bands = figure.series.some((s) => s.low);
  const [x, y] = [figure.x.label, figure.y.label];
  const head = rows ? [...(figure.parts ? ["row", "series"] : ["port"]), `from: ${x}`, `to: ${x}`] : ["series", x, y, ...(bands ? [`low: ${y}`, `high: ${y}`] : [])];
  const lines = [head];
  for (const s of figure.series) {
    const name = figure.parts ? s.key : s.name || `${s.key}, median`;
    const place = figure.parts ? [rows[s.y[0]], name] : [name];
    const word = (at) => (figure.x.words ? figure.x.ticks[at][1] : at);
    if (rows) for (let i = 0; i + 1 < s.x.length; i += 2) lines.push([...place, s.x[i], s.x[i + 1]]);
    else s.x.forEach((at, i) => lines.push([name, word(at), s.y[i], ...(bands ? [s.low && s.low[i], s.high && s.high[i]] : [])]));
  }
  return lines.map((line) => line.map((v) => field(v ?? "")).join(",")).join("\n") + "\n";
}

// Legend entries in rows that are no wider than `width`: [entry, x] each.
function legendRows(entries, width) {
  const rows = [];
  let room = 0;
  for (const entry of entries) {
    const size = 62 + entry.name.length * 7.2;
    if (!rows.length || room < size) {
      rows.push([]);
      room = width;
    }
    rows[rows.length - 1].push([entry, width - room]);
    room -= size;
  }
  return rows;
}

// The figure as a file of its own: title and legend above, colours of the present theme written out.
function saveSvg(figure, chart) {
  const margin = 16;
  const rows = legendRows(figure.y.rows && !figure.parts ? [] : distinct(chart.visible()), chart.box.width);
  const top = 26 + rows.length * 20;
  const [width, height] = [chart.box.width + 2 * margin, chart.box.height + top + 2 * margin];
  const out = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height });
  out.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  const inner = svg("g", { transform: `translate(${margin} ${margin})` });
  out.append(svg("rect", { width, height, fill: "var(--card)" }), inner);
  inner.append(svg("text", { x: 0, y: 15, "font-size": 15, "font-weight": "bold", fill: "var(--ink)" }, heading(figure)));
  rows.forEach((row, r) => {
    for (const [entry, x] of row) {
      const y = 34 + r * 20;
      const sample = swatch(entry);
      for (const [name, value] of Object.entries({ x, y: y - 5, width: 34, height: 10 })) sample.setAttribute(name, value);
      inner.append(sample, svg("text", { x: x + 40, y: y + 4, fill: "var(--ink)" }, entry.name));
    }
  });
  const body = svg("g", { transform: `translate(0 ${top})` });
  for (const part of [...chart.svg.childNodes].slice(0, 2)) body.append(part.cloneNode(true));
  inner.append(body);
  for (const text of out.querySelectorAll("text")) {
    if (!text.hasAttribute("font-size")) text.setAttribute("font-size", "12");
    if (!text.hasAttribute("fill")) text.setAttribute("fill", "var(--soft)");
  }
  const style = getComputedStyle(document.documentElement);
  const markup = new XMLSerializer().serializeToString(out);
  const coloured = markup.replace(/var\((--\w+)\)/g, (_, variable) => style.getPropertyValue(variable).trim());
  save(coloured, `${data.name}-${figure.file}.svg`, "image/svg+xml");
}

function save(text, name, type) {
  const link = html("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function card(figure, folded) {
  const box = html("section", `fig${figure.wide ? " wide" : ""}${figure.small ? " small" : ""}`);
  box.append(html("h3", "", folded ? figure.title : heading(figure)));
  if (figure.note && !figure.small) box.append(html("p", "note", figure.note));
  const entries = distinct(figure.series);
  const everywhere = entries.every((e) => data.legend.some((l) => l.key === e.key));
  if ((!figure.y.rows || figure.parts) && !figure.small && !(everywhere && data.legend.length === 1)) box.append(legend(entries));
  const chart = new Chart(figure, box);
  box.append(tools(figure, chart));
  return box;
}

// Buttons that show or hide figures of a chapter; the last one shown fills its row.
function choices(figures, grid) {
  const box = html("div", "choices", "Show");
  const show = () => {
    const shown = figures.filter((f) => !f.off);
    figures.forEach((f, i) => {
      if (f.choice) f.wide = f === shown[shown.length - 1] && shown.length % 2 === 1;
      grid.children[i].hidden = Boolean(f.off);
      grid.children[i].classList.toggle("wide", f.wide);
    });
    redrawAll();
  };
  for (const figure of figures.filter((f) => f.choice)) {
    const button = html("button", "", figure.choice);
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      figure.off = !figure.off;
      button.setAttribute("aria-pressed", String(!figure.off));
      show();
    });
    box.append(button);
  }
  return box;
}

function chapterInto(place, chapter) {
  place.append(html(chapter.point ? "h3" : "h2", "chapter", chapter.title));
  if (chapter.note) place.append(html("p", "about", chapter.note));
  const small = chapter.figures.filter((f) => f.small);
  if (small.length) {
    place.append(html("p", "lead", small[0].note), legend(distinct(small.flatMap((f) => f.series))));
  }
  const chosen = chapter.figures.filter((f) => f.choice);
  const grid = html("div", small.length === 4 || small.length > 6 ? "figs four" : "figs");
  for (const figure of chapter.figures) {
    if (chapter.figures.length === 1) figure.wide = true;
    grid.append(card(figure, chapter.point));
  }
  if (chosen.length) place.append(choices(chapter.figures, grid));
  place.append(grid);
}

// The chapters of a point of a grid are folded away; their figures are drawn when it is opened.
function fold(place, point) {
  const box = html("details", "point");
  box.append(html("summary", "", point));
  place.append(box);
  return box;
}

const place = document.getElementById("figures");
let [point, folded] = ["", place];
for (const chapter of data.chapters) {
  if (chapter.point && !point) place.append(html("h2", "", "At each point of the grid"));
  if (chapter.point && chapter.point !== point) folded = fold(place, chapter.point);
  point = chapter.point || "";
  chapterInto(point ? folded : place, chapter);
}
if (data.legend.length > 1) document.getElementById("all").append(legend(data.legend));
document.getElementById("reset").addEventListener("click", () => {
  hidden.clear();
  for (const link of Object.keys(zooms)) delete zooms[link];
  for (const chart of charts) chart.zoom = null;
  refresh();
});
refresh();
for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    onPaper = paper;
    redrawAll();
  });
}
