// What is shown, kept in the address so that it can be sent to somebody: `#view=head&site=3&sample=1`.

const DEFAULTS = { view: "", report: "0", site: "0", sample: "0" };

let listeners = [];

/** The state in the address. */
export function state() {
  return { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
}

/** A number of the state, within bounds. */
export function stateNumber(name, most) {
  const value = Math.floor(Number(state()[name]));
  return Number.isFinite(value) ? Math.min(Math.max(0, value), Math.max(0, most)) : 0;
}

/** Changes some of the state. `isQuiet` leaves the page as it is; `isStep` makes the browser's back button return here. */
export function change(changes, { isQuiet = false, isStep = false } = {}) {
  const next = { ...state(), ...changes };
  const kept = Object.entries(next).filter(([name, value]) => value !== null && value !== undefined && value !== "" && value !== DEFAULTS[name]);
  const hash = `#${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}`;
  if (hash !== location.hash) history[isStep ? "pushState" : "replaceState"](null, "", hash);
  if (!isQuiet) listeners.forEach((listener) => listener());
}

/** Calls when the state changes. */
export function onChange(listener) {
  listeners.push(listener);
  addEventListener("hashchange", listener);
}
