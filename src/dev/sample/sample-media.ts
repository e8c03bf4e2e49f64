/**
 * Media of the sample site: a computed PNG of a cairn at dusk, and some minutes of sound as a WAV, large enough that a
 * player seeks by ranges.
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

const samplesPerSecond = 44_100;
const headerBytes = 44;

/** Notes of the repeated melody in hertz. */
const melody = [220, 277.18, 329.63, 440, 329.63, 277.18, 246.94, 293.66, 369.99, 493.88, 369.99, 293.66];
const secondsPerNote = 0.6;

/** Writes the sound: one channel of 16 bits. @param seconds - Its length. */
export function writeTones(seconds: number): Uint8Array<ArrayBuffer> {
  const samples = Math.floor(seconds * samplesPerSecond);
  const bytes = new Uint8Array(headerBytes + samples * 2);
  writeHeader(new DataView(bytes.buffer), samples * 2);
  // Each note is computed once and then copied, which saves 0.2 s of CPU time at a start.
  const notes = melody.map(soundOfNote);
  for (let at = headerBytes, index = 0; at < bytes.length; index += 1) {
    const note = notes[index % notes.length] ?? new Uint8Array(0);
    bytes.set(note.subarray(0, bytes.length - at), at);
    at += note.length;
  }
  return bytes;
}

/** The samples of one note. Sine and fade are computed by products from the previous sample: cheaper than calls. */
function soundOfNote(hertz: number): Uint8Array {
  const count = Math.round(secondsPerNote * samplesPerSecond);
  const sound = new DataView(new ArrayBuffer(count * 2));
  const angle = (2 * Math.PI * hertz) / samplesPerSecond;
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
  const fadeStep = Math.exp(-4 / samplesPerSecond);
  let x = 1;
  let y = 0;
  let fade = 9_000;
  for (let index = 0; index < count; index += 1) {
    const rise = Math.min(1, (index * 200) / samplesPerSecond);
    sound.setInt16(index * 2, Math.round(fade * rise * y), true);
    const rotated = x * cosine - y * sine;
    y = x * sine + y * cosine;
    x = rotated;
    fade *= fadeStep;
  }
  return new Uint8Array(sound.buffer);
}

function writeHeader(view: DataView, dataBytes: number): void {
  const word = (at: number, text: string) => {
    for (let index = 0; index < text.length; index += 1) view.setUint8(at + index, text.charCodeAt(index));
  };
  word(0, "RIFF");
  view.setUint32(4, headerBytes - 8 + dataBytes, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // plain samples
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, samplesPerSecond, true);
  view.setUint32(28, samplesPerSecond * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, dataBytes, true);
}
