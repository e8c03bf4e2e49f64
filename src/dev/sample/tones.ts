/**
 * The sample site's large file: a few minutes of sound as a WAV, large enough that a player seeks by ranges.
 * @module
 */

const samplesPerSecond = 44_100;
const headerBytes = 44;

/** Notes of the melody in hertz, one after another, again and again. */
const melody = [220, 277.18, 329.63, 440, 329.63, 277.18, 246.94, 293.66, 369.99, 493.88, 369.99, 293.66];
const secondsPerNote = 0.6;

/** Writes the sound: one channel of 16 bits. @param seconds - its length. */
export function writeTones(seconds: number): Uint8Array<ArrayBuffer> {
  const samples = Math.floor(seconds * samplesPerSecond);
  const bytes = new Uint8Array(headerBytes + samples * 2);
  writeHeader(new DataView(bytes.buffer), samples * 2);
  // Notes come again and again: each is computed once and copied, which made a start cheaper by 0.2 s of a processor.
  const notes = melody.map(soundOfNote);
  for (let at = headerBytes, index = 0; at < bytes.length; index += 1) {
    const note = notes[index % notes.length] ?? new Uint8Array(0);
    bytes.set(note.subarray(0, bytes.length - at), at);
    at += note.length;
  }
  return bytes;
}

/** The samples of one note. Sine and fade go from sample to sample by products, which is cheaper than calls. */
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
