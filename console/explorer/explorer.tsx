/**
 * The explorer at `/svc/explorer`: the latest blocks, transactions and data items, and a page of each of them, of
 * addresses and of tags. It reads what every client of the gateway can read.
 * @module
 */
import { type FormEvent, StrictMode, useCallback, useEffect, useId, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { openPage, PageLink, searchOf } from "./explorer-links.tsx";
import {
  isBlockHash,
  isHeight,
  isId,
  readBlocks,
  readName,
  readTransaction,
  readTransactions,
  type TagPair,
} from "./gateway-client.ts";
import { BlockTable, Fault, Pager, Reading, TransactionList } from "./record-lists.tsx";
import { AddressPage, BlockPage, TagPage, TransactionPage, Unknown } from "./record-pages.tsx";
import { useLiveReading } from "./use-live-reading.ts";

function Explorer() {
  const [search, setSearch] = useState(location.search);
  useEffect(() => {
    const onOpen = () => setSearch(location.search);
    addEventListener("popstate", onOpen);
    return () => removeEventListener("popstate", onOpen);
  }, []);
  const parameters = new URLSearchParams(search);
  const shown = ["id", "block", "address", "tag", "blocks", "unknown"].find((name) => parameters.has(name));
  useEffect(() => {
    document.title = `${titleOf(new URLSearchParams(search))} · Cairn`;
  }, [search]);
  return (
    <>
      <header>
        <nav aria-label="Explorer">
          <PageLink to="?" current={shown === undefined}>
            Latest
          </PageLink>
          <PageLink to="?blocks=" current={shown === "blocks"}>
            Blocks
          </PageLink>
          <PageLink to="?tag=" current={shown === "tag"}>
            Tags
          </PageLink>
        </nav>
        <SearchBox />
      </header>
      <Page key={search} parameters={parameters} />
    </>
  );
}

function titleOf(parameters: URLSearchParams): string {
  const [[name, value] = ["", ""]] = parameters;
  if (name === "id" || name === "address") return `${value.slice(0, 8)}…`;
  if (name === "block") return `Block ${value.slice(0, 12)}`;
  return name === "tag" ? value || "Tags" : "Explorer";
}

/** Forms of the values that name one record. */
const forms: Readonly<Record<string, (text: string) => boolean>> = {
  id: isId,
  address: isId,
  block: (text) => isHeight(text) || isBlockHash(text),
  unknown: () => false,
};

function Page({ parameters }: Readonly<{ parameters: URLSearchParams }>) {
  const after = parameters.get("after") ?? undefined;
  const name = Object.keys(forms).find((each) => (parameters.get(each) ?? "") !== "");
  if (name !== undefined) return <RecordPage {...{ name, after, parameters }} text={parameters.get(name) ?? ""} />;
  if (parameters.has("tag")) return <TagPage tags={parameters.getAll("tag").flatMap(tagOf)} after={after} />;
  if (parameters.has("blocks")) return <Blocks after={after} />;
  return <Latest after={after} />;
}

type RecordPageProps = Readonly<{
  name: string;
  text: string;
  after: string | undefined;
  parameters: URLSearchParams;
}>;

function RecordPage({ name, text, after, parameters }: RecordPageProps) {
  if (forms[name]?.(text) !== true) return <NotFound text={text} />;
  if (name === "id")
    return <TransactionPage id={text} after={after} invalidAfter={parameters.get("invalid") ?? undefined} />;
  if (name === "block") return <BlockPage block={text} after={after} />;
  const role = parameters.get("role") === "recipient" ? "recipient" : "owner";
  return <AddressPage address={text} role={role} after={after} />;
}

function tagOf(text: string): TagPair[] {
  const at = text.indexOf("=");
  return at < 1 ? [] : [{ name: text.slice(0, at), value: text.slice(at + 1) }];
}

function NotFound({ text }: Readonly<{ text: string }>) {
  return (
    <Unknown title="Nothing found">
      <code>{text.slice(0, 200)}</code> is not an id, address, name or block that this gateway knows. An id or an
      address has 43 characters, the hash of a block 64, and a height only digits; a tag is written as{" "}
      <code>name=value</code>.
    </Unknown>
  );
}

function Latest({ after }: Readonly<{ after: string | undefined }>) {
  return (
    <>
      <h1>Explorer</h1>
      <div className="columns">
        <Blocks after={undefined} isPart />
        <TransactionList
          title="Latest transactions and data items"
          filter={{}}
          after={after}
          pageAt={(cursor) => searchOf([["after", cursor]])}
          empty="Nothing is in the index yet."
        />
      </div>
    </>
  );
}

type BlocksProps = Readonly<{ after: string | undefined; isPart?: boolean }>;

function Blocks({ after, isPart = false }: BlocksProps) {
  const { value, error } = useLiveReading(
    useCallback((signal: AbortSignal) => readBlocks(after, signal), [after]),
    after === undefined,
  );
  const Heading = isPart ? "h2" : "h1";
  return (
    <section className="list" aria-label="Latest blocks">
      <Heading>{isPart ? "Latest blocks" : "Blocks"}</Heading>
      <Fault error={error} />
      {value === undefined ? (
        <Reading isFailed={error !== undefined} />
      ) : (
        <>
          <BlockTable blocks={value.rows} />
          <Pager
            page={value}
            after={after}
            pageAt={(cursor) =>
              searchOf([
                ["blocks", ""],
                ["after", cursor],
              ])
            }
          />
        </>
      )}
    </section>
  );
}

const searchTimeoutMs = 30_000;

/** Finds what a text means. @returns The page of it. */
async function findPage(text: string, signal: AbortSignal): Promise<string> {
  if (isHeight(text) || isBlockHash(text)) return searchOf([["block", text]]);
  if (text.indexOf("=") > 0) return searchOf([["tag", text]]);
  if (isId(text)) {
    if ((await readTransaction(text, signal)) !== undefined) return searchOf([["id", text]]);
    const filters = [{ owners: [text] }, { recipients: [text] }];
    const pages = await Promise.all(filters.map((filter) => readTransactions(filter, undefined, signal)));
    return searchOf([[pages.some(({ rows }) => rows.length > 0) ? "address" : "id", text]]);
  }
  const named = await readName(text.toLowerCase(), signal);
  return named === undefined ? searchOf([["unknown", text]]) : searchOf([["id", named]]);
}

function SearchBox() {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const label = useId();
  useEffect(() => {
    // As on other pages of this kind, "/" leads to the search.
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const sought = text.trim();
    if (sought === "" || isBusy) return;
    setBusy(true);
    setFault("");
    try {
      openPage(await findPage(sought, AbortSignal.timeout(searchTimeoutMs)));
      setText("");
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <search>
      <form className="search" onSubmit={(event) => void submit(event)}>
        <label htmlFor={label}>Search</label>
        <input
          ref={input}
          id={label}
          type="search"
          value={text}
          onChange={(event) => setText(event.target.value)}
          placeholder="Id, address, name, height or tag=value"
          autoComplete="off"
          spellCheck={false}
          maxLength={500}
        />
        <button type="submit" className="strong" disabled={isBusy}>
          Find
        </button>
        <p role="alert" className="fault">
          {fault}
        </p>
      </form>
    </search>
  );
}

const root = document.getElementById("page");
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <Explorer />
    </StrictMode>,
  );
