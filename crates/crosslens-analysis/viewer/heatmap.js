// A matrix with tokens on both axes, on a canvas that is as large as what is seen of it and draws no more than that.

import { el, letter, lineName, shownToken, unbroken } from "./dom.js";
import { colours, isLight, signedPlace, weightPlace } from "./colours.js";

const FAMILY = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'Noto Sans Arabic', sans-serif";
const SMALL_FONT = 9.5;
const SMALLEST_CELL = 3;
/** Columns of a source that is no text, which are many, may be as narrow; their rows are as high as a label. */
const SMALLEST_STEP = 1;
/** Cells from this size on show their number. */
const CELL_WITH_NUMBER = 30;
/** Cells from this size on are set apart by a line. */
const CELL_WITH_LINE = 9;
/** A matrix that has not been scrolled for so long stands still. */
const PAUSE_MS = 150;

/** A colour for every number of a matrix: weights from 0 to 1, signed numbers around 0; and which are too small to be shown. */
export function painter(kind, largest, threshold = 0) {
  const { weights, signed } = colours();
  if (kind === "signed") {
    const hides = (value) => Math.abs(value) < threshold * largest;
    return { place: (value) => (hides(value) ? signedPlace(0, 1) : signedPlace(value, largest)), ramp: signed, hides };
  }
  const scale = largest > 0 ? 1 / largest : 1;
  const hides = (value) => value < threshold;
  return { place: (value) => (hides(value) ? 0 : weightPlace(value * scale)), ramp: weights, hides };
}

/** The number in a cell of a matrix. */
export function valueAt({ values, nColumns }, { row, column }) {
  return values[row * nColumns + column];
}

/** What the numbers at the ends of a ramp are: `[least, most]`. */
export function rampEnds({ kind, isShare, largest }) {
  const most = isShare || kind === "weights" ? unbroken(`${Number((100 * largest).toPrecision(2))} %`) : largest.toPrecision(2);
  return [kind === "signed" ? `−${most}` : isShare || kind === "weights" ? unbroken("0 %") : "0", most];
}

