/**
 * The sample site's picture: a cairn at dusk, drawn by arithmetic and written as a PNG.
 * @module
 */
import { crc32, deflateSync } from "node:zlib";

const width = 960;
const height = 480;

/** Stones of the cairn from the ground up: centre, half-width and half-height in pixels. */
const stones: readonly (readonly [x: number, y: number, rx: number, ry: number])[] = [
  [480, 392, 150, 44],
  [468, 318, 116, 36],
  [490, 258, 92, 30],
  [476, 207, 68, 25],
  [486, 164, 48, 20],
  [480, 131, 28, 15],
];

/** Draws the picture. @returns A PNG of 960 × 480 pixels. */
export function drawPicture(): Uint8Array<ArrayBuffer> {
  const rows = new Uint8Array(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) {
    const row = y * (1 + width * 3);
    for (let x = 0; x < width; x += 1) rows.set(colourAt(x, y), row + 1 + x * 3);
  }
  return writePng(rows);
}

function colourAt(x: number, y: number): readonly [number, number, number] {
  const stone = stones.findLast(([cx, cy, rx, ry]) => ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 <= 1);
  if (stone !== undefined) return shade(stone, x, y);
  const ridge = 350 + 26 * Math.sin(x / 130) + 12 * Math.sin(x / 47 + 2);
  if (y > ridge) return blend([38, 44, 66], [16, 18, 30], (y - ridge) / (height - ridge));
  return blend([44, 52, 96], [246, 168, 110], (y / ridge) ** 1.6);
}

function shade(stone: readonly [number, number, number, number], x: number, y: number) {
  const [cx, cy, rx, ry] = stone;
  const light = 0.5 - 0.35 * ((x - cx) / rx) - 0.45 * ((y - cy) / ry);
  return blend([40, 38, 46], [206, 184, 166], Math.min(1, Math.max(0, light)));
}

function blend(
  from: readonly number[],
  to: readonly number[],
  share: number,
): readonly [number, number, number] {
  const mix = (index: number) => Math.round((from[index] ?? 0) * (1 - share) + (to[index] ?? 0) * share);
  return [mix(0), mix(1), mix(2)];
}

const signature = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10);

function writePng(rows: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, 8); // bits a sample
  header.setUint8(9, 2); // red, green, blue
  const parts = [
    signature,
    pngChunk("IHDR", new Uint8Array(header.buffer)),
    pngChunk("IDAT", deflateSync(rows, { level: 6 })),
    pngChunk("IEND", new Uint8Array(0)),
  ];
  return new Uint8Array(Buffer.concat(parts));
}

function pngChunk(kind: string, body: Uint8Array): Uint8Array {
  const chunk = Buffer.alloc(12 + body.length);
  chunk.writeUInt32BE(body.length, 0);
  chunk.write(kind, 4, "latin1");
  chunk.set(body, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + body.length)), 8 + body.length);
  return chunk;
}
