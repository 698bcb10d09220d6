// Pictures: patches under a grid, shaded by how much a row looks at each, and every term as a shade of its own.

import { el, fill, number, percent, say, shownToken, svg } from "./dom.js";
import { colours } from "./colours.js";
import { argmax } from "./attention.js";
import { downloads, figureSvg } from "./download.js";

/** Longest side of the small pictures, in pixels. */
const SMALL = 192;
/** How much of the picture a full shade hides. */
const DENSEST = 0.82;
/** Patches, and steps that are none, that are named beside the picture. */
const MOST_NAMED = 5;

/** What a head shows of a picture: `view` is its HeadView. */
export class Picture {
  constructor(scene, view) {
    Object.assign(this, { scene, view, row: null, column: null, patch: null, drawsTerms: true });
    const { rows, columns, width, height } = scene;
    this.nPatches = rows * columns;
    this.size = { x: width / columns, y: height / rows };
    this.patches = Array.from({ length: this.nPatches }, (_, patch) => svg("rect", { class: "patch", "data-step": scene.n_special + patch,
      x: (patch % columns) * this.size.x, y: Math.floor(patch / columns) * this.size.y, width: this.size.x, height: this.size.y }));
    const line = (n, draw) => Array.from({ length: n - 1 }, (_, place) => draw(place + 1)).join("");
    const grid = line(columns, (column) => `M${column * this.size.x} 0V${height}`) + line(rows, (row) => `M0 ${row * this.size.y}H${width}`);
    this.mark = svg("rect", { class: "patch-mark", width: this.size.x, height: this.size.y, visibility: "hidden" });
    this.drawing = svg("svg", { class: "patches", viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "application", "aria-roledescription": "picture with patches", style: { "aspect-ratio": `${width} / ${height}` } },
      svg("image", { href: scene.png, width, height, preserveAspectRatio: "none" }), svg("g", {}, this.patches), svg("path", { class: "patch-grid", d: grid }), this.mark);
    this.drawing.addEventListener("pointermove", (event) => this.point(this.patchAt(event)));
    this.drawing.addEventListener("pointerleave", () => this.point(null));
    this.drawing.addEventListener("click", (event) => this.pin(this.patchAt(event)));
    this.drawing.addEventListener("keydown", (event) => this.key(event));
    this.drawing.addEventListener("blur", () => this.point(null));
    this.beside = el("div", { class: "picture-words", role: "status", "aria-live": "polite" });
    const file = () => `picture-${view.context.entry.name}-${view.site.kind}-l${view.site.layer}h${view.site.head}-${view.sample}`;
    this.element = el("div", { class: "picture", role: "group", "aria-label": "The picture" }, el("div", { class: "picture-box" }, this.drawing),
      el("div", { class: "picture-side" }, this.beside, downloads(file, { figure: () => this.overlay() })));
    this.greyed().then(() => this.shade(true), (error) => say(`the picture cannot be shown: ${error.message}`));
  }

  get hint() {
    return "Columns: patches of the picture as (row, column) from the top left, counted from 1. Point at a row, or a word, to see where it looks; at a patch, to find its column.";
  }

  /** What a step of the source is called. */
  name(step) {
    const { n_special: nSpecial, columns } = this.scene;
    if (step < nSpecial) return `special ${step + 1}`;
    return `(${Math.floor((step - nSpecial) / columns) + 1}, ${((step - nSpecial) % columns) + 1})`;
  }

  lines() {
    return Array.from({ length: this.scene.n_special + this.nPatches }, (_, place) => ({ group: [place], text: this.name(place) }));
  }

  /** Steps that are no patches. */
  specials() {
    return new Set(Array.from({ length: this.scene.n_special }, (_, place) => place));
  }

  options() {
    return [];
  }

  decorate(picture) {
    return { ...picture, isNarrow: true };
  }

  /** Which patch lies under the pointer. */
  patchAt(event) {
    const box = this.drawing.getBoundingClientRect();
    const { rows, columns } = this.scene;
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    return x >= 0 && y >= 0 && x < 1 && y < 1 ? Math.floor(y * rows) * columns + Math.floor(x * columns) : null;
  }

  /** The matrix's column of a patch; −1 where it is not shown. */
  columnOf(patch) {
    return this.view.lines.columns.findIndex(({ group }) => group[0] === patch + this.scene.n_special);
  }

  /** A patch looked at: its column stands out, and of the row kept its cell is told. */
  point(patch) {
    if (patch === this.patch) return;
    this.patch = patch;
    const { heatmap } = this.view;
    const column = patch === null ? -1 : this.columnOf(patch);
    if (column < 0) {
      heatmap.setColumn(null);
      heatmap.setHover(null);
    } else if (heatmap.pin) heatmap.setHover({ row: heatmap.pin.row, column });
    else heatmap.setColumn(column);
    this.outline();
    this.words();
  }

