// The mathematics of the page, on plain arrays; rows are queries, columns keys, `[query, key]` row after row.

/** How many of `nKeys` keys a query may see. */
export function nVisible(site, query) {
  return site.isCausal ? Math.min(site.nKeys, query + 1) : site.nKeys;
}

/** Attention of one query rebuilt from the pieces chosen by `mask` (a bit each), with the bias of positions if `hasBias`, into `weights`. */
function rebuildRow(site, mask, hasBias, query, weights) {
  const { nPieces, nQueries, nKeys } = site;
  const from = query * nKeys;
  const row = weights.subarray(from, from + nKeys);
  row.fill(0);
  for (let piece = 0; piece < nPieces; piece += 1) {
    if (!((mask >> piece) & 1)) continue;
    const at = piece * nQueries * nKeys + from;
    for (let key = 0; key < nKeys; key += 1) row[key] += site.pieces[at + key];
  }
  if (hasBias && site.bias) for (let key = 0; key < nKeys; key += 1) row[key] += site.bias[from + key];
  softmax(row, nVisible(site, query));
}

/** Softmax over the first `seen` numbers; 0 beyond. */
function softmax(row, seen) {
  let highest = -Infinity;
  for (let key = 0; key < seen; key += 1) highest = Math.max(highest, row[key]);
  let total = 0;
  for (let key = 0; key < seen; key += 1) total += row[key] = Math.exp(row[key] - highest);
  for (let key = 0; key < seen; key += 1) row[key] /= total;
  row.fill(0, seen);
}

/** Attention rebuilt from some pieces. */
export function rebuild(site, mask, hasBias = true) {
  const weights = new Float32Array(site.nQueries * site.nKeys);
  for (let query = 0; query < site.nQueries; query += 1) rebuildRow(site, mask, hasBias, query, weights);
  return weights;
}

/** Up to so many cells are rebuilt at once; of more only the lines that are looked at. */
const AT_ONCE = 60_000;
/** Milliseconds that the rest may take of a frame. */
const SLICE_MS = 6;

/**
 * Attention rebuilt from some pieces as lines show it, beside the true one: the lines asked for at once, the others while the browser has
 * nothing else to do. What is computed is the same, number for number, in whatever order.
 */
export class RebuiltLines {
  /** `truth` is the true attention as the lines show it. */
  constructor({ site, rows, columns, isWhole, truth }) {
    Object.assign(this, { site, rows, columns, isWhole, truth, turn: 0 });
    this.weights = new Float32Array(site.nQueries * site.nKeys);
    const values = isWhole ? this.weights : new Float32Array(rows.length * columns.length);
    this.matrix = { values, nRows: rows.length, nColumns: columns.length };
    this.difference = null;
    this.isMade = new Uint8Array(rows.length);
    this.apart = new Float64Array(rows.length);
    this.isSame = new Uint8Array(rows.length);
  }

  /**
   * Begins anew with other pieces, in the same memory; `hasDifference` asks for the rebuilt less the true attention too. With the same ones
   * everything goes on as it is. Gives whether it began anew.
   */
  choose(mask, hasBias, hasDifference = false) {
    if (mask === this.mask && hasBias === this.hasBias && (this.hasDifference || !hasDifference)) return false;
    Object.assign(this, { mask, hasBias, hasDifference, nMeasured: 0, turn: this.turn + 1 });
    if (hasDifference) this.difference ??= { ...this.matrix, values: new Float32Array(this.matrix.values.length) };
    this.isMade.fill(0);
    if (this.matrix.values.length <= AT_ONCE) this.measure(this.rows.length);
    return true;
  }

  get isDone() {
    return this.nMeasured === this.rows.length;
  }

  /** Makes the lines `from` to `to` that are not made yet. */
  need(from, to) {
    for (let row = from; row < to; row += 1) if (!this.isMade[row]) this.make(row);
  }

