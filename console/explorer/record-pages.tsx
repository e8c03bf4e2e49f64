/**
 * The pages of one block, one transaction or item, one address, and of the rows with some tags.
 * @module
 */
import { type FormEvent, type ReactNode, useCallback, useId, useState } from "react";
import { bytesText, grouped } from "../../src/lib/quantity-text.ts";
import { storedSession } from "../account/account-session.ts";
import { creditsText } from "../account/amounts.ts";
import { momentText, numberText, Table, Values } from "../page-parts.tsx";
import { readCredits } from "../route-client.ts";
import { useReading } from "../use-reading.ts";
import { ContentPreview } from "./content-preview.tsx";
import { AddressLink, BlockLink, openPage, PageLink, searchOf, TagLink, TransactionLink } from "./explorer-links.tsx";
import {
  gatewayUrl,
  readBalance,
  readBlock,
  readNodeBlock,
  readRecentTags,
  readTransaction,
  type TagPair,
  type TransactionRecord,
} from "./gateway-client.ts";
import { ProofPanel } from "./proof-panel.tsx";
import { Fault, InvalidItemList, Reading, TransactionList } from "./record-lists.tsx";
import { useLiveReading } from "./use-live-reading.ts";

/** Bundles around an item that its page follows; nesting is rarely deeper than two. */
const nestingMax = 8;

type BlockPageProps = Readonly<{ block: string; after: string | undefined }>;

export function BlockPage({ block, after }: BlockPageProps) {
  const { value, error } = useReading(
    useCallback(
      async (signal: AbortSignal) => {
        const found = await readBlock(block, signal);
        return { found, json: found === undefined ? undefined : await readNodeBlock(found.id, signal) };
      },
      [block],
    ),
  );
  if (value === undefined)
    return (
      <>
        <h1>Block {block}</h1>
        <Fault error={error} />
        <Reading isFailed={error !== undefined} />
      </>
    );
  const { found, json } = value;
  if (found === undefined)
    return (
      <Unknown title={`Block ${block}`}>
        The index of this gateway has no block with this height or hash. It may be above the tip, or below the height at
        which the index begins.
      </Unknown>
    );
  const { id, height, timestamp, previous } = found;
  const values: (readonly [string, ReactNode])[] = [
    ["Time", new Date(timestamp * 1_000).toLocaleString()],
    ...(json === undefined
      ? []
      : ([
          ["Transactions", numberText(json.txs.length)],
          ["Data", bytesText(Number(json.block_size))],
          ["Weave", bytesText(Number(json.weave_size))],
        ] as const)),
  ];
  return (
    <>
      <h1>Block {numberText(height)}</h1>
      <nav aria-label="Neighbours" className="pager">
        {previous === "" ? null : <BlockLink block={previous}>Previous</BlockLink>}
        <BlockLink block={height + 1}>Next</BlockLink>
      </nav>
      <Values values={values} />
      <Fields
        name="Fields of the block"
        rows={[
          ["Hash", <code key="hash">{id}</code>],
          ["Data root (tx_root)", json?.tx_root ? <code key="root">{json.tx_root}</code> : "–"],
          [
            "Miner",
            json === undefined || json.reward_addr.length !== 43 ? (
              "–"
            ) : (
              <AddressLink key="miner" address={json.reward_addr} whole />
            ),
          ],
        ]}
      />
      <TransactionList
        title="Transactions and data items"
        filter={{ block: { min: height, max: height } }}
        after={after}
        pageAt={(cursor) =>
          searchOf([
            ["block", block],
            ["after", cursor],
          ])
        }
        empty="No transaction of this block is in the index."
      />
    </>
  );
}

