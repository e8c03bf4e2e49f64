/**
 * Where it can be asked in which transaction an item lies.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Hint } from "./hint.ts";
import type { NodeResponse } from "./node.ts";

/** Several of one kind. */
export type HintSources = Readonly<{
  count: number;
  /** Asks one after the other; absent only when none has the item. Parameters as in `Sources.ask`. */
  find: <Value>(
    id: Id,
    check: (hint: Hint, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ) => Promise<NodeResponse<Value>>;
  close: () => void;
}>;