  make(row) {
    const { nColumns, values } = this.matrix;
    for (const query of this.rows[row]) rebuildRow(this.site, this.mask, this.hasBias, query, this.weights);
    if (!this.isWhole) values.set(view(this.weights, this.site.nKeys, [this.rows[row]], this.columns, { isWeights: true, isWhole: false }).values, row * nColumns);
    if (this.hasDifference) for (let place = row * nColumns; place < (row + 1) * nColumns; place += 1) this.difference.values[place] = values[place] - this.truth.values[place];
    this.isMade[row] = 1;
  }

  /** Compares the lines up to `to` with the true ones, one after the other. */
  measure(to) {
    const { nColumns } = this.matrix;
    for (; this.nMeasured < to; this.nMeasured += 1) {
      const row = this.nMeasured;
      this.need(row, row + 1);
      const line = ({ values }) => ({ values: values.subarray(row * nColumns, (row + 1) * nColumns), nRows: 1, nColumns });
      const close = closeness(line(this.truth), line(this.matrix));
      [this.apart[row], this.isSame[row]] = [close.tv, close.argmax];
    }
  }

  /** Does the rest in slices; `told` hears when all is there, unless other pieces are chosen before, or `isWanted` says no. */
  finish(isWanted, told) {
    const turn = this.turn;
    // A busy browser is given the rest anyway, a slice at a time.
    const idle = globalThis.requestIdleCallback ? (work) => requestIdleCallback(work, { timeout: 50 }) : (work) => setTimeout(work, 16);
    const slice = () => {
      if (turn !== this.turn || !isWanted()) return;
      const end = performance.now() + SLICE_MS;
      while (!this.isDone && performance.now() < end) this.measure(Math.min(this.nMeasured + 2, this.rows.length));
      if (this.isDone) told();
      else idle(slice);
    };
    idle(slice);
  }

  /** How close all lines are to the true ones, or null while some are missing. */
  closeness() {
    if (!this.isDone) return null;
    const nRows = Math.max(1, this.rows.length);
    const sum = (list) => list.reduce((all, one) => all + one, 0);
    return { tv: sum(this.apart) / nRows, argmax: sum(this.isSame) / nRows, rows: this.rows.length };
  }

  /** The largest number of those lines of a matrix that are there. */
  largestOf({ values, nColumns }) {
    let most = 0;
    for (let row = 0; row < this.rows.length; row += 1) if (this.isMade[row]) most = Math.max(most, largest(values.subarray(row * nColumns, (row + 1) * nColumns)));
    return most;
  }
}

/** Every piece of a site. */
export function allPieces(site) {
  return (1 << site.nPieces) - 1;
}

/** The pieces that both sides owe to the given parts alone; `parts` is a list of 0 (temporal), 1 (input), 2 (residual). */
export function madeOf(nPieces, parts) {
  let mask = 0;
  for (let piece = 0; piece < nPieces; piece += 1) {
    const [query, key] = piecePartsOf(nPieces, piece);
    if ([query, key].every((part) => part === null || parts.includes(part))) mask |= 1 << piece;
  }
  return mask;
}

/** The parts of query and key a piece stands for; null for the side an additive part says nothing of. */
export function piecePartsOf(nPieces, piece) {
  if (nPieces === 9) return [Math.floor(piece / 3), piece % 3];
  return piece < 3 ? [piece, null] : [null, piece - 3];
}

/** The place of the highest number of a row, the first among equals. */
export function argmax(values, from, n) {
  let best = 0;
  for (let place = 1; place < n; place += 1) if (values[from + place] > values[from + best]) best = place;
  return best;
}

/** How close rows are on average: total variation `½ Σ |a − b|`, and the share of rows with their maximum at the same key. */
export function closeness(matrixA, matrixB) {
  const { values: a, nRows, nColumns } = matrixA;
  const b = matrixB.values;
  let [tv, same] = [0, 0];
  for (let row = 0; row < nRows; row += 1) {
    const from = row * nColumns;
    let apart = 0;
    for (let column = 0; column < nColumns; column += 1) apart += Math.abs(a[from + column] - b[from + column]);
    tv += apart / 2;
    same += argmax(a, from, nColumns) === argmax(b, from, nColumns) ? 1 : 0;
  }
  return { tv: tv / Math.max(1, nRows), argmax: same / Math.max(1, nRows), rows: nRows };
}

