// One target: objectives, percentiles over time, outages, slowest probes.

import { chart, swatch } from "./chart.js";
import { bounded, clockWithSeconds, count, isSilent, length, make, moment, noun, percent, several, short, silence, SPANS, stretch, time, verdict } from "./words.js";

/** What is hidden: a number of a percentile, or "slowest". */
const hidden = new Set();
const SLOWEST = 10;

/** Columns of words. */
const WORDS = new Set(["What", "Cause", "Folder", "By how much"]);

let frame = null;
let drawn = null;
let at = null;

const rate = (interval_ns) => {
  const pps = 1e9 / interval_ns;
  return pps >= 1 ? `${Number(pps.toPrecision(3))} probes a second` : `a probe each ${Number((1 / pps).toPrecision(3))} s`;
};

function objective(one, target) {
  const share = one.bad / Math.max(one.packets, 1);
  return make("li", { class: one.promise.replace(" ", "-") },
    verdict(one.promise), " ", make("b", {}, one.objective), ": ",
    one.packets === 0
      ? `no ${noun(target)}s yet`
      : `${count(one.bad)} of ${several(one.packets, noun(target))} bad in the last hour, ${percent(share)} (${percent(one.low)} to ${percent(one.high)}; limit ${Number((100 * one.limit).toPrecision(3))} %)`);
}

function legend(history) {
  const names = [...history.quantiles.map((p, n) => [n, `p${p}`, ["first", "second", "third"][n]]), ["slowest", "slowest", "slowest"]];
  return make("div", { class: "legend", role: "group", "aria-label": "Lines" }, ...names.map(([key, name, look]) => {
    const button = make("button", { type: "button", "aria-pressed": !hidden.has(key) }, swatch(look), name);
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", !hidden.has(key));
      plot();
    });
    return button;
  }));
}

/** What a block has, in a sentence. */
function reading(target, history, begin) {
  const block = history.blocks.find((one) => one.begin_s === begin);
  const when = make("b", {}, stretch(begin, begin + history.block_s));
  if (!block) return [when, ": not measured"];
  const sent = block.answered + block.unanswered;
  const parts = (block.quantiles ?? []).map((one, n) => `p${history.quantiles[n]} ${bounded(one)}`);
  if (block.worst) parts.push(`slowest ${time(block.worst.latency_ns)}`);
  if (!block.quantiles && block.samples > 0) parts.push("no percentiles, since the clock was stepped back");
  const lost = block.unanswered ? `, ${count(block.unanswered)} not answered (${percent(block.unanswered / sent)})` : ", all answered";
  const unsent = target.interval_ns !== null && block.due > sent ? `, ${count(block.due - sent)} not sent` : "";
  return [when, `: ${[...parts, `${several(sent, noun(target))}${sent ? lost : ""}${unsent}`].join(", ")}`];
}

function point(history, picture, begin) {
  at = begin;
  picture.point(begin);
  const told = begin === null ? ["Point at a time, or use the arrow keys."] : reading(drawn.target, history, begin);
  document.getElementById("readout").replaceChildren(...told);
}

/** Draws the chart as wide as its place. */
function plot() {
  const { target, history, figure } = drawn;
  drawn.width = figure.clientWidth;
  const width = Math.max(300, Math.floor(figure.clientWidth));
  const made = chart(target, history, width, hidden);
  const had = figure.querySelector(".chart");
  const hadFocus = had !== null && had === document.activeElement;
  const { begin_s: first, block_s: step } = history;
  const last = first + step * (Math.ceil((history.until_s - first) / step) - 1);
  const go = (begin) => point(history, made, Math.min(Math.max(begin, first), last));
  made.picture.addEventListener("pointermove", (event) => {
    const box = made.picture.getBoundingClientRect();
    go(first + step * made.blockAt(((event.clientX - box.left) * width) / box.width));
  });
  made.picture.addEventListener("pointerleave", () => point(history, made, null));
  made.picture.addEventListener("keydown", (event) => {
    const from = at ?? last + step;
    const to = { ArrowLeft: from - step, ArrowRight: at === null ? last : from + step, Home: first, End: last }[event.key];
    if (event.key === "Escape") point(history, made, null);
    else if (to === undefined) return;
    else go(to);
    event.preventDefault();
  });
  if (had) had.replaceWith(made.picture);
  else figure.querySelector(".readout").before(made.picture);
  if (hadFocus) made.picture.focus();
  point(history, made, at !== null && at >= first && at <= last ? at : null);
}

