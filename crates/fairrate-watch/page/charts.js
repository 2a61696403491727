// Series over time, drawn by uPlot.

import { bytes, percent, rate, time } from "./words.js";

const HEIGHT = 170;

/** The charts of a port, from the series of each run. */
export function portCharts(series, labels) {
  const chart = (title, key, text) => ({
    title, text, lines: series.map((one, i) => ({ label: labels[i], t: one.t_ns, values: one[key] })),
  });
  return [
    chart("Utilisation", "utilisation", percent),
    chart("Queue", "queue", bytes),
    chart("Paused", "paused", percent),
    chart("Drops since the start", "drops", String),
    chart("Marks since the start", "marks", String),
  ].filter(({ title, lines }) => !/(Paused|Drops|Marks)/.test(title) || lines.some((line) => line.values.some((v) => 0 < v)));
}

/** The charts of a flow, from the series of each run. */
export function flowCharts(series, labels) {
  const chart = (title, key, text) => ({
    title, text, lines: series.map((one, i) => ({ label: labels[i], t: one.t_ns, values: one[key] })),
  });
  return [
    chart("Pacing rate", "rate_bps", rate),
    chart("Congestion window", "cwnd_bytes", bytes),
    chart("Delivered in order", "delivered_bytes", bytes),
  ].filter(({ lines }) => lines.some((line) => line.values.some((value) => value !== null)));
}

/** The charts of a page. */
export class Charts {
  /** Draws in `parent`; a click calls `onTime` with its time in ns. */
  constructor(parent, onTime) {
    [this.parent, this.onTime, this.plots, this.now] = [parent, onTime, [], 0];
  }

  show(charts) {
    this.clear();
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    for (const chart of charts) this.plots.push(this.plot(chart, colour));
    this.resize();
  }

  clear() {
    this.plots.forEach((plot) => plot.destroy());
    this.plots = [];
    this.parent.replaceChildren();
  }

  resize() {
    const width = this.parent.clientWidth;
    const columns = Math.max(1, Math.floor(width / 420));
    this.plots.forEach((plot) => plot.setSize({ width: Math.floor(width / columns) - 12, height: HEIGHT }));
  }

  /** Moves the line of the present time. */
  at(t) {
    this.now = t;
    this.plots.forEach((plot) => plot.redraw(false, false));
  }

  plot({ title, text, lines }, colour) {
    const strokes = [colour("--one"), colour("--two")];
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--faint"), width: 1 }, ticks: { stroke: colour("--faint") } };
    const options = {
      width: 400,
      height: HEIGHT,
      title,
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((t) => time(t)) },
        { ...axis, size: 70, values: (_, ticks) => ticks.map((value) => text(value)) },
      ],
      series: [
        { label: "time", value: (_, t) => (t === null ? "" : time(t)) },
        ...lines.map((line, i) => ({
          label: line.label,
          stroke: strokes[i],
          dash: i === 0 ? [] : [6, 4],
          width: 1.5,
          points: { show: false },
          value: (_, value) => (value === null || value === undefined ? "" : text(value)),
        })),
      ],
      hooks: {
        draw: [(plot) => this.line(plot, colour("--mark"))],
        ready: [(plot) => plot.over.addEventListener("click", () => this.onTime(plot.posToVal(plot.cursor.left, "x")))],
      },
    };
    const place = document.createElement("div");
    this.parent.append(place);
    return new uPlot(options, joined(lines), place);
  }

  line(plot, stroke) {
    const x = plot.valToPos(this.now, "x", true);
    const { left, top, width, height } = plot.bbox;
    if (x < left || left + width < x) return;
    const { ctx } = plot;
    ctx.save();
    ctx.strokeStyle = stroke;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.restore();
  }
}

/** Returns lines with times of their own as uPlot has them: all times, and the values of each line, absent where it has none. */
function joined(lines) {
  if (lines.length === 1) return [lines[0].t, lines[0].values];
  return uPlot.join(lines.map((line) => [line.t, line.values]));
}
