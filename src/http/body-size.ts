/**
 * How large a response's body is, and how much memory it holds until it has left, beside the response: the runtime
 * writes Content-Length itself, when the response leaves, and drops one that was set before a stream.
 * @module
 */

/** A body's size, and the memory that it holds while it is sent, if that is not all of it. */
type BodyNote = Readonly<{ size: number; held: HeldMemory }>;

/**
 * What a body holds in memory while it is sent: bytes of its own, bytes that other responses share, a file that is
 * read as it is sent, or one piece of a stream at a time.
 */
export type HeldMemory =
  | Readonly<{ kind: "bytes"; bytes: number }>
  | Readonly<{ kind: "shared"; blob: Blob }>
  | Readonly<{ kind: "file"; bytes: number /* of the body */ }>
  | Readonly<{ kind: "stream"; bytes: number }>;

// A number is bytes of the response's own, a Blob is shared bytes: no object is made for each of those.
const notes = new WeakMap<Response, number | Blob | BodyNote>();

/** A body below this size is not counted when it leaves at once: the kernel's buffer of a connection takes it. */
export const countedBytesMin = 16 * 2 ** 10;

/** From here on the kernel sends a file without TLS: the runtime reads none of it. Bytes. */
const sendfileBytesMin = 2 ** 20;

/** Of any other file that is being sent, the runtime holds one piece of this size (Bun 1.4.5, measured). Bytes. */
const filePieceBytes = 256 * 2 ** 10;

/** Memory that a body from a file holds while it is sent. Bytes. */
export function fileHolds(bytes: number, isEncrypted: boolean): number {
  return isEncrypted || bytes < sendfileBytesMin ? Math.min(bytes, filePieceBytes) : 0;
}

/** Notes the size of a body that is in memory. @param body - Its bytes, or the Blob that responses share. */
export function withBodySize(response: Response, body: number | Blob): Response {
  notes.set(response, body);
  return response;
}

/** Notes the size of a body, and what it holds in memory. */
export function withHeldMemory(response: Response, size: number, held: HeldMemory): Response {
  notes.set(response, { size, held });
  return response;
}

/** The size that was noted; 0 for a response without a note. */
export function bodySizeOf(response: Response): number {
  const note = notes.get(response);
  return typeof note === "object" ? note.size : (note ?? 0);
}

/** What a response holds in memory; undefined for one without a note. */
export function heldMemoryOf(response: Response): HeldMemory | undefined {
  const note = notes.get(response);
  if (note === undefined) return undefined;
  if (typeof note === "number") return { kind: "bytes", bytes: note };
  return note instanceof Blob ? { kind: "shared", blob: note } : note.held;
}
