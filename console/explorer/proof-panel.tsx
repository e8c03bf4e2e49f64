/**
 * The proof of content, drawn as a path from the block to the bytes, and checked in this browser.
 * @module
 */
import { useEffect, useState } from "react";
import { bytesText } from "../../src/lib/quantity-text.ts";
import { checkProof, type ProofRecord, type ProofStep, resultOf } from "../verify/proof-check.ts";
import { fetchRoute } from "./gateway-client.ts";

/** Content up to this size is checked whole; of larger content its beginning. Bytes. */
const wholeMax = 4 * 2 ** 20;
const partBytes = 2 ** 18;

type Checked = Readonly<{ steps: readonly ProofStep[]; part: string; fault: string | undefined; isDone: boolean }>;

const nothing: Checked = { steps: [], part: "", fault: undefined, isDone: false };

/** Fetches the content and its proof, and checks them. @param note - Gets the steps so far, again and again. */
async function check(id: string, signal: AbortSignal, note: (checked: Checked) => void): Promise<void> {
  const head = await fetchRoute(`raw/${id}`, signal, { method: "HEAD" });
  if (!head.ok) throw new Error(`the content responds with ${head.status}`);
  const size = Number(head.headers.get("Content-Length") ?? Number.POSITIVE_INFINITY);
  const range = size <= wholeMax ? undefined : { Range: `bytes=0-${partBytes - 1}` };
  const options = range === undefined ? {} : { headers: range };
  const [content, proof] = await Promise.all(
    [`raw/${id}`, `svc/proof/${id}`].map(async (path) => {
      const response = await fetchRoute(path, signal, options);
      if (!response.ok) throw new Error(`${path} responds with ${response.status}`);
      return response;
    }),
  );
  if (content === undefined || proof === undefined) return;
  const record: ProofRecord = await proof.json();
  const bytes = new Uint8Array(await content.arrayBuffer());
  const part = bytes.length < record.size ? `the first ${bytesText(bytes.length)} of ${bytesText(record.size)}` : "";
  const steps: ProofStep[] = [];
  for await (const step of checkProof(record, id, bytes)) {
    steps.push(step);
    note({ steps: [...steps], part, fault: undefined, isDone: false });
  }
  note({ steps, part, fault: undefined, isDone: true });
}

export function ProofPanel({ id }: Readonly<{ id: string }>) {
  const [run, setRun] = useState(0);
  const [checked, setChecked] = useState(nothing);
  useEffect(() => {
    if (run === 0) return;
    const stop = new AbortController();
    const note = (next: Checked) => {
      if (!stop.signal.aborted) setChecked(next);
    };
    note(nothing);
    check(id, stop.signal, note).catch((error: unknown) =>
      note({ ...nothing, fault: error instanceof Error ? error.message : String(error), isDone: true }),
    );
    return () => stop.abort();
  }, [id, run]);
  return (
    <section aria-label="Proof">
      <h2>Proof</h2>
      <p>
        From the block to the bytes: each step is computed in this browser from what the gateway sends. The gateway
        cannot invent one.
      </p>
      <button type="button" onClick={() => setRun(run + 1)}>
        {run === 0 ? "Check the proof" : "Check again"}
      </button>
      <p role="status" className={checked.steps.some(({ state }) => state === "failed") ? "fault" : "done"}>
        {run > 0 && checked.isDone ? verdictOf(checked) : ""}
      </p>
      <p role="alert" className="fault">
        {checked.fault === undefined ? "" : `The proof was not checked: ${checked.fault}.`}
      </p>
      <ol className="proof">
        {checked.steps.map(({ key, name, state, text, hash }) => (
          <li key={key} className={state}>
            <b>
              <span aria-hidden="true">{marks[state]}</span> {name}
            </b>
            <span className="state">{words[state]}</span>
            <p>{text}</p>
            {hash === undefined ? null : <code>{hash}</code>}
          </li>
        ))}
      </ol>
    </section>
  );
}

const marks = { checked: "✓", open: "○", trusted: "○", failed: "✗" } as const;
const words = { checked: "checked", open: "not checked", trusted: "from the gateway", failed: "failed" } as const;

function verdictOf({ steps, part, fault }: Checked): string {
  if (fault !== undefined) return "";
  const { failed, open, isPlaced, isSigned } = resultOf(steps);
  if (failed !== undefined) return `Not proven: the step "${failed.name}" failed.`;
  const what = part === "" ? "These bytes are" : `Of the content, ${part} are`;
  if (isPlaced && isSigned) return `${what} in the block, and signed by their owner.`;
  if (isPlaced) return `${what} in the block. The signature was not checked here.`;
  if (isSigned) return `${what} signed by their owner. A place in a block was not checked.`;
  return `The step "${open?.name}" cannot be checked here.`;
}