/**
 * Some rows and columns of a matrix, tokens joined to words: `rows` and `columns` are lists of lists of places, one list a line shown.
 * Weights are made to add up to 1 again in every row. `isWhole` says that every line is one place and none is left out.
 */
export function view(values, nKeys, rows, columns, { isWeights, isWhole }) {
  if (isWhole) return { values, nRows: rows.length, nColumns: columns.length };
  const out = new Float32Array(rows.length * columns.length);
  rows.forEach((queries, row) => {
    let total = 0;
    columns.forEach((keys, column) => {
      let sum = 0;
      for (const query of queries) for (const key of keys) sum += values[query * nKeys + key];
      // Keys of a word share its weight; queries of a word are averaged.
      sum /= queries.length;
      if (!isWeights) sum /= keys.length;
      out[row * columns.length + column] = sum;
      total += sum;
    });
    if (isWeights && total > 0) {
      for (let column = 0; column < columns.length; column += 1) out[row * columns.length + column] /= total;
    }
  });
  return { values: out, nRows: rows.length, nColumns: columns.length };
}

/** Each row less its mean: what softmax looks at. */
export function centred({ values, nRows, nColumns }) {
  const out = new Float32Array(values.length);
  for (let row = 0; row < nRows; row += 1) {
    const from = row * nColumns;
    let mean = 0;
    for (let column = 0; column < nColumns; column += 1) mean += values[from + column] / nColumns;
    for (let column = 0; column < nColumns; column += 1) out[from + column] = values[from + column] - mean;
  }
  return { values: out, nRows, nColumns };
}

/** The largest size of any number. */
export function largest(values) {
  let most = 0;
  for (let place = 0; place < values.length; place += 1) {
    const size = values[place] < 0 ? -values[place] : values[place];
    if (size > most) most = size;
  }
  return most;
}

/** How pieces of words are marked, or null where no token is: tokenizers leave `▁` or `Ġ` before a word, `##` before or `@@` behind a piece. */
function marker(tokens) {
  for (const mark of ["▁", "Ġ"]) if (tokens.some((name) => name.startsWith(mark))) return mark;
  if (tokens.some((name) => name.length > 2 && name.startsWith("##"))) return "##";
  if (tokens.some((name) => name.length > 2 && name.endsWith("@@"))) return "@@";
  return null;
}

/** Whether some word has more than one token. */
export function hasPieces(tokens, wordOf) {
  return wordOf ? new Set(wordOf).size < wordOf.length : marker(tokens) !== null;
}

/**
 * Groups subwords into words: a list of lists of places. `wordOf`, where the model's own rules are known, is the number of each token's
 * word; otherwise words are found by the markers of their pieces, and special tokens stay alone.
 */
export function words(tokens, special, wordOf) {
  const mark = marker(tokens);
  const goesOn = (name, place) => {
    if (wordOf) return wordOf[place] === wordOf[place - 1];
    if (special.has(place) || special.has(place - 1) || mark === null) return false;
    return mark === "##" ? name.startsWith("##") : mark === "@@" ? tokens[place - 1].endsWith("@@") : !name.startsWith(mark);
  };
  const groups = [];
  tokens.forEach((name, place) => {
    if (place > 0 && goesOn(name, place)) groups[groups.length - 1].push(place);
    else groups.push([place]);
  });
  return groups;
}

/** The text of a word made of tokens. */
export function wordText(tokens, group) {
  return group.map((place) => {
    const name = tokens[place];
    return group.length > 1 ? name.replace(/^[▁Ġ]/u, "").replace(/^##/, "").replace(/@@$/, "") : name;
  }).join("");
}

/**
 * Whether a token's name looks like a sign and not like a word: `<s>`, `</s>`, `<|en|>`, `[CLS]`, `__eng__`, `>>fr<<`. Without a letter or a
 * bar it is a word, such as the `<.>` of eSCAN; so are bytes, `<0x0A>`.
 */
export function looksSpecial(name) {
  return /^(<(?!0x[0-9A-F]{2}>)[^<>\s]*[\p{L}|][^<>\s]*>|\[[A-Z_]+\]|__\w+__|>>\w+<<|[a-z]{2}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3})$/u.test(name);
}
