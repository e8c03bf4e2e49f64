/**
 * How the events of subscriptions are written from changes of the index.
 *
 * The thread that serves writes them, once for all subscribers of a selection: nothing here parses or validates.
 * Source: docs/decisions/103-subscriptions.md.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { type Tag, tagValue } from "../arweave/tags.ts";
import type { BlockChange, RecordedBlock, RowChange } from "../store/index/journal/change-record.ts";
import {
  addCharacter,
  addText,
  asciiLeaf,
  compileResult,
  compileShape,
  createOutputs,
  leaf,
  object,
  type Shape,
  type Write,
} from "./response-bytes.ts";
import type { WrittenField } from "./selection.ts";

/** An event; a reset has a reason and no change. */
export type EventSource<Change> = Readonly<{ cursor: string; change: Change | undefined; reason: string | undefined }>;

/** Selection of a subscription: the key of the root field, and the fields of its events. */
export type EventSelection = Readonly<{ key: string; fields: readonly WrittenField[] }>;

const eventKinds = {
  pending: "PENDING",
  mined: "MINED",
  forked: "FORKED",
  dropped: "DROPPED",
  block: "MINED",
  block_forked: "FORKED",
} as const satisfies Record<RowChange["kind"] | BlockChange["kind"], string>;

function textLeaf<Source>(pick: (source: Source) => string | undefined): (field: WrittenField) => Write<Source> {
  return leaf((source, out) => addText(out, JSON.stringify(pick(source) ?? null)));
}

const tagShape: Shape<Tag> = {
  name: "Tag",
  fields: { name: textLeaf(({ name }) => name), value: textLeaf(({ value }) => value) },
};

const opening = 0x5b;
const comma = 0x2c;
const closing = 0x5d;

function tagsField({ inner }: WrittenField): Write<RowChange> {
  const write = compileShape(tagShape, inner);
  return ({ tags }, out) => {
    addCharacter(out, opening);
    for (const [index, tag] of tags.entries()) {
      if (index > 0) addCharacter(out, comma);
      write(tag, out);
    }
    addCharacter(out, closing);
  };
}

const dataShape: Shape<RowChange> = {
  name: "MetaData",
  fields: {
    size: asciiLeaf(({ size }) => `"${size}"`),
    type: textLeaf(({ tags }) => tagValue(tags, "Content-Type")),
  },
};

const bundleShape: Shape<Id> = { name: "Bundle", fields: { id: asciiLeaf((id) => `"${id}"`) } };

const blockShape: Shape<RecordedBlock> = {
  name: "Block",
  fields: {
    id: asciiLeaf(({ hash }) => `"${hash}"`),
    timestamp: asciiLeaf(({ timestamp }) => `${timestamp}`),
    height: asciiLeaf(({ height }) => `${height}`),
    previous: asciiLeaf(({ previous }) => `"${previous}"`),
  },
};

const ownerShape: Shape<RowChange> = {
  name: "EventOwner",
  fields: { address: asciiLeaf(({ ownerAddress }) => `"${ownerAddress}"`) },
};

const rowShape: Shape<RowChange> = {
  name: "EventTransaction",
  fields: {
    id: asciiLeaf(({ id }) => `"${id}"`),
    recipient: textLeaf(({ target }) => target),
    owner: object(ownerShape, (row) => row),
    data: object(dataShape, (row) => row),
    tags: tagsField,
    block: object(blockShape, ({ place }) => place?.block),
    bundledIn: object(bundleShape, ({ place }) => place?.bundledIn),
    pending: asciiLeaf(({ isPending }) => `${isPending}`),
  },
};

function eventShape<Change extends RowChange | BlockChange>(
  name: string,
  node: Shape<Change>,
): Shape<EventSource<Change>> {
  return {
    name,
    fields: {
      cursor: asciiLeaf(({ cursor }) => `"${cursor}"`),
      kind: asciiLeaf(({ change }) => `"${change === undefined ? "RESET" : eventKinds[change.kind]}"`),
      node: object(node, ({ change }) => change),
      reason: textLeaf(({ reason }) => reason),
    },
  };
}

const transactionEventShape = eventShape<RowChange>("TransactionEvent", rowShape);
const blockEventShape = eventShape<BlockChange>("BlockEvent", blockShape);

const beginOutput = createOutputs();

/** Writes an event as a result, in JSON of one line. */
export type WriteResult<Change> = (event: EventSource<Change>) => Uint8Array;

/** Returns the function that writes events of transactions and data items. */
export function compileTransactionEvents(selection: EventSelection): WriteResult<RowChange> {
  return compileEvents(transactionEventShape, selection);
}

/** As `compileTransactionEvents`, for blocks. */
export function compileBlockEvents(selection: EventSelection): WriteResult<BlockChange> {
  return compileEvents(blockEventShape, selection);
}

function compileEvents<Source>(shape: Shape<Source>, { key, fields }: EventSelection): (source: Source) => Uint8Array {
  return compileResult(beginOutput, key, compileShape(shape, fields));
}
