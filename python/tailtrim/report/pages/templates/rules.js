"use strict";
// Lines across at values: solid where nothing differs, dashed with a label at a limit.
const rules = (() => {
  function draw(u, panel, ink) {
    const { ctx, bbox: { left, top, width, height: tall } } = u;
    const pixel = devicePixelRatio;
    const line = (...points) => {
      ctx.beginPath();
      points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.stroke();
    };
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, tall);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = pixel;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${11 * pixel}px system-ui, sans-serif`;
    for (const { at, label, until } of panel.rules) {
      const y = u.valToPos(at, "y", true);
      const end = until === null ? left + width : u.valToPos(until, "x", true);
      ctx.setLineDash(label ? [5 * pixel, 3 * pixel] : []);
      line([left, y], [end, y]);
      if (until !== null) line([end, y], [end, top + tall]);
      ctx.fillText(label, left + 5 * pixel, y - 4 * pixel);
    }
    panel.uprights.forEach(({ at, label }, i) => {
      const x = u.valToPos(at, "x", true);
      ctx.setLineDash([5 * pixel, 3 * pixel]);
      line([x, top], [x, top + tall]);
      const right = x + 5 * pixel + ctx.measureText(label).width > left + width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(label, x + (right ? -4 : 4) * pixel, top + (12 + 14 * i) * pixel);
    });
    ctx.restore();
  }

  return { draw };
})();