export class Heatmap {
  /**
   * `told(cell, isPinned)` hears of the cell under the pointer or cursor, null for none; `speak(cell)` gives its words; `zoomed(zoom)` hears
   * of that. The matrix is first scrolled to the cell `at`; `scrolled(cell)` hears which is the first in sight once it stands still.
   */
  constructor({ label, told, speak, zoom = 1, zoomed = () => {}, at = null, scrolled = () => {}, most = 0.66 }) {
    Object.assign(this, { told, speak, zoomed, at, scrolled, most });
    this.canvas = el("canvas", {});
    this.spacer = el("div", { class: "heat-spacer" }, this.canvas);
    this.scroller = el("div", { class: "heat-scroll" }, this.spacer);
    this.announced = el("p", { class: "hidden", role: "status", "aria-live": "polite" });
    this.legend = el("div", { class: "heat-legend" });
    this.element = el("div", { class: "heatmap" },
      this.scroller, this.announced, this.legend);
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "application");
    this.scroller.setAttribute("aria-roledescription", "matrix");
    this.scroller.setAttribute("aria-label", label);
    this.hover = this.pin = null;
    this.column = null;
    this.zoom = within(zoom);
    this.data = null;
    this.scratch = document.createElement("canvas");
    this.scroller.addEventListener("scroll", () => this.scroll());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.setHover(null));
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.scroller.addEventListener("blur", () => this.setHover(null));
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.element);
  }

  /** Frees what listens. */
  destroy() {
    this.observer.disconnect();
    clearTimeout(this.standing);
  }

  scroll() {
    this.request();
    clearTimeout(this.standing);
    const place = () => ({ row: Math.round(this.scroller.scrollTop / this.cell.y), column: Math.round(this.scroller.scrollLeft / this.cell.x) });
    this.standing = setTimeout(() => this.scrolled(place()), PAUSE_MS);
  }

  /**
   * Shows `{ matrix, rows, columns, kind, largest, threshold, caption, need }`; rows and columns are `{ text, before, title }`, and
   * `need(from, to)`, where there is one, sees to it that these rows of the matrix are there before they are read. Columns without
   * tokens, `isNarrow`, fill the room there is; of all columns the first `nShown` are shown. A `band` of some `height` may stand in place of
   * the columns' labels, `band.draw(context, geometry)`, anew whenever `band.key()` changes; `over(context, geometry)` draws on the cells.
   */
  show(data) {
    const isSameShape = this.data && this.data.rows === data.rows && this.data.columns === data.columns && this.data.nShown === data.nShown;
    this.data = data;
    const { nRows, nColumns } = data.matrix;
    this.column = null;
    if (this.pin && (this.pin.row >= nRows || this.pin.column >= nColumns)) this.pin = null;
    if (!isSameShape) {
      this.hover = null;
      this.measured = null;
      this.layout();
    } else this.request();
    this.drawLegend();
  }

  setZoom(zoom) {
    this.zoom = within(zoom);
    this.layout();
    this.zoomed(this.zoom);
  }

  measure(context) {
    context.font = fontOf(0.84 * letter());
    const width = (list) => list.reduce((most, line) => Math.max(most, context.measureText(lineName(line)).width), 0);
    return { rows: width(this.data.rows), columns: this.data.band ? 0 : width(this.data.columns) };
  }

  /** Columns that are shown. */
  nColumns() {
    return Math.min(this.data.nShown ?? Infinity, this.data.matrix.nColumns);
  }

  /** Sizes of a cell in the room there is. */
  cells(room, high) {
    const [nRows, nColumns] = [Math.max(1, this.data.matrix.nRows), Math.max(1, this.nColumns())];
    const [fits, fitsHigh] = [(room - this.left - 2) / nColumns, (high - this.top) / nRows];
    if (this.data.isNarrow) {
      return { x: Math.max(SMALLEST_STEP, Math.min(fits, 3 * letter())) * this.zoom, y: Math.floor(Math.min(1.7 * letter(), Math.max(letter(), fitsHigh))) };
    }
    const fit = Math.min(fits, Math.max(fitsHigh, Math.min(fits, 16)), 3 * letter());
    const size = Math.max(SMALLEST_CELL, fit >= 8 ? Math.floor(fit) : fit) * this.zoom;
    return { x: size, y: size };
  }

  /** Sizes of labels, cells and canvas, from the room there is. */
  layout() {
    if (!this.data || !this.element.isConnected) return;
    const context = this.canvas.getContext("2d");
    this.measured ??= this.measure(context);
    const room = this.element.clientWidth;
    if (room < 20) return;
    const { nRows } = this.data.matrix;
    this.left = Math.ceil(Math.min(this.measured.rows + 14, Math.max(64, room * 0.34)));
    this.top = this.data.band?.height ?? Math.ceil(Math.min(this.measured.columns + 14, 9 * letter()));
    const high = Math.max(220, innerHeight * this.most);
    this.cell = this.cells(room, high);
    this.font = Math.min(0.84 * letter(), Math.max(SMALL_FONT, this.cell.y));
    const [width, height] = [this.left + this.nColumns() * this.cell.x + 1, this.top + nRows * this.cell.y + 1];
    this.isWide = width > room + 1;
    this.seenWidth = Math.min(room, Math.ceil(width));
    this.seenHeight = Math.min(high, Math.ceil(height));
    this.scroller.style.width = `${this.seenWidth}px`;
    this.scroller.style.height = `${this.seenHeight}px`;
    this.scroller.dataset.cell = this.cell.x;
    Object.assign(this.scroller.dataset, { left: this.left, top: this.top, high: this.cell.y });
    this.spacer.style.width = `${width}px`;
    this.spacer.style.height = `${height}px`;
    if (this.at) Object.assign(this.scroller, { scrollLeft: this.at.column * this.cell.x, scrollTop: this.at.row * this.cell.y });
    this.at = null;
    const scale = devicePixelRatio || 1;
    const [canvasWidth, canvasHeight] = [Math.round(this.seenWidth * scale), Math.round(this.seenHeight * scale)];
    if (this.canvas.width !== canvasWidth || this.canvas.height !== canvasHeight) {
      this.labelled = null;
      this.canvas.width = canvasWidth;
      this.canvas.height = canvasHeight;
      this.canvas.style.width = `${this.seenWidth}px`;
      this.canvas.style.height = `${this.seenHeight}px`;
    }
    this.draw();
  }

  /** Rows in sight, as far as that is known: `first` to before `last`. */
  seenRows() {
    if (!this.cell) return { first: 0, last: 0 };
    const y0 = this.scroller.scrollTop;
    return { first: Math.max(0, Math.floor(y0 / this.cell.y)), last: Math.ceil((y0 + this.seenHeight - this.top) / this.cell.y) };
  }

  request() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.data || !this.cell) return;
    const { matrix, rows, columns, kind, largest, threshold } = this.data;
    const scheme = colours();
    const paint = painter(kind, largest, threshold);
    const { place, ramp } = paint;
    const context = this.canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    const { left, top, cell } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = scheme.paper;
    context.fillRect(left, top, this.seenWidth - left, this.seenHeight - top);
    // Only rows and columns in sight.
    const [x0, y0] = [this.scroller.scrollLeft, this.scroller.scrollTop];
    const seen = this.seenRows();
    const first = { column: Math.max(0, Math.floor(x0 / cell.x)), row: seen.first };
    const last = { column: Math.min(this.nColumns(), Math.ceil((x0 + this.seenWidth - left) / cell.x)), row: Math.min(matrix.nRows, seen.last) };
    const [nColumns, nRows] = [last.column - first.column, last.row - first.row];
    this.drawn = { nRows, nColumns };
    if (nColumns < 1 || nRows < 1) return;
    this.data.need?.(first.row, last.row);
    const image = new ImageData(nColumns, nRows);
    const out = new Uint32Array(image.data.buffer);
    for (let row = 0; row < nRows; row += 1) {
      const from = (first.row + row) * matrix.nColumns + first.column;
      for (let column = 0; column < nColumns; column += 1) out[row * nColumns + column] = ramp.pixels[place(matrix.values[from + column])];
    }
    this.scratch.width = nColumns;
    this.scratch.height = nRows;
    this.scratch.getContext("2d").putImageData(image, 0, 0);
    const [x, y] = [left + first.column * cell.x - x0, top + first.row * cell.y - y0];
    context.save();
    context.beginPath();
    context.rect(left, top, this.seenWidth - left, this.seenHeight - top);
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(this.scratch, x, y, nColumns * cell.x, nRows * cell.y);
    const smaller = Math.min(cell.x, cell.y);
    if (smaller >= CELL_WITH_LINE) this.drawLines(context, scheme, x, y, nColumns, nRows);
    if (smaller >= CELL_WITH_NUMBER) this.drawNumbers(context, paint, first, last, x0, y0);
    const geometry = { left, top, cell, x0, y0, first, last, width: this.seenWidth, height: this.seenHeight };
    this.data.over?.(context, geometry);
    this.drawFocus(context, scheme, x0, y0);
    context.restore();
    this.drawLabels(context, scheme, rows, columns, geometry);
  }

  /** Whether labels are as they were drawn last; text is what costs most. */
  hasLabels(scheme, rows, columns, focus, x0, y0) {
    const now = [scheme, rows, columns, focus?.row, focus?.column, this.column, this.data.band?.key(), x0, y0, this.cell, this.seenWidth, this.seenHeight, this.canvas.width];
    const isSame = this.labelled?.every((value, place) => value === now[place]) ?? false;
    this.labelled = now;
    return isSame;
  }

  drawLines(context, scheme, x, y, nColumns, nRows) {
    context.strokeStyle = scheme.paper;
    context.lineWidth = 1;
    context.beginPath();
    for (let column = 0; column <= nColumns; column += 1) {
      context.moveTo(x + column * this.cell.x, y);
      context.lineTo(x + column * this.cell.x, y + nRows * this.cell.y);
    }
    for (let row = 0; row <= nRows; row += 1) {
      context.moveTo(x, y + row * this.cell.y);
      context.lineTo(x + nColumns * this.cell.x, y + row * this.cell.y);
    }
    context.stroke();
  }

  drawNumbers(context, { place, ramp, hides }, first, last, x0, y0) {
    const { matrix, kind } = this.data;
    const isShare = this.isShare();
    context.font = fontOf(Math.max(11, 0.28 * this.cell.x));
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = first.row; row < last.row; row += 1) {
      for (let column = first.column; column < last.column; column += 1) {
        const value = matrix.values[row * matrix.nColumns + column];
        if (hides(value) || (isShare ? Math.abs(value) < 0.005 : kind === "amount" && value < 0.05)) continue;
        context.fillStyle = isLight(ramp.rgb[place(value)]) ? "rgba(0,0,0,.72)" : "rgba(255,255,255,.92)";
        const text = (isShare ? String(Math.round(100 * value)) : value.toFixed(1)).replace("-", "−");
        context.fillText(text, this.left + (column + 0.5) * this.cell.x - x0, this.top + (row + 0.5) * this.cell.y - y0);
      }
    }
  }

  /** Row and column of the cell looked at stand out; the rest steps back. */
  drawFocus(context, scheme, x0, y0) {
    const cell = this.hover ?? this.pin;
    if (!cell) {
      if (this.column !== null) this.drawColumn(context, scheme, x0);
      return;
    }
    const [x, y] = [this.left + cell.column * this.cell.x - x0, this.top + cell.row * this.cell.y - y0];
    const [right, bottom] = [x + this.cell.x, y + this.cell.y];
    context.fillStyle = scheme.paper;
    context.globalAlpha = 0.66;
    for (const [fromX, toX] of [[this.left, x], [right, this.seenWidth]]) {
      for (const [fromY, toY] of [[this.top, y], [bottom, this.seenHeight]]) context.fillRect(fromX, fromY, toX - fromX, toY - fromY);
    }
    context.globalAlpha = 1;
    context.strokeStyle = scheme.ink;
    context.lineWidth = this.pin && !this.hover ? 2 : 1.5;
    this.outline(context, x, y, this.cell.y);
    if (this.pin && this.hover) {
      context.setLineDash([3, 2]);
      this.outline(context, this.left + this.pin.column * this.cell.x - x0, this.top + this.pin.row * this.cell.y - y0, this.cell.y);
      context.setLineDash([]);
    }
  }

  /** One column stands out, no row. */
  drawColumn(context, scheme, x0) {
    const x = this.left + this.column * this.cell.x - x0;
    context.fillStyle = scheme.paper;
    context.globalAlpha = 0.66;
    for (const [from, to] of [[this.left, x], [x + this.cell.x, this.seenWidth]]) context.fillRect(from, this.top, to - from, this.seenHeight - this.top);
    context.globalAlpha = 1;
    context.strokeStyle = scheme.ink;
    context.lineWidth = 1.5;
    this.outline(context, x, this.top, this.seenHeight - this.top);
  }

  /** A line around a cell or more of its column; around narrow ones, so that they are seen within it. */
  outline(context, x, y, height) {
    const apart = this.cell.x < CELL_WITH_LINE ? 1 : 0;
    context.strokeRect(x - apart, y, this.cell.x + 2 * apart, height);
  }

  drawLabels(context, scheme, rows, columns, geometry) {
    const { first, last, x0, y0 } = geometry;
    const focus = this.hover ?? this.pin ?? (this.column === null ? null : { column: this.column });
    if (this.hasLabels(scheme, rows, columns, focus, x0, y0)) return;
    context.fillStyle = scheme.paper;
    context.fillRect(0, 0, this.seenWidth, this.top);
    context.fillRect(0, 0, this.left, this.seenHeight);
    context.textBaseline = "middle";
    const shown = (place, wanted, size) => {
      const every = Math.max(1, Math.ceil((this.font - 0.5) / size));
      return place === wanted || (place % every === 0 && (wanted === undefined || every === 1 || Math.abs(place - wanted) * size >= this.font));
    };
    context.save();
    context.beginPath();
    context.rect(0, this.top, this.left, this.seenHeight - this.top);
    context.clip();
    for (let row = first.row; row < last.row; row += 1) {
      if (!shown(row, focus?.row, this.cell.y)) continue;
      const y = this.top + (row + 0.5) * this.cell.y - y0;
      this.rowLabel(context, scheme, rows[row], y, focus?.row === row);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.seenWidth - this.left, this.top);
    context.clip();
    if (this.data.band) this.data.band.draw(context, geometry);
    else this.columnLabels(context, scheme, columns, first, last, x0, (column) => shown(column, focus?.column, this.cell.x), focus);
    context.restore();
  }

  columnLabels(context, scheme, columns, first, last, x0, isShown, focus) {
    context.textAlign = "left";
    for (let column = first.column; column < last.column; column += 1) {
      if (!isShown(column)) continue;
      context.save();
      context.translate(this.left + (column + 0.5) * this.cell.x - x0, this.top - 6);
      context.rotate(-Math.PI / 2);
      context.font = fontOf(this.font, focus?.column === column);
      context.fillStyle = focus && focus.column !== column ? scheme.muted : scheme.ink;
      context.fillText(cut(context, lineName(columns[column]), this.top - 10), 0, 0);
      context.restore();
    }
  }

  /** What was fed, then what was written, the latter in full ink. */
  rowLabel(context, scheme, line, y, isFocus) {
    context.font = fontOf(this.font, isFocus);
    context.textAlign = "right";
    const room = this.left - 10;
    const text = shownToken(line.text);
    if (line.before === undefined) {
      context.fillStyle = scheme.ink;
      context.fillText(cut(context, text, room), this.left - 6, y);
      return;
    }
    const written = cut(context, text, room * 0.62);
    context.fillStyle = scheme.ink;
    context.fillText(written, this.left - 6, y);
    const used = context.measureText(written).width;
    context.fillStyle = scheme.muted;
    const arrow = context.measureText(" → ").width;
    const read = cut(context, shownToken(line.before), room - used - arrow);
    if (read) context.fillText(`${read} → `, this.left - 6 - used, y);
  }

  /** Whether its numbers are shares of attention, or differences of such. */
  isShare() {
    return this.data.kind === "weights" || this.data.isShare;
  }

  drawLegend() {
    const { kind, largest, caption } = this.data;
    const { weights, signed } = colours();
    const css = kind === "signed" ? signed.css : weights.css;
    const stops = css.filter((_, place) => place % 16 === 0);
    const bar = el("span", { class: "heat-bar", "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const [least, most] = rampEnds({ kind, isShare: this.isShare(), largest });
    this.legend.replaceChildren(el("span", {}, least), bar, el("span", {}, most), el("span", { class: "heat-caption" }, caption ?? ""));
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left + this.scroller.scrollLeft) / this.cell.x);
    const row = Math.floor((event.clientY - box.top - this.top + this.scroller.scrollTop) / this.cell.y);
    const isInside = event.clientX - box.left > this.left && event.clientY - box.top > this.top;
    return isInside && row >= 0 && column >= 0 && row < this.data.matrix.nRows && column < this.nColumns() ? { row, column } : null;
  }

  point(event) {
    if (this.data) this.setHover(this.cellAt(event));
  }

  setHover(cell) {
    if (cell?.row === this.hover?.row && cell?.column === this.hover?.column) return;
    this.hover = cell;
    this.request();
    this.told(cell ?? this.pin, !cell && Boolean(this.pin));
  }

  /** Lets a column stand out, of which no cell is looked at; null for none. */
  setColumn(column) {
    if (column === this.column) return;
    this.column = column;
    if (column !== null) this.reveal({ row: null, column });
    this.request();
  }

  click(event) {
    const cell = this.cellAt(event);
    const isSame = cell && this.pin && cell.row === this.pin.row && cell.column === this.pin.column;
    this.setPin(isSame ? null : cell);
  }

  setPin(cell) {
    this.pin = cell;
    this.request();
    this.told(this.hover ?? this.pin, Boolean(this.pin));
  }

  /** Arrows move from cell to cell, Enter pins, Escape lets go. */
  key(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
    const [nRows, nColumns] = [this.data.matrix.nRows, this.nColumns()];
    const step = event.shiftKey ? 5 : 1;
    const moves = { ArrowLeft: [0, -step], ArrowRight: [0, step], ArrowUp: [-step, 0], ArrowDown: [step, 0], Home: [0, -nColumns], End: [0, nColumns] };
    const at = this.hover ?? this.pin;
    if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
      const next = at ? { row: clamp(at.row + down, nRows), column: clamp(at.column + right, nColumns) } : { row: 0, column: 0 };
      this.reveal(next);
      this.setHover(next);
      this.announced.textContent = this.speak(next);
    } else if (event.key === "Enter" || event.key === " ") {
      const isPinned = this.pin && at && this.pin.row === at.row && this.pin.column === at.column;
      this.setPin(isPinned ? null : at);
      this.announced.textContent = this.pin ? `pinned: ${this.speak(this.pin)}` : "no longer pinned";
    } else if (event.key === "Escape") {
      this.setHover(null);
      this.setPin(null);
    } else if (event.key === "+" || event.key === "-") {
      this.setZoom(this.zoom * (event.key === "+" ? 1.5 : 1 / 1.5));
    } else return;
    event.preventDefault();
  }

  reveal({ row, column }) {
    const inside = (at, size, seen, now) => Math.min(Math.max(now, at + size - seen), at);
    this.scroller.scrollLeft = inside(column * this.cell.x, this.cell.x, this.seenWidth - this.left, this.scroller.scrollLeft);
    if (row !== null) this.scroller.scrollTop = inside(row * this.cell.y, this.cell.y, this.seenHeight - this.top, this.scroller.scrollTop);
  }
}

