"use strict";
// Bars in lanes: who had the CPU, from when to when, and what the readout says of them.
const lanes = (() => {
  // The share of its lane that a bar fills; as in the static figures.
  const BAR = .64;
  const SHORT = .4;
  const NS = { s: 1e9, ms: 1e6, "µs": 1e3 };
  // How near the pointer must be to what is read out, in CSS pixels.
  const NEAR = 4;

  function draw(u, panel, hidden, colour) {
    const tall = Math.abs(u.valToPos(0, "y", true) - u.valToPos(1, "y", true)) * BAR;
    marks.clipped(u, (ctx, bbox, pixel) => panel.bars.forEach(({ run, lane, start, long }) => {
      if (hidden.has(run)) return;
      const top = u.valToPos(lane, "y", true) - tall / 2;
      const [full, short] = [new Path2D(), new Path2D()];
      start.forEach((from, i) => {
        const left = u.valToPos(from, "x", true);
        const right = u.valToPos(from + long[i], "x", true);
        if (right < bbox.left || left > bbox.left + bbox.width) return;
        // What is shorter than a pixel is seen, too, but paler.
        const wide = Math.max(right - left, pixel);
        (wide > right - left ? short : full).rect(left, top, wide, tall);
      });
      ctx.fillStyle = colour(run);
      ctx.globalAlpha = SHORT;
      ctx.fill(short);
      ctx.globalAlpha = 1;
      ctx.fill(full);
    }));
  }

  function duration(ns) {
    const unit = Object.keys(NS).find((name) => ns >= NS[name]) ?? "ns";
    const digits = { minimumSignificantDigits: unit === "ns" ? 1 : 3, maximumSignificantDigits: 3 };
    return `${(ns / (NS[unit] ?? 1)).toLocaleString("en-US", digits)}\u00a0${unit}`;
  }

  // Who had the CPU at x: in each lane the bar there, or the nearest within reach.
  function text(u, panel, hidden, names, x) {
    const reach = NEAR * Math.abs(u.posToVal(1, "x") - u.posToVal(0, "x"));
    const shown = [];
    for (const { run, lane, start, long } of panel.bars) {
      if (hidden.has(run)) continue;
      let best = -1;
      let nearest = reach;
      start.forEach((from, i) => {
        const away = Math.max(from - x, x - from - long[i], 0);
        if (away < nearest || (away === 0 && (best < 0 || nearest > 0))) { nearest = away; best = i; }
      });
      if (best < 0) continue;
      const name = names[run];
      const label = panel.y.names[lane];
      // Where several share a look, the lane says who it is.
      const who = name.startsWith(label.replace("…", "")) ? name : label;
      shown.push(`${who} ${duration(long[best] * NS[panel.x.unit])}`);
    }
    return shown;
  }

  // Where lanes have points: what the lane under the pointer has, its bars from start to end.
  function values(u, panel, hidden, names) {
    const lane = Math.round(u.posToVal(u.cursor.top, "y"));
    const shown = [];
    for (const { run, lane: its, start, long } of panel.bars) {
      if (its !== lane || hidden.has(run)) continue;
      shown.push(`${names[run]} ${marks.number(start[0])} to ${marks.measure(marks.rounded(start[0] + long[0], .001), panel.x.unit)}`);
    }
    for (const { run, x, y } of panel.lines) {
      const place = hidden.has(run) ? -1 : y.indexOf(lane);
      if (place >= 0) shown.push(`${names[run]} ${marks.measure(x[place], panel.x.unit)}`);
    }
    return shown.length ? `${panel.y.names[lane]}: ${shown.join(" · ")}` : "";
  }

  // Room for the longest name beside a panel, in CSS pixels.
  const room = (panels) => Math.max(0, ...panels.flatMap(({ y }) => y.names.map((name) => 6.4 * name.length + 14)));

  return { draw, room, text, values };
})();
