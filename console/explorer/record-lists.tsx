/**
 * Lists of blocks and of transactions and items, page by page.
 * @module
 */
import { type ReactNode, useCallback } from "react";
import { bytesText } from "../../src/lib/quantity-text.ts";
import { numberText, Table } from "../page-parts.tsx";
import { AddressLink, BlockLink, PageLink, TransactionLink } from "./explorer-links.tsx";
import {
  type BlockRecord,
  type RecordPage,
  readInvalidItems,
  readTransactions,
  type TransactionFilter,
  type TransactionRecord,
} from "./gateway-client.ts";
import { useLiveReading } from "./use-live-reading.ts";

/** Invalid entries that the gateway stores for a bundle. */
const invalidListedMax = 1_000;

/** The age of a moment, in its largest unit. @param seconds - Unix seconds. */
export function ageText(seconds: number): string {
  const age = Math.max(0, Math.round(Date.now() / 1_000 - seconds));
  if (age < 60) return `${age} s ago`;
  if (age < 3_600) return `${Math.floor(age / 60)} min ago`;
  if (age < 86_400) return `${Math.floor(age / 3_600)} h ago`;
  return new Date(seconds * 1_000).toLocaleDateString();
}

/** What a row is, from its content type and its tags. */
function kindOf({ data, tags, bundledIn, quantity }: TransactionRecord): string {
  if (tags.some(({ name }) => name === "Bundle-Format")) return "bundle";
  if (data.type !== null) return data.type;
  if (bundledIn === null && quantity.winston !== "0") return "transfer";
  return "–";
}

export function BlockTable({ blocks }: Readonly<{ blocks: readonly BlockRecord[] }>) {
  return (
    <Table
      name="Blocks"
      columns={["Height", "Age", "Hash"]}
      rows={blocks.map(({ id, height, timestamp }) => [
        id,
        <BlockLink key="height" block={height}>
          {numberText(height)}
        </BlockLink>,
        <time key="age" dateTime={new Date(timestamp * 1_000).toISOString()}>
          {ageText(timestamp)}
        </time>,
        <BlockLink key="hash" block={id}>
          <code title={id}>{`${id.slice(0, 10)}…`}</code>
        </BlockLink>,
      ])}
      empty="No block yet."
    />
  );
}

type TransactionTableProps = Readonly<{ rows: readonly TransactionRecord[]; empty: string }>;

export function TransactionTable({ rows, empty }: TransactionTableProps) {
  return (
    <Table
      name="Transactions and data items"
      columns={["Id", "Kind", "Size", "Owner", "Block"]}
      rows={rows.map((row) => [
        row.id,
        <TransactionLink key="id" id={row.id} />,
        <span key="kind" className="kind" title={kindOf(row)}>
          {kindOf(row)}
        </span>,
        bytesText(Number(row.data.size)),
        <AddressLink key="owner" address={row.owner.address} />,
        row.block === null ? (
          <span key="block" className="pending">
            pending
          </span>
        ) : (
          <BlockLink key="block" block={row.block.height}>
            {numberText(row.block.height)}
          </BlockLink>
        ),
      ])}
      empty={empty}
    />
  );
}

type PagedProps = Readonly<{
  title: string;
  filter: TransactionFilter;
  after: string | undefined;
  /** The address of a page of the list. */
  pageAt: (after: string | undefined) => string;
  empty: string;
  children?: ReactNode;
}>;

/** A list of transactions and items by a filter. Its first page shows what arrives. */
export function TransactionList({ title, filter, after, pageAt, empty, children }: PagedProps) {
  // Filters are made anew with every rendering; their text is the same.
  const text = JSON.stringify(filter);
  const read = useCallback((signal: AbortSignal) => readTransactions(JSON.parse(text), after, signal), [text, after]);
  const { value, error } = useLiveReading(read, after === undefined);
  return (
    <section className="list" aria-label={title}>
      <h2>
        {title}
        {value?.count === undefined || value.count === null ? null : <small>{numberText(Number(value.count))}</small>}
      </h2>
      {children}
      <Fault error={error} />
      {value === undefined ? (
        <Reading isFailed={error !== undefined} />
      ) : (
        <>
          <TransactionTable rows={value.rows} empty={empty} />
          <Pager page={value} after={after} pageAt={pageAt} />
        </>
      )}
    </section>
  );
}

type InvalidItemListProps = Readonly<Pick<PagedProps, "after" | "pageAt"> & { bundle: string }>;

/** The entries of a bundle that are not valid data items. Nothing while there are none. */
export function InvalidItemList({ bundle, after, pageAt }: InvalidItemListProps) {
  const read = useCallback((signal: AbortSignal) => readInvalidItems(bundle, after, signal), [bundle, after]);
  const { value, error } = useLiveReading(read, after === undefined);
  if (value === undefined) return <Fault error={error} />;
  const { items, itemCount, invalidCount, next } = value;
  if (items.length === 0 && after === undefined) return null;
  return (
    <section className="list" aria-label="Invalid items">
      <h2>
        Invalid items
        {invalidCount === null ? null : <small>{numberText(invalidCount)}</small>}
      </h2>
      <p>
        {itemCount === null
          ? "These entries of the bundle"
          : `Of the ${numberText(itemCount)} entries of the bundle, these`}{" "}
        are not valid data items: the gateway neither indexes nor serves them.
        {invalidCount !== null && invalidCount > invalidListedMax
          ? ` The first ${numberText(invalidListedMax)} are listed.`
          : ""}
      </p>
      <Fault error={error} />
      <Table
        name="Invalid items"
        columns={["Entry", "Id in the header", "Byte", "Reason"]}
        rows={items.map(({ index, id, offset, reason }) => [
          String(index),
          numberText(index),
          <code key="id">{id}</code>,
          numberText(offset),
          reason,
        ])}
        empty="No further entry is listed."
      />
      <Pager page={{ next: next ?? undefined }} after={after} pageAt={pageAt} names={["First", "Further"]} />
    </section>
  );
}

type PagerProps = Readonly<{
  page: Pick<RecordPage<unknown>, "next">;
  after: string | undefined;
  pageAt: (after: string | undefined) => string;
  /** Words of the two links. */
  names?: readonly [first: string, next: string];
}>;

/** Links to the first and to the next page. */
export function Pager({ page, after, pageAt, names: [first, further] = ["Newest", "Older"] }: PagerProps) {
  if (after === undefined && page.next === undefined) return null;
  return (
    <nav aria-label="Pages" className="pager">
      {after === undefined ? null : <PageLink to={pageAt(undefined)}>{first}</PageLink>}
      {page.next === undefined ? null : <PageLink to={pageAt(page.next)}>{further}</PageLink>}
    </nav>
  );
}

export function Fault({ error }: Readonly<{ error: Error | undefined }>) {
  return (
    <p role="alert" className="fault">
      {error === undefined ? "" : `The gateway did not give it: ${error.message}`}
    </p>
  );
}

export function Reading({ isFailed }: Readonly<{ isFailed: boolean }>) {
  return isFailed ? null : <p className="empty">Reading …</p>;
}
