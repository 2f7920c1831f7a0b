// All targets: a row each, in place as long as it is there, so that focus stays where it is.

import { sparkline } from "./chart.js";
import { count, isSilent, make, moment, noun, percent, several, silence, SPANS, time, verdict } from "./words.js";

const ORDER = ["not met", "not decided", "met", null];
const rank = (target) => (isSilent(target) ? -1 : ORDER.indexOf(target.verdict));

/** Rows by the name of their target. */
const rows = new Map();
/** Names of targets whose rows are in sight. */
const inSight = new Set();
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) inSight.add(target.name);
    else inSight.delete(target.name);
  }
  document.dispatchEvent(new Event("sight"));
}, { rootMargin: "100px" });
let numbered = 0;

function newRow(name) {
  const cells = Object.fromEntries(["told", "spark", "p50", "p99", "slowest", "lost"].map((key) => [key, make("td")]));
  cells.told.className = "left";
  cells.spark.className = "spark";
  for (const [key, label] of [["p50", "p50"], ["p99", "p99"], ["slowest", "Slowest"], ["lost", "Lost"]]) cells[key].dataset.label = label;
  const link = make("a", {}, name);
  const under = make("small");
  const row = make("tr", {}, make("th", { scope: "row" }, link, under), ...Object.values(cells));
  row.name = name;
  numbered += 1;
  sight.observe(row);
  return { row, link, under, cells, number: numbered, drawn: "", told: "" };
}

/** Changes that are not over. */
const ongoing = (target) => (target.changes?.changes ?? []).filter((one) => (one.ended_ns ?? null) === null);

/** The objectives that decide a verdict. */
function reasons(target) {
  const deciding = target.objectives.filter((one) => one.promise === target.verdict && target.verdict !== "met");
  return deciding.map(({ objective, bad, packets }) =>
    `${objective}: ${packets === 0 ? "no probes yet" : `${percent(bad / packets)} of ${several(packets, noun(target))}`}`).join("; ");
}

function telling(target) {
  const parts = [verdict(target.verdict)];
  if (isSilent(target)) parts.unshift(make("span", { class: "verdict silent" }, silence(target)));
  if (target.since_s !== null && target.verdict !== null) parts.push(make("span", { class: "quiet" }, ` since ${moment(target.since_s)}`));
  const worse = ongoing(target).filter((one) => one.direction === "worse");
  if (worse.length > 0) parts.push(make("small", {}, `changed: ${worse.map((one) => `${one.of} worse than ${one.against} since ${moment(one.since_ns / 1e9)}`).join("; ")}`));
  const why = reasons(target);
  if (why) parts.push(make("small", {}, why));
  return parts;
}

/** Totals of verdicts above the table. */
export function totals(targets) {
  const of = (word) => targets.filter((target) => target.verdict === word).length;
  const silent = targets.filter(isSilent).length;
  const list = ORDER.filter((word) => word !== null || of(null) > 0)
    .map((word) => make("li", {}, make("b", {}, count(of(word))), " ", verdict(word)));
  if (silent > 0) list.unshift(make("li", {}, make("b", {}, count(silent)), " ", make("span", { class: "verdict silent" }, "no answer")));
  return list;
}

/** Brings the rows up to date: those that want attention first, then by name. */
export function show(targets, span, filter, linkTo) {
  const body = document.getElementById("rows");
  const names = new Set(targets.map(({ name }) => name));
  for (const [name, { row }] of rows) {
    if (names.has(name)) continue;
    sight.unobserve(row);
    inSight.delete(name);
    row.remove();
    rows.delete(name);
  }
  const sorted = targets.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, "en", { numeric: true }));
  let shown = 0;
  let before = null;
  for (const target of sorted) {
    if (!rows.has(target.name)) rows.set(target.name, newRow(target.name));
    const known = rows.get(target.name);
    const { row, link, under, cells } = known;
    link.href = linkTo(target.name);
    if (known.told !== JSON.stringify(target)) {
      known.told = JSON.stringify(target);
      under.textContent = `${target.address === target.name ? "" : `${target.address} · `}${target.protocol}`;
      cells.told.replaceChildren(...telling(target));
    }
    row.hidden = !`${target.name} ${target.address} ${target.verdict}`.toLowerCase().includes(filter.toLowerCase());
    shown += row.hidden ? 0 : 1;
    // Moved only where it has to: a row that is moved loses the focus.
    const next = before === null ? body.firstChild : before.nextSibling;
    if (next !== row) body.insertBefore(row, next);
    before = row;
  }
  document.getElementById("search").hidden = targets.length < 8 && filter === "";
  document.getElementById("shown").textContent = filter === "" ? "" : `${count(shown)} of ${count(targets.length)}`;
  document.getElementById("overtime").textContent = `p99, ${SPANS[span].last}`;
  document.getElementById("legend-of-all").textContent =
    `Numbers are those of the last ${SPANS[span].block} with round trips, verdicts those of the last hour at 95 %.`
    + " A line goes from the lowest p99 of a block to the highest. Red below: lost probes. Red ground: no answer. Hatched: not measured.";
}

/** The link of a target in its row. */
export const linkOf = (name) => rows.get(name)?.link;

/** Targets in sight whose line is older than their last minute. */
export function stale(targets, span) {
  return targets.filter((target) => {
    const known = rows.get(target.name);
    return known && inSight.has(target.name) && !known.row.hidden && known.drawn !== key(target, span);
  });
}

const key = (target, span) => `${span} ${target.minute?.begin_s ?? ""}`;

/** Draws the line of a target, and tells its last block; without a history the target was removed meanwhile. */
export function drawLine(target, span, history) {
  const known = rows.get(target.name);
  if (!known) return;
  known.drawn = key(target, span);
  if (history === null) return;
  const { cells } = known;
  cells.spark.replaceChildren(sparkline(history, known.number));
  const last = history.blocks.findLast((block) => block.quantiles !== null);
  cells.p50.textContent = last ? time(last.quantiles[0].ns) : "";
  cells.p99.textContent = last ? time(last.quantiles[1].ns) : "";
  cells.slowest.textContent = last?.worst ? time(last.worst.latency_ns) : "";
  const newest = history.blocks.at(-1);
  const sent = newest ? newest.answered + newest.unanswered : 0;
  cells.lost.textContent = sent ? percent(newest.unanswered / sent) : "";
  cells.lost.className = sent && newest.unanswered > 0 ? "lossy" : "";
}