/** A table of numbers, but for the first column and those of words. With causes it becomes a list where it has no room. */
function table(heads, rows) {
  const labelled = (cell, n) => {
    if (n > 0) cell.dataset.label = heads[n];
    return cell;
  };
  return make("table", { class: heads.includes("Cause") ? "stack" : "plain" },
    make("thead", {}, make("tr", {}, ...heads.map((head, n) => make("th", { scope: "col", class: n === 0 || WORDS.has(head) ? "left" : "" }, head)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell, n) =>
      labelled(n === 0 ? make("th", { scope: "row" }, cell) : make("td", { class: WORDS.has(heads[n]) ? "left" : "" }, cell), n))))));
}

function outages(target, history) {
  const stretches = [
    ...history.outages.map((one) => [silence(target), ...one]),
    ...history.gaps.map((one) => ["not measured", ...one]),
  ].sort((a, b) => b[1] - a[1]);
  const title = make("h3", {}, "Outages and gaps");
  if (stretches.length === 0) return [title, make("p", {}, "None.")];
  const rows = stretches.map(([kind, begin, end]) => {
    const lasts = end === history.until_s;
    const word = make("span", { class: `verdict ${kind === "not measured" ? "none" : "silent"}` }, kind);
    return [lasts ? `since ${moment(begin)}` : stretch(begin, end), word, length(end - begin)];
  });
  return [title, table(["Time", "What", "Length"], rows)];
}

function slowest(target, history, span) {
  const all = history.blocks.flatMap((block) => (block.worst ? [block.worst] : []));
  const worst = all.sort((a, b) => b.latency_ns - a.latency_ns).slice(0, SLOWEST);
  const title = make("h3", {}, `Slowest ${noun(target)}s`);
  if (worst.length === 0) return [title, make("p", {}, "No round trips.")];
  const has = (key) => worst.some((one) => (one[key] ?? null) !== null);
  const columns = [
    ["Left at", (one) => moment(Math.floor(one.begin_ns / 1e9), clockWithSeconds)],
    [noun(target) === "probe" ? "Round trip" : "Latency", (one) => time(one.latency_ns)],
    ...(has("residence_ns") ? [["In the far host", (one) => (one.residence_ns === null ? "" : time(one.residence_ns))]] : []),
    ...(has("own_host_ns") ? [["In this host", (one) => (one.own_host_ns === null ? "" : time(one.own_host_ns))]] : []),
  ];
  const notes = `The slowest one of each ${SPANS[span].block}, of these the ${SLOWEST} slowest. The round trip is without the far host's time where that is known, and without this host's before and behind its stamps.`;
  return [title, table(columns.map(([head]) => head), worst.map((one) => columns.map(([, of]) => of(one)))), make("p", { class: "notes" }, notes)];
}

const PARTS = {
  own_host_before: "this host before sending",
  network: "network",
  residence: "the far host",
  own_host_behind: "this host after receiving",
};
/** Less would be shown as 0.0 %. */
const LEAST_PPM = 500;
const share = (ppm) => `${(ppm / 10_000).toFixed(1)} %`;

/** Causes within this host, by the trace of its CPUs. */
function inThisHost({ host }) {
  if (!host) return "no trace";
  const [late] = host.verdict.late ?? [];
  if (!late) return "the trace has nothing that delayed it";
  const names = host.verdict.causes.map(({ kind, name, detail }) => [name || kind, detail].filter(Boolean).join("/"));
  const parts = [...late.causes.map(([n, ns]) => [ns, names[n]]), [late.queue_ns, "queueing behind packets"], [late.unknown_ns, "unknown"]];
  return parts.map(([ns, name]) => [(1e6 * ns) / Math.max(late.excess_ns, 1), name])
    .filter(([ppm]) => ppm >= LEAST_PPM).sort((a, b) => b[0] - a[0]).map(([ppm, name]) => `${share(ppm)} ${name}`).join(", ");
}

/** Parts of a caught round trip that took long, in a sentence. */
function causes({ packet, problem }) {
  if (!packet) return problem ?? "not explained";
  const told = (packet.parts ?? []).filter((part) => part.share_ppm >= LEAST_PPM).map((part) => {
    const usual = part.usual_ns === null ? "" : `, usually ${time(part.usual_ns)}`;
    const host = part.name === packet.host_part ? `, of it by the trace of this host: ${inThisHost(packet)}` : "";
    return `${share(part.share_ppm)} ${PARTS[part.name] ?? part.name} (${time(part.ns)}${usual})${host}`;
  });
  return told.join("; ") || "no part took longer than usual";
}

