/**
 * Blocks fetched ahead, in parallel, and taken in order; bounded in number and in memory.
 * @module
 */
import { linkedController } from "../lib/stop.ts";
import type { FetchedBlock } from "./fetch-block.ts";

/** What a window is made of. */
export type WindowOptions = Readonly<{
  /** Heights, both inclusive. */
  from: number;
  to: number;
  /** Blocks on their way or waiting at once. */
  ahead: number;
  /** No more blocks are begun while those that wait take this many bytes. */
  heldBytesMax: number;
  /** JSON of the block before `from`, where it is known. */
  before: string | undefined;
  fetch: (
    height: number,
    previous: () => Promise<string | undefined>,
    onText: (text: string) => void,
    signal: AbortSignal,
  ) => Promise<FetchedBlock>;
  signal: AbortSignal;
}>;

/** Blocks ahead. */
export type BlockWindow = Readonly<{
  /** The next block in order. Rejects as its fetch did; then only `close` is left. */
  next: () => Promise<FetchedBlock>;
  /** Ends what is on its way and waits for it. */
  close: () => Promise<void>;
}>;

type Ahead = Readonly<{
  outcome: Promise<FetchedBlock | Readonly<{ error: unknown }>>;
  text: Promise<string | undefined>;
}>;

/** Begins to fetch ahead. */
export function openWindow(options: WindowOptions): BlockWindow {
  const { from, to, ahead, heldBytesMax, fetch } = options;
  const { controller, unlink } = linkedController(options.signal);
  const blocks = new Map<number, Ahead>();
  let taken = from;
  let begun = from;
  let heldBytes = 0;

  const begin = (height: number) => {
    const text = Promise.withResolvers<string | undefined>();
    const previous = height === from ? Promise.resolve(options.before) : blocks.get(height - 1)?.text;
    const outcome = fetch(height, () => previous ?? Promise.resolve(undefined), text.resolve, controller.signal).then(
      (block) => {
        heldBytes += block.heldBytes;
        return block;
      },
      // Held until the follower comes to it: the blocks before it are still good.
      (error: unknown) => ({ error }),
    );
    // A block that never came leaves the next one without a text to be checked by, not waiting.
    void outcome.finally(() => text.resolve(undefined));
    blocks.set(height, { outcome, text: text.promise });
  };

  const beginMore = () => {
    while (begun <= to && begun < taken + ahead && (heldBytes < heldBytesMax || begun === taken)) {
      begin(begun);
      begun += 1;
    }
  };
  beginMore();

  return {
    next: async () => {
      beginMore();
      const outcome = await blocks.get(taken)?.outcome;
      if (outcome === undefined) throw new Error(`block ${taken} is beyond the window`);
      if ("error" in outcome) throw outcome.error;
      // The text of the block before the next one is still asked for by it.
      blocks.delete(taken - 1);
      taken += 1;
      heldBytes -= outcome.heldBytes;
      beginMore();
      return outcome;
    },
    close: async () => {
      controller.abort(new Error("the window is closing"));
      unlink();
      await Promise.all([...blocks.values()].map(({ outcome }) => outcome));
    },
  };
}
