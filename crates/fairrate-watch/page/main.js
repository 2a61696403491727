// The page: its state, and what moves it.

import * as api from "./api.js";
import { Charts, flowCharts, portCharts } from "./charts.js";
import { maps } from "./colours.js";
import { Picture } from "./picture.js";
import * as tables from "./tables.js";
import { QUANTITIES, bytes, rate, time } from "./words.js";

const LABELS = ["A", "B"];
/** Time between two frames of a run that plays, and between two looks at a run that goes on, in ms. */
const PLAY_EVERY = 80;
const LOOK_EVERY = 1000;
/** Time for which the slider must rest before tables follow it, in ms. */
const REST = 120;
const element = (id) => document.getElementById(id);

const state = { runs: [], at: 0, quantity: "utilisation", open: null, playing: 0, rest: 0, frame: 0 };
let colours = maps();
let pictures = [];
const charts = new Charts(element("charts"), (t) => goTo(state.runs[0].at(t)));

/** Returns the run whose samples the slider goes through. */
const leader = () => state.runs.find((run) => 0 < run.times.length) ?? state.runs[0];
const now = () => leader().times[state.at] ?? 0;
const label = (i) => (state.runs.length === 1 ? state.runs[0].about.cc : `${LABELS[i]} ${state.runs[i].about.cc}`);
const hasDifference = () => state.runs.length === 2 && api.isSameNetwork(...state.runs);

/** Returns where a value is in the colours, from 0 to 1. Queues have the root, so that small ones show beside large ones. */
function place(quantity, full) {
  return quantity === "queue" ? (value) => Math.sqrt(value / full) : (value) => value / full;
}

function full() {
  const queues = state.runs.map((run) => run.largestQueue);
  return QUANTITIES[state.quantity].full(Math.max(0, ...queues));
}

/** Returns the values of a run at the present time. */
function values(run) {
  return run.times.length === 0 ? null : run.frame(state.quantity, run.at(now()));
}

function draw() {
  state.frame = 0;
  const [top, quantity] = [full(), state.quantity];
  const shown = state.runs.map(values);
  state.runs.forEach((run, i) => pictures[i].draw(shown[i], run.column, place(quantity, top), colours.sequence, false));
  if (pictures.length === 3) drawDifference(shown, top);
  const { times } = leader();
  element("now").textContent = times.length === 0 ? "no samples" : `${time(now())} (${state.at + 1} of ${times.length})`;
  element("time").setAttribute("aria-valuetext", element("now").textContent);
  state.runs.forEach((run, i) => {
    if (shown[i] === null && 0 < run.times.length) run.fetch(quantity, run.at(now())).then(later, tell);
    else if (0 < run.times.length) run.fetch(quantity, run.at(now())).catch(tell);
  });
}

function drawDifference([a, b], top) {
  const [one, two] = state.runs;
  const all = one.names.length;
  const difference = new Float32Array(all).fill(NaN);
  for (let port = 0; a && b && port < all; port += 1) {
    const [at, other] = [one.column[port], two.column[port]];
    if (0 <= at && 0 <= other) difference[port] = b[other] - a[at];
  }
  const part = place(state.quantity, top);
  const signed = (value) => 0.5 + (Math.sign(value) * part(Math.abs(value))) / 2;
  pictures[2].draw(difference, identity(all), signed, colours.difference, true);
}

let identical = new Int32Array(0);
function identity(n) {
  if (identical.length !== n) identical = Int32Array.from({ length: n }, (_, i) => i);
  return identical;
}

/** Draws at the next frame, and fills the tables once the time rests. */
function later() {
  if (!state.frame) state.frame = requestAnimationFrame(draw);
  clearTimeout(state.rest);
  state.rest = setTimeout(fillTables, REST);
}

function fillTables() {
  const views = state.runs.map((run, i) => ({ run, values: values(run), label: label(i) }));
  tables.ports(element("ports"), state.quantity, views, openPort);
  charts.at(now());
  const run = state.runs[0];
  const about = { nodes: run.network.nodes, isRunning: run.about.state === "running" };
  api.flows(0, now()).then((found) => tables.flows(element("flows"), found, about, openFlow), tell);
}

function goTo(at) {
  state.at = Math.max(0, Math.min(leader().times.length - 1, at));
  element("time").value = String(state.at);
  later();
}

function play(isOn) {
  clearInterval(state.playing);
  state.playing = isOn ? setInterval(step, PLAY_EVERY) : 0;
  element("play").textContent = isOn ? "Pause" : "Play";
  element("play").setAttribute("aria-pressed", String(isOn));
}

function step() {
  const last = leader().times.length - 1;
  // What has not come yet is waited for.
  if (state.runs.some((run) => 0 < run.times.length && values(run) === null)) return;
  if (last <= state.at) play(false); else goTo(state.at + 1);
}

