// Tables of ports and flows at a time. They have what the picture shows, for readers who do not see it.

import { QUANTITIES, bytes, time } from "./words.js";

const PORTS_SHOWN = 15;

function table(parent, caption, heads, rows) {
  const element = document.createElement("table");
  element.createCaption().textContent = caption;
  const head = element.createTHead().insertRow();
  for (const text of heads) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = element.createTBody();
  for (const { open, label, cells } of rows) {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", open);
    name.append(button);
    row.append(name);
    for (const text of cells) row.insertCell().textContent = text;
  }
  const focused = parent.contains(document.activeElement) ? document.activeElement.textContent : null;
  parent.replaceChildren(element);
  if (focused !== null) {
    [...parent.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }
}

function words(parent, text) {
  const element = document.createElement("p");
  element.textContent = text;
  parent.replaceChildren(element);
}

/** Returns the places of the `most` largest numbers of `values`. */
export function largest(values, most) {
  const found = [];
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (!(0 < value) || (found.length === most && value <= values[found.at(-1)])) continue;
    let at = found.length;
    while (0 < at && values[found[at - 1]] < value) at -= 1;
    found.splice(at, 0, i);
    if (most < found.length) found.pop();
  }
  return found;
}

/** Fills the table of the ports with the largest values. `views` has the runs with their values, `open` opens a port. */
export function ports(parent, quantity, views, open) {
  const { title, text } = QUANTITIES[quantity];
  const [first] = views;
  if (first.run.sampled.length === 0) return words(parent, "No port was sampled.");
  if (!first.values) return words(parent, "The samples are on their way.");
  const rows = largest(first.values, PORTS_SHOWN).map((at) => {
    const port = first.run.sampled[at];
    const of = ({ run, values }) => {
      const value = values && 0 <= run.column[port] ? values[run.column[port]] : NaN;
      return Number.isNaN(value) ? "not sampled" : text(value);
    };
    return { label: first.run.names[port], open: () => open(port), cells: views.map(of) };
  });
  if (rows.length === 0) return words(parent, `All sampled ports have ${title} 0 now.`);
  const heads = views.length === 1 ? ["Port", title] : ["Port", ...views.map(({ label }) => `${title}, ${label}`)];
  table(parent, `Ports with the largest values: ${title}`, heads, rows);
}

/** Fills the table of the flows that are active. */
export function flows(parent, { n, flows, left_out }, { nodes, isRunning }, open) {
  const size = (flow) => (flow.bytes === null ? "endless" : bytes(flow.bytes));
  const rows = flows.map((flow) => ({
    label: String(flow.id),
    open: () => open(flow.id),
    cells: [
      `${nodes[flow.src] ?? flow.src} → ${nodes[flow.dst] ?? flow.dst}`, size(flow), time(flow.start_ns),
      flow.fct_ns === null ? "not done" : time(flow.fct_ns), flow.slowdown === null ? "" : flow.slowdown.toFixed(2),
    ],
  }));
  const missing = (left_out ? ` ${left_out} further flows of the run are not shown.` : "")
    + (isRunning ? " Flows of a run that goes on are listed once they have ended." : "");
  if (rows.length === 0) return words(parent, `No flow is active now.${missing}`);
  const some = rows.length < n ? `, the ${rows.length} slowest of them` : "";
  table(parent, `${n} active${some}.${missing}`, ["Flow", "from → to", "size", "start", "took", "slowdown"], rows);
}
