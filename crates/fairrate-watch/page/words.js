// Numbers in words: quantities with their units.

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const BYTES = [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]];
const RATES = [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]];

function scaled(value, units) {
  const [size, unit] = units.find(([size]) => size <= Math.abs(value)) ?? units.at(-1);
  return `${Number((value / size).toPrecision(4))} ${unit}`;
}

/** Returns a time in ns as text. */
export const time = (ns) => scaled(ns, TIMES);
/** Returns a number of bytes as text. */
export const bytes = (n) => scaled(n, BYTES);
/** Returns a rate in bit/s as text. */
export const rate = (bps) => scaled(bps, RATES);
/** Returns a share as text, in percent. */
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** The quantities of a port: their titles, their texts, and the value of the last colour in a picture whose largest value is known. */
export const QUANTITIES = {
  utilisation: { title: "utilisation", text: percent, full: () => 1 },
  queue: { title: "queue", text: bytes, full: (largest) => Math.max(largest, 1000) },
  paused: { title: "paused", text: percent, full: () => 1 },
};
