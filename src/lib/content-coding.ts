/**
 * Decodes whole bodies of other machines without trusting them about size: 1.7 kB can stand for a gigabyte, and the
 * runtime's own decoder gives whatever comes of a piece in one go.
 * Source: RFC 9110 §8.4.1 (content codings), RFC 8878 (zstd).
 * @module
 */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";

/** What a body was decoded to. */
export type Decoded =
  | Readonly<{ kind: "decoded"; bytes: Uint8Array }>
  | Readonly<{ kind: "too_large" }>
  | Readonly<{ kind: "malformed"; detail: string }>;

type Decode = (body: Uint8Array, options: Readonly<{ maxOutputLength: number }>) => Promise<Uint8Array>;

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ["gzip", promisify(gunzip)],
  ["x-gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
  ["zstd", promisify(zstdDecompress)],
]);

/**
 * Decodes a body, in a thread of the runtime's, which stops at the bound.
 *
 * @param coding - The value of Content-Encoding; one coding, in any letter case, or null.
 * @param bytesMax - Bytes of the decoded body.
 */
export async function decodeBody(body: Uint8Array, coding: string | null, bytesMax: number): Promise<Decoded> {
  const name = coding?.trim().toLowerCase() ?? "";
  // A response without a body has nothing to decode, whatever it says.
  if (name === "" || name === "identity" || body.length === 0) return { kind: "decoded", bytes: body };
  const decode = decoders.get(name);
  if (decode === undefined) return { kind: "malformed", detail: "a content coding that was not asked for" };
  try {
    return { kind: "decoded", bytes: await decode(body, { maxOutputLength: Math.max(1, bytesMax) }) };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      return { kind: "too_large" };
    return { kind: "malformed", detail: `the body is not ${name}` };
  }
}
