// Where the page's data come from. A source has:
//
//   title                        what the page is called
//   reports()                    [{ id, name, model, n_sites, n_samples }], at once
//   report(id)                   a promise of { id, name, report, samples, training, timeline }; `report` is report.json, `samples` lists
//                                sentences by their tokens: { number, source, fed, predicted, target, special, visible }
//   sample(id, number, site)     a promise of one sentence at one head: { pieces, nPieces, nQueries, nKeys, bias, valueNorms, isCausal }
//   averages(id)                 a promise of the average attention by head: [{ values, nRows, nColumns }]
//   live                         null, or what only a running model can do:
//       explain(id, source, target, options)   a promise of a number to ask `sample` for: a sentence typed by the user
//       rerun(id, number, site, mask)          a promise of { predicted, accuracy }: decodes again with the pieces of `mask` alone
//
// `StaticSource` reads what stands in the page itself.

import { readSafetensors } from "./safetensors.js";

/** Reads blocks of gzipped, base64-coded data from the page's own script elements. */
export class StaticSource {
  constructor() {
    const index = document.getElementById("crosslens-index");
    const { title, reports } = index ? JSON.parse(index.textContent) : { title: "Crosslens", reports: [] };
    this.title = title;
    this.live = null;
    this.list = reports.map((report, id) => ({ id, ...report }));
    this.cache = new Map();
  }

  reports() {
    return this.list;
  }

  report(id) {
    return this.once(`report-${id}`, async (buffer) => ({ id, ...JSON.parse(new TextDecoder().decode(buffer)) }));
  }

  async sample(id, number, site) {
    const arrays = await this.once(`sample-${id}-${number}`, readSafetensors);
    const { report, samples } = await this.report(id);
    return siteOf(arrays, site, samples[number].visible?.[site] === "causal", report);
  }

  averages(id) {
    return this.once(`averages-${id}`, async (buffer) => {
      const arrays = readSafetensors(buffer);
      const { report } = await this.report(id);
      return report.sites.map((_, site) => {
        if (!arrays.has(`sites.${site}.average`)) return null;
        const { shape: [nRows, nColumns], values } = arrays.get(`sites.${site}.average`);
        return { values, nRows, nColumns };
      });
    });
  }

  /** Unpacks a block once. */
  once(block, read) {
    if (!this.cache.has(block)) this.cache.set(block, text(block).then(unpack).then(read));
    return this.cache.get(block);
  }
}

/** One head of a sentence from its arrays. */
export function siteOf(arrays, site, isCausal) {
  const { shape: [nPieces, nQueries, nKeys], values } = arrays.get(`sites.${site}.pieces`);
  const optional = (name) => (arrays.has(`sites.${site}.${name}`) ? arrays.get(`sites.${site}.${name}`).values : null);
  return {
    nPieces, nQueries, nKeys, isCausal,
    pieces: scaled(values, optional("pieces.scale"), nQueries * nKeys),
    bias: optional("bias"),
    valueNorms: optional("value_norms"),
  };
}

/** Numbers kept in sixteen bits, each run of `size` in units of its own. */
function scaled(values, scales, size) {
  if (!scales) return values;
  return Float32Array.from(values, (value, place) => value * scales[Math.floor(place / size)]);
}

/** The text of a block, which the browser may not have read yet. */
async function text(block) {
  const find = () => document.getElementById(`crosslens-${block}`);
  if (!find() && document.readyState === "loading") {
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  }
  if (!find()) throw new Error(`the page holds no ${block}`);
  return find().textContent;
}

async function unpack(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
