/**
 * The sample site's picture: a cairn at dusk, drawn by arithmetic and written as a PNG.
 * @module
 */
import { crc32, deflateSync } from "node:zlib";

const width = 960;
const height = 480;

type Stone = readonly [x: number, y: number, rx: number, ry: number];

/** Stones of the cairn from the ground up: centre, half-width and half-height in pixels. */
const stones: readonly Stone[] = [
  [480, 392, 150, 44],
  [468, 318, 116, 36],
  [490, 258, 92, 30],
  [476, 207, 68, 25],
  [486, 164, 48, 20],
  [480, 131, 28, 15],
];

type Colour = readonly [red: number, green: number, blue: number];

/** Draws the picture. @returns A PNG of 960 × 480 pixels. */
export function drawPicture(): Uint8Array<ArrayBuffer> {
  const rows = new Uint8Array(height * (1 + width * 3));
  const ridges = Array.from({ length: width }, (_, x) => ridgeAt(x));
  for (let y = 0; y < height; y += 1) {
    const row = 1 + y * (1 + width * 3);
    const near = stones.filter(([, cy, , ry]) => Math.abs(y - cy) <= ry).reverse();
    for (let x = 0; x < width; x += 1) {
      const [red, green, blue] = colourAt(x, y, ridges[x] ?? 0, near);
      const at = row + x * 3;
      rows[at] = red;
      rows[at + 1] = green;
      rows[at + 2] = blue;
    }
  }
  return writePng(rows);
}

function ridgeAt(x: number): number {
  return 350 + 26 * Math.sin(x / 130) + 12 * Math.sin(x / 47 + 2);
}

/** @param near - Stones of this line, the topmost first. */
function colourAt(x: number, y: number, ridge: number, near: readonly Stone[]): Colour {
  for (const stone of near) {
    const [cx, cy, rx, ry] = stone;
    if (((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 <= 1) return shade(stone, x, y);
  }
  if (y > ridge) return blend([38, 44, 66], [16, 18, 30], (y - ridge) / (height - ridge));
  return blend([44, 52, 96], [246, 168, 110], (y / ridge) ** 1.6);
}

function shade([cx, cy, rx, ry]: Stone, x: number, y: number): Colour {
  const light = 0.5 - 0.35 * ((x - cx) / rx) - 0.45 * ((y - cy) / ry);
  return blend([40, 38, 46], [206, 184, 166], Math.min(1, Math.max(0, light)));
}

function blend(from: Colour, to: Colour, share: number): Colour {
  const rest = 1 - share;
  return [
    Math.round(from[0] * rest + to[0] * share),
    Math.round(from[1] * rest + to[1] * share),
    Math.round(from[2] * rest + to[2] * share),
  ];
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
