/**
 * The transaction record of an id: of a transaction, or built from the header of a data item.
 * Source: docs/reference/gateway.md#social-frames.
 * @module
 */
import { type ItemHeader, readItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { utf8Bytes } from "../lib/bytes.ts";
import type { Composing } from "../lib/event-loop.ts";
import { writeJson } from "../lib/json.ts";
import type { IndexReader, Located } from "../store/index/index-types.ts";
import { type ChainResponse, jsonOf } from "./chain-response.ts";
import type { Transactions } from "./transactions.ts";

export type FramesOptions = Readonly<{
  reader: Pick<IndexReader, "locate">;
  content: Pick<Content, "open">;
  transactions: Pick<Transactions, "record">;
}>;

export type Frames = Readonly<{
  /**
   * The record as JSON; a node's `Pending` with status 202 for a transaction that is in no block yet.
   *
   * @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`.
   */
  record: (id: Id, composing: Composing) => Promise<ChainResponse>;
}>;

export function createFrames({ reader, content, transactions }: FramesOptions): Frames {
  const headerOf = async (item: Located, opened: OpenContent, signal: AbortSignal): Promise<Uint8Array> => {
    // An id that is in no block has no place in a transaction's data.
    if (opened.header !== undefined) return await opened.header();
    const root = await content.open(item.rootId, signal);
    const start = item.itemOffset;
    return await root.bytes({ start, end: start + item.headerSize }, signal);
  };

  const ofItem = async (item: Located, opened: OpenContent, signal: AbortSignal): Promise<string> => {
    const bytes = await headerOf(item, opened, signal);
    const read = readItemHeader(bytes, "lenient");
    if (read.kind !== "header" || read.header.id !== item.id)
      throw new Failure("source_failed", {
        id: item.id,
        reason: "the bytes at its place are another item's",
      });
    return writeItemRecord(read.header);
  };

  return {
    record: async (id, composing) => {
      const { signal } = composing;
      const located = reader.locate(id);
      // A record reveals its content, so the block list covers both.
      if (located !== undefined) {
        const opened = await content.open(id, signal);
        await opened.check({ start: 0, end: opened.size }, signal);
        if (located.kind === "item") return jsonOf(await ofItem(located, opened, signal));
      }
      const reply = await transactions.record(id, composing);
      const { status } = reply;
      if (status !== 200 && status !== 202) throw new Failure("not_found", { id, status });
      return reply;
    },
  };
}

/** Fields that data items do not have are as in a transaction without them. */
function writeItemRecord(header: ItemHeader): string {
  const { id, anchor, owner, tags, target, signature } = header;
  return writeJson({
    format: 2,
    id,
    last_tx: anchor,
    owner: encodeBase64url(owner),
    tags: tags.map(({ name, value }) => ({ name: encodeText(name), value: encodeText(value) })),
    target,
    quantity: "0",
    data: "",
    data_tree: [],
    data_root: "",
    reward: "0",
    signature: encodeBase64url(signature),
  });
}

function encodeText(text: string): string {
  return encodeBase64url(utf8Bytes(text));
}
