/**
 * The history of an account: every movement of its credits, newest first, page after page.
 * @module
 */
import { type ReactNode, useCallback, useEffect, useState } from "react";
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
  reversal: "Payment refunded or undone: taken back",
  adjustment: "Corrected by the operator",
};

/** The text of a movement. Credits that a refund or a dispute took come back as a reversal, too. */
function textOf(kind: string, amount: bigint): string {
  if (kind === "reversal" && amount > 0n) return "Dispute won, or refund failed: returned";
  return kindTexts[kind] ?? kind;
}

/** Kinds whose cause is a data item. */
const itemKinds = ["reservation", "reservation_posted", "upload", "prepayment", "refund"];

const idPattern = /^[A-Za-z0-9_-]{43}$/;

export type HistoryProps = Readonly<{
  /** Value of `Authorization`. */
  token: string;
  /** The balance: a change of it is a movement that is not shown yet. Undefined until it is known. */
  winc: bigint | undefined;
}>;

type Shown = Readonly<{ entries: readonly HistoryEntry[]; cursor: string | null }>;

export function History({ token, winc }: HistoryProps) {
  const [shown, setShown] = useState<Shown>();
  const [fault, setFault] = useState("");
  const load = useCallback(
    (after: string | null) => {
      const stop = new AbortController();
      setFault("");
      readHistory(token, after, stop.signal).then(
        (page) => {
          if (!stop.signal.aborted)
            setShown((before) => (after === null ? withNewest(before, page) : withNext(before, page)));
        },
        (error) => {
          if (!stop.signal.aborted) setFault(`The history cannot be read: ${error.message}`);
        },
      );
      return () => stop.abort();
    },
    [token],
  );
  useEffect(() => (winc === undefined ? undefined : load(null)), [load, winc]);
  const cursor = shown?.cursor ?? null;
  return (
    <section aria-label="History">
      <p className="fault" role="alert">
        {fault}
      </p>
      {fault !== "" && (
        <button type="button" onClick={() => load(null)}>
          Read again
        </button>
      )}
      {shown === undefined ? (
        <p className="empty">{fault === "" ? "…" : ""}</p>
      ) : (
        <Table
          name="Movements of credits"
          columns={["Time", "What", "Credits", "Of"]}
          rows={shown.entries.map(rowOf)}
          empty="Nothing has moved yet."
        />
      )}
      {cursor !== null && (
        <button type="button" onClick={() => load(cursor)}>
          Earlier
        </button>
      )}
    </section>
  );
}

/** Puts movements that are new before those that are shown, which stay. */
function withNewest(shown: Shown | undefined, page: Shown): Shown {
  const known = page.entries.findIndex(({ id }) => id === shown?.entries[0]?.id);
  if (shown === undefined || known === -1) return page;
  return { entries: [...page.entries.slice(0, known), ...shown.entries], cursor: shown.cursor };
}

/** Puts earlier movements after those that are shown; each once, however often they were requested. */
function withNext(shown: Shown | undefined, page: Shown): Shown {
  const ids = new Set(shown?.entries.map(({ id }) => id));
  return {
    entries: [...(shown?.entries ?? []), ...page.entries.filter(({ id }) => !ids.has(id))],
    cursor: page.cursor,
  };
}

function rowOf({ id, kind, date, winc, changeId }: HistoryEntry) {
  const amount = BigInt(winc);
  return [
    id,
    <time key="time" dateTime={date}>
      {momentText(Date.parse(date))}
    </time>,
    textOf(kind, amount),
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
