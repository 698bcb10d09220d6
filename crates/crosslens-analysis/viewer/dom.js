// Elements, words and numbers. Text reaches the page as text only: no markup is ever made from data.

/** An element: `el("button", { class: "x", onclick: f, "aria-label": "…" }, "text", child)`. */
export function el(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, of] of Object.entries(value)) element.style.setProperty(key, of);
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Says something to those who listen instead of looking. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** A share as people read it: `97.7 %`. */
export function percent(share, digits = 0) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const text = (100 * share).toFixed(digits);
  return unbroken(`${Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−")} %`);
}

/** A text in which no line ends between a number and its `%`. */
export function unbroken(text) {
  return text.replaceAll(" %", "\u00a0%");
}

/** The size of the page's letters, which grows with the screen. */
export function letter() {
  return parseFloat(getComputedStyle(document.body).fontSize) || 15;
}

/** A number with so many digits behind the point. */
export function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return value.toFixed(digits).replace("-", "−");
}

/** A labelled choice. `options` is a list of `[value, text]`. */
export function select(label, options, chosen, change, extra = {}) {
  const box = el("select", { "aria-label": label, title: label, onchange: () => change(box.value), ...extra },
    options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  return box;
}

/** A labelled check box. */
export function checkbox(label, checked, change, title) {
  const box = el("input", { type: "checkbox", checked, onchange: () => change(box.checked) });
  return el("label", { class: "check", title }, box, el("span", {}, label));
}

/** A labelled slider with its value in words. */
export function slider(label, { min, max, step, value, show, title, id }, change) {
  const shown = el("output", { class: "shown" }, show(value));
  const input = el("input", { type: "range", min, max, step, value, id, "aria-label": label, "aria-valuetext": show(value), oninput: () => {
    shown.textContent = show(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
    change(Number(input.value));
  } });
  return el("label", { class: "slider", title }, el("span", {}, label), input, shown);
}

/** One of a few, as a row of buttons. `options` is a list of `[value, text, title]`. */
export function choice(label, options, chosen, change) {
  return el("div", { class: "choice", role: "group", "aria-label": label }, options.map(([value, text, title]) =>
    el("button", { type: "button", title, "data-value": value, "aria-pressed": String(value === chosen), onclick: () => change(value) }, text)));
}

/** An explanation that opens on demand. */
export function explain(summary, ...children) {
  return el("details", { class: "explain" }, el("summary", {}, summary), el("div", {}, children));
}

/** A table from a head and rows of text; the first cell of a row names it. */
export function table(caption, head, rows, properties = {}) {
  return el("table", properties,
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, place) => el(place ? "td" : "th", place ? {} : { scope: "row" }, cell))))));
}

/** A token as it is shown: its own direction, blanks made visible. */
export function token(name) {
  return el("bdi", { class: "token" }, shownToken(name));
}

/** What a line of a matrix is called: its token, or what was read → what was written, each in its own direction. */
export function lineName({ text, before }) {
  const isolated = (name) => `\u2068${shownToken(name)}\u2069`;
  return before === undefined ? shownToken(text) : `${isolated(before)} → ${isolated(text)}`;
}

/** Controls, marks that turn text around or take no room, and what is no character: written out, as figures do. */
const UNSEEN = /[\p{Cc}\p{NChar}\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** A token's text with its word markers made light, and nothing in it that cannot be seen. */
export function shownToken(name) {
  if (name === "") return "∅";
  const plain = name.replace(/^▁$|^Ġ$/u, "␣").replace(/^[▁Ġ]/u, "").replace(/\n/g, "⏎").replace(/^[^\S\ufeff]+$/u, "␣");
  return plain.replace(UNSEEN, (sign) => (sign === "\t" ? "\\t" : sign === "\r" ? "\\r" : `\\u{${sign.codePointAt(0).toString(16)}}`));
}
