// The page in a browser: `node test.mjs PROGRAMS CHROMIUM PLACE [--shots DIR] [--measure]`, by `cargo xtask watch-page`.
//
// PROGRAMS has the programs `fairrate` and `fairrate-watch`, PLACE the packages of package-lock.json. --shots writes pictures of the page,
// and --measure prints the times between frames while the slider moves, at 256 and 8,192 hosts.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [programs, executablePath, place, ...options] = process.argv.slice(2);
const require = createRequire(join(place, "node_modules/x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const shots = options.includes("--shots") ? options[options.indexOf("--shots") + 1] : null;

// Chromium gets no sandbox where it runs as root, has no graphics card, and says nothing to anyone.
const args = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync",
];

const work = mkdtempSync(join(tmpdir(), "fairrate-watch-"));
const PROBES = `[[probe]]\nqueue = "*->*"\nevery = "10us"\n[[probe]]\nflows = "all"\nevery = "20us"\n`;
const LOAD = `[[traffic]]\nkind = "poisson"\nsizes = "websearch"\nload = 0.6\n`;
const SCENARIOS = {
  "fat-tree": `duration = "1ms"\n[topology]\nkind = "fat-tree"\n[transport]\ncc = "dcqcn"\n${LOAD}[[traffic]]\nkind = "incast"\nreceiver = "h16"
senders = ["h1", "h2", "h3", "h4", "h40", "h200"]\nbytes = "endless"\nstart = "200us"\n${PROBES}`,
  "leaf-spine": `duration = "300us"\n[topology]\nkind = "leaf-spine"\nleaves = 8\nspines = 4\nhosts_per_leaf = 16\n${LOAD}${PROBES}`,
  rail: `duration = "300us"\n[topology]\nkind = "rail"\nservers = 16\nservers_per_leaf = 8\nspines = 8\n[[traffic]]\nkind = "collective"
op = "all-reduce"\nbytes = "8MB"\n${PROBES}`,
  few: `duration = "300us"\n[topology]\nkind = "star"\n${LOAD}`,
  long: `duration = "1000s"\n[topology]\nkind = "star"\n[[traffic]]\nkind = "incast"\nreceiver = "h0"\nsenders = ["h1", "h2"]
bytes = "endless"\n[[probe]]\nqueue = "*->*"\nevery = "1ms"\n`,
  large: `duration = "400us"\n[topology]\nkind = "fat-tree-k"\nk = 32\n${LOAD}[[probe]]\nqueue = "*->*"\nevery = "4us"\n`,
};

/** Runs a scenario. Returns its results directory. */
function run(name, cc = null) {
  const [scenario, dir] = [join(work, `${name}.toml`), join(work, `${name}-${cc ?? "own"}`)];
  writeFileSync(scenario, SCENARIOS[name]);
  execFileSync(join(programs, "fairrate"), ["run", scenario, "--out", dir, "--quiet", ...(cc ? ["--cc", cc] : [])], { stdio: ["ignore", "ignore", "inherit"] });
  return dir;
}

/** Serves directories while `body` runs with the address. */
async function served(dirs, body) {
  const server = spawn(join(programs, "fairrate-watch"), dirs, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => { server.on("exit", resolve); });
  try {
    const address = await new Promise((resolve, reject) => {
      let text = "";
      server.stdout.on("data", (data) => {
        text += data;
        if (text.includes("\n")) resolve(text.trim());
      });
      server.on("exit", () => reject(new Error("fairrate-watch has ended")));
    });
    await body(address);
  } finally {
    server.kill("SIGINT");
    assert.equal(await ended, 0, "it ends well on Ctrl-C");
  }
}

let browser;
/** Opens a page while `body` runs with it. Anything that goes wrong in it, or leads elsewhere, is an error. */
async function opened(address, { width = 1280, height = 800, colorScheme = "light" }, body) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
  page.on("request", (request) => { if (!request.url().startsWith(address) && !request.url().startsWith("data:")) wrong.push(request.url()); });
  await page.goto(address);
  await page.waitForSelector("body[data-ready=yes]");
  await page.waitForSelector("#ports table, #ports p");
  await body(page);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function shot(page, name) {
  if (shots) {
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  }
}

/** Holds the page against the rules of WCAG 2.2 AA and good practice. */
async function isAccessible(page) {
  // The rules are put in through the protocol: the page's own policy lets no script in.
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), []);
  assert.ok(20 < passes.length);
}

const text = (page, selector) => page.locator(selector).innerText();

/** Returns how many pixels of the picture's cells have a colour. */
const coloured = (page, at = 0) => page.evaluate((i) => {
  const canvas = document.querySelectorAll("canvas.cells")[i];
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let n = 0;
  const colours = new Set();
  for (let p = 0; p < data.length; p += 4) {
    if (data[p + 3]) { n += 1; colours.add((data[p] << 16) | (data[p + 1] << 8) | data[p + 2]); }
  }
  return { n, colours: colours.size };
}, at);

