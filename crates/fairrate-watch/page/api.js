// What the server has: runs, networks, samples.

/** Largest size of the frames in memory, in bytes. */
const FRAMES_KEPT = 192 << 20;
/** Size of what is fetched at once, in bytes. */
const CHUNK = 3 << 20;

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) {
    throw new Error(answer.status === 404 ? "there is none" : `the server says ${answer.status}`);
  }
  return answer;
}

const json = async (path) => (await get(path)).json();

export const runs = () => json("api/runs");
export const port = (run, port) => json(`api/runs/${run}/ports/${port}`);
export const flow = (run, flow) => json(`api/runs/${run}/flows/${flow}`);
export const flows = (run, t) => json(`api/runs/${run}/flows?t_ns=${Math.round(t)}`);
export const stop = () => fetch("api/stop", { method: "POST" });

/** A run: its network, its times of sampling, and frames of them. */
export class Run {
  constructor(number) {
    this.number = number;
    this.frames = new Map();
    this.asked = new Map();
    this.size = 0;
  }

  async open(about) {
    this.about = about;
    this.network = await json(`api/runs/${this.number}/network`);
    this.names = portNames(this.network);
    await this.read();
  }

  /** Reads what grows with a run. */
  async read() {
    const { times, sampled, generation, largest_queue } = await json(`api/runs/${this.number}/times`);
    Object.assign(this, { times, sampled, generation, largestQueue: largest_queue });
    // A column of frames for each port, or none.
    this.column = new Int32Array(this.names.length).fill(-1);
    sampled.forEach((port, at) => { this.column[port] = at; });
    this.chunk = Math.max(1, Math.min(256, Math.floor(CHUNK / (4 * Math.max(1, sampled.length)))));
    this.frames.clear();
    this.asked.clear();
    this.size = 0;
  }

  /** Returns the number of the last time of sampling up to `t`, or the first. */
  at(t) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= t) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Returns the values of `quantity` at time `at`, for each sampled port; `null` until they have come. */
  frame(quantity, at) {
    const chunk = Math.floor(at / this.chunk);
    const found = this.frames.get(`${quantity} ${chunk}`);
    if (!found) return null;
    const width = this.sampled.length;
    const from = (at - chunk * this.chunk) * width;
    return found.length < from + width ? null : found.subarray(from, from + width);
  }

  /** Fetches the frames around time `at`, and what follows. */
  async fetch(quantity, at) {
    const chunk = Math.floor(at / this.chunk);
    const last = Math.floor(Math.max(0, this.times.length - 1) / this.chunk);
    const first = this.one(quantity, chunk);
    if (chunk < last) first.then(() => this.one(quantity, chunk + 1)).catch(() => {});
    await first;
  }

  one(quantity, chunk) {
    const key = `${quantity} ${chunk}`;
    if (!this.asked.has(key)) this.asked.set(key, this.load(key, quantity, chunk));
    return this.asked.get(key);
  }

  async load(key, quantity, chunk) {
    const generation = this.generation;
    try {
      const query = `quantity=${quantity}&from=${chunk * this.chunk}&n=${this.chunk}`;
      const answer = await get(`api/runs/${this.number}/frames?${query}`);
      const values = new Float32Array(await answer.arrayBuffer());
      if (generation !== this.generation) return;
      this.frames.set(key, values);
      this.size += values.byteLength;
      for (const [old, gone] of this.frames) {
        if (this.size <= FRAMES_KEPT || old === key) break;
        this.frames.delete(old);
        this.asked.delete(old);
        this.size -= gone.byteLength;
      }
    } catch (error) {
      this.asked.delete(key);
      throw error;
    }
  }
}

function portNames({ nodes, links }) {
  const names = [];
  for (const [a, b] of links) names.push(`${nodes[a]}->${nodes[b]}`, `${nodes[b]}->${nodes[a]}`);
  return names;
}

/** Returns `true` if two runs have the same network. */
export function isSameNetwork(a, b) {
  return a.names.length === b.names.length && a.names.every((name, i) => name === b.names[i]);
}
