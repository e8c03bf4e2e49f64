/**
 * QR codes: byte mode, versions 1 to 10, error correction level M, the mask with the lowest penalty.
 * Source: ISO/IEC 18004:2015 §7.
 * @module
 */

/** Rows of modules; true is dark. The quiet zone around them is not included. */
export type QrCode = readonly (readonly boolean[])[];

/** Level M, by version: codewords of error correction of a block, then groups of blocks: how many, data of each. */
const blocksOfVersion: readonly (readonly [
  ecc: number,
  ...groups: readonly (readonly [count: number, data: number])[],
])[] = [
  [10, [1, 16]],
  [16, [1, 28]],
  [26, [1, 44]],
  [18, [2, 32]],
  [24, [2, 43]],
  [16, [4, 27]],
  [18, [4, 31]],
  [22, [2, 38], [2, 39]],
  [22, [3, 36], [2, 37]],
  [26, [4, 43], [1, 44]],
];

/** Centers of alignment patterns, by version. */
const alignmentOfVersion: readonly (readonly number[])[] = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
];

/** The largest text of version 10 at level M. Bytes. */
export const qrBytesMax = 213;

/** Encodes a text in the smallest version. @throws RangeError for a text of more than `qrBytesMax` bytes. */
export function encodeQrCode(text: string): QrCode {
  const bytes = new TextEncoder().encode(text);
  const version = versionOf(bytes.length);
  const codewords = interleave(dataCodewords(bytes, version), version);
  const grid = createGrid(version);
  placeData(grid, codewords);
  return bestMasked(grid);
}

function versionOf(size: number): number {
  const index = blocksOfVersion.findIndex((_, at) => bitsOfCount(at + 1) + modeBits + size * 8 <= dataSize(at + 1) * 8);
  if (index < 0) throw new RangeError(`a QR code holds at most ${qrBytesMax} bytes: ${size}`);
  return index + 1;
}

const modeBits = 4;
const byteMode = 0b0100;

function bitsOfCount(version: number): number {
  return version < 10 ? 8 : 16;
}

function blocksOf(version: number) {
  const [ecc, ...groups] = blocksOfVersion[version - 1] ?? [0];
  return { ecc, sizes: groups.flatMap(([count, data]) => Array.from({ length: count }, () => data)) };
}

function dataSize(version: number): number {
  return blocksOf(version).sizes.reduce((sum, size) => sum + size, 0);
}

/** Mode, count, bytes, terminator and padding. */
function dataCodewords(bytes: Uint8Array, version: number): Uint8Array {
  const bits: number[] = [];
  const push = (value: number, length: number) => {
    for (let at = length - 1; at >= 0; at -= 1) bits.push((value >> at) & 1);
  };
  push(byteMode, modeBits);
  push(bytes.length, bitsOfCount(version));
  for (const byte of bytes) push(byte, 8);
  const size = dataSize(version);
  push(0, Math.min(4, size * 8 - bits.length));
  push(0, (8 - (bits.length % 8)) % 8);
  const data = new Uint8Array(size);
  for (const [at, bit] of bits.entries()) data[at >> 3] = ((data[at >> 3] ?? 0) << 1) | bit;
  for (let at = bits.length / 8; at < size; at += 1) data[at] = (at - bits.length / 8) % 2 === 0 ? 0xec : 0x11;
  return data;
}

/** The codewords of all blocks in the order of the symbol: data column by column, then error correction. */
function interleave(data: Uint8Array, version: number): Uint8Array {
  const { ecc, sizes } = blocksOf(version);
  let start = 0;
  const blocks = sizes.map((size) => {
    const own = data.subarray(start, start + size);
    start += size;
    return { own, correction: errorCorrection(own, ecc) };
  });
  const columns = (pick: (block: (typeof blocks)[number]) => Uint8Array, length: number) =>
    Array.from({ length }, (_, column) => blocks.flatMap((block) => pick(block)[column] ?? [])).flat();
  return Uint8Array.from([
    ...columns(({ own }) => own, Math.max(...sizes)),
    ...columns(({ correction }) => correction, ecc),
  ]);
}

