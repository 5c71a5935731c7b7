// Small charts in SVG and canvas; colours come from the style sheet, so that light and dark need nothing here.

const SVG = "http://www.w3.org/2000/svg";
export const COLOURS = ["#0e7c6b", "#2a62d4", "#c96a04", "#8b4fc4", "#c2386a", "#5b8c1a", "#1592ad", "#a8572c", "#6a74d8",
  "#b08d12", "#4c9f70", "#9a5b86", "#6b7f8c", "#d0604f"];

function shape(name, attributes, text) {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(1) + "G";
  if (size >= 1e6) return (value / 1e6).toFixed(1) + "M";
  if (size >= 1e4) return (value / 1e3).toFixed(0) + "k";
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toPrecision(2);
}

function ticks(top) {
  const step = Math.pow(10, Math.floor(Math.log10(top || 1)));
  const wide = [1, 2, 5, 10].map((k) => k * step / 5).find((s) => top / s <= 4) || step * 2;
  const found = [];
  for (let v = 0; v <= top * 1.0001; v += wide) found.push(v);
  return found;
}

// Lines over a common x; each series is {points: [[x, y], ...], kind: class of the line, fill: bool}.
export function lines(place, series, { percent = false, least = 0, level = null, label = short } = {}) {
  const width = Math.max(260, place.clientWidth), height = 190, left = 38, bottom = 20, top = 8;
  const all = series.flatMap((s) => s.points);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  if (all.length < 2) {
    svg.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "not enough yet"));
    place.replaceChildren(svg);
    return;
  }
  const xs = all.map((p) => p[0]), low = Math.min(...xs), high = Math.max(...xs, low + 1);
  const most = Math.max(least, ...all.map((p) => p[1]), level || 0) * 1.05 || 1;
  const x = (v) => left + (v - low) / (high - low) * (width - left - 4);
  const y = (v) => height - bottom - v / most * (height - bottom - top);
  for (const v of ticks(most)) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - 4, y1: y(v), y2: y(v) }));
    svg.append(shape("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, percent ? Math.round(v * 100) + "%" : short(v)));
  }
  svg.append(shape("text", { x: left, y: height - 4 }, label(low)));
  svg.append(shape("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, label(high)));
  if (level !== null) svg.append(shape("line", { class: "usual", x1: left, x2: width - 4, y1: y(level), y2: y(level) }));
  for (const s of series) {
    if (s.points.length < 2) continue;
    const path = s.points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    const last = s.points[s.points.length - 1][0], first = s.points[0][0];
    if (s.fill) svg.append(shape("path", { class: "area", d: `${path}L${x(last)} ${y(0)}L${x(first)} ${y(0)}Z` }));
    svg.append(shape("path", { class: s.kind, d: path }));
  }
  place.replaceChildren(svg);
}

// Shares that sum to one, stacked; rows has one array of shares per x.
export function stacked(place, xs, rows, marks = []) {
  const width = Math.max(260, place.clientWidth), height = 190, left = 38, bottom = 20, top = 8;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const high = Math.max(...xs, xs[0] + 1);
  const x = (v) => left + (v - xs[0]) / (high - xs[0]) * (width - left - 4);
  const y = (v) => height - bottom - v * (height - bottom - top);
  const below = rows.map(() => 0);
  rows[0].forEach((_, k) => {
    const lower = below.slice();
    rows.forEach((row, i) => { below[i] += row[k]; });
    const up = below.map((v, i) => `${x(xs[i]).toFixed(1)} ${y(Math.min(1, v)).toFixed(1)}`).join("L");
    const down = lower.map((v, i) => `${x(xs[i]).toFixed(1)} ${y(Math.min(1, v)).toFixed(1)}`).reverse().join("L");
    svg.append(shape("path", { d: `M${up}L${down}Z`, fill: COLOURS[k % COLOURS.length], "fill-opacity": .85 }));
  });
  for (const v of marks.filter((at) => at >= xs[0] && at <= high)) {
    svg.append(shape("line", { x1: x(v), x2: x(v), y1: y(0), y2: y(1), class: "drift" }));
  }
  for (const v of [0, 0.5, 1]) {
    svg.append(shape("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v * 100 + "%"));
  }
  svg.append(shape("text", { x: left, y: height - 4 }, short(xs[0])));
  svg.append(shape("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, short(high)));
  place.replaceChildren(svg);
}

// How often a feature was there, bin by bin, as one strip.
export function strip(canvas, shares, colour) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(13 * ratio));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = colour;
  const n = shares.length;
  for (let i = 0; i < n; i++) {
    if (!shares[i]) continue;
    const from = Math.floor(i * width / n), to = Math.floor((i + 1) * width / n);
    pen.globalAlpha = 0.15 + 0.85 * Math.min(1, shares[i]);
    pen.fillRect(from, 0, Math.max(1, to - from), height);
  }
  pen.globalAlpha = 1;
}
