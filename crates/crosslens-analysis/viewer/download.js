// Takes figures and data out of the page: SVG and PNG, JSON and CSV.

import { el, lineName, say } from "./dom.js";
import { colours } from "./colours.js";
import { drawPixels, painter, rampEnds } from "./heatmap.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
/** Room for a title above what is in a figure, and between panels. */
const TITLE = 22;
const GAP = 14;
/** Cells up to which each is a shape of its own, to be taken up by a drawing program; more are one picture. */
const MOST_SHAPES = 40_000;

/** Hands a file to the user. */
function save(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say(`${name} was handed to the browser's downloads`);
}

/** Text as it may stand in a figure. */
export function xml(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.codePointAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
}

/** A canvas as a part of a figure, every pixel a rectangle of one colour. */
export function pixelsSvg(canvas, x, y, width, height) {
  return `<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" image-rendering="pixelated" href="${canvas.toDataURL()}"/>`;
}

/** The cells of a matrix. */
function cellsSvg(matrix, paint, left, top, cell) {
  if (matrix.nRows * matrix.nColumns > MOST_SHAPES) {
    const canvas = el("canvas", {});
    drawPixels(canvas, matrix, paint);
    return [pixelsSvg(canvas, left, top, cell * matrix.nColumns, cell * matrix.nRows)];
  }
  const parts = [];
  for (let row = 0; row < matrix.nRows; row += 1) {
    for (let column = 0; column < matrix.nColumns; column += 1) {
      const colour = paint.ramp.css[paint.place(matrix.values[row * matrix.nColumns + column])];
      parts.push(`<rect x="${(left + column * cell).toFixed(2)}" y="${(top + row * cell).toFixed(2)}" width="${cell.toFixed(2)}" height="${cell.toFixed(2)}" fill="${colour}"/>`);
    }
  }
  return parts;
}

/** A matrix as a panel of a figure: tokens on both axes unless it `isBare`, and below it what its colours mean. */
export function matrixPanel({ matrix, rows, columns, kind, isShare, largest, threshold, caption, title }, isBare = false) {
  const cell = Math.max(3, Math.min(18, (isBare ? 160 : 900) / matrix.nColumns));
  const length = (list) => (isBare ? 4 : Math.min(220, 16 + 7 * list.reduce((most, line) => Math.max(most, [...lineName(line).replace(/[\u2068\u2069]/g, "")].length), 0)));
  const [left, top] = [length(rows), length(columns) + TITLE];
  const [width, height] = [left + cell * matrix.nColumns + 8, top + cell * matrix.nRows + 8];
  const parts = cellsSvg(matrix, painter(kind, largest, threshold), left, top, cell);
  if (isBare) return { title, width: Math.max(width, 8 + 7 * title.length), height, inside: parts.join("") };
  const every = Math.max(1, Math.ceil(11 / cell));
  rows.forEach((line, row) => {
    if (row % every === 0) parts.push(`<text x="${left - 6}" y="${(top + (row + 0.5) * cell).toFixed(2)}" text-anchor="end" dominant-baseline="central">${xml(lineName(line))}</text>`);
  });
  columns.forEach((line, column) => {
    const x = (left + (column + 0.5) * cell).toFixed(2);
    if (column % every === 0) parts.push(`<text x="${x}" y="${top - 6}" transform="rotate(-90 ${x} ${top - 6})" dominant-baseline="central">${xml(lineName(line))}</text>`);
  });
  const legend = rampPanel({ kind, isShare, largest, caption });
  parts.push(moved(0, height, legend.inside));
  return { title, width: Math.max(width, legend.width), height: height + legend.height, inside: parts.join("") };
}

/** A matrix as an SVG figure. */
export function matrixSvg(picture) {
  const { width, height, title, inside } = matrixPanel(picture);
  return figureSvg(width, height, title, inside);
}

/** A bar of the colours of a ramp, with what they mean. */
export function rampPanel({ kind, isShare, largest, caption = "" }) {
  const { weights, signed } = colours();
  const css = kind === "signed" ? signed.css : weights.css;
  const [least, most] = rampEnds({ kind, isShare, largest });
  const [n, width, left] = [32, 120, 8 + 7 * least.length];
  const steps = Array.from({ length: n }, (_, place) => css[Math.round((place * (css.length - 1)) / (n - 1))]);
  const bar = steps.map((colour, place) => `<path d="M${left + (place * width) / n} 4h${width / n + 0.2}v10h-${width / n + 0.2}z" fill="${colour}"/>`).join("");
  const after = `${most}  ${caption}`;
  return { title: "", width: left + width + 8 + 7 * after.length, height: 22, inside: `<text x="4" y="13">${xml(least)}</text>${bar}<text x="${left + width + 6}" y="13">${xml(after)}</text>` };
}

