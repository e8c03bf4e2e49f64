/**
 * The sample site's sound and picture.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { inflateSync } from "node:zlib";
import { drawPicture, writeTones } from "../../../src/dev/sample/sample-media.ts";

describe("writeTones", () => {
  const samplesPerNote = 26_460;
  const wav = writeTones(9);
  const sound = new DataView(wav.buffer, 44);
  const peak = (from: number, count: number) => {
    let highest = 0;
    for (let at = from; at < from + count; at += 1) highest = Math.max(highest, sound.getInt16(at * 2, true));
    return highest;
  };

  test("the header has the size of one channel of 16 bits", () => {
    const head = new DataView(wav.buffer);
    expect(wav.length).toBe(44 + 9 * 44_100 * 2);
    expect(head.getUint32(4, true)).toBe(wav.length - 8);
    expect(head.getUint32(40, true)).toBe(wav.length - 44);
  });

  test("each note rises from silence and fades", () => {
    for (let note = 0; note < 14; note += 1) {
      const start = note * samplesPerNote;
      expect(sound.getInt16(start * 2, true)).toBe(0);
      expect(peak(start, 2_000)).toBeGreaterThan(7_000);
      expect(peak(start + samplesPerNote - 2_000, 2_000)).toBeLessThan(1_500);
    }
  });

  test("a note has its pitch: 220 Hz cross zero upwards 132 times in 0.6 s", () => {
    let crossings = 0;
    for (let at = 1; at < samplesPerNote; at += 1)
      if (sound.getInt16(at * 2 - 2, true) <= 0 && sound.getInt16(at * 2, true) > 0) crossings += 1;
    expect(crossings).toBe(132);
  });

  test("the melody begins anew after twelve notes, and the last note is cut off at the end", () => {
    const [first, again] = [0, 12].map((note) => wav.subarray(44 + note * samplesPerNote * 2).subarray(0, 5_000));
    expect(again).toEqual(first);
    expect(writeTones(1).subarray(44)).toEqual(wav.subarray(44, 44 + 2 * 44_100));
  });
});

test("drawPicture draws the sky, the ground and the stones of 960 by 480 pixels", () => {
  const png = Buffer.from(drawPicture());
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([960, 480]);
  const data = png.indexOf("IDAT");
  const rows = inflateSync(png.subarray(data + 4, data + 4 + png.readUInt32BE(data - 4)));
  expect(rows.length).toBe(480 * (1 + 960 * 3));
  const pixel = (x: number, y: number) => [...rows.subarray(y * 2_881 + 1 + x * 3).subarray(0, 3)];
  expect(pixel(0, 0)).toEqual([44, 52, 96]);
  expect(pixel(0, 479)).toEqual([16, 18, 30]);
  // The top stone covers the sky, and is lighter on its left.
  expect(pixel(470, 131)[0]).toBeGreaterThan(pixel(490, 131)[0] ?? 255);
});
