// Builds the page out of the data in it: chapters of figures, legends, buttons.

const data = JSON.parse(document.getElementById("data").textContent);

function swatch({ colour, dash, marks }) {
  const s = svg("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" });
  const line = { x1: 1, x2: 27, y1: 5, y2: 5, stroke: colourOf(colour), "stroke-width": 2.4 };
  if (dashOf(dash)) line["stroke-dasharray"] = dashOf(dash);
  s.append(svg("line", line));
  if (marks) s.append(svg("path", { d: marker(colour, 14, 5), fill: colourOf(colour) }));
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
  const save = html("button", "", "SVG");
  save.type = "button";
  save.title = "save this figure for slides and papers";
  save.addEventListener("click", () => saveSvg(figure, chart));
  box.append(save);
  return box;
}

// Legend entries in rows that are no wider than `width`: [entry, x] each.
function legendRows(entries, width) {
  const rows = [];
  let room = 0;
  for (const entry of entries) {
    const size = 58 + entry.name.length * 7.2;
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
  const rows = legendRows(figure.y.rows ? [] : distinct(chart.visible()), chart.box.width);
  const top = 26 + rows.length * 20;
  const [width, height] = [chart.box.width + 2 * margin, chart.box.height + top + 2 * margin];
  const out = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height });
  out.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  const inner = svg("g", { transform: `translate(${margin} ${margin})` });
  out.append(svg("rect", { width, height, fill: "var(--card)" }), inner);
  inner.append(svg("text", { x: 0, y: 15, "font-size": 15, "font-weight": "bold", fill: "var(--ink)" }, figure.title));
  rows.forEach((row, r) => {
    for (const [entry, x] of row) {
      const y = 34 + r * 20;
      const line = { x1: x, x2: x + 26, y1: y, y2: y, stroke: colourOf(entry.colour), "stroke-width": 2.4 };
      if (dashOf(entry.dash)) line["stroke-dasharray"] = dashOf(entry.dash);
      inner.append(svg("line", line), svg("text", { x: x + 32, y: y + 4, fill: "var(--ink)" }, entry.name));
      if (entry.marks) inner.append(svg("path", { d: marker(entry.colour, x + 13, y), fill: colourOf(entry.colour) }));
    }
  });
  const body = svg("g", { transform: `translate(0 ${top})` });
  for (const part of [...chart.svg.childNodes].slice(0, 2)) body.append(part.cloneNode(true));
  inner.append(body);
  for (const text of out.querySelectorAll("text")) {
    if (!text.hasAttribute("font-size")) text.setAttribute("font-size", "12");
    if (!text.hasAttribute("fill")) text.setAttribute("fill", "var(--soft)");
  }
  download(out, `${data.name}-${figure.title}.svg`.toLowerCase().replace(/[^a-z0-9.]+/g, "-"));
}

function download(picture, name) {
  const style = getComputedStyle(document.documentElement);
  const markup = new XMLSerializer().serializeToString(picture);
  const coloured = markup.replace(/var\((--\w+)\)/g, (_, variable) => style.getPropertyValue(variable).trim());
  const link = html("a");
  link.href = URL.createObjectURL(new Blob([coloured], { type: "image/svg+xml" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function card(figure) {
  const box = html("section", `fig${figure.wide ? " wide" : ""}${figure.small ? " small" : ""}`);
  box.append(html("h3", "", figure.title));
  if (figure.note && !figure.small) box.append(html("p", "note", figure.note));
  const entries = distinct(figure.series);
  const everywhere = entries.every((e) => data.legend.some((l) => l.key === e.key));
  if (!figure.y.rows && !figure.small && !(everywhere && data.legend.length === 1)) box.append(legend(entries));
  const chart = new Chart(figure, box);
  if (!figure.small) box.append(tools(figure, chart));
  return box;
}

const place = document.getElementById("figures");
for (const chapter of data.chapters) {
  place.append(html("h2", "", chapter.title));
  const small = chapter.figures.filter((f) => f.small);
  if (small.length) {
    place.append(html("p", "lead", small[0].note), legend(distinct(small.flatMap((f) => f.series))));
  }
  const grid = html("div", small.length === 4 || small.length > 6 ? "figs four" : "figs");
  for (const figure of chapter.figures) {
    if (chapter.figures.length === 1) figure.wide = true;
    grid.append(card(figure));
  }
  place.append(grid);
}
if (data.legend.length > 1) document.getElementById("all").append(legend(data.legend));
document.getElementById("reset").addEventListener("click", () => {
  hidden.clear();
  for (const link of Object.keys(zooms)) delete zooms[link];
  for (const chart of charts) chart.zoom = null;
  refresh();
});
refresh();