/** Shows the series of a port or flow. */
function show(title, about, drawn, marks) {
  element("series").hidden = false;
  element("series-title").textContent = title;
  element("series-about").textContent = about;
  charts.show(drawn);
  charts.at(now());
  pictures.forEach((picture) => picture.mark(...marks));
}

async function openPort(port) {
  const of = hasDifference() ? state.runs : state.runs.slice(0, 1);
  const series = await Promise.all(of.map((run) => api.port(run.number, port)));
  state.open = () => openPort(port);
  const { name, rate_bps } = series[0];
  const has = series.some((one) => 0 < one.t_ns.length);
  const how = `It was not sampled: \`[[probe]] queue = "${name}"\` in the scenario samples it.`;
  show(`Port ${name}`, has ? `${rate(rate_bps)}, sampled ${series[0].t_ns.length} times.` : how,
    has ? portCharts(series, of.map((_, i) => label(i))) : [], [port, []]);
}

async function openFlow(id) {
  const answers = await Promise.all(state.runs.map((run) => api.flow(run.number, id).catch(() => null)));
  const there = answers.flatMap((answer, i) => (answer ? [{ ...answer, i }] : []));
  if (there.length === 0) return tell(new Error(`there is no flow ${id} among those that have ended or were sampled`));
  state.open = () => openFlow(id);
  const { nodes } = state.runs[0].network;
  const { flow } = there[0];
  const ends = flow ? `From ${nodes[flow.src]} to ${nodes[flow.dst]}, ${flow.bytes === null ? "endless" : bytes(flow.bytes)}, \
started at ${time(flow.start_ns)}, ${flow.fct_ns === null ? "not done" : `took ${time(flow.fct_ns)}, a slowdown of ${flow.slowdown?.toFixed(2)}`}.` : "It has not ended.";
  const sampled = there.filter(({ series }) => 0 < series.t_ns.length);
  const how = sampled.length ? "" : " It was not sampled: `[[probe]] flows = \"all\"` in the scenario samples all flows.";
  show(`Flow ${id}`, ends + how,
    sampled.length ? flowCharts(sampled.map(({ series }) => series), sampled.map(({ i }) => label(i))) : [],
    [-1, flow ? [flow.src, flow.dst] : []]);
}

function tell(error) {
  const notice = element("notice");
  notice.hidden = false;
  notice.textContent = `Not shown: ${error.message}.`;
}

/** Says what the runs are, and what they lack. */
function describe() {
  const items = state.runs.map(({ about }, i) => {
    const item = document.createElement("li");
    const name = state.runs.length === 1 ? "" : `${LABELS[i]}: `;
    item.textContent = `${name}${about.scenario}, ${about.cc}, seed ${about.seed}, ${about.state} (${about.dir})`;
    return item;
  });
  element("runs").replaceChildren(...items);
  document.title = `${state.runs.map(({ about }) => `${about.scenario} ${about.cc}`).join(" / ")} – fairrate watch`;
  const lacks = state.runs.flatMap(({ about, names, sampled }, i) => {
    const which = state.runs.length === 1 ? "This run" : `Run ${LABELS[i]}`;
    const out = [];
    if (sampled.length < names.length) {
      out.push(`${which} has samples of ${sampled.length} of ${names.length} ports; the others are empty. To sample all: [[probe]] queue = "*->*", every = "10us".`);
    }
    if (1 < about.stride) out.push(`${which} has more samples than fit: one time in ${about.stride} is shown.`);
    return out;
  });
  if (state.runs.length === 2 && !hasDifference()) lacks.push("The two runs have different networks, so there is no difference.");
  element("notice").hidden = lacks.length === 0;
  element("notice").textContent = lacks.join(" ");
}

/** Draws what the colours mean. */
function legends() {
  const { title, text } = QUANTITIES[state.quantity];
  const top = full();
  const back = (share) => (state.quantity === "queue" ? share * share : share) * top;
  const parts = [{ name: title, map: colours.sequence, ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => text(back(share))) }];
  if (pictures.length === 3) {
    const ticks = [-1, -0.5, 0, 0.5, 1].map((share) => `${0 < share ? "+" : share < 0 ? "−" : ""}${text(back(Math.abs(share)))}`);
    parts.push({ name: `${title}, B less A`, map: colours.difference, ticks });
  }
  element("legends").replaceChildren(...parts.map(({ name, map, ticks }) => {
    const legend = document.createElement("div");
    legend.className = "legend";
    const [head, ramp, scale] = ["div", "div", "div"].map((tag) => document.createElement(tag));
    [head.textContent, ramp.className, scale.className] = [name, "ramp", "scale"];
    ramp.style.background = `linear-gradient(to right, ${map.css.join(", ")})`;
    scale.append(...ticks.map((tick) => Object.assign(document.createElement("span"), { textContent: tick })));
    legend.append(head, ramp, scale);
    return legend;
  }));
  const words = document.createElement("p");
  words.textContent = "A cell is an egress port; those to higher rows are on top. Half a link has the colour of the port at its end. \
Of large networks, only the links with the largest values are drawn in colour. Empty cells were not sampled.";
  element("legends").append(words);
}

