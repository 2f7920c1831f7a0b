// Drawings of a target over time. A percentile is that of a whole block, so lines are steps: nothing is interpolated.

import { clock, day, draw, several, short, time } from "./words.js";

const LOOKS = ["first", "second", "third"];

/** Blocks that follow each other without a gap, as far as they have percentiles. */
function runs(history, of) {
  const found = [];
  for (const block of history.blocks) {
    if (of(block) === null) continue;
    const last = found.at(-1);
    if (last && last.at(-1).begin_s + history.block_s === block.begin_s) last.push(block);
    else found.push([block]);
  }
  return found;
}

const endOf = (history, block) => Math.min(block.begin_s + history.block_s, Math.max(history.until_s, block.begin_s + 60));

/** A line of steps. */
function steps(history, x, y, of) {
  return runs(history, of).map((blocks) => blocks.map((block, n) =>
    `${n ? "L" : "M"}${x(block.begin_s)} ${y(of(block))}H${x(endOf(history, block))}`).join("")).join("");
}

/** The area between two lines of steps. */
function area(history, x, low, high, of) {
  return runs(history, of).map((blocks) => {
    const there = blocks.map((block) => `${x(block.begin_s)} ${low(block)}H${x(endOf(history, block))}`);
    const back = blocks.toReversed().map((block) => `${x(endOf(history, block))} ${high(block)}H${x(block.begin_s)}`);
    return `M${[...there, ...back].join("L")}Z`;
  }).join("");
}

const quantile = (n) => (block) => block.quantiles?.[n] ?? null;
const worst = (block) => block.worst?.latency_ns ?? null;
const loss = ({ answered, unanswered }) => (unanswered > 0 ? unanswered / (answered + unanswered) : 0);

/** Lowest and highest of what is shown; more than a factor of two, so that noise looks like noise. */
function range(values) {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return null;
  const [low, high] = [Math.min(...positive), Math.max(...positive)];
  const wider = Math.max(1, Math.sqrt(2.5 / (high / low)));
  return [low / wider / 1.05, high * wider * 1.08];
}

const logarithmic = ([low, high], top, bottom) => {
  const scale = (bottom - top) / Math.log(high / low);
  return (value) => (bottom - scale * Math.log(Math.max(value, low) / low)).toFixed(1);
};

const linear = (begin, end, left, right) => (second) =>
  (left + ((right - left) * (second - begin)) / (end - begin)).toFixed(1);

