/**
 * Where the looking for payments began, in the cursors of every chain.
 * @module
 */
import { isJsonObject, readJson } from "../../../lib/json.ts";

/** The height below which no payment is ours. @returns `undefined` when nothing has begun. */
export function beginningOf(cursor: string): number | undefined {
  const mark = readJson(cursor);
  const from = isJsonObject(mark) ? mark["from"] : undefined;
  return typeof from === "number" ? from : undefined;
}
