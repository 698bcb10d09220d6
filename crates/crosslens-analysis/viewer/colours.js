// The colours of figures, by figure/colours.rs, which says why they are what they are: the page's index holds them for light and dark paper.

/** The last place of a ramp: one less than `N_STOPS` of figure/colours.rs. */
const LAST = 256;

/** The colours of the page's index, made ready to draw with; read when they are first asked for. */
let schemes = null;

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Colours in a row: as CSS writes them, as bytes, and as 32-bit pixels in the order a canvas keeps them. */
function ramp(css) {
  const all = css.map(rgb);
  const pixels = new Uint32Array(all.length);
  const view = new Uint8Array(pixels.buffer);
  all.forEach(([r, g, b], place) => view.set([r, g, b, 255], 4 * place));
  return { css, pixels, rgb: all };
}

function read() {
  const { light, dark } = JSON.parse(document.getElementById("crosslens-index").textContent).colours;
  const ready = (scheme, isDark) => ({ ...scheme, isDark, weights: ramp(scheme.weights), signed: ramp(scheme.signed) });
  return { light: ready(light, false), dark: ready(dark, true) };
}

/** `light` or `dark`: what was chosen, else what the system prefers. */
export function theme() {
  return document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** The colours of the theme in use. */
export function colours() {
  schemes ??= read();
  return schemes[theme()];
}


/** The place of a weight from 0 to 1 in a ramp. */
export function weightPlace(weight) {
  return Math.round(Math.min(1, Math.max(0, weight || 0)) * LAST);
}

/** The place of a term from −largest to largest in a ramp. */
export function signedPlace(term, largest) {
  return Math.round((Math.min(1, Math.max(-1, largest > 0 ? term / largest : 0)) + 1) / 2 * LAST);
}

/** Whether dark ink is read better on a colour of a ramp. */
export function isLight([r, g, b]) {
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
}

/** The names of the three parts, as the page says them, and what they mean. */
export const PARTS = [
  { key: "temporal", name: "position", title: "temporal part: what depends on the step alone, whatever the word" },
  { key: "input", name: "token", title: "input part: what depends on the word alone, wherever it stands" },
  { key: "residual", name: "the rest", title: "residual part: everything else, such as what was read before" },
];
