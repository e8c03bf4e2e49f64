/**
 * How large an answer's body is, beside the answer: the runtime writes Content-Length itself, when the
 * answer leaves, and drops one that was set before a stream.
 * @module
 */

const sizes = new WeakMap<Response, number>();

/** Notes the size of an answer's body in bytes. @returns The answer. */
export function withBodySize(answer: Response, size: number): Response {
  sizes.set(answer, size);
  return answer;
}

/** The size that was noted; 0 for an answer of which nobody said. */
export function bodySizeOf(answer: Response): number {
  return sizes.get(answer) ?? 0;
}