/** Product in the field of 256 elements by x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(left: number, right: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((right >> bit) & 1) * left;
  }
  return product;
}

/** The generator polynomial without its first coefficient, highest power first. */
function generatorOf(degree: number): Uint8Array {
  const generator = new Uint8Array(degree);
  generator[degree - 1] = 1;
  let root = 1;
  for (let power = 0; power < degree; power += 1) {
    for (let at = 0; at < degree; at += 1)
      generator[at] = multiply(generator[at] ?? 0, root) ^ (generator[at + 1] ?? 0);
    root = multiply(root, 2);
  }
  return generator;
}

/** The remainder of the data by the generator (Reed-Solomon). */
function errorCorrection(data: Uint8Array, degree: number): Uint8Array {
  const generator = generatorOf(degree);
  const remainder = new Uint8Array(degree);
  for (const byte of data) {
    const factor = byte ^ (remainder[0] ?? 0);
    remainder.copyWithin(0, 1);
    remainder[degree - 1] = 0;
    for (let at = 0; at < degree; at += 1) remainder[at] = (remainder[at] ?? 0) ^ multiply(generator[at] ?? 0, factor);
  }
  return remainder;
}

/** Modules, and which of them are not data. */
type Grid = Readonly<{
  size: number;
  isDark: (x: number, y: number) => boolean;
  isFixed: (x: number, y: number) => boolean;
  set: (x: number, y: number, isDark: boolean) => void;
  /** Sets a module of a pattern; modules outside are left out. */
  fix: (x: number, y: number, isDark: boolean) => void;
}>;

function createModules(size: number): Grid {
  const dark = new Array<boolean>(size * size).fill(false);
  const fixed = new Array<boolean>(size * size).fill(false);
  return {
    size,
    isDark: (x, y) => dark[y * size + x] ?? false,
    isFixed: (x, y) => fixed[y * size + x] ?? true,
    set: (x, y, isDark) => {
      dark[y * size + x] = isDark;
    },
    fix: (x, y, isDark) => {
      if (x < 0 || y < 0 || x >= size || y >= size) return;
      dark[y * size + x] = isDark;
      fixed[y * size + x] = true;
    },
  };
}

/** The patterns that do not depend on the data, with space for the format. */
function createGrid(version: number): Grid {
  const grid = createModules(17 + 4 * version);
  const last = grid.size - 7;
  for (let at = 0; at < grid.size; at += 1) {
    grid.fix(6, at, at % 2 === 0);
    grid.fix(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [
    [0, 0],
    [last, 0],
    [0, last],
  ] as const)
    fixSquare(grid, x + 3, y + 3, 4, [2, 4]);
  const centers = alignmentOfVersion[version - 1] ?? [];
  const end = centers.at(-1);
  for (const x of centers)
    for (const y of centers) {
      const isFinder = (x === 6 && (y === 6 || y === end)) || (x === end && y === 6);
      if (!isFinder) fixSquare(grid, x, y, 2, [1]);
    }
  writeFormat(grid, 0);
  if (version >= 7) writeVersion(grid, version);
  return grid;
}

/** Rings around a center. @param light - Distances of light rings. */
function fixSquare(grid: Grid, x: number, y: number, radius: number, light: readonly number[]): void {
  for (let dy = -radius; dy <= radius; dy += 1)
    for (let dx = -radius; dx <= radius; dx += 1)
      grid.fix(x + dx, y + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))));
}

/** The remainder of a value in the field of two elements. */
function remainderOf(value: number, polynomial: number, degree: number): number {
  let rest = value << degree;
  for (let bit = 31 - degree; bit >= 0; bit -= 1) if ((rest >> (bit + degree)) & 1) rest ^= polynomial << bit;
  return rest;
}

/** Level M is 00 in the format. */
function writeFormat(grid: Grid, mask: number): void {
  const bits = ((mask << 10) | remainderOf(mask, 0x537, 10)) ^ 0x5412;
  const { size } = grid;
  for (let at = 0; at < 15; at += 1) {
    const isDark = ((bits >> at) & 1) === 1;
    if (at < 6) grid.fix(8, at, isDark);
    else if (at < 8) grid.fix(8, at + 1, isDark);
    else if (at === 8) grid.fix(7, 8, isDark);
    else grid.fix(14 - at, 8, isDark);
    if (at < 8) grid.fix(size - 1 - at, 8, isDark);
    else grid.fix(8, size - 15 + at, isDark);
  }
  grid.fix(8, size - 8, true);
}