function slider() {
  const last = Math.max(0, leader().times.length - 1);
  element("time").max = String(last);
  element("time").value = String(state.at);
}

function makePictures() {
  element("pictures").replaceChildren();
  const titles = state.runs.map((run, i) => label(i));
  if (hasDifference()) titles.push("difference, B less A");
  pictures = titles.map((title, i) => {
    const run = state.runs[Math.min(i, state.runs.length - 1)];
    return new Picture(element("pictures"), title, {
      onPick: (port) => openPort(port).catch(tell),
      onView: (view) => pictures.forEach((picture) => picture.move(view)),
      describe: (port) => tip(run, i, port),
    });
  });
  element("pictures").className = `n${pictures.length}`;
  pictures.forEach((picture, i) => picture.show(state.runs[Math.min(i, state.runs.length - 1)].network));
}

function tip(run, i, port) {
  const { text } = QUANTITIES[state.quantity];
  const of = (one) => {
    const found = values(one);
    const value = found && 0 <= one.column[port] ? found[one.column[port]] : NaN;
    return Number.isNaN(value) ? "not sampled" : text(value);
  };
  return i < state.runs.length ? `${run.names[port]}: ${of(run)}` : `${run.names[port]}: ${state.runs.map(of).join(" and ")}`;
}

/** Follows runs that go on. */
async function look() {
  const { runs, can_stop } = await api.runs();
  element("stop").hidden = !can_stop;
  let isNew = false;
  for (const run of state.runs) {
    const about = runs[run.number];
    if (about.generation === run.about.generation) continue;
    const wasLast = leader().times.length - 1 <= state.at;
    run.about = about;
    await run.read();
    if (wasLast) state.at = Math.max(0, leader().times.length - 1);
    isNew = true;
  }
  if (isNew) {
    describe();
    slider();
    legends();
    later();
    if (state.open && !state.playing) state.open().catch(tell);
  }
  if (runs.some((run) => run.state === "running")) setTimeout(() => look().catch(tell), LOOK_EVERY);
}

function listen() {
  for (const choice of document.querySelectorAll("input[name=quantity]")) {
    choice.addEventListener("change", () => {
      state.quantity = choice.value;
      legends();
      later();
    });
  }
  element("time").addEventListener("input", (event) => goTo(Number(event.target.value)));
  element("play").addEventListener("click", () => {
    if (!state.playing && leader().times.length - 1 <= state.at) goTo(0);
    play(!state.playing);
  });
  element("back").addEventListener("click", () => goTo(state.at - 1));
  element("on").addEventListener("click", () => goTo(state.at + 1));
  element("stop").addEventListener("click", () => api.stop().catch(tell));
  element("close").addEventListener("click", () => {
    element("series").hidden = true;
    state.open = null;
    charts.clear();
    pictures.forEach((picture) => picture.mark(-1, []));
  });
  element("find-port").addEventListener("submit", (event) => {
    event.preventDefault();
    findPort(element("port-name").value.trim());
  });
  element("find-flow").addEventListener("submit", (event) => {
    event.preventDefault();
    const id = element("flow-id").value.trim();
    if (/^\d+$/.test(id)) openFlow(Number(id)).catch(tell); else tell(new Error(`“${id}” is no number of a flow`));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colours = maps();
    pictures.forEach((picture) => picture.resize());
    legends();
    later();
    state.open?.();
  });
  new ResizeObserver(() => {
    pictures.forEach((picture) => picture.resize());
    charts.resize();
  }).observe(element("pictures"));
}

function findPort(name) {
  const { names, network } = state.runs[0];
  const port = names.indexOf(name);
  const node = network.nodes.indexOf(name);
  if (0 <= port) return openPort(port).catch(tell);
  if (0 <= node) return openPort(names.findIndex((one) => one.startsWith(`${name}->`))).catch(tell);
  return tell(new Error(`there is no port or node “${name}”; ports are named as ${names[0]}`));
}

async function begin() {
  const { runs, can_stop } = await api.runs();
  state.runs = runs.map((_, i) => new api.Run(i));
  await Promise.all(state.runs.map((run, i) => run.open(runs[i])));
  element("stop").hidden = !can_stop;
  state.at = runs.some((run) => run.state === "running") ? Math.max(0, leader().times.length - 1) : 0;
  makePictures();
  describe();
  slider();
  legends();
  listen();
  later();
  if (runs.some((run) => run.state === "running")) setTimeout(() => look().catch(tell), LOOK_EVERY);
  document.body.dataset.ready = "yes";
}

begin().catch(tell);
