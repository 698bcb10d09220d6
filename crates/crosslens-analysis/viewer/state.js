// What is shown, kept in the address so that it can be sent to somebody: `#view=head&site=3&sample=1`. A sentence that a model was asked
// about is no number of a report: `asked` holds the question instead, to be asked again.
//
// The state is kept here and the address follows, a moment later: browsers refuse to change it too often, and pages inside other pages may
// not change it at all.

const DEFAULTS = { view: "", report: "0", site: "0", sample: "0" };
const PAUSE_MS = 150;

let hash = location.hash;
let timer = 0;
const listeners = [];

/** The state now. */
export function state() {
  return { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(hash.slice(1))) };
}

/** A number of the state, within bounds. */
export function stateNumber(name, most) {
  const value = Math.floor(Number(state()[name]));
  return Number.isFinite(value) ? Math.min(Math.max(0, value), Math.max(0, most)) : 0;
}

/** A cell of a matrix that the state names, as `row,column`; null for none. */
export function stateCell(name) {
  const found = /^(\d+),(\d+)$/.exec(state()[name] ?? "");
  return found && { row: Number(found[1]), column: Number(found[2]) };
}

/** Changes some of the state. `isQuiet` leaves the page as it is; `isStep` makes the browser's back button return here. */
export function change(changes, { isQuiet = false, isStep = false } = {}) {
  // Another sentence is another question; another matrix, in which no cell is pinned yet, is seen from its beginning.
  const apart = { ...("sample" in changes ? { asked: null } : {}), ...(changes.pin === null && !isQuiet ? { at: null } : {}) };
  const next = hashOf({ ...state(), ...apart, ...changes });
  if (next !== hash) {
    if (isStep) write();
    hash = next;
    if (isStep) write("pushState");
    else if (!timer) timer = setTimeout(write, PAUSE_MS);
  }
  if (!isQuiet) listeners.forEach((listener) => listener());
}

/** The address of a state. */
export function hashOf(values) {
  const kept = Object.entries(values).filter(([name, value]) => value !== null && value !== undefined && value !== "" && String(value) !== DEFAULTS[name]);
  return `#${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}`;
}

function write(how = "replaceState") {
  clearTimeout(timer);
  timer = 0;
  try {
    if (location.hash !== hash) history[how](null, "", hash);
  } catch {
    // The state lives on without an address.
  }
}

/** Calls when the state changes, by the page or by the browser's buttons. */
export function onChange(listener) {
  listeners.push(listener);
  addEventListener("hashchange", () => {
    if (location.hash === hash) return;
    hash = location.hash;
    listener();
  });
}
