// Reads arrays of a safetensors file: eight bytes of header length, a JSON header, then the numbers, little-endian.

const READERS = {
  F32: { bytes: 4, read: (view, at) => view.getFloat32(at, true), list: Float32Array },
  F64: { bytes: 8, read: (view, at) => view.getFloat64(at, true), list: Float64Array },
  I16: { bytes: 2, read: (view, at) => view.getInt16(at, true), list: Int16Array },
  U32: { bytes: 4, read: (view, at) => view.getUint32(at, true), list: Uint32Array },
};

/** The arrays of a file: `has(name)`, `get(name)` gives `{ shape, values }`, `metadata` what the header says besides. */
export function readSafetensors(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8) throw new Error("the data end before their header");
  const length = Number(view.getBigUint64(0, true));
  if (8 + length > buffer.byteLength) throw new Error("the data end before their header does");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const start = 8 + length;
  return {
    metadata: header.__metadata__ ?? {},
    has: (name) => Object.hasOwn(header, name),
    get(name) {
      const entry = header[name];
      if (!entry) throw new Error(`there is no array ${name}`);
      const [first, last] = entry.data_offsets;
      const count = entry.shape.reduce((product, size) => product * size, 1);
      const { bytes, read, list } = READERS[entry.dtype] ?? {};
      if (!bytes || last - first !== count * bytes || start + last > buffer.byteLength) throw new Error(`the array ${name} is damaged`);
      if ((start + first) % bytes === 0 && isLittleEndian()) return { shape: entry.shape, values: new list(buffer, start + first, count) };
      return { shape: entry.shape, values: list.from({ length: count }, (_, place) => read(view, start + first + place * bytes)) };
    },
  };
}

function isLittleEndian() {
  return new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
}