function writeVersion(grid: Grid, version: number): void {
  const bits = (version << 12) | remainderOf(version, 0x1f25, 12);
  for (let at = 0; at < 18; at += 1) {
    const isDark = ((bits >> at) & 1) === 1;
    const [near, far] = [Math.floor(at / 3), grid.size - 11 + (at % 3)];
    grid.fix(near, far, isDark);
    grid.fix(far, near, isDark);
  }
}

/** Places the bits of the codewords in the order of the data modules. */
function placeData(grid: Grid, codewords: Uint8Array): void {
  const modules = pairsOf(grid.size)
    .flatMap((columns, pair) => rowsOf(grid.size, pair).flatMap((y) => columns.map((x) => [x, y] as const)))
    .filter(([x, y]) => !grid.isFixed(x, y));
  for (const [bit, [x, y]] of modules.entries())
    grid.set(x, y, (((codewords[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1);
}

/** The columns of data in pairs, from the right, without the column of the timing pattern. */
function pairsOf(size: number): readonly (readonly number[])[] {
  return Array.from({ length: (size - 1) / 2 }, (_, pair) => {
    const right = size - 1 - 2 * pair;
    return right > 6 ? [right, right - 1] : [right - 1, right - 2];
  });
}

/** The rows of a pair of columns: upwards and downwards in turn. */
function rowsOf(size: number, pair: number): readonly number[] {
  return Array.from({ length: size }, (_, step) => (pair % 2 === 0 ? size - 1 - step : step));
}

/** Where a mask inverts modules. */
const masks: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function bestMasked(grid: Grid): QrCode {
  const candidates = masks.map((_, mask) => masked(grid, mask));
  const penalties = candidates.map(penaltyOf);
  const best = candidates[penalties.indexOf(Math.min(...penalties))];
  if (best === undefined) throw new Error("there is a mask");
  return best;
}

function masked(grid: Grid, mask: number): QrCode {
  writeFormat(grid, mask);
  const isInverted = masks[mask] ?? (() => false);
  return Array.from({ length: grid.size }, (_, y) =>
    Array.from({ length: grid.size }, (_, x) => grid.isDark(x, y) !== (!grid.isFixed(x, y) && isInverted(x, y))),
  );
}

/** Penalty of a symbol: runs, squares, patterns that look like a finder, and the share of dark modules. */
function penaltyOf(rows: QrCode): number {
  const columns = rows.map((_, x) => rows.map((row) => row[x] ?? false));
  const lines = [...rows, ...columns];
  const dark = rows.flat().filter(Boolean).length;
  const share = (dark * 100) / rows.length ** 2;
  return (
    lines.reduce((sum, line) => sum + runPenalty(line) + finderPenalty(line), 0) +
    squarePenalty(rows) +
    10 * Math.floor(Math.abs(share - 50) / 5)
  );
}

function runPenalty(line: readonly boolean[]): number {
  let penalty = 0;
  let length = 0;
  for (const [at, isDark] of line.entries()) {
    length = at > 0 && line[at - 1] === isDark ? length + 1 : 1;
    if (length >= 5) penalty += length === 5 ? 3 : 1;
  }
  return penalty;
}

function squarePenalty(rows: QrCode): number {
  let penalty = 0;
  for (const [y, row] of rows.entries()) {
    const below = rows[y + 1] ?? [];
    for (const [x, isDark] of row.entries())
      if ([row[x + 1], below[x], below[x + 1]].every((each) => each === isDark)) penalty += 3;
  }
  return penalty;
}

const finderLike = /(?=10111010000|00001011101)/g;

function finderPenalty(line: readonly boolean[]): number {
  const text = line.map((isDark) => (isDark ? "1" : "0")).join("");
  return 40 * [...text.matchAll(finderLike)].length;
}
