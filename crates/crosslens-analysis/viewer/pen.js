// Draws as on a canvas and keeps it as SVG: so much of a canvas's context as the page's own pictures use.

import { xml } from "./download.js";

export class SvgPen {
  constructor() {
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic", dash: [], path: "", parts: [] });
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  /** What was drawn. */
  get inside() {
    return this.parts.join("");
  }

  /** A screen's pixels are no matter here. */
  setTransform() {}

  setLineDash(dash) {
    this.dash = dash;
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  /** A whole circle: the page draws no other arc. */
  arc(x, y, radius) {
    const [half, whole] = [short(radius), short(2 * radius)];
    this.path += `M${short(x - radius)} ${short(y)}a${half} ${half} 0 1 0 ${whole} 0a${half} ${half} 0 1 0 -${whole} 0z`;
  }

  fillRect(x, y, width, height) {
    this.beginPath();
    this.rect(x, y, width, height);
    this.fill();
  }

  fill() {
    this.put(`<path d="${this.path}" fill="${this.fillStyle}"`);
  }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    this.put(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${dash}`);
  }

  fillText(text, x, y) {
    this.text(text, x, y, `fill="${this.fillStyle}"`);
  }

  strokeText(text, x, y) {
    this.text(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}" stroke-linejoin="round"`);
  }

  text(text, x, y, look) {
    const [, size, family] = /^(\S+)px (.+)$/.exec(this.font);
    const middle = this.textBaseline === "middle" ? " dominant-baseline=\"central\"" : "";
    this.put(`<text x="${short(x)}" y="${short(y)}" font-size="${size}" font-family="${xml(family)}"${middle} ${look}`, xml(text));
  }

  put(start, inside = "") {
    const faint = this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    const [, tag] = /^<(\w+)/.exec(start);
    this.parts.push(inside ? `${start}${faint}>${inside}</${tag}>` : `${start}${faint}/>`);
  }
}

function short(value) {
  return String(Number(value.toFixed(2)));
}