/** Which colour is which: `items` is a list of `[colour, text, mark]`; a mark is an SVG element of 24 × 12 in the place of a square. */
export function legendPanel(items) {
  let x = 4;
  const parts = items.map(([colour, text, mark]) => {
    const sign = mark ? moved(x, 4, new XMLSerializer().serializeToString(mark)) : `<path d="M${x} 5h10v10h-10z" fill="${colour}"/>`;
    const after = x + (mark ? 28 : 14);
    x = after + 12 + 7 * text.length;
    return `${sign}<text x="${after}" y="14">${xml(text)}</text>`;
  });
  return { title: "", width: x, height: 22, inside: parts.join("") };
}

/** An SVG element of the page as a panel, with its legend, a list of `[colour, text, mark]`, below it. */
export function elementPanel(element, title, items) {
  const { width, height } = element.viewBox.baseVal;
  const legend = legendPanel(items);
  return { title, width: Math.max(width, legend.width), height: TITLE + height + legend.height, inside: moved(0, TITLE, elementSvg(element)) + moved(0, TITLE + height, legend.inside) };
}

/** Panels in rows of `nColumns`, each under its title, as one figure. */
export function panelsSvg(title, panels, nColumns = 1) {
  const parts = [];
  let [y, widest] = [TITLE, 0];
  for (let first = 0; first < panels.length; first += nColumns) {
    const row = panels.slice(first, first + nColumns);
    let x = 0;
    for (const panel of row) {
      parts.push(moved(x, y, titled(panel.title) + panel.inside));
      x += panel.width + GAP;
    }
    y += Math.max(...row.map(({ height }) => height)) + GAP;
    widest = Math.max(widest, x);
  }
  return figureSvg(Math.max(widest, 8 + 8 * title.length), y, title, parts.join(""));
}

function moved(x, y, inside) {
  return `<g transform="translate(${x.toFixed(2)} ${y.toFixed(2)})">${inside}</g>`;
}

function titled(title) {
  return title ? `<text x="4" y="14" font-size="12">${xml(title)}</text>` : "";
}

/** A figure of its own, with its title above what is in it. */
export function figureSvg(width, height, title, inside) {
  const scheme = colours();
  return `<svg xmlns="${NAMESPACE}" width="${Math.ceil(width)}" height="${Math.ceil(height)}" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" font-family="system-ui, sans-serif" font-size="11" fill="${scheme.ink}">`
    + `<title>${xml(title)}</title><rect width="100%" height="100%" fill="${scheme.paper}"/>${titled(title)}${inside}</svg>`;
}

/** An SVG element of the page as a file of its own: on its paper, with the colours that style sheets gave written into it. */
export function elementSvg(element) {
  const copy = element.cloneNode(true);
  const box = element.viewBox.baseVal;
  copy.setAttribute("xmlns", NAMESPACE);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const originals = element.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, place) => {
    const style = getComputedStyle(originals[place]);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "text-anchor", "font-weight"]) {
      node.setAttribute(name, style.getPropertyValue(name));
    }
    node.removeAttribute("class");
  });
  const paper = document.createElementNS(NAMESPACE, "rect");
  for (const [name, value] of Object.entries({ x: box.x, y: box.y, width: box.width, height: box.height, fill: colours().paper })) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

/** An SVG text as PNG, at twice its size. */
async function png(svgText) {
  const url = URL.createObjectURL(new Blob([svgText], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = el("canvas", { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A table as CSV: fields with commas, quotes or line breaks are quoted; none begins like a formula. */
export function csv(rows) {
  const field = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return `${rows.map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
}

/** A matrix as rows of a table, its axes first. */
export function matrixRows({ matrix, rows, columns }) {
  const name = (line) => (line.before === undefined ? line.text : `${line.before} → ${line.text}`);
  return [["", ...columns.map(name)], ...rows.map((line, row) => [name(line), ...matrix.values.subarray(row * matrix.nColumns, (row + 1) * matrix.nColumns)])];
}

/** Buttons for a figure and its data. `figure()` gives SVG text; `data()` an object, `rows()` a table. Of several groups each has its `label`. */
export function downloads(name, { figure, data, rows }, label = "Downloads") {
  const file = (extension) => `${name().replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80)}.${extension}`;
  const button = (text, title, act) => el("button", { type: "button", class: "quiet", title, onclick: () => Promise.resolve(act()).catch((error) => say(`the download failed: ${error.message}`)) }, text);
  const list = [];
  if (figure) {
    list.push(button("SVG", "this figure as SVG", () => save(file("svg"), new Blob([figure()], { type: "image/svg+xml" }))));
    list.push(button("PNG", "this figure as PNG", async () => save(file("png"), await png(figure()))));
  }
  if (data) list.push(button("JSON", "these data as JSON", () => save(file("json"), new Blob([JSON.stringify(data(), numbers, 1)], { type: "application/json" }))));
  if (rows) list.push(button("CSV", "these data as CSV", () => save(file("csv"), new Blob([csv(rows())], { type: "text/csv" }))));
  return el("div", { class: "downloads", role: "group", "aria-label": label }, el("span", { "aria-hidden": "true" }, "↓"), list);
}

function numbers(_, value) {
  return ArrayBuffer.isView(value) ? Array.from(value) : value;
}