function caught(history) {
  if (history.catches.length === 0) return [];
  const rows = history.catches.map((one) => {
    const [day, at] = one.name.split("T");
    const left = Date.parse(`${day}T${at.replaceAll("-", ":")}Z`) / 1000;
    return [moment(left, clockWithSeconds), one.packet ? time(one.packet.latency_ns) : "none", causes(one), one.name];
  });
  const notes = "Late probes that were kept with what was around them, the newest 20 of these days; tailtrim explain tells more of each. The time is from this host's program to itself.";
  return [make("h3", {}, "Caught in the act"), table(["Left at", "Round trip", "Cause", "Folder", "By how much"], rows), make("p", { class: "notes" }, notes)];
}

/** By how much something changed, with its interval. */
function size(one) {
  if (one.was_ns !== undefined) {
    const bounds = one.low_ns == null ? "" : one.high_ns == null ? ` (at least ${time(one.low_ns)})` : ` (${time(one.low_ns)} to ${time(one.high_ns)})`;
    return `from ${time(one.was_ns)} to ${time(one.now_ns)}${bounds}`;
  }
  if (one.was_share !== undefined) return `from ${percent(one.was_share)} to ${percent(one.now_share)} (${percent(one.low_share)} to ${percent(one.high_share)})`;
  return "not measured yet";
}

/** Changes beside a baseline or last week, the newest first. */
function changes(target) {
  const all = target.changes?.changes ?? [];
  if (all.length === 0) return [];
  const rows = all.toReversed().map((one) => [
    moment(one.since_ns / 1e9), `${one.of} ${one.direction} than ${one.against}`, size(one),
    (one.ended_ns ?? null) === null ? "goes on" : moment(one.ended_ns / 1e9),
  ]);
  return [make("h3", {}, "Changes"), table(["Since", "What", "By how much", "Until"], rows)];
}

function heading(target) {
  const silent = isSilent(target) ? [make("li", { class: "not-met" }, make("span", { class: "verdict silent" }, silence(target)), ` in the minute from ${moment(target.minute.begin_s)} on`)] : [];
  const since = target.since_s === null || target.verdict === null ? "" : ` · ${target.verdict} since ${moment(target.since_s)}`;
  return [
    make("h2", {}, target.name),
    make("p", { class: "quiet" }, `${target.address} · ${target.protocol} · ${target.interval_ns === null ? "" : `${rate(target.interval_ns)} · `}timeout ${short(target.timeout_ns)}${since}`),
    make("ul", { class: "objectives" }, ...silent, ...target.objectives.map((one) => objective(one, target))),
  ];
}

/** Shows a target over time in a section. */
export function showTarget(section, target, history, span) {
  if (frame?.name !== target.name || frame.span !== span || !section.contains(frame.figure)) {
    const figure = make("figure", {}, legend(history), make("p", { class: "readout", id: "readout", role: "status" }));
    const caption = `Percentiles of each ${SPANS[span].block}; band: 95 % interval; pale where too few probes bound it above. Red ground: no answer. Hatched: not measured. Below: probes without an answer.`;
    figure.append(make("figcaption", {}, caption));
    const [head, title, tail] = [make("div"), make("h3", {}, `${target.interval_ns === null ? "Latency" : "Round trips"}, ${SPANS[span].last}`), make("div")];
    section.replaceChildren(head, title, figure, tail);
    new ResizeObserver(() => {
      if (drawn.figure.clientWidth !== drawn.width) plot();
    }).observe(figure);
    frame = { name: target.name, span, figure, head, tail };
    at = null;
  }
  const told = JSON.stringify([target, history]);
  if (frame.told === told) return;
  frame.told = told;
  drawn = { target, history, figure: frame.figure };
  frame.head.replaceChildren(...heading(target));
  const damaged = history.is_whole ? [] : [make("p", { class: "warnings" }, "A file of this time is damaged: minutes behind the damage are missing.")];
  frame.tail.replaceChildren(...damaged, ...changes(target), ...outages(target, history), ...caught(history), ...slowest(target, history, span));
  plot();
}