/** Stretches without an answer, and such in which nothing was measured. */
function stretches(history, x, top, bottom, id) {
  const height = bottom - top;
  const hatch = draw("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("line", { class: "off", x1: 0, y1: 0, x2: 0, y2: 6 }));
  const box = (begin, end, y, tall, attributes) => draw("rect", {
    x: x(begin), y, width: Math.max(1.5, x(end) - x(begin)).toFixed(1), height: tall, ...attributes,
  });
  return [
    draw("defs", {}, hatch),
    ...history.gaps.map(([begin, end]) => box(begin, end, top, height, { fill: `url(#${id})` })),
    ...history.outages.flatMap(([begin, end]) => [
      box(begin, end, top, height, { class: "outage" }),
      box(begin, end, top, 3, { class: "outage-edge" }),
    ]),
  ];
}

/** The p99 of a target in a line of the table. */
export function sparkline(history, number) {
  const [width, height] = [240, 38];
  const x = linear(history.begin_s, history.end_s, 0, width);
  const p99 = quantile(1);
  const values = history.blocks.map((block) => p99(block)?.ns).filter((ns) => ns > 0);
  const limits = range(values);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  picture.append(...stretches(history, x, 0, height, `off-${number}`));
  if (limits) {
    const y = logarithmic(limits, 4, height - 7);
    picture.append(draw("path", { class: "line second", d: steps(history, x, y, (block) => p99(block)?.ns ?? null), "vector-effect": "non-scaling-stroke" }));
  }
  for (const block of history.blocks.filter((one) => loss(one) > 0)) {
    picture.append(draw("rect", {
      class: "lost", x: x(block.begin_s), y: height - 4, height: 4,
      width: Math.max(2, x(endOf(history, block)) - x(block.begin_s)).toFixed(1),
    }));
  }
  const told = values.length ? `p99 from ${time(Math.min(...values))} to ${time(Math.max(...values))}` : "no round trips";
  const outages = history.outages.length ? `, ${several(history.outages.length, "outage")}` : "";
  const lossy = history.blocks.filter((one) => loss(one) > 0).length;
  picture.setAttribute("aria-label", told + outages + (lossy ? `, losses in ${lossy} of ${history.blocks.length} blocks` : ""));
  return picture;
}

/** Times at which the axis has a word. */
function ticks(history, width) {
  const step = { 60: 600, 600: 10800, 3600: 86400 }[history.block_s];
  const every = step * (width < 620 && step < 86400 ? 2 : 1);
  const found = [];
  const at = new Date(history.begin_s * 1000);
  // From midnight on, of this time zone: its days may have 23 or 25 hours.
  at.setHours(0, 0, 0, 0);
  for (let n = 0; at.getTime() / 1000 <= history.end_s && n < 1000; n += 1) {
    if (at.getTime() / 1000 >= history.begin_s) found.push(at.getTime() / 1000);
    if (every === 86400) at.setDate(at.getDate() + 1);
    else at.setTime(at.getTime() + every * 1000);
  }
  return { found, told: every === 86400 ? day : clock };
}

function axes(history, x, y, limits, place) {
  const { left, right, top, bottom, foot, width } = place;
  const parts = [];
  const decades = Math.log10(limits[1] / limits[0]);
  const digits = decades > 2.6 ? [1] : decades > 0.9 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  for (let power = Math.floor(Math.log10(limits[0])); power <= Math.log10(limits[1]); power += 1) {
    for (const digit of digits) {
      const value = digit * 10 ** power;
      if (value < limits[0] || value > limits[1]) continue;
      parts.push(draw("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
      parts.push(draw("text", { x: left - 6, y: Number(y(value)) + 4, "text-anchor": "end" }, short(value)));
    }
  }
  const { found, told } = ticks(history, width);
  for (const second of found) {
    parts.push(draw("line", { class: "grid", x1: x(second), x2: x(second), y1: top, y2: foot }));
    const isLast = x(second) > right - 20;
    parts.push(draw("text", { x: x(second), y: foot + 16, "text-anchor": isLast ? "end" : "middle" }, told(second)));
  }
  parts.push(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  return parts;
}

/** Probes without an answer, as bars below. */
function losses(history, x, { left, right, bottom, foot }) {
  const most = Math.max(0.0001, ...history.blocks.map(loss));
  const from = bottom + 12;
  const bars = history.blocks.filter((block) => loss(block) > 0).map((block) => {
    const tall = Math.max(2, ((foot - from) * loss(block)) / most);
    const wide = Math.max(1.5, x(endOf(history, block)) - x(block.begin_s) - 0.5);
    return draw("rect", { class: "lost", x: x(block.begin_s), y: (foot - tall).toFixed(1), width: wide.toFixed(1), height: tall.toFixed(1) });
  });
  const label = bars.length ? [draw("text", { x: left - 6, y: from + 8, "text-anchor": "end" }, `${Number((100 * most).toPrecision(2))} %`)] : [];
  return [
    draw("text", { x: left - 6, y: foot, "text-anchor": "end" }, "lost"),
    ...label, ...bars,
    draw("line", { class: "axis", x1: left, x2: right, y1: foot, y2: foot }),
  ];
}

/** The dashed limits of objectives. */
function deadlines(target, y, limits, { left, right }) {
  const found = new Set(target.objectives.map((one) => one.deadline_ns).filter((ns) => ns !== null));
  return [...found].filter((ns) => ns > limits[0] && ns < limits[1]).flatMap((ns) => [
    draw("line", { class: "limit", x1: left, x2: right, y1: y(ns), y2: y(ns) }),
    draw("text", { class: "limit", x: left + 6, y: Number(y(ns)) - 5 }, `limit ${short(ns)}`),
  ]);
}

function values(history, hidden) {
  return history.blocks.flatMap((block) => [
    ...(block.quantiles ?? []).flatMap((one, n) => (hidden.has(n) ? [] : [one.ns, one.low_ns, one.high_ns])),
    hidden.has("slowest") ? null : worst(block),
  ]);
}

/** Percentiles over time with their bands, and losses below. Returns the drawing, and what finds a block at a place. */
export function chart(target, history, width, hidden) {
  const place = { left: 62, right: width - 8, top: 8, bottom: 290, foot: 344, width };
  const { left, right, top, bottom, foot } = place;
  const x = linear(history.begin_s, history.end_s, left, right);
  const shown = values(history, hidden).filter((value) => value > 0);
  const asked = target.objectives.map((one) => one.deadline_ns);
  const limits = range([...shown, ...asked.filter(() => shown.length > 0)]) ?? [1e5, 1e7];
  const y = logarithmic(limits, top + 4, bottom);
  const picture = draw("svg", { class: "chart", viewBox: `0 0 ${width} 366`, height: 366, tabindex: 0, role: "img", "aria-describedby": "readout" });
  picture.setAttribute("aria-label", `Percentiles of ${target.name} over time; arrow keys tell each block`);
  picture.append(...stretches(history, x, top, foot, "off"), ...axes(history, x, y, limits, place));
  const visible = LOOKS.map((look, n) => [look, quantile(n), n]).filter(([, , n]) => !hidden.has(n));
  for (const [look, of] of visible) {
    const low = (block) => y(of(block).low_ns);
    const high = (block) => y(of(block).high_ns ?? of(block).ns);
    const has = (block) => of(block)?.low_ns ?? null;
    picture.append(draw("path", { class: `band ${look}`, d: area(history, x, low, high, has) }));
  }
  for (const [look, of] of visible) {
    const ns = (isBounded) => (block) => (of(block) && (of(block).high_ns !== null) === isBounded ? of(block).ns : null);
    picture.append(
      draw("path", { class: `line open ${look}`, d: steps(history, x, y, ns(false)) }),
      draw("path", { class: `line ${look}`, d: steps(history, x, y, ns(true)) }),
    );
  }
  for (const block of hidden.has("slowest") ? [] : history.blocks.filter((one) => worst(one) !== null)) {
    const middle = (block.begin_s + endOf(history, block)) / 2;
    picture.append(draw("circle", { class: "dot slowest", cx: x(middle), cy: y(worst(block)), r: 2.2 }));
  }
  picture.append(...deadlines(target, y, limits, place), ...losses(history, x, place));
  const cursor = draw("line", { class: "cursor", x1: -9, x2: -9, y1: top, y2: foot });
  picture.append(cursor);
  const blockAt = (pixels) => {
    const second = history.begin_s + ((pixels - left) / (right - left)) * (history.end_s - history.begin_s);
    return Math.floor((second - history.begin_s) / history.block_s);
  };
  const point = (second) => {
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, second === null ? -9 : x(second + history.block_s / 2));
  };
  return { picture, blockAt, point };
}

/** A piece of a line or band, for the legend. */
export function swatch(look) {
  const picture = draw("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" });
  if (look === "slowest") picture.append(draw("circle", { class: "dot slowest", cx: 15, cy: 6, r: 3 }));
  else picture.append(draw("rect", { class: `band ${look}`, width: 30, height: 12 }), draw("path", { class: `line ${look}`, d: "M0 6H30" }));
  return picture;
}
