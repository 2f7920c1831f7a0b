"use strict";
// Confidence intervals: bands along a line, bars at single points, and what the readout says of them.
const intervals = (() => {
  const { SHAPES, measure, number } = marks;
  // How far a band without a bound goes on, as a share of the axis; as in the static figures.
  const FADE = .12;
  const STEPS = 12;
  // Bands of more lines hide each other; as in the static figures.
  const MOST = 4;

  // Cells lie side by side, on whole pixels. A side without a bound is where the line is.
  function cells(u, band) {
    const x = (value) => Math.round(u.valToPos(value, "x", true));
    const y = (value) => Math.round(u.valToPos(value, "y", true));
    return band.low.map((low, i) => ({
      left: x(band.x[i]),
      right: x(band.x[i + 1]),
      foot: y(low ?? band.value[i]),
      head: y(band.high[i] ?? band.value[i + 1]),
      low: low !== null,
      high: band.high[i] !== null,
    }));
  }

  // Fills the cells chosen from `top` to `bottom`; adjacent ones are one shape, or a seam shows.
  function fill(ctx, all, chosen, top, bottom) {
    const shape = new Path2D();
    for (let i = 0; i < all.length; i++) {
      if (!chosen(all[i])) continue;
      const first = i;
      while (i + 1 < all.length && chosen(all[i + 1])) i++;
      const row = all.slice(first, i + 1);
      shape.moveTo(row[0].left, top(row[0]));
      for (const cell of row) { shape.lineTo(cell.left, top(cell)); shape.lineTo(cell.right, top(cell)); }
      for (const cell of row.reverse()) { shape.lineTo(cell.right, bottom(cell)); shape.lineTo(cell.left, bottom(cell)); }
      shape.closePath();
    }
    ctx.fill(shape);
  }

  // Slab by slab, as no gradient with transparency survives all printers.
  function shade(ctx, all, tall, alpha) {
    ctx.globalAlpha = alpha;
    fill(ctx, all, ({ low, high }) => low || high, ({ head }) => head, ({ foot }) => foot);
    for (let step = 0; step < STEPS; step++) {
      const [near, far] = [step, step + 1].map((n) => Math.round(FADE * tall * n / STEPS));
      ctx.globalAlpha = alpha * (1 - (step + .5) / STEPS);
      fill(ctx, all, ({ low, high }) => low && !high, ({ head }) => head - far, ({ head }) => head - near);
      fill(ctx, all, ({ low, high }) => high && !low, ({ foot }) => foot + near, ({ foot }) => foot + far);
    }
  }

  // Bounds are drawn as lines, so that where there is none the band is open to the eye, too.
  function outline(ctx, all, side) {
    const end = side === "low" ? "foot" : "head";
    ctx.beginPath();
    let before;
    for (const cell of all) {
      if (cell[side]) {
        if (!before) ctx.moveTo(cell.left, cell[end]);
        else ctx.lineTo(cell.left, cell[end]);
        ctx.lineTo(cell.right, cell[end]);
      }
      before = cell[side] ? cell : undefined;
    }
    ctx.stroke();
  }

  function bands(u, panel, hidden, colour, alpha) {
    const shown = panel.filter(({ run }) => !hidden.has(run));
    if (shown.length > MOST) return;
    marks.clipped(u, (ctx, { height }, pixel) => shown.forEach((band) => {
      const all = cells(u, band);
      ctx.fillStyle = ctx.strokeStyle = colour(band.run);
      shade(ctx, all, height, alpha);
      ctx.globalAlpha = .6;
      ctx.lineWidth = .75 * pixel;
      outline(ctx, all, "low");
      outline(ctx, all, "high");
    }));
  }

  // A whisker to each bound, and an arrow where there is no upper one.
  function bar(ctx, x, foot, head, { low, high }) {
    const cap = 3.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, foot);
    ctx.lineTo(x, head);
    if (low !== null) { ctx.moveTo(x - cap, foot); ctx.lineTo(x + cap, foot); }
    if (high === null) { ctx.moveTo(x - cap, head + 1.6 * cap); ctx.lineTo(x, head); ctx.lineTo(x + cap, head + 1.6 * cap); }
    else { ctx.moveTo(x - cap, head); ctx.lineTo(x + cap, head); }
    ctx.stroke();
  }

  function bars(u, panel, hidden, look, paper) {
    const shown = panel.filter(({ run }) => !hidden.has(run));
    marks.clipped(u, (ctx, { top, height }, pixel) => shown.forEach((interval) => {
      const { colour, marker } = look(interval.run);
      const x = u.valToPos(interval.x, "x", true);
      const y = u.valToPos(interval.value, "y", true);
      ctx.lineWidth = 1.3 * pixel;
      ctx.strokeStyle = colour;
      if (interval.bars) {
        const foot = interval.low === null ? top + height : u.valToPos(interval.low, "y", true);
        const head = interval.high === null ? y - 20 * pixel : u.valToPos(interval.high, "y", true);
        bar(ctx, x, foot, head, interval);
      }
      const path = new Path2D();
      SHAPES[marker](path, x, y, 3.6 * pixel);
      ctx.fillStyle = interval.high === null ? paper : colour;
      ctx.fill(path);
      ctx.stroke(path);
    }), 6);
  }

  // The interval at x in words, in brackets.
  function text(band, x, unit) {
    if (!band) return "";
    const cell = band.x.findLastIndex((edge) => edge <= x);
    const low = band.low[cell] ?? null;
    const high = band.high[cell] ?? null;
    if (low === null && high === null) return "";
    if (high === null) return ` (at least ${measure(low, unit)})`;
    if (low === null) return ` (at most ${measure(high, unit)})`;
    return ` (${number(low)} to ${measure(high, unit)})`;
  }

  return { bands, bars, text };
})();
