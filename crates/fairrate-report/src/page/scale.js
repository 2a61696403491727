// Numbers, ticks and the mapping of data to pixels.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const colourOf = (i) => `var(--s${i})`;
const dashOf = (i) => data.dashes[i];

// The outline of a line's marker: shapes tell lines apart where colours do not.
function marker(i, x, y, size = 1) {
  return "M" + data.markers[i].map(([dx, dy]) => `${(x + dx * size).toFixed(1)} ${(y + dy * size).toFixed(1)}`).join("L") + "Z";
}

function group(text) {
  return text.replace(/\B(?=(\d{3})+$)/g, ",");
}

// A number with four digits, as tables and tips show it.
function show(x) {
  if (x === null || !isFinite(x)) return "-";
  const a = Math.abs(x);
  if (a === 0) return "0";
  if (a < 0.001) return x.toExponential(1);
  if (a < 0.1) return String(+x.toPrecision(3));
  if (a < 10) return String(+x.toFixed(3));
  if (a < 100) return String(+x.toFixed(2));
  if (a < 1000) return String(+x.toFixed(1));
  return group(x.toFixed(0));
}

// The label of a tick whose neighbours are `step` away.
function showTick(x, step) {
  if (Math.abs(x) < step / 1e6) return "0";
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const [whole, part] = Math.abs(x).toFixed(digits).split(".");
  return (x < 0 ? "-" : "") + group(whole) + (part ? "." + part : "");
}

function showDecade(x) {
  const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, name] of units) if (x >= size) return +(x / size).toPrecision(3) + name;
  return String(+x.toPrecision(3));
}

function linearTicks(low, high, about) {
  const raw = (high - low) / Math.max(1, about);
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((s) => raw <= s * decade * 1.0001) * decade;
  const nice = step / decade === 2.5 && step < 1 ? 5 * decade : step;
  const ticks = [];
  for (let i = Math.ceil(low / nice - 1e-9); i * nice <= high + nice * 1e-9; i++) ticks.push(i * nice);
  return ticks.map((x) => ({ at: x, text: nice % 1 === 0.5 ? showTick(x, 0.1) : showTick(x, nice) }));
}

// Decades; where there are few of them 2 and 5 as well, where there are none left linear ticks.
function logTicks(low, high, about) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return linearTicks(low, high, about);
  const every = Math.max(1, Math.ceil(decades / about));
  const steps = decades < about / 3 ? [1, 2, 5] : decades < about / 2 ? [1, 3] : [1];
  const ticks = [];
  for (let d = Math.floor(Math.log10(low)); d <= Math.ceil(Math.log10(high)); d++) {
    if (d % every !== 0) continue;
    for (const s of steps) {
      const at = s * 10 ** d;
      if (low * 0.9999 <= at && at <= high * 1.0001) ticks.push({ at, text: showDecade(at) });
    }
  }
  return ticks;
}

// Maps [low, high] to pixels [from, to]; on a logarithmic axis zero is at its beginning.
function scale(low, high, from, to, log) {
  const f = log ? (x) => Math.log(x > 0 ? x : low) : (x) => x;
  const [a, b] = [f(low), f(high)];
  const k = (to - from) / (b - a || 1);
  const g = log ? Math.exp : (x) => x;
  return { px: (x) => from + (f(x) - a) * k, at: (p) => g(a + (p - from) / k), low, high };
}

// Index of the last x that is not beyond `at`; -1: all are.
function lastUpTo(xs, at) {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
