/**
 * Fetches blocks ahead in parallel and returns them in order; bounded in number and in memory.
 * @module
 */
import { linkedController } from "../lib/stop.ts";
import { type FetchedBlock, indexedPrevious, type PreviousBlock } from "./fetch-block.ts";

export type WindowOptions = Readonly<{
  /** Heights, both inclusive. */
  from: number;
  to: number;
  /** Most blocks that are being fetched or waiting. */
  ahead: number;
  /** No fetch begins while the waiting blocks take this many bytes. */
  heldBytesMax: number;
  /** JSON of the block before `from`, if known. */
  before: string | undefined;
  fetch: (
    height: number,
    previous: PreviousBlock,
    onText: (text: string) => void,
    signal: AbortSignal,
  ) => Promise<FetchedBlock>;
  signal: AbortSignal;
}>;

export type BlockWindow = Readonly<{
  /** The next block in order. Rejects as its fetch did; afterwards only `close` may be called. */
  next: () => Promise<FetchedBlock>;
  /** Whether `next` has a block at once. */
  isReady: () => boolean;
  /** Aborts the running fetches and waits for their end. */
  close: () => Promise<void>;
}>;

type Ahead = Readonly<{
  outcome: Promise<FetchedBlock | Readonly<{ error: unknown }>>;
  previous: PreviousBlock; // this block, for the next one
}>;

/** Begins to fetch ahead. */
export function openWindow(options: WindowOptions): BlockWindow {
  const { from, to, ahead, heldBytesMax, fetch } = options;
  const { controller, unlink } = linkedController(options.signal);
  const blocks = new Map<number, Ahead>();
  const ready = new Set<number>();
  let taken = from;
  let begun = from;
  let heldBytes = 0;

  const begin = (height: number) => {
    const text = Promise.withResolvers<string | undefined>();
    let last: string | undefined;
    const onText = (given: string) => {
      last = given;
      text.resolve(given);
    };
    const before = height === from ? indexedPrevious(options.before) : blocks.get(height - 1)?.previous;
    const outcome = fetch(height, before ?? indexedPrevious(undefined), onText, controller.signal).then(
      (block) => {
        heldBytes += block.heldBytes;
        ready.add(height);
        return block;
      },
      // Stored until the follower requests this block: the blocks before it are valid.
      (error: unknown) => ({ error }),
    );
    // After a failed fetch the next block must not wait for the text.
    void outcome.finally(() => text.resolve(undefined));
    const verifiedText = async () => ("error" in (await outcome) ? undefined : last);
    blocks.set(height, { outcome, previous: { text: () => text.promise, verifiedText } });
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
      // The fetch of the next block still needs the text of this one.
      blocks.delete(taken - 1);
      ready.delete(taken);
      taken += 1;
      heldBytes -= outcome.heldBytes;
      beginMore();
      return outcome;
    },
    isReady: () => ready.has(taken),
    close: async () => {
      controller.abort(new Error("the window is closing"));
      unlink();
      await Promise.all([...blocks.values()].map(({ outcome }) => outcome));
    },
  };
}
