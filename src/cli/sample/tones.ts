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
  const sound = new DataView(bytes.buffer, headerBytes);
  for (let index = 0; index < samples; index += 1) {
    const time = index / samplesPerSecond;
    const note = Math.floor(time / secondsPerNote);
    const hertz = melody[note % melody.length] ?? 220;
    const since = time - note * secondsPerNote;
    const fade = Math.exp(-4 * since) * Math.min(1, since * 200);
    sound.setInt16(index * 2, Math.round(9_000 * fade * Math.sin(2 * Math.PI * hertz * time)), true);
  }
  return bytes;
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
