/**
 * Where it can be asked in which transaction an item lies.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { Clue } from "./clue.ts";
import type { NodeAnswer } from "./node.ts";

/** Several of one kind. */
export type ClueSources = Readonly<{
  count: number;
  /** Asks one after the other; absent only when none has the item. Parameters as in `Sources.ask`. */
  find: <Value>(
    id: Id,
    check: (clue: Clue, signal: AbortSignal) => Promise<NodeAnswer<Value>>,
    signal: AbortSignal,
  ) => Promise<NodeAnswer<Value>>;
  close: () => void;
}>;