const tests = {
  async "time moves by keyboard, buttons and play, and the tables follow"(address) {
    await opened(address, {}, async (page) => {
      await page.focus("#time");
      await page.keyboard.press("End");
      await page.waitForFunction(() => document.querySelector("#now").textContent.includes("101 of 101"));
      // Queues are at ports of switches.
      await page.check("input[value=queue]");
      await page.waitForFunction(() => /^(tor|agg|core)\d+->/.test(document.querySelector("#ports tbody th")?.textContent ?? "") && document.querySelector("#ports caption").textContent.includes("queue"));
      await page.click("#back");
      await page.waitForFunction(() => document.querySelector("#now").textContent.includes("100 of 101"));
      await page.keyboard.press("Home");
      await page.focus("#time");
      await page.keyboard.press("Home");
      await page.waitForFunction(() => document.querySelector("#now").textContent.includes("(1 of 101)"));
      await page.click("#play");
      await page.waitForFunction(() => /\((?!1 )\d+ of 101/.test(document.querySelector("#now").textContent));
      await page.click("#play");
      assert.equal(await page.getAttribute("#play", "aria-pressed"), "false");
    });
  },
  async "the picture shows utilisation, queues and pauses in colours with a legend"(address) {
    await opened(address, {}, async (page) => {
      await page.focus("#time");
      await page.keyboard.press("End");
      for (const quantity of ["utilisation", "queue", "paused"]) {
        await page.check(`input[value=${quantity}]`);
        await page.waitForTimeout(300);
        const { n, colours } = await coloured(page);
        assert.ok(2000 < n && 1 <= colours, `${quantity}: ${n} pixels in ${colours} colours`);
        if (quantity !== "paused") assert.ok(3 <= colours);
        assert.match(await text(page, "#legends"), new RegExp(quantity));
      }
    });
  },
  async "a click on a port, a button of a table and a name open series"(address) {
    await opened(address, {}, async (page) => {
      await page.fill("#port-name", "tor0->h16");
      await page.click("#find-port button");
      await page.waitForSelector(".uplot canvas");
      assert.equal(await text(page, "#series-title"), "Port tor0->h16");
      // The mark is around the cell of that port: a click in its middle means the same port.
      const middle = await page.evaluate(() => {
        const canvas = document.querySelector("canvas.marks");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let [left, top, right, bottom] = [1e9, 1e9, 0, 0];
        for (let y = 0; y < canvas.height; y += 1) {
          for (let x = 0; x < canvas.width; x += 1) {
            const at = 4 * (y * canvas.width + x);
            // The mark is blue; names have the colour of text.
            if (150 < data[at + 3] && 100 < data[at + 2] - data[at]) {
              [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
            }
          }
        }
        return { x: (left + right) / 2, y: (top + bottom) / 2 };
      });
      await page.click("#close");
      assert.ok(await page.isHidden("#series"));
      await page.locator(".stage").click({ position: middle });
      await page.waitForSelector("#series:not([hidden])");
      assert.equal(await text(page, "#series-title"), "Port tor0->h16");
      await page.focus("#time");
      await page.keyboard.press("End");
      await page.click("#flows table button >> nth=0");
      await page.waitForFunction(() => document.querySelector("#series-title").textContent.startsWith("Flow "));
      await page.fill("#port-name", "tor0->nowhere");
      await page.click("#find-port button");
      assert.match(await text(page, "#notice"), /no port or node/);
    });
  },
  async "the view moves by keyboard and wheel"(address) {
    await opened(address, {}, async (page) => {
      await page.waitForTimeout(300);
      const before = await coloured(page);
      await page.focus(".stage");
      for (const key of ["+", "+", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
      await page.waitForTimeout(100);
      const inside = await coloured(page);
      assert.notEqual(inside.n, before.n);
      await page.keyboard.press("0");
      await page.mouse.move(600, 300);
      await page.mouse.wheel(0, -200);
      await page.waitForTimeout(100);
      assert.notEqual((await coloured(page)).n, before.n);
    });
  },
  async "nothing is wrong for readers who hear the page, in light, in dark and narrow"(address) {
    for (const [name, view] of Object.entries({
      light: {}, dark: { colorScheme: "dark" }, narrow: { width: 390, height: 800 },
    })) {
      await opened(address, view, async (page) => {
        await page.focus("#time");
        await page.keyboard.press("End");
        await page.fill("#port-name", "tor0->h16");
        await page.click("#find-port button");
        await page.waitForSelector(".uplot canvas");
        await page.waitForSelector("#ports td");
        await isAccessible(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
        await shot(page, `fat-tree-${name}`);
      });
    }
  },
  async "an address with another token shows nothing"(address) {
    const answer = await fetch(address.replace(/[0-9a-f]{64}/, "0".repeat(64)));
    assert.deepEqual([answer.status, await answer.text()], [403, ""]);
  },
};

async function all() {
  const dir = run("fat-tree");
  let passed = 0;
  await served([dir], async (address) => {
    for (const [name, test] of Object.entries(tests)) {
      await test(address);
      passed += 1;
      console.log(`test ${name} ... ok`);
    }
  });
  await served([dir, run("fat-tree", "powertcp")], (address) => opened(address, { width: 1500 }, async (page) => {
    assert.equal(await page.locator(".picture").count(), 3);
    await page.focus("#time");
    await page.keyboard.press("End");
    await page.waitForSelector("#ports td");
    await page.waitForTimeout(300);
    assert.ok(2 < (await coloured(page, 2)).colours);
    assert.match(await text(page, "#ports"), /A dcqcn/);
    await isAccessible(page);
    await shot(page, "two-runs");
  }));
  console.log("test two runs have a difference ... ok");
  await served([run("few")], (address) => opened(address, {}, async (page) => {
    assert.match(await text(page, "#notice"), /\[\[probe\]\] queue = "\*->\*"/);
    assert.match(await text(page, "#ports"), /No port was sampled/);
    await isAccessible(page);
  }));
  console.log("test a run without samples says how to sample ... ok");
  for (const kind of ["leaf-spine", "rail"]) {
    await served([run(kind)], (address) => opened(address, { colorScheme: kind === "rail" ? "dark" : "light" }, async (page) => {
      await page.focus("#time");
      await page.keyboard.press("End");
      await page.waitForSelector("#ports td");
      assert.ok(2 < (await coloured(page)).colours);
      await shot(page, kind);
    }));
    console.log(`test the shape ${kind} is shown ... ok`);
  }
  await followed();
  console.log("test a run that goes on is followed and stopped ... ok");
  console.log(`test result: ok. ${passed + 5} passed; 0 failed`);
}

/** Starts a run with its page, sees it grow, and stops it there. */
async function followed() {
  const [scenario, dir] = [join(work, "long.toml"), join(work, "long")];
  writeFileSync(scenario, SCENARIOS.long);
  const run = spawn(join(programs, "fairrate"), ["run", scenario, "--watch", "--quiet", "--out", dir], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => { run.on("exit", resolve); });
  try {
    const address = await new Promise((resolve, reject) => {
      let said = "";
      run.stderr.on("data", (data) => {
        said += data;
        const found = said.match(/page +(http\S+)/);
        if (found) resolve(found[1]);
      });
      run.on("exit", () => reject(new Error(`the run has ended: ${said}`)));
    });
    await opened(address, {}, async (page) => {
      const max = () => page.evaluate(() => Number(document.querySelector("#time").max));
      await page.waitForFunction(() => 50 < Number(document.querySelector("#time").max));
      const before = await max();
      await page.waitForFunction((before) => before < Number(document.querySelector("#time").max), before);
      assert.ok(await page.evaluate(() => document.querySelector("#time").value === document.querySelector("#time").max), "it stays at the end");
      await isAccessible(page);
      await page.click("#stop");
      await page.waitForFunction(() => document.querySelector("#runs").textContent.includes("interrupted"));
      assert.ok(await page.isHidden("#stop"));
    });
  } finally {
    run.kill("SIGINT");
    assert.equal(await ended, 130);
  }
}

/** Prints the times between frames while the slider goes through all samples, three times. */
async function measure() {
  for (const name of ["fat-tree", "large"]) {
    await served([run(name)], (address) => opened(address, { width: 1400, height: 900 }, async (page) => {
      const deltas = await page.evaluate(async () => {
        const slider = document.querySelector("#time");
        const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
        const out = [];
        let before = await frame();
        for (let round = 0; round < 3; round += 1) {
          for (let at = 0; at <= Number(slider.max); at += 1) {
            slider.value = String(at);
            slider.dispatchEvent(new Event("input"));
            const now = await frame();
            out.push(now - before);
            before = now;
          }
        }
        return out.sort((a, b) => a - b);
      });
      const hosts = name === "large" ? "8,192" : "256";
      const at = (share) => deltas[Math.min(deltas.length - 1, Math.floor(share * deltas.length))].toFixed(1);
      console.log(`${hosts} hosts: ${deltas.length} frames, median ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
      await page.waitForTimeout(500);
      await shot(page, name === "large" ? "large" : "fat-tree-end");
    }));
  }
}

try {
  browser = await chromium.launch({ executablePath, args });
  await (options.includes("--measure") ? measure() : all());
  await browser.close();
} finally {
  rmSync(work, { recursive: true, force: true });
}