/** Names and values, one below the other. */
function Fields({ name, rows }: Readonly<{ name: string; rows: readonly (readonly [string, ReactNode])[] }>) {
  return (
    <dl className="fields" aria-label={name}>
      {rows.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

type UnknownProps = Readonly<{ title: string; children: ReactNode }>;

/** The page of something that the index does not have. */
export function Unknown({ title, children }: UnknownProps) {
  return (
    <>
      <h1>{title}</h1>
      <p>{children}</p>
      <p>
        <PageLink to="?">Latest blocks and transactions</PageLink>
      </p>
    </>
  );
}

/** A row, and the bundles around it from the outermost inwards. */
async function readWithBundles(id: string, signal: AbortSignal) {
  const row = await readTransaction(id, signal);
  const around: string[] = [];
  let bundle = row?.bundledIn?.id;
  while (bundle !== undefined && around.length < nestingMax && !around.includes(bundle)) {
    around.unshift(bundle);
    bundle = (await readTransaction(bundle, signal))?.bundledIn?.id;
  }
  return { row, around };
}

type TransactionPageProps = Readonly<{
  id: string;
  /** Cursor of the items of a bundle. */
  after: string | undefined;
  /** Cursor of the invalid items of a bundle. */
  invalidAfter: string | undefined;
}>;

export function TransactionPage({ id, after, invalidAfter }: TransactionPageProps) {
  const { value, error } = useLiveReading(
    useCallback((signal: AbortSignal) => readWithBundles(id, signal), [id]),
    true,
  );
  if (value === undefined)
    return (
      <>
        <h1>
          <code>{id}</code>
        </h1>
        <Fault error={error} />
        <Reading isFailed={error !== undefined} />
      </>
    );
  const { row, around } = value;
  if (row === undefined)
    return (
      <Unknown title="Not in the index">
        The index of this gateway has no transaction or data item with the id <code>{id}</code>. What was sent a moment
        ago may take some minutes; what an index never had, the gateway may still find at nodes and other gateways:{" "}
        <a href={gatewayUrl(id).pathname}>open the content</a>.
      </Unknown>
    );
  const isBundle = row.tags.some(({ name }) => name === "Bundle-Format");
  return (
    <>
      <h1>{isItem(row) ? "Data item" : "Transaction"}</h1>
      <Summary row={row} />
      <BundlePath id={id} around={around} block={row.block} />
      <Tags tags={row.tags} />
      {isBundle ? (
        <BundleItems id={id} after={after} invalidAfter={invalidAfter} />
      ) : (
        <ContentPreview id={id} type={row.data.type} size={Number(row.data.size)} />
      )}
      {row.block === null ? null : <ProofPanel key={id} id={id} />}
    </>
  );
}

/** The items of a bundle: those of the index, and below them the invalid ones. Each list has pages of its own. */
function BundleItems({ id, after, invalidAfter }: TransactionPageProps) {
  const at = (cursor: string | undefined, invalidCursor: string | undefined) =>
    searchOf([
      ["id", id],
      ["after", cursor],
      ["invalid", invalidCursor],
    ]);
  return (
    <>
      <TransactionList
        title="Items of this bundle"
        filter={{ bundledIn: [id] }}
        after={after}
        pageAt={(cursor) => at(cursor, invalidAfter)}
        empty="The index has no item of this bundle: it is not unpacked yet, or a filter excludes it, or it is empty."
      />
      <InvalidItemList bundle={id} after={invalidAfter} pageAt={(cursor) => at(after, cursor)} />
    </>
  );
}

/** Whether it is a data item. One that waits for its bundle is in none; unlike a transaction, it has no fee. */
function isItem({ bundledIn, block, fee }: TransactionRecord): boolean {
  return bundledIn !== null || (block === null && fee.winston === "0");
}

function Summary({ row }: Readonly<{ row: TransactionRecord }>) {
  const { id, owner, recipient, data, block, quantity, fee } = row;
  return (
    <>
      <Values
        values={[
          ["Size", bytesText(Number(data.size))],
          ["Type", data.type ?? "–"],
          ["State", block === null ? "Pending" : `In block ${numberText(block.height)}`],
          ["Time", block === null ? "–" : momentText(block.timestamp * 1_000)],
        ]}
      />
      <Fields
        name="Fields of the transaction"
        rows={[
          [
            "Id",
            <>
              <code>{id}</code> <a href={gatewayUrl(id).pathname}>open</a>
            </>,
          ],
          ["Owner", <AddressLink key="owner" address={owner.address} whole />],
          ...(recipient === "" ? [] : [["Recipient", <AddressLink key="to" address={recipient} whole />] as const]),
          ...(quantity.winston === "0" ? [] : [["Quantity", `${quantity.ar} AR`] as const]),
          ...(isItem(row) ? [] : [["Fee", `${fee.ar} AR (${grouped(fee.winston)} winston)`] as const]),
        ]}
      />
    </>
  );
}

type BundlePathProps = Readonly<{ id: string; around: readonly string[]; block: TransactionRecord["block"] }>;

/** The way from the block through every bundle to the item. */
function BundlePath({ id, around, block }: BundlePathProps) {
  if (around.length === 0) return null;
  return (
    <section aria-label="Path">
      <h2>Path</h2>
      <ol className="path">
        {block === null ? null : (
          <li>
            Block <BlockLink block={block.height}>{numberText(block.height)}</BlockLink>
          </li>
        )}
        {around.map((bundle, depth) => (
          <li key={bundle}>
            {depth === 0 ? "Transaction" : "Nested bundle"} <TransactionLink id={bundle} />
          </li>
        ))}
        <li aria-current="true">
          Item <code>{`${id.slice(0, 8)}…${id.slice(-6)}`}</code>
        </li>
      </ol>
    </section>
  );
}

function Tags({ tags }: Readonly<{ tags: TransactionRecord["tags"] }>) {
  return (
    <section aria-label="Tags">
      <h2>Tags</h2>
      <Table
        name="Tags"
        columns={["Name", "Value"]}
        rows={tags.map(({ name, value }, index) => [String(index), name, <TagLink key="value" {...{ name, value }} />])}
        empty="It has no tags."
      />
    </section>
  );
}

type AddressPageProps = Readonly<{ address: string; role: "owner" | "recipient"; after: string | undefined }>;

export function AddressPage({ address, role, after }: AddressPageProps) {
  const balance = useReading(useCallback((signal: AbortSignal) => readBalance(address, signal), [address]));
  const credits = useReading(useCallback((signal: AbortSignal) => readOwnCredits(address, signal), [address])).value;
  const at = (of: AddressPageProps["role"], cursor?: string) =>
    searchOf([
      ["address", address],
      ["role", of === "owner" ? undefined : of],
      ["after", cursor],
    ]);
  return (
    <>
      <h1>Address</h1>
      <p>
        <code>{address}</code>
      </p>
      <Values
        values={[
          ["Balance", balance.value === undefined ? "–" : `${arExact(balance.value)} AR`],
          ...(credits === undefined
            ? []
            : [
                [
                  "Your credits",
                  <a key="credits" href={gatewayUrl("svc/account").pathname}>
                    {creditsText(credits)}
                  </a>,
                ] as const,
              ]),
        ]}
      />
      <nav aria-label="Roles">
        <PageLink to={at("owner")} current={role === "owner"}>
          Signed by it
        </PageLink>
        <PageLink to={at("recipient")} current={role === "recipient"}>
          Sent to it
        </PageLink>
      </nav>
      <TransactionList
        key={role}
        title={role === "owner" ? "Signed by this address" : "Sent to this address"}
        filter={role === "owner" ? { owners: [address] } : { recipients: [address] }}
        after={after}
        pageAt={(cursor) => at(role, cursor)}
        empty="The index has no such transaction or item."
      />
    </>
  );
}

/** The credits of the wallet that is signed in at the page of accounts, in this tab; undefined for other addresses. */
async function readOwnCredits(address: string, signal: AbortSignal): Promise<bigint | undefined> {
  return storedSession()?.address === address ? await readCredits(address, signal) : undefined;
}

/** Winston as AR, exactly. */
function arExact(winston: bigint): string {
  const digits = winston.toString().padStart(13, "0");
  const fraction = digits.slice(-12).replace(/0+$/, "");
  return `${grouped(digits.slice(0, -12))}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Names of tags that many applications use. */
const commonNames = [
  "App-Name",
  "App-Version",
  "Bundle-Format",
  "Content-Type",
  "Data-Protocol",
  "Drive-Id",
  "Entity-Type",
  "File-Id",
  "Protocol-Name",
  "Type",
  "Variant",
];

type TagPageProps = Readonly<{ tags: readonly TagPair[]; after: string | undefined }>;

/** Rows with all of some tags, and a form that adds one. */
export function TagPage({ tags, after }: TagPageProps) {
  const at = (of: readonly TagPair[], cursor?: string) =>
    searchOf([...of.map(({ name, value }) => ["tag", `${name}=${value}`] as const), ["after", cursor]]);
  const key = tags.map(({ name, value }) => `${name}=${value}`).join("&");
  return (
    <>
      <h1>Tags</h1>
      <ul className="chips">
        {tags.map((tag, index) => (
          <li key={`${tag.name}=${tag.value}`}>
            {tag.name}: <b>{tag.value}</b>{" "}
            <PageLink to={at(tags.filter((_, other) => other !== index))} label={`Without ${tag.name}`}>
              ×
            </PageLink>
          </li>
        ))}
      </ul>
      <TagForm key={key} tags={tags} onAdd={(tag) => openPage(at([...tags, tag]))} />
      {tags.length === 0 ? null : (
        <TransactionList
          key={key}
          title="Transactions and data items"
          filter={{ tags: tags.map(({ name, value }) => ({ name, values: [value] })) }}
          after={after}
          pageAt={(cursor) => at(tags, cursor)}
          empty="The index has no row with these tags. Names and values are compared byte by byte."
        />
      )}
    </>
  );
}

type TagFormProps = Readonly<{ tags: readonly TagPair[]; onAdd: (tag: TagPair) => void }>;

/** Suggests the tags of the newest rows that have the tags chosen before. */
function TagForm({ tags, onAdd }: TagFormProps) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [nameId, valueId] = [useId(), useId()];
  const chosen = JSON.stringify(tags);
  const recent = useReading(
    useCallback((signal: AbortSignal) => readRecentTags(JSON.parse(chosen), signal), [chosen]),
  ).value;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name === "") return;
    onAdd({ name, value });
    setName("");
    setValue("");
  };
  const names = [...(recent ?? []).map((tag) => tag.name), ...(tags.length === 0 ? commonNames : [])];
  const values = (recent ?? []).filter((tag) => tag.name === name).map((tag) => tag.value);
  return (
    <form className="row" onSubmit={submit}>
      <label htmlFor={nameId}>Name</label>
      <input
        id={nameId}
        list={`${nameId}-list`}
        value={name}
        onChange={(event) => setName(event.target.value)}
        required
      />
      <Suggestions id={`${nameId}-list`} texts={names} />
      <label htmlFor={valueId}>Value</label>
      <input id={valueId} list={`${valueId}-list`} value={value} onChange={(event) => setValue(event.target.value)} />
      <Suggestions id={`${valueId}-list`} texts={values} />
      <button type="submit">Add the tag</button>
    </form>
  );
}

const suggestionsMax = 100;
/** Longer values, such as whole records, are not worth a row of suggestions. Characters. */
const suggestedTextMax = 100;

function Suggestions({ id, texts }: Readonly<{ id: string; texts: readonly string[] }>) {
  const short = [...new Set(texts)].filter((text) => text.length <= suggestedTextMax).slice(0, suggestionsMax);
  return (
    <datalist id={id}>
      {short.map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
}
