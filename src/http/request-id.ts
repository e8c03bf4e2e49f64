/**
 * The id by which one request is found in logs: the caller's own where it is fit, else one made here.
 * Source: docs/reference/gateway.md#request-ids.
 * @module
 */

const fitPattern = /^[A-Za-z0-9._:-]{1,128}$/;

/** Random bytes in an id that is made here. */
const madeBytes = 16;

/** Gives the id of a request from its `X-Request-Id` header, or makes one of 22 base64url characters. */
export function requestIdOf(given: string | null): string {
  if (given !== null && fitPattern.test(given)) return given;
  return crypto.getRandomValues(new Uint8Array(madeBytes)).toBase64({ alphabet: "base64url", omitPadding: true });
}
