/**
 * Manifests as content: with given fields, and with many paths.
 * @module
 */

const manifestType = "application/x.arweave-manifest+json";

/** A manifest as content. @param fields - Besides `manifest` and `version` 0.2.0. */
export function manifestItem(fields: Readonly<Record<string, unknown>>) {
  const text = JSON.stringify({ manifest: "arweave/paths", version: "0.2.0", ...fields });
  return { body: new TextEncoder().encode(text), contentType: manifestType };
}

/** Paths whose text is joined at once. */
const pathsPerPiece = 10_000;

/** A manifest of 0.2.0 whose paths `{folder}/{n}.html` lead to one id. */
export function manifestText(id: string, count: number, folder = "p"): Uint8Array<ArrayBuffer> {
  const pieces: Buffer[] = [Buffer.from('{"manifest":"arweave/paths","version":"0.2.0","paths":{')];
  for (let from = 0; from < count; from += pathsPerPiece) {
    const some = Array.from({ length: Math.min(pathsPerPiece, count - from) }, (_, at) => {
      const number = from + at;
      return `${number === 0 ? "" : ","}"${folder}/${number}.html":{"id":"${id}"}`;
    });
    pieces.push(Buffer.from(some.join("")));
  }
  pieces.push(Buffer.from("}}"));
  return new Uint8Array(Buffer.concat(pieces));
}
