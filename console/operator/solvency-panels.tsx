/**
 * Reports of the credit operator: the statement of a month as a file, what is owed to clients with the published roots
 * of solvency, and the proof of an account.
 * @module
 */
import { type FormEvent, useId, useState } from "react";
import { grouped } from "../../src/lib/quantity-text.ts";
import { Table, Values } from "../page-parts.tsx";
import { type OperatorClient, useRecord } from "./operator-client.ts";

type Root = Readonly<{ at: number; accounts: number; winc: string; root: string }>;

type Solvency = Readonly<{
  everyMs: number | null;
  current: Root;
  roots: readonly (Root & Readonly<{ id: string; publishedAt: number | null }>)[];
}>;

type PanelProps = Readonly<{ client: OperatorClient }>;

/** The section of statements and solvency. */
export function Reports({ client }: PanelProps) {
  return (
    <>
      <h3>Solvency</h3>
      <SolvencyState client={client} />
      <div className="cards">
        <FileForm
          title="Statement of a month"
          text="CSV that sums to the ledger, in UTC."
          label="Month, such as 2026-11"
          pattern="20[0-9]{2}-(0[1-9]|1[0-2])"
          path={(month) => `statement?month=${encodeURIComponent(month)}`}
          fileName={(month) => `statement-${month}.csv`}
          client={client}
        />
        <FileForm
          title="Proof of an account"
          text="That its credits are in the newest published root; “cairn solvency verify” checks it."
          label="Account"
          path={(account) => `solvency/proof?account=${encodeURIComponent(account)}`}
          fileName={(account) => `solvency-${account}.json`}
          client={client}
        />
      </div>
    </>
  );
}

const wincText = (winc: string) => `${grouped(winc)} winc`;
const momentOf = (at: number) => new Date(at).toLocaleString();

function SolvencyState({ client }: PanelProps) {
  const { value, error } = useRecord<Solvency>(client, "solvency");
  if (error !== undefined) return <p className="fault">{error.message}</p>;
  if (value === undefined) return <p className="empty">Reading …</p>;
  const { everyMs, current, roots } = value;
  const last = roots.find(({ publishedAt }) => publishedAt !== null);
  return (
    <>
      <Values
        values={[
          ["Owed to clients", wincText(current.winc)],
          ["Accounts", String(current.accounts)],
          ["Root", <code key="root">{current.root}</code>],
          ["Of", momentOf(current.at)],
          ["Last published", last === undefined ? "never" : momentOf(last.publishedAt ?? 0)],
        ]}
      />
      <Table
        name="Published roots"
        columns={["Of", "Owed", "Accounts", "Data item", "Published"]}
        rows={roots.map(({ id, at, winc, accounts, publishedAt }) => [
          id,
          momentOf(at),
          wincText(winc),
          String(accounts),
          <a key="item" href={`explorer?id=${id}`}>
            <code>{id}</code>
          </a>,
          publishedAt === null ? "not yet" : momentOf(publishedAt),
        ])}
        empty={everyMs === null ? "SOLVENCY_PUBLISH_MS is not set: the program publishes no root." : "No root yet."}
      />
    </>
  );
}

type FileFormProps = PanelProps &
  Readonly<{
    title: string;
    text: string;
    label: string;
    pattern?: string;
    /** Below `/svc/admin/`. */
    path: (value: string) => string;
    fileName: (value: string) => string;
  }>;

/** A form whose response is saved as a file. A link cannot send the key. */
function FileForm({ title, text, label, pattern, path, fileName, client }: FileFormProps) {
  const prefix = useId();
  const [outcome, setOutcome] = useState<Readonly<{ isDone: boolean; text: string }>>();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const value = String(new FormData(event.currentTarget).get("value") ?? "").trim();
    const name = fileName(value);
    client.file(path(value)).then(
      (file) => {
        saveFile(file, name);
        setOutcome({ isDone: true, text: `Saved ${name}.` });
      },
      (error) => setOutcome({ isDone: false, text: error instanceof Error ? error.message : String(error) }),
    );
  };
  return (
    <form className="card" onSubmit={submit} aria-labelledby={prefix}>
      <h3 id={prefix}>{title}</h3>
      <p>{text}</p>
      <label htmlFor={`${prefix}value`}>{label}</label>
      <input
        id={`${prefix}value`}
        name="value"
        required={true}
        spellCheck={false}
        autoComplete="off"
        {...(pattern === undefined ? {} : { pattern })}
      />
      <button type="submit">Save</button>
      <p role="status" className={outcome?.isDone === false ? "fault" : "done"}>
        {outcome?.text ?? ""}
      </p>
    </form>
  );
}

function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has begun, and has its own reference to the bytes.
  setTimeout(() => URL.revokeObjectURL(url), revokeMs);
}

const revokeMs = 10_000;
