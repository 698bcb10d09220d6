// One colour scheme for pages and figures. Every colour is a point of OKLab, in which equal steps look equally large:
//
//   weights, t in 0..1     lightness falls from 0.985 to 0.285, chroma 0.11 sin(πt), hue 195° to 280°
//   signed,  t in −1..1    lightness falls from 0.97 to 0.45 on both sides, chroma 0.155 |t|, hue 40° below zero, 250° above
//   parts                  temporal 250°, input 75°, residual 350°: apart under every colour blindness
//
// On dark paper lightness rises instead, so that zero is always near the paper.

const STEPS = 256;

/** sRGB bytes of a point given by lightness, chroma and hue in degrees. */
function bytes(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const c = Math.min(1, Math.max(0, x));
    return Math.round(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055));
  });
}

function hex([r, g, b]) {
  return `#${[r, g, b].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function ramp(colour) {
  return Array.from({ length: STEPS }, (_, place) => bytes(...colour(place / (STEPS - 1))));
}

/** 32-bit pixels in the order a canvas keeps them. */
function pixels(ramp) {
  const list = new Uint32Array(ramp.length);
  const view = new Uint8Array(list.buffer);
  ramp.forEach(([r, g, b], place) => view.set([r, g, b, 255], 4 * place));
  return list;
}

function scheme(isDark) {
  const weights = ramp((t) => [
    isDark ? 0.225 + 0.7 * t : 0.985 - 0.7 * t,
    0.02 * Math.min(t, 0.1) * 10 + 0.11 * Math.sin(Math.PI * t),
    isDark ? 280 - 85 * t : 195 + 85 * t,
  ]);
  const signed = ramp((place) => {
    const t = 2 * place - 1;
    return [isDark ? 0.235 + 0.52 * Math.abs(t) : 0.97 - 0.52 * Math.abs(t), 0.155 * Math.abs(t), t < 0 ? 40 : 250];
  });
  const lift = isDark ? 0.06 : 0;
  return {
    isDark,
    weights: { css: weights.map(hex), pixels: pixels(weights), rgb: weights },
    signed: { css: signed.map(hex), pixels: pixels(signed), rgb: signed },
    parts: [bytes(0.54 + lift, 0.14, 250), bytes(0.77 + lift, 0.15, 75), bytes(0.64 + lift, 0.14, 350)].map(hex),
    // Not those of the parts: what a state is of is another matter than which stream it belongs to.
    streams: [bytes(0.56 + lift, 0.11, 165), bytes(0.52 + lift, 0.17, 300), bytes(0.6 + lift, 0.12, 30), bytes(0.6, 0.02, 270)].map(hex),
    // On a picture of any colour.
    overlay: hex(bytes(0.58, 0.23, 15)),
    paper: isDark ? hex(bytes(0.2, 0.01, 270)) : "#ffffff",
    ink: hex(bytes(isDark ? 0.95 : 0.24, 0.01, 270)),
    muted: hex(bytes(isDark ? 0.72 : 0.52, 0.012, 270)),
    faint: hex(bytes(isDark ? 0.36 : 0.88, 0.006, 270)),
  };
}

const SCHEMES = { light: scheme(false), dark: scheme(true) };

/** `light` or `dark`: what was chosen, else what the system prefers. */
export function theme() {
  return document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** The colours of the theme in use. */
export function colours() {
  return SCHEMES[theme()];
}

/** The place of a weight from 0 to 1 in a ramp. */
export function weightPlace(weight) {
  return Math.round(Math.min(1, Math.max(0, weight || 0)) * (STEPS - 1));
}

/** The place of a term from −largest to largest in a ramp. */
export function signedPlace(term, largest) {
  return Math.round((Math.min(1, Math.max(-1, largest > 0 ? term / largest : 0)) + 1) / 2 * (STEPS - 1));
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