  /** Keeps a patch, in the row kept or in the one that looks at it most. */
  pin(patch) {
    const column = patch === null ? -1 : this.columnOf(patch);
    if (column < 0) return;
    const { heatmap } = this.view;
    heatmap.setPin({ row: heatmap.pin?.row ?? this.mostLooking(column), column });
  }

  mostLooking(column) {
    const { values, nRows, nColumns } = this.view.truthShown;
    return argmax(Float32Array.from({ length: nRows }, (_, row) => values[row * nColumns + column]), 0, nRows);
  }

  key(event) {
    const { rows, columns } = this.scene;
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
      const at = this.patch;
      this.point(at === null ? 0 : clamp(Math.floor(at / columns) + down, rows) * columns + clamp((at % columns) + right, columns));
    } else if (event.key === "Enter" || event.key === " ") this.pin(this.patch);
    else if (event.key === "Escape") {
      this.view.heatmap.setPin(null);
      this.point(null);
    } else return;
    event.preventDefault();
  }

  /** Looks through a line of the matrix; null for all of them. */
  tell(row, column) {
    this.row = row;
    this.column = column;
    this.shade();
  }

  /** What the matrix shows has changed. */
  refresh() {
    this.shade();
  }

  /** A line of a matrix by step of the source; of all lines their mean. */
  line({ values, nRows, nColumns }, row) {
    const out = new Float32Array(this.scene.n_special + this.nPatches);
    const [from, to] = row === null ? [0, nRows] : [row, row + 1];
    this.view.lines.columns.forEach(({ group: [step] }, place) => {
      for (let line = from; line < to; line += 1) out[step] += values[line * nColumns + place] / (to - from);
    });
    return out;
  }

  /** Shades patches and terms anew, unless they show it already. */
  shade(isForced = false) {
    const picture = this.row === null ? this.view.wholePicture() : this.view.heatmap.data;
    const key = [picture.matrix, this.row, this.view.mask, this.view.hasBias, this.view.threshold, colours()];
    const isSame = !isForced && this.shown && key.every((value, place) => value === this.shown[place]);
    this.shown = key;
    if (!isSame) {
      this.view.rebuiltLines?.need(this.row ?? 0, this.row === null ? this.view.lines.rows.length : this.row + 1);
      this.weights = this.line(picture.matrix, this.row);
      this.kind = picture.kind;
      this.shadePatches(this.kind === "weights" ? this.view.threshold : 0);
      if (this.view.buttons) this.drawTerms(this.view.buttons, this.view.pieces());
    }
    this.outline();
    this.words();
  }

  /** Frames the patch pointed at, else that of the cell told. */
  outline() {
    const marked = this.patch ?? (this.column === null ? null : this.view.lines.columns[this.column].group[0] - this.scene.n_special);
    const isPatch = marked !== null && marked >= 0;
    this.mark.setAttribute("visibility", isPatch ? "visible" : "hidden");
    if (!isPatch) return;
    this.mark.setAttribute("x", (marked % this.scene.columns) * this.size.x);
    this.mark.setAttribute("y", Math.floor(marked / this.scene.columns) * this.size.y);
  }

  /** Opacity is a patch's weight beside the largest of its row. */
  shadePatches(threshold) {
    const { n_special: nSpecial } = this.scene;
    const { signed, overlay } = colours();
    const ofPatches = this.weights.subarray(nSpecial);
    this.most = ofPatches.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
    this.patches.forEach((patch, place) => {
      const weight = ofPatches[place];
      const share = this.most > 0 && Math.abs(weight) >= threshold ? Math.abs(weight) / this.most : 0;
      patch.setAttribute("fill", this.kind === "signed" ? signed.css[weight < 0 ? 8 : 247] : overlay);
      patch.setAttribute("fill-opacity", (DENSEST * share).toFixed(3));
    });
  }

  words() {
    const { n_special: nSpecial } = this.scene;
    const isShare = this.kind === "weights" || this.view.heatmap.isShare();
    const said = (value) => (isShare ? percent(value, 1) : number(value, 3));
    const line = this.row === null ? null : this.view.lines.rows[this.row];
    const order = Array.from({ length: this.nPatches }, (_, patch) => patch + nSpecial).sort((a, b) => Math.abs(this.weights[b]) - Math.abs(this.weights[a])).slice(0, MOST_NAMED);
    const total = this.weights.subarray(nSpecial).reduce((sum, weight) => sum + weight, 0);
    const pointed = this.patch === null ? null : this.patch + nSpecial;
    const most = pointed === null ? -1 : this.columnOf(this.patch);
    const specials = this.view.lines.columns.map(({ group: [step] }) => step).filter((step) => step < nSpecial).slice(0, MOST_NAMED);
    const share = (step) => el("li", {}, el("span", {}, this.name(step)), el("span", { class: "amount" }, said(this.weights[step])));
    this.drawing.setAttribute("aria-label", `${line ? shownToken(line.text) : "All rows together"}: most at ${order.slice(0, 3).map((step) => `${this.name(step)} ${said(this.weights[step])}`).join(", ")}. Arrow keys move from patch to patch, Enter keeps one.`);
    fill(this.beside,
      el("p", {}, line ? [el("strong", {}, shownToken(line.text)), " looks at"] : [el("strong", {}, "all rows"), " look on average at"]),
      el("ol", { class: "shares-list" }, order.map(share)),
      isShare && this.kind === "weights" && el("p", { class: "muted small" }, `${percent(total, 1)} on patches; full shade is ${said(this.most)}`),
      specials.length > 0 && [el("p", { class: "small" }, "on steps that are no patches"), el("ul", { class: "shares-list", id: "special-steps" }, specials.map(share))],
      pointed !== null && el("p", { id: "patch-told" }, el("strong", {}, this.name(pointed)), ` ${said(this.weights[pointed])}`, most >= 0 && [", most of all by ", el("bdi", { class: "token" }, shownToken(this.view.lines.rows[this.mostLooking(most)].text))]));
  }

  /** The picture in grey and pale, small: what shades are seen on. */
  async greyed() {
    const image = new Image();
    image.src = this.scene.png;
    await image.decode();
    const scale = Math.min(1, SMALL / Math.max(this.scene.width, this.scene.height));
    const [width, height] = [Math.max(1, Math.round(this.scene.width * scale)), Math.max(1, Math.round(this.scene.height * scale))];
    const canvas = el("canvas", { width, height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    const pixels = context.getImageData(0, 0, width, height);
    for (let at = 0; at < pixels.data.length; at += 4) {
      const [r, g, b] = pixels.data.subarray(at, at + 3);
      const light = 0.299 * r + 0.587 * g + 0.114 * b;
      pixels.data.fill(colours().isDark ? 20 + 0.45 * light : 128 + 0.5 * light, at, at + 3);
    }
    context.putImageData(pixels, 0, 0);
    this.grey = canvas;
  }

  /** Every term of the row looked at, above or below its mean, all on one scale. */
  drawTerms(buttons, pieces) {
    if (!this.grey) return;
    const { n_special: nSpecial, rows, columns } = this.scene;
    const lines = pieces.map((matrix) => this.line(matrix, this.row).subarray(nSpecial));
    const most = lines.reduce((all, line) => line.reduce((sum, value) => Math.max(sum, Math.abs(value)), all), 1e-9);
    const { rgb } = colours().signed;
    this.scratch ??= el("canvas", { width: columns, height: rows });
    for (const { canvas, press, piece } of buttons) {
      const image = new ImageData(columns, rows);
      lines[piece].forEach((value, patch) => {
        image.data.set(rgb[value < 0 ? 8 : 247], 4 * patch);
        image.data[4 * patch + 3] = (255 * 0.92 * Math.abs(value)) / most;
      });
      this.scratch.getContext("2d").putImageData(image, 0, 0);
      press.classList.add("over");
      [canvas.width, canvas.height] = [this.grey.width, this.grey.height];
      const context = canvas.getContext("2d");
      context.drawImage(this.grey, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.scratch, 0, 0, canvas.width, canvas.height);
    }
  }

  /** The matrix has its usual figure; the picture one of its own. */
  figure() {
    return null;
  }

  /** Picture and shades as an SVG figure. */
  overlay() {
    const { width, height } = this.scene;
    const line = this.row === null ? null : this.view.lines.rows[this.row];
    const scale = Math.max(1, 480 / Math.max(width, height));
    const copy = this.drawing.cloneNode(true);
    copy.querySelector(".patch-mark").remove();
    for (const [name, value] of Object.entries({ x: 8, y: 24, width: width * scale, height: height * scale })) copy.setAttribute(name, value);
    for (const name of ["class", "style", "tabindex", "role", "aria-label", "aria-roledescription"]) copy.removeAttribute(name);
    const grid = copy.querySelector(".patch-grid");
    for (const [name, value] of Object.entries({ fill: "none", stroke: "#fff", "stroke-opacity": 0.45, "stroke-width": 1 / scale })) grid.setAttribute(name, value);
    const title = line ? `${shownToken(line.text)} · ${this.view.title}` : this.view.title;
    return figureSvg(width * scale + 16, height * scale + 32, title, new XMLSerializer().serializeToString(copy));
  }

  leave() {}
}