/** A zoom that cells can have. */
function within(zoom) {
  return Math.min(12, Math.max(1, zoom));
}

export function fontOf(size, isBold = false) {
  return `${isBold ? "bold " : ""}${size}px ${FAMILY}`;
}

/** Text that fits, with an ellipsis where it does not. */
export function cut(context, text, room) {
  if (room < 8) return "";
  if (context.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
}

/** Largest side of a small picture. */
const SMALL = 192;

/** Every so many rows and columns of a matrix, or of its first `nShown` columns, that at most `most` of each are left. */
export function thinned(matrix, most, nShown = matrix.nColumns) {
  const stride = (n) => Math.max(1, Math.ceil(n / most));
  const [across, down] = [stride(nShown), stride(matrix.nRows)];
  if (across === 1 && down === 1 && nShown === matrix.nColumns) return matrix;
  const [nColumns, nRows] = [Math.ceil(nShown / across), Math.ceil(matrix.nRows / down)];
  const values = new Float32Array(nRows * nColumns);
  for (let row = 0; row < nRows; row += 1) {
    for (let column = 0; column < nColumns; column += 1) values[row * nColumns + column] = matrix.values[row * down * matrix.nColumns + column * across];
  }
  return { values, nRows, nColumns };
}

/** A matrix, or its first `nShown` columns, on a canvas, one pixel a cell. */
export function drawPixels(canvas, matrix, { place, ramp }, nShown = matrix.nColumns) {
  if (!nShown || !matrix.nRows) return;
  const image = new ImageData(nShown, matrix.nRows);
  const out = new Uint32Array(image.data.buffer);
  for (let row = 0; row < matrix.nRows; row += 1) for (let column = 0; column < nShown; column += 1) out[row * nShown + column] = ramp.pixels[place(matrix.values[row * matrix.nColumns + column])];
  if (canvas.width !== nShown) canvas.width = nShown;
  if (canvas.height !== matrix.nRows) canvas.height = matrix.nRows;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** A matrix, or its first `nShown` columns, as a small picture; large ones are thinned out. */
export function thumbnail(canvas, matrix, kind, largest, nShown = matrix.nColumns) {
  drawPixels(canvas, thinned(matrix, SMALL, nShown), painter(kind, largest));
}
