/**
 * The history of an account: every movement of its credits, newest first, page after page.
 * @module
 */
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { momentText, Table } from "../page-parts.tsx";
import { routeUrl } from "../route-client.ts";
import { type HistoryEntry, readHistory } from "./account-client.ts";
import { creditsText, wincText } from "./amounts.ts";

/** Why credits moved, by the kind of the movement. */
const kindTexts: Readonly<Record<string, string>> = {
  payment: "Bought by card",
  token_payment: "Bought with tokens",
  x402_payment: "Bought by x402",
  gift_redemption: "Gift",
  promotion: "Given by the operator",
  approval: "Shared with another account",
  approval_revoked: "Sharing ended by you",
  approval_expired: "Sharing ended in time",
  reservation: "Upload",
  reservation_posted: "Upload",
  reservation_voided: "Upload rejected: returned",
  reservation_expired: "Upload did not arrive: returned",
  upload: "Upload",
  reading: "Reading beyond the limits",
  prepayment: "Upload in parts",
  refund: "Upload failed: returned",
  chargeback: "Card payment disputed: taken back",
  reversal: "Payment refunded: taken back",
  adjustment: "Corrected by the operator",
};

/** Kinds whose cause is a data item. */
const itemKinds = ["reservation", "reservation_posted", "upload", "prepayment", "refund"];

const idPattern = /^[A-Za-z0-9_-]{43}$/;

export type HistoryProps = Readonly<{
  /** Value of `Authorization`. */
  token: string;
}>;

export function History({ token }: HistoryProps) {
  const [entries, setEntries] = useState<readonly HistoryEntry[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [fault, setFault] = useState("");
  const stop = useRef<AbortController>();
  const load = useCallback(
    (shown: readonly HistoryEntry[], after: string | null) => {
      stop.current?.abort();
      const own = new AbortController();
      stop.current = own;
      setFault("");
      readHistory(token, after, own.signal).then(
        (page) => {
          setEntries([...shown, ...page.entries]);
          setCursor(page.cursor);
        },
        (error) => {
          if (!own.signal.aborted) setFault(`The history cannot be read: ${error.message}`);
        },
      );
    },
    [token],
  );
  useEffect(() => {
    load([], null);
    return () => stop.current?.abort();
  }, [load]);
  return (
    <section aria-label="History">
      <p className="fault" role="alert">
        {fault}
      </p>
      {entries === undefined ? (
        <p className="empty">{fault === "" ? "…" : ""}</p>
      ) : (
        <Table
          name="Movements of credits"
          columns={["Time", "What", "Credits", "Of"]}
          rows={entries.map(rowOf)}
          empty="Nothing has moved yet."
        />
      )}
      {cursor !== null && (
        <button type="button" onClick={() => load(entries ?? [], cursor)}>
          Earlier
        </button>
      )}
    </section>
  );
}

function rowOf({ id, kind, date, winc, changeId }: HistoryEntry) {
  const amount = BigInt(winc);
  return [
    id,
    <time key="time" dateTime={date}>
      {momentText(Date.parse(date))}
    </time>,
    kindTexts[kind] ?? kind,
    <span key="credits" className={amount < 0n ? "out" : "in"} title={wincText(amount)}>
      {amount < 0n ? "−" : "+"}
      {creditsText(amount < 0n ? -amount : amount)}
    </span>,
    causeOf(kind, changeId),
  ] as const;
}

function causeOf(kind: string, changeId: string | null): ReactNode {
  if (changeId === null) return "–";
  const text = <code key="cause">{changeId}</code>;
  if (!itemKinds.includes(kind) || !idPattern.test(changeId)) return text;
  return (
    <a key="cause" href={routeUrl(`svc/explorer?id=${changeId}`).href}>
      {text}
    </a>
  );
}
