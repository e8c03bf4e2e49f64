/**
 * What the status record has, in sections.
 * @module
 */
import { arText, bytesText, countText, durationText } from "../../src/lib/quantity-text.ts";
import type { BundleOverview } from "../../src/upload/pipeline/bundle-overview.ts";
import { momentText, numberText, type Row, Table, Values } from "../page-parts.tsx";
import type { Change } from "./operator-actions.tsx";
import type { History, Ledger, OperatorStatus, Source } from "./operator-client.ts";

export function shareText(part: number, whole: number): string {
  return whole === 0 ? "–" : `${((part / whole) * 100).toFixed(1)} %`;
}

/** A duration that may be below a second. @param seconds - Undefined and null are unknown. */
export function secondsText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  return seconds < 1 ? `${numberText(seconds * 1_000)} ms` : durationText(seconds * 1_000);
}

/** The last known value of a metric. */
function newest(history: History | undefined, metric: string): number | null | undefined {
  return history?.hour.values[metric]?.findLast((value) => value !== null);
}

export function Overview({ status, history }: Readonly<{ status: OperatorStatus; history: History | undefined }>) {
  const { chain, reasons, index, requests, cache, queues } = status;
  const { memory, disk, source } = requests.content;
  const fromHere = memory.responses + disk.responses;
  const jobs = Object.values(queues).reduce((sum, count) => sum + count, 0);
  const toTip = chain.lag !== null && chain.lag <= 0 ? "at the tip" : secondsText(chain.secondsToTip);
  return (
    <>
      {reasons.length === 0 ? null : (
        <ul className="notice">
          {reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      <h3>Chain</h3>
      <Values
        values={[
          ["Height", numberText(chain.height)],
          ["Tip", numberText(chain.tip)],
          ["Blocks behind", numberText(chain.lag)],
          ["Time to the tip", toTip],
          ["Blocks a second", numberText(chain.blocksPerSecond)],
        ]}
      />
      <h3>Requests since the start</h3>
      <Values
        values={[
          ["Responses", numberText(requests.responses)],
          ["Status 5xx", numberText(requests.serverErrors)],
          ["Sent", bytesText(requests.bytes)],
          ["Content from here", shareText(fromHere, fromHere + source.responses)],
          ["Median latency", secondsText(newest(history, "latencyMedian"))],
          ["99 % within", secondsText(newest(history, "latency99"))],
        ]}
      />
      <Table
        name="Content by place"
        columns={["Content from", "Responses", "Sent"]}
        rows={(["memory", "disk", "source"] as const).map((tier) => [
          tier,
          { memory: "memory", disk: "this disk", source: "nodes and gateways" }[tier],
          numberText(requests.content[tier].responses),
          bytesText(requests.content[tier].bytes),
        ])}
        empty=""
      />
      <h3>Index and queues</h3>
      <Values
        values={[
          ["Transactions", numberText(index["transactions"])],
          ["Items", numberText(index["items"])],
          ["Bundles", numberText(index["bundles"])],
          ["Bundles queued", numberText(index["bundlesQueued"])],
          ["Bundles failed", numberText(index["bundlesFailed"])],
          ["Transactions missing", numberText(index["missingTransactions"])],
          ["Jobs in threads", numberText(jobs)],
        ]}
      />
      <Table
        name="Jobs by pool of threads"
        columns={["Pool", "Jobs"]}
        rows={Object.entries(queues)
          .filter(([, count]) => count > 0)
          .map(([pool, count]) => [pool, pool, numberText(count)])}
        empty="All queues of threads are empty."
      />
      <h3>Disk</h3>
      <Disks status={status} />
      <p className="empty">
        Content cache: {bytesText(cache.bytes)} of {bytesText(cache.bytesMax)};{" "}
        {countText(cache.evictedRoots, "root was", "roots were")} evicted since the start.
      </p>
    </>
  );
}

function Disks({ status: { disk, cache, settings, uploads } }: Readonly<{ status: OperatorStatus }>) {
  const waiting = Object.values(uploads?.bytes ?? {}).reduce((sum, bytes) => sum + bytes, 0);
  const budgets: Readonly<Record<string, readonly [used: number, max: number]>> = {
    content: [cache.bytes, settings.cacheBytesMax],
    uploads: [waiting, settings.uploadBytesMax],
  };
  return (
    <Table
      name="Disks"
      columns={["Folder", "Free", "Used", "Budget"]}
      rows={Object.entries(disk).map(([folder, { freeBytes, bytes }]) => {
        const budget = budgets[folder];
        return [
          folder,
          folder,
          `${bytesText(freeBytes)} of ${bytesText(bytes)}`,
          <meter key={folder} min={0} max={bytes} high={bytes * 0.9} value={bytes - freeBytes}>
            {shareText(bytes - freeBytes, bytes)}
          </meter>,
          budget === undefined ? "–" : `${bytesText(budget[0])} of ${bytesText(budget[1])}`,
        ];
      })}
      empty="Not read yet."
    />
  );
}

/** Why a record of the status is null. */
export function Absent({ of, status, off }: Readonly<{ of: string; status: OperatorStatus; off: string }>) {
  const isUnreadable = status.unreadable.includes(of);
  return isUnreadable ? (
    <p className="fault">The database of this record could not be read.</p>
  ) : (
    <p className="empty">{off}</p>
  );
}

export function UploadPanel({
  status,
  onChange,
}: Readonly<{ status: OperatorStatus; onChange: (change: Change) => void }>) {
  const { uploads } = status;
  if (uploads === null) return <Absent of="uploads" status={status} off="The upload service is off." />;
  const { items, bytes, bundles, oldest, list } = uploads;
  return (
    <>
      <Table
        name="Uploads by state"
        columns={["State", "Items", "Size", "Bundles", "Oldest"]}
        rows={Object.keys(items).map((state) => [
          state,
          state,
          numberText(items[state]),
          bytesText(bytes[state] ?? 0),
          numberText(bundles[state]),
          (items[state] ?? 0) === 0 ? "–" : secondsText(oldest[state]),
        ])}
        empty=""
      />
      <h3>Unfinished bundles</h3>
      <Table
        name="Unfinished bundles"
        columns={["State", "Waits for", "Last error", "Next step", "Items", "Size", "Transaction or id", "Action"]}
        rows={list.map((bundle) => bundleCells(bundle, onChange))}
        empty="Every bundle is permanent."
      />
    </>
  );
}

function bundleCells(bundle: BundleOverview, onChange: (change: Change) => void): Row {
  const { id, state, waitsFor, nextAt, itemCount, itemsSize, lastError, attempts, transactionId } = bundle;
  const retry: Change = {
    method: "POST",
    path: "retry-bundle",
    body: { id },
    question: `Take the next step of bundle ${id} now?`,
    verb: "Retry",
  };
  return [
    id,
    state,
    waitsFor,
    lastError === null ? "–" : `${lastError} (${countText(attempts, "attempt")})`,
    momentText(nextAt),
    numberText(itemCount),
    bytesText(itemsSize),
    <code key="id">{transactionId ?? id}</code>,
    <button key="retry" type="button" aria-label={`Retry bundle ${id}`} onClick={() => onChange(retry)}>
      Retry …
    </button>,
  ];
}

const topUpKinds = ["payment", "token_payment", "x402_payment"] as const;

export function Money({ status }: Readonly<{ status: OperatorStatus }>) {
  const { ledger, uploads } = status;
  const wallet = uploads?.wallet;
  return (
    <>
      <h3>Wallet that posts bundles</h3>
      {wallet === undefined || wallet === null ? (
        <Absent of="uploads" status={status} off="The balance was not read, or the upload service is off." />
      ) : (
        <>
          <Values
            values={[
              ["Balance", `${arText(BigInt(wallet.balance))} AR`],
              ["Days left", wallet.daysLeft === null ? "nothing spent" : numberText(wallet.daysLeft)],
              ["Spent a day", `${arText(BigInt(wallet.spentPerDay))} AR`],
              ["Read at", momentText(wallet.readAt)],
            ]}
          />
          <p>
            <code>{wallet.address}</code>
          </p>
        </>
      )}
      <h3>Ledger, in credits of 10¹² winc</h3>
      {ledger === null ? (
        <Absent of="ledger" status={status} off="The payment service is off." />
      ) : (
        <LedgerTotals ledger={ledger} />
      )}
    </>
  );
}

function LedgerTotals({ ledger }: Readonly<{ ledger: Ledger }>) {
  const { liabilities, revenue, promotions, adjustments, paid, transfers } = ledger;
  const topUps = topUpKinds.reduce((sum, kind) => sum + (transfers[kind] ?? 0), 0);
  return (
    <>
      <Values
        values={[
          ["Owed to clients", arText(BigInt(liabilities))],
          ["Earned", arText(BigInt(revenue))],
          ["Given", arText(BigInt(promotions))],
          ["Corrected", arText(BigInt(adjustments))],
          ["Top-ups since the start", numberText(topUps)],
          ["Refunds since the start", numberText(transfers["refund"] ?? 0)],
        ]}
      />
      <Table
        name="Credits that were paid for"
        columns={["Provider", "Credits paid, less refunds"]}
        rows={Object.entries(paid).map(([provider, winc]) => [provider, provider, arText(BigInt(winc))])}
        empty="Nothing was paid yet."
      />
      <Table
        name="Transfers since the start"
        columns={["Transfer", "Count since the start"]}
        rows={Object.entries(transfers).map(([kind, count]) => [kind, kind.replaceAll("_", " "), numberText(count)])}
        empty="No transfer since the start."
      />
    </>
  );
}

export function Sources({ sources }: Readonly<Pick<OperatorStatus, "sources">>) {
  const { nodes, gateways, chunks, peers } = sources;
  return (
    <>
      <SourceTable name="Nodes" sources={nodes} />
      <SourceTable name="Gateways" sources={gateways} />
      <SourceTable name="Sources of chunks" sources={chunks} />
      <p className="empty">
        Peers that were learned: {countText(peers.gateways, "gateway")} and {countText(peers.nodes, "node")}.
      </p>
    </>
  );
}

function SourceTable({ name, sources }: Readonly<{ name: string; sources: readonly Source[] }>) {
  return (
    <>
      <h3>{name}</h3>
      <Table
        name={name}
        columns={["Address", "Health", "Success", "Latency", "Faults", "False responses"]}
        rows={sources.map(({ url, rests, wrongs, successShare, latencyMs, faults }) => [
          url,
          url,
          rests ? <b key="rests">backs off</b> : "responds",
          shareText(successShare, 1),
          secondsText(latencyMs / 1_000),
          numberText(faults),
          numberText(wrongs),
        ])}
        empty="None is configured."
      />
    </>
  );
}

export function Recent({ requests: { recent }, lines }: Readonly<Pick<OperatorStatus, "requests" | "lines">>) {
  const rowsOf = (list: typeof recent.requests) =>
    list.map(
      ({ at, method, path, status, durationMs, bytes, service, requestId }): Row => [
        `${at} ${requestId}`,
        momentText(at),
        `${method} ${path}`,
        String(status),
        secondsText(durationMs / 1_000),
        bytesText(bytes),
        service,
        <code key="id">{requestId}</code>,
      ],
    );
  const columns = ["Time", "Request", "Status", "Duration", "Sent", "Service", "Request id"];
  return (
    <>
      <h3>Warnings and errors of the log</h3>
      <Table
        name="Warnings and errors of the log"
        columns={["Time", "Level", "Message", "Fields"]}
        rows={lines.map(({ at, level, message, fields }, index) => [
          // Lines of one millisecond may be equal; new lines come first.
          String(lines.length - index),
          momentText(at),
          level,
          message,
          <code key="fields">{fields === "{}" ? "" : fields}</code>,
        ])}
        empty="None since the start."
      />
      <h3>Latest responses with status 5xx</h3>
      <Table
        name="Latest responses with status 5xx"
        columns={columns}
        rows={rowsOf(recent.errors)}
        empty="None since the start."
      />
      <h3>Latest requests</h3>
      <Table name="Latest requests" columns={columns} rows={rowsOf(recent.requests)} empty="None yet." />
    </>
  );
}
