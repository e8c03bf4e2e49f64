/**
 * Sections that read lists of their own: the block list, the status of a bundle, and the export.
 * @module
 */
import { type FormEvent, useId, useState } from "react";
import { Table, Values } from "../page-parts.tsx";
import type { Change } from "./operator-actions.tsx";
import { type BlockList, type OperatorClient, useRecord, withNextPage } from "./operator-client.ts";

/** Entries of one page of the block list. */
const pageSize = 100;

type BlocksProps = Readonly<{ client: OperatorClient; onChange: (change: Change) => void }>;

/** The block list, with a button to unblock each entry. */
export function Blocks({ client, onChange }: BlocksProps) {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const after = cursors.at(-1);
  const { value, error } = useRecord<BlockList>(
    client,
    `blocks?limit=${pageSize}${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`,
  );
  const next = value?.next ?? null;
  return (
    <>
      <h3>Block list</h3>
      {error === undefined ? null : <p className="fault">{error.message}</p>}
      <Table
        name="Block list"
        columns={["Kind", "Value", "Notes", "Source", "Since", "Action"]}
        rows={(value?.blocks ?? []).map(({ kind, value: blocked, notes, source, blockedAt }) => [
          `${kind} ${blocked}`,
          kind,
          <code key="value">{blocked}</code>,
          notes ?? "–",
          source ?? "–",
          new Date(blockedAt * 1_000).toLocaleString(),
          <button
            key="unblock"
            type="button"
            aria-label={`Unblock ${blocked}`}
            onClick={() =>
              onChange({
                method: "PUT",
                path: kind === "name" ? "unblock-name" : "unblock-data",
                body: { [kind]: blocked },
                question: `Unblock the ${kind} ${blocked}?`,
                verb: "Unblock",
              })
            }
          >
            Unblock …
          </button>,
        ])}
        empty={value === undefined ? "Reading …" : "Nothing is blocked."}
      />
      <div className="buttons">
        {cursors.length === 0 ? null : (
          <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>
            Newer
          </button>
        )}
        {next === null ? null : (
          <button type="button" onClick={() => setCursors(withNextPage(cursors, next))}>
            Older
          </button>
        )}
      </div>
    </>
  );
}

/** How far the index is with a bundle of the chain. */
export function BundleLookup({ client }: Readonly<{ client: OperatorClient }>) {
  const label = useId();
  const [id, setId] = useState<string>();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setId(String(new FormData(event.currentTarget).get("id") ?? "").trim());
  };
  return (
    <>
      <h3>Status of a bundle</h3>
      <form className="row" onSubmit={submit}>
        <label htmlFor={label}>Id of a bundle on the chain</label>
        <input id={label} name="id" required spellCheck={false} autoComplete="off" />
        <button type="submit">Look up</button>
      </form>
      {id === undefined ? null : <BundleFields key={id} client={client} id={id} />}
    </>
  );
}

function BundleFields({ client, id }: Readonly<{ client: OperatorClient; id: string }>) {
  const path = `bundle-status/${encodeURIComponent(id)}`;
  const { value, error } = useRecord<Readonly<Record<string, string | number | null>>>(client, path);
  if (error !== undefined) return <p className="fault">{error.message}</p>;
  if (value === undefined) return <p className="empty">Reading …</p>;
  const known = Object.entries(value).filter(([, each]) => each !== null);
  return (
    <Table
      name={`Status of bundle ${id}`}
      columns={["Field", "Value"]}
      rows={known.map(([name, each]) => [
        name,
        wordsOf(name),
        name.endsWith("At") ? new Date(Number(each) * 1_000).toLocaleString() : String(each),
      ])}
      empty="Nothing is known of this bundle."
    />
  );
}

/** How far the last export is. */
export function ExportState({ client }: Readonly<{ client: OperatorClient }>) {
  const { value, error, again } = useRecord<Readonly<Record<string, string | number | boolean>>>(
    client,
    "export-parquet/status",
  );
  return (
    <>
      <h3>Last export</h3>
      {error === undefined ? null : <p className="fault">{error.message}</p>}
      <Values
        values={Object.entries(value ?? {}).map(([name, each]) => [
          wordsOf(name),
          name === "status" ? String(each).replaceAll("_", " ") : String(each),
        ])}
      />
      <button type="button" onClick={again}>
        Read again
      </button>
    </>
  );
}

/** "endHeight" as "End height". */
function wordsOf(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`).replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
