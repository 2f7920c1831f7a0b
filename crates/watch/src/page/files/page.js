// The page asks its watch each ten seconds, and says when there is no answer any more.

import { drawLine, linkOf, show, stale, totals } from "./table.js";
import { showTarget } from "./target.js";
import { clockWithSeconds, make, moment, several, SPANS, zone } from "./words.js";

const EVERY_MS = 10_000;
const PATIENCE_MS = 8_000;
const element = (id) => document.getElementById(id);

const state = { targets: null, answered_s: null, drawing: false, shown: null };

/** Target and time of the address: #target=NAME&span=day. */
function place() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const span = asked.get("span");
  return { target: asked.get("target"), span: Object.hasOwn(SPANS, span) ? span : "hour" };
}

function linkTo(target, span) {
  const parts = new URLSearchParams();
  if (target !== null) parts.set("target", target);
  if (span !== "hour") parts.set("span", span);
  return `#${parts}`;
}

/** The token is asked for. */
class Refused extends Error {}
/** The watch answers, and says why not. */
class Told extends Error {}

async function ask(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
  if (response.status === 401) throw new Refused();
  if (response.status === 404) return null;
  if (!response.ok) throw new Told(`${path}: ${(await response.text()).trim() || response.statusText}`);
  return response.json();
}

/** A target over time; null: it was removed meanwhile. */
const history = (name, span) => ask(`api/targets/${encodeURIComponent(name)}?span=${span}`);

/** Says what is wrong, or nothing. */
function trouble(text) {
  const told = element("trouble");
  if (told.textContent !== text) told.textContent = text;
  told.hidden = text === "";
}

function title() {
  const bad = state.targets.filter((target) => target.verdict === "not met").length;
  const { target } = place();
  const subject = target === null ? "tailtrim watch" : `${target} · tailtrim watch`;
  document.title = bad > 0 ? `${bad} not met · ${subject}` : subject;
}

function failed(error) {
  if (error instanceof Refused) {
    element("login").hidden = false;
    element("content").hidden = true;
    trouble("");
    return;
  }
  if (error instanceof Told) {
    trouble(error.message);
    return;
  }
  const since = state.answered_s === null ? "" : ` since ${moment(state.answered_s, clockWithSeconds)}: what is shown is of then`;
  trouble(`The watch at ${location.host} does not answer${since}.`);
  document.title = `no answer · ${document.title.replace(/^no answer · /, "")}`;
}

/** Shows all that is known. */
function render() {
  const { target, span } = place();
  const { targets } = state;
  element("login").hidden = true;
  element("content").hidden = false;
  state.shown = target;
  element("all").hidden = target !== null;
  element("one").hidden = target === null;
  element("back").hidden = target === null;
  element("back").href = linkTo(null, span);
  element("totals").replaceChildren(...totals(targets));
  for (const button of element("spans").children) button.setAttribute("aria-pressed", button.dataset.span === span);
  element("subtitle").textContent = `${location.host} · ${several(targets.length, "target")} · ${moment(state.answered_s, clockWithSeconds)} ${zone()}`;
  show(targets, span, element("filter").value.trim(), (name) => linkTo(name, span));
  title();
}

/** Draws what is in sight, one after the other: the watch reads its minutes for one at a time. */
async function drawAll() {
  if (state.drawing || state.targets === null) return;
  state.drawing = true;
  try {
    for (;;) {
      const { target, span } = place();
      if (target !== null) {
        await drawOne(target, span);
        if (place().target === target && place().span === span) return;
        continue;
      }
      const [next] = stale(state.targets, span);
      if (next === undefined) return;
      drawLine(next, span, await history(next.name, span));
    }
  } catch (error) {
    failed(error);
  } finally {
    state.drawing = false;
  }
}

async function drawOne(name, span) {
  const found = state.targets.find((target) => target.name === name);
  const told = found && await history(name, span);
  if (!told) {
    const gone = make("p", {}, `This watch has no target ${name}. `, make("a", { href: linkTo(null, span) }, "All targets"));
    element("one").replaceChildren(gone);
    return;
  }
  const now = place();
  if (now.target === name && now.span === span) showTarget(element("one"), found, told, span);
}

async function refresh() {
  try {
    const { targets, now_s } = await ask("api/targets");
    state.targets = targets;
    state.answered_s = now_s;
    trouble("");
    render();
    await drawAll();
  } catch (error) {
    failed(error);
  }
}

element("spans").addEventListener("click", ({ target }) => {
  if (target.dataset.span) location.hash = linkTo(place().target, target.dataset.span);
});
element("filter").addEventListener("input", () => {
  if (state.targets !== null) render();
});
element("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  element("refused").textContent = "";
  try {
    const headers = { Authorization: `Bearer ${element("token").value.trim()}` };
    const response = await fetch("session", { method: "POST", headers });
    if (!response.ok) element("refused").textContent = "This is not the token.";
    else await refresh();
  } catch (error) {
    failed(error);
  }
});
addEventListener("hashchange", () => {
  if (state.targets === null) return;
  const [before, { target }] = [state.shown, place()];
  render();
  if (target === before) {
    drawAll();
    return;
  }
  // What had the focus is hidden now.
  if (target !== null) element("back").focus();
  else linkOf(before)?.focus();
  scrollTo(0, 0);
  drawAll();
});
document.addEventListener("sight", drawAll);
setInterval(refresh, EVERY_MS);
refresh();
