// Sounds: a spectrogram over the matrix on one scale of seconds, the alignment across it, and the stretch a row listens to, to be heard.

import { checkbox, el, fill, number, say, shownToken } from "./dom.js";
import { colours } from "./colours.js";
import { change, state } from "./state.js";
import { cut, drawPixels, fontOf, painter } from "./heatmap.js";
import { figureSvg, pixelsSvg, xml } from "./download.js";

/** Heights in the band: words, spectrogram, axis. */
const [WORDS, SPECTRUM, AXIS] = [19, 84, 23];
/** Pixels from which on a word is cut rather than left out. */
const LEAST_WORD = 34;
/** Pixels from tick to tick, at least. */
const TICK_ROOM = 66;
/** Wider pictures than this are no canvas; frames are thinned out. */
const MOST_FRAMES = 8192;
/** A row's stretch leaves out so much of its weight at either end. */
const TAIL = 0.05;

/** What a head shows of a sound: `view` is its HeadView. */
export class Sound {
  constructor(scene, view) {
    Object.assign(this, { scene, view, row: null, stretch: null, isPlaying: false });
    this.isPathOn = state().path !== "0";
    this.nSource = view.data.sentence.source.length;
    this.isPaddingOn = state().padding === "1" && scene.n_steps < this.nSource;
    this.levels = levelsOf(scene.spectrum);
    this.band = { height: (scene.words.length ? WORDS : 4) + SPECTRUM + AXIS, key: () => this.key(), draw: (context, geometry) => this.drawBand(context, geometry) };
    this.audio = scene.wave && el("audio", { src: scene.wave, preload: "auto", onended: () => this.stop(), ontimeupdate: () => this.watch() });
    this.button = el("button", { type: "button", id: "play-stretch", disabled: !scene.wave, title: scene.wave ? undefined : "this report holds no sound to play", onclick: () => (this.isPlaying ? this.stop() : this.play()) });
    this.said = el("span", { class: "muted", id: "stretch" });
    this.element = el("div", { class: "bar sound", role: "group", "aria-label": "The sound" }, this.button, this.said, this.audio);
    view.heatmap.scroller.addEventListener("keydown", (event) => {
      if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && scene.wave) this.button.click();
    });
    this.label();
  }

  get hint() {
    return `Columns: moments of the sound, ${number(1000 * this.scene.seconds_per_step, 0)} ms each. Click a row, or a word, to mark the stretch it listens to; p plays it.`;
  }

  /** Every step of the source by its second. */
  lines() {
    const { seconds_per_step: step } = this.scene;
    return Array.from({ length: this.nSource }, (_, place) => ({ group: [place], text: seconds(place * step, 2) }));
  }

  specials() {
    return new Set();
  }

  options() {
    const set = (name, isOn, hashed) => {
      this[name] = isOn;
      change(hashed, { isQuiet: true });
      this.view.update();
    };
    return [
      this.scene.path.length > 0 && checkbox("alignment", this.isPathOn, (isOn) => set("isPathOn", isOn, { path: isOn ? null : "0" }), "the monotone path (dynamic time warping) that gives words their times"),
      this.scene.n_steps < this.nSource && checkbox("padding", this.isPaddingOn, (isOn) => set("isPaddingOn", isOn, { padding: isOn ? "1" : null }), "show the silence that was added to fill the model's window"),
    ];
  }

  /** Steps that are shown. */
  get nShown() {
    return this.isPaddingOn ? this.nSource : Math.max(1, this.scene.n_steps);
  }

  /** What a heatmap is to show besides its matrix. */
  decorate(picture) {
    return { ...picture, isNarrow: true, nShown: this.nShown, band: this.band, over: (context, geometry) => this.drawOver(context, geometry) };
  }

  /** Listens to a line of the matrix; null for none. */
  tell(row) {
    if (row === this.row && this.told === this.view.lines) return;
    [this.row, this.told] = [row, this.view.lines];
    const line = row === null ? null : this.view.lines.rows[row];
    this.word = line && this.view.isWritten ? this.scene.words.find(({ first_row: first, last_row: last }) => line.group.some((place) => first <= place && place <= last)) : undefined;
    this.stretch = line ? this.stretchOf(line) : null;
    this.label();
    this.view.heatmap.request();
  }

  /** From when to when a line listens: its word's times, else where all but the tails of its weight lie. */
  stretchOf(line) {
    if (this.word) return { from: this.word.start, to: this.word.end };
    const { nKeys } = this.view.data;
    const { seconds_per_step: step, n_steps: nSteps } = this.scene;
    const weights = new Float64Array(nSteps);
    for (const query of line.group) for (let key = 0; key < nSteps; key += 1) weights[key] += this.view.truth[query * nKeys + key];
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    if (!(total > 0)) return null;
    let [sum, first, last] = [0, null, nSteps - 1];
    for (let key = 0; key < nSteps; key += 1) {
      sum += weights[key] / total;
      first ??= sum >= TAIL ? key : null;
      if (sum >= 1 - TAIL) {
        last = key;
        break;
      }
    }
    return { from: (first ?? 0) * step, to: (last + 1) * step };
  }

  /** What play would play. */
  wanted() {
    return this.stretch ?? { from: 0, to: this.scene.n_steps * this.scene.seconds_per_step };
  }

  label() {
    const { from, to } = this.wanted();
    const line = this.row === null ? null : this.view.lines.rows[this.row];
    const name = (this.word ? shownToken(this.word.text.trim()) : line && shownToken(line.text));
    fill(this.button, this.isPlaying ? "■ stop" : "▶ play");
    this.button.setAttribute("aria-label", this.isPlaying ? "stop" : `play ${seconds(from, 2)} to ${seconds(to, 2)}`);
    Object.assign(this.said.dataset, { from, to });
    fill(this.said, line ? [el("strong", {}, name), this.word ? " is said from " : " listens from "] : "all of it, from ", `${seconds(from, 2)} to ${seconds(to, 2)}`);
  }

  async play() {
    const { from, to } = this.wanted();
    this.playing = { from, to };
    this.isPlaying = true;
    this.label();
    try {
      if (this.audio.readyState < 1) await new Promise((resolve, reject) => {
        this.audio.addEventListener("loadedmetadata", resolve, { once: true });
        this.audio.addEventListener("error", () => reject(new Error("the browser cannot read it")), { once: true });
        this.audio.load();
      });
      this.audio.currentTime = from;
      await this.audio.play();
    } catch (error) {
      this.stop();
      say(`the sound cannot be played: ${error.message}`);
      return;
    }
    const frame = () => {
      if (!this.isPlaying) return;
      this.watch();
      this.view.heatmap.request();
      requestAnimationFrame(frame);
    };
    frame();
  }

  /** Stops where the stretch ends; a sound goes on by itself. */
  watch() {
    if (this.isPlaying && this.audio.currentTime >= this.playing.to) this.stop();
  }

  stop() {
    this.audio?.pause();
    this.isPlaying = false;
    this.label();
    this.view.heatmap.request();
  }

  leave() {
    if (this.isPlaying) this.stop();
  }

  /** Changes whenever the band does. */
  key() {
    return `${this.stretch?.from},${this.stretch?.to},${this.isPlaying ? this.audio.currentTime : ""},${this.isPaddingOn}`;
  }

  /** The spectrogram, one pixel a level, in the colours of now. */
  spectrogram() {
    const scheme = colours();
    if (this.drawn?.scheme === scheme) return this.drawn.canvas;
    const { n_bands: nBands } = this.scene.spectrum;
    const nFrames = Math.floor(this.levels.length / Math.max(1, nBands));
    if (!nFrames) return null;
    const stride = Math.ceil(nFrames / MOST_FRAMES);
    const width = Math.ceil(nFrames / stride);
    const image = new ImageData(width, nBands);
    const out = new Uint32Array(image.data.buffer);
    for (let frame = 0; frame < width; frame += 1) {
      for (let band = 0; band < nBands; band += 1) out[(nBands - 1 - band) * width + frame] = scheme.weights.pixels[this.levels[frame * stride * nBands + band]];
    }
    const canvas = el("canvas", { width, height: nBands });
    canvas.getContext("2d").putImageData(image, 0, 0);
    this.drawn = { scheme, canvas, seconds: nFrames * this.scene.spectrum.seconds_per_frame };
    return canvas;
  }

  drawBand(context, { left, cell, x0, width }) {
    const scheme = colours();
    const perSecond = cell.x / this.scene.seconds_per_step;
    const x = (second) => left + second * perSecond - x0;
    const top = this.scene.words.length ? WORDS : 4;
    const picture = this.spectrogram();
    context.fillStyle = scheme.weights.css[0];
    context.fillRect(x(0), top, this.wholeSeconds() * perSecond, SPECTRUM);
    if (picture) {
      context.imageSmoothingEnabled = true;
      context.drawImage(picture, x(0), top, this.drawn.seconds * perSecond, SPECTRUM);
    }
    this.fade(context, x, top, SPECTRUM, width);
    if (this.isPaddingOn) {
      context.font = fontOf(11.5);
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillStyle = scheme.muted;
      context.fillText("padding", x(this.scene.n_steps * this.scene.seconds_per_step) + 8, top + SPECTRUM / 2);
    }
    if (this.stretch) {
      const [from, to] = [x(this.stretch.from), x(this.stretch.to)];
      context.fillStyle = scheme.paper;
      context.globalAlpha = 0.5;
      for (const [a, b] of [[left, from], [to, width]]) context.fillRect(a, top, Math.max(0, b - a), SPECTRUM);
      context.globalAlpha = 1;
      context.strokeStyle = scheme.parts[1];
      context.lineWidth = 2;
      context.strokeRect(from, top + 1, Math.max(2, to - from), SPECTRUM - 2);
    }
    this.drawWords(context, scheme, x, left, width);
    this.drawAxis(context, scheme, x, top + SPECTRUM, perSecond, width, left);
    if (this.isPlaying) this.drawCursor(context, scheme, x(this.audio.currentTime), top, SPECTRUM);
  }

  wholeSeconds() {
    return this.scene.seconds_per_step * this.nShown;
  }

  /** What was added to the sound steps back. */
  fade(context, x, top, height, width) {
    if (!this.isPaddingOn || this.scene.n_steps >= this.nSource) return;
    const end = x(this.scene.n_steps * this.scene.seconds_per_step);
    context.fillStyle = colours().paper;
    context.globalAlpha = 0.72;
    context.fillRect(end, top, Math.max(0, width - end), height);
    context.globalAlpha = 1;
    context.strokeStyle = colours().muted;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(end, top);
    context.lineTo(end, top + height);
    context.stroke();
    context.setLineDash([]);
  }

  drawWords(context, scheme, x, left, width) {
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const word of this.scene.words) {
      const [from, to] = [x(word.start), x(word.end)];
      if (to < left || from > width) continue;
      const isIt = word === this.word;
      context.fillStyle = isIt ? scheme.parts[1] : scheme.faint;
      context.fillRect(from + 0.5, WORDS - 3, Math.max(1, to - from - 1), 2);
      context.font = fontOf(11.5, isIt);
      context.fillStyle = isIt || !this.word ? scheme.ink : scheme.muted;
      const [text, room] = [shownToken(word.text.trim()), to - from - 2];
      // A letter and dots say nothing.
      if (isIt || room >= LEAST_WORD || context.measureText(text).width <= room) context.fillText(isIt ? text : cut(context, text, room), (from + to) / 2, (WORDS - 4) / 2);
    }
  }

  drawAxis(context, scheme, x, top, perSecond, width, left) {
    const { every, digits } = tickStep(perSecond);
    context.strokeStyle = scheme.muted;
    context.fillStyle = scheme.muted;
    context.lineWidth = 1;
    context.font = fontOf(11.5);
    context.textAlign = "center";
    context.textBaseline = "top";
    context.beginPath();
    for (let tick = 0; tick * every <= this.wholeSeconds() + 1e-9; tick += 1) {
      const at = x(tick * every);
      if (at < left - 1 || at > width) continue;
      context.moveTo(Math.round(at) + 0.5, top);
      context.lineTo(Math.round(at) + 0.5, top + 5);
      const text = seconds(tick * every, digits);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(at, left + half), width - half - 1), top + 7);
    }
    context.stroke();
  }

  drawCursor(context, scheme, at, top, height) {
    context.strokeStyle = scheme.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(at, top);
    context.lineTo(at, top + height);
    context.stroke();
  }

  /** Where the alignment goes, in lines and columns of the matrix. */
  pathPlaces() {
    if (!this.isPathOn || !this.view.isWritten) return [];
    const lines = new Map(this.view.lines.rows.flatMap(({ group }, line) => group.map((place) => [place, line])));
    return this.scene.path.flatMap(([row, step]) => (lines.has(row) ? [[lines.get(row), step]] : []));
  }

  drawOver(context, { left, top, cell, x0, y0, width, height }) {
    const scheme = colours();
    this.fade(context, (second) => left + (second / this.scene.seconds_per_step) * cell.x - x0, top, height - top, width);
    const places = this.pathPlaces();
    if (places.length) {
      context.lineJoin = "round";
      for (const [colour, thick] of [[scheme.paper, 3.5], [scheme.parts[1], 1.75]]) {
        context.strokeStyle = colour;
        context.lineWidth = thick;
        context.beginPath();
        for (const [row, step] of places) context.lineTo(left + (step + 0.5) * cell.x - x0, top + (row + 0.5) * cell.y - y0);
        context.stroke();
      }
    }
    if (this.isPlaying) this.drawCursor(context, scheme, left + (this.audio.currentTime / this.scene.seconds_per_step) * cell.x - x0, top, height - top);
  }

  /** The heatmap draws it. */
  refresh() {}

  /** Matrix, spectrogram, axis and alignment as an SVG figure; the two pictures stand in it pixel by pixel. */
  figure(picture, title) {
    const scheme = colours();
    const { matrix, rows, kind, largest, threshold } = picture;
    const [nShown, high, left, top] = [this.nShown, 16, 150, 24];
    const cell = Math.max(1, Math.min(20, 900 / nShown));
    const bottom = top + SPECTRUM + AXIS;
    const canvas = el("canvas", {});
    drawPixels(canvas, matrix, painter(kind, largest, threshold), nShown);
    const spectrogram = this.spectrogram();
    const perSecond = cell / this.scene.seconds_per_step;
    const { every, digits } = tickStep(perSecond);
    const parts = [pixelsSvg(canvas, left, bottom, nShown * cell, matrix.nRows * high)];
    if (spectrogram) parts.push(`<svg x="${left}" y="${top}" width="${nShown * cell}" height="${SPECTRUM}">${pixelsSvg(spectrogram, 0, 0, this.drawn.seconds * perSecond, SPECTRUM)}</svg>`);
    for (let tick = 0; tick * every <= this.wholeSeconds() + 1e-9; tick += 1) {
      const x = left + tick * every * perSecond;
      parts.push(`<path d="M${x} ${top + SPECTRUM}v5" stroke="${scheme.muted}"/><text x="${x}" y="${top + SPECTRUM + 16}" text-anchor="middle">${seconds(tick * every, digits)}</text>`);
    }
    rows.forEach((line, row) => parts.push(`<text x="${left - 6}" y="${bottom + (row + 0.5) * high}" text-anchor="end" dominant-baseline="central">${xml(shownToken(line.text))}</text>`));
    const places = this.pathPlaces().map(([row, step]) => `${left + (step + 0.5) * cell},${bottom + (row + 0.5) * high}`);
    if (places.length) parts.push(`<polyline points="${places.join(" ")}" fill="none" stroke="${scheme.parts[1]}" stroke-width="1.75"/>`);
    return figureSvg(left + nShown * cell + 24, bottom + matrix.nRows * high + 8, title, parts.join(""));
  }
}

const unpacked = new WeakMap();

/** A spectrum's levels, unpacked once however often its head changes. */
function levelsOf(spectrum) {
  if (!unpacked.has(spectrum)) unpacked.set(spectrum, Uint8Array.from(atob(spectrum.levels), (sign) => sign.charCodeAt(0)));
  return unpacked.get(spectrum);
}

/** Seconds in words. */
export function seconds(value, digits) {
  return `${number(value, digits)} s`;
}

/** How far ticks stand apart, 1, 2 or 5 times a power of ten, and how many digits that takes. */
export function tickStep(perSecond) {
  const least = TICK_ROOM / perSecond;
  const power = 10 ** Math.floor(Math.log10(least));
  const every = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least * (1 - 1e-9));
  return { every, digits: Math.min(6, Math.max(0, -Math.floor(Math.log10(every) + 1e-9))) };
}
