/**
 * The console of the operator at `/svc/console`: the status of every part, charts of the last hour and day, and the
 * changes that the admin API offers. The key is typed in, and a reload forgets it.
 * @module
 */
import {
  type FormEvent,
  type ReactNode,
  StrictMode,
  useCallback,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { createRoot } from "react-dom/client";
import { bytesText, durationText } from "../../src/lib/quantity-text.ts";
import { numberText } from "../page-parts.tsx";
import { Blocks, BundleLookup, ExportState } from "./content-panels.tsx";
import { Credits } from "./credit-panels.tsx";
import { LineChart, type Series } from "./line-chart.tsx";
import { Actions, type Change, Confirm, type Outcome } from "./operator-actions.tsx";
import {
  createOperatorClient,
  type History,
  type OperatorClient,
  type OperatorStatus,
  useRecord,
  WrongKey,
} from "./operator-client.ts";
import { Absent, Money, Overview, Recent, Sources, secondsText, UploadPanel } from "./status-panels.tsx";

const statusEveryMs = 5_000;
const historyEveryMs = 10_000;

function Console() {
  const [key, setKey] = useState<string>();
  const [reason, setReason] = useState<string>();
  const leave = useCallback((why?: string) => {
    setReason(why);
    setKey(undefined);
  }, []);
  if (key === undefined)
    return (
      <SignIn
        reason={reason}
        onKey={(typed) => {
          setReason(undefined);
          setKey(typed);
        }}
      />
    );
  return <Session key={key} adminKey={key} onLeave={leave} />;
}

function SignIn({ reason, onKey }: Readonly<{ reason: string | undefined; onKey: (key: string) => void }>) {
  const input = useRef<HTMLInputElement>(null);
  const label = useId();
  useEffect(() => input.current?.focus(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const key = input.current?.value.trim() ?? "";
    if (key !== "") onKey(key);
  };
  return (
    <form className="signin" onSubmit={submit}>
      <h1>Console</h1>
      <p className="lead">Height, requests, uploads, money and health of this gateway, for its operator.</p>
      <label htmlFor={label}>Admin key</label>
      <input ref={input} id={label} type="password" autoComplete="off" spellCheck={false} required />
      <p className="empty">
        The value of <code>ADMIN_API_KEY</code>; without one, each start prints a key. It stays in the memory of this
        page: a reload forgets it.
      </p>
      <p role="alert" className="fault">
        {reason ?? ""}
      </p>
      <button type="submit" className="strong">
        Open
      </button>
    </form>
  );
}

const sections = [
  ["overview", "Overview"],
  ["charts", "Charts"],
  ["uploads", "Uploads"],
  ["money", "Money"],
  ["credits", "Credits"],
  ["sources", "Sources"],
  ["content", "Content"],
  ["actions", "Actions"],
  ["log", "Log"],
] as const;

type SectionName = (typeof sections)[number][0];

function sectionOf(hash: string): SectionName {
  return sections.find(([name]) => `#${name}` === hash)?.[0] ?? "overview";
}

function useSection(): SectionName {
  const [section, setSection] = useState(sectionOf(location.hash));
  useEffect(() => {
    const onHash = () => setSection(sectionOf(location.hash));
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  return section;
}

type SessionProps = Readonly<{ adminKey: string; onLeave: (why?: string) => void }>;

function Session({ adminKey, onLeave }: SessionProps) {
  const client = useMemo(() => createOperatorClient(adminKey), [adminKey]);
  const status = useRecord<OperatorStatus>(client, "status", statusEveryMs);
  const history = useRecord<History>(client, "metrics-history", historyEveryMs);
  const section = useSection();
  const wrongKey = status.error instanceof WrongKey ? status.error.message : undefined;
  useEffect(() => {
    if (wrongKey !== undefined) onLeave(wrongKey);
  }, [wrongKey, onLeave]);
  const [change, setChange] = useState<Change>();
  const [outcome, setOutcome] = useState<Outcome>();
  const [changes, setChanges] = useState(0);
  const closeChange = (result: Outcome | undefined) => {
    setChange(undefined);
    if (result === undefined) return;
    setOutcome(result);
    setChanges(changes + 1);
    status.again();
  };
  const title = sections.find(([name]) => name === section)?.[1] ?? "";
  return (
    <>
      <header>
        <nav aria-label="Sections">
          {sections.map(([name, label]) => (
            <a key={name} href={`#${name}`} aria-current={name === section ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <button type="button" onClick={() => onLeave()}>
          Forget the key
        </button>
      </header>
      <h1>{title}</h1>
      <p role="alert" className="fault">
        {status.error === undefined ? "" : `No new values: ${status.error.message}`}
      </p>
      <p role="status" className={outcome?.isDone === false ? "fault" : "done"}>
        {outcome?.text ?? ""}
      </p>
      {status.value === undefined ? (
        <p className="empty">Reading …</p>
      ) : (
        <Section {...{ section, client, changes }} status={status.value} history={history.value} onChange={setChange} />
      )}
      {status.value === undefined ? null : <Footer status={status.value} />}
      {change === undefined ? null : <Confirm change={change} client={client} onClose={closeChange} />}
    </>
  );
}

function Footer({ status: { version, startedAt, now } }: Readonly<{ status: OperatorStatus }>) {
  return (
    <footer>
      Cairn {version}, running for {durationText(Math.max(0, now - startedAt))}; values of{" "}
      {new Date(now).toLocaleTimeString()}.
    </footer>
  );
}

type SectionProps = Readonly<{
  section: SectionName;
  status: OperatorStatus;
  history: History | undefined;
  client: OperatorClient;
  /** Changes that were sent; lists are read again after one. */
  changes: number;
  onChange: (change: Change) => void;
}>;

function Section({ section, status, history, client, changes, onChange }: SectionProps): ReactNode {
  const { ledger, sources, requests, lines } = status;
  switch (section) {
    case "overview":
      return <Overview status={status} history={history} />;
    case "charts":
      return <Charts history={history} />;
    case "uploads":
      return <UploadPanel status={status} onChange={onChange} />;
    case "money":
      return <Money status={status} />;
    case "credits":
      return ledger === null ? (
        <Absent of="ledger" status={status} off="Credits are off." />
      ) : (
        <Credits key={changes} client={client} onChange={onChange} />
      );
    case "sources":
      return <Sources sources={sources} />;
    case "content":
      return (
        <>
          <BundleLookup client={client} />
          <Blocks key={changes} client={client} onChange={onChange} />
        </>
      );
    case "actions":
      return (
        <>
          <ExportState key={changes} client={client} />
          <Actions onChange={onChange} />
        </>
      );
    case "log":
      return <Recent requests={requests} lines={lines} />;
  }
}

type ChartPlan = Readonly<{ title: string; series: readonly Series[]; write: (value: number) => string }>;

const perSecond = (value: number) => `${numberText(value)}/s`;
const bytesPerSecond = (value: number) => `${bytesText(Math.round(value))}/s`;
const wholeBytes = (value: number) => bytesText(Math.round(value));
const fourDigits = (value: number) =>
  value.toLocaleString("en", { minimumFractionDigits: 4, maximumFractionDigits: 4 });

const charts: readonly ChartPlan[] = [
  { title: "Blocks behind the tip", series: [{ metric: "lag", label: "blocks" }], write: numberText },
  {
    title: "Indexed a second",
    series: [
      { metric: "blocks", label: "blocks" },
      { metric: "items", label: "items" },
    ],
    write: perSecond,
  },
  {
    title: "Responses a second",
    series: [
      { metric: "responses", label: "all" },
      { metric: "serverErrors", label: "status 5xx" },
    ],
    write: perSecond,
  },
  {
    title: "Latency",
    series: [
      { metric: "latencyMedian", label: "median" },
      { metric: "latency99", label: "99 % within" },
    ],
    write: secondsText,
  },
  {
    title: "Content sent, by place",
    series: [
      { metric: "memoryBytes", label: "memory" },
      { metric: "diskBytes", label: "disk" },
      { metric: "sourceBytes", label: "sources" },
    ],
    write: bytesPerSecond,
  },
  {
    title: "Content responses, by place",
    series: [
      { metric: "memoryResponses", label: "memory" },
      { metric: "diskResponses", label: "disk" },
      { metric: "sourceResponses", label: "sources" },
    ],
    write: perSecond,
  },
  {
    title: "Queues",
    series: [
      { metric: "jobs", label: "jobs in threads" },
      { metric: "bundlesQueued", label: "bundles" },
    ],
    write: numberText,
  },
  { title: "Memory of the process", series: [{ metric: "memory", label: "resident" }], write: wholeBytes },
  {
    title: "Processors in use",
    series: [{ metric: "processor", label: "processors" }],
    write: (value) => value.toFixed(2),
  },
  { title: "Free disk", series: [{ metric: "diskFree", label: "data folder" }], write: wholeBytes },
  { title: "Content cache on disk", series: [{ metric: "cacheBytes", label: "size" }], write: wholeBytes },
  { title: "Owed to clients", series: [{ metric: "liabilities", label: "credits" }], write: fourDigits },
  { title: "Balance of the wallet", series: [{ metric: "walletBalance", label: "AR" }], write: fourDigits },
];

function Charts({ history }: Readonly<{ history: History | undefined }>) {
  const [range, setRange] = useState<"hour" | "day">("hour");
  if (history === undefined) return <p className="empty">Reading …</p>;
  return (
    <>
      <fieldset className="buttons" aria-label="Time">
        {(["hour", "day"] as const).map((each) => (
          <button key={each} type="button" aria-pressed={each === range} onClick={() => setRange(each)}>
            Last {each}
          </button>
        ))}
      </fieldset>
      <div className="charts">
        {charts.map((chart) => (
          <LineChart key={chart.title} {...chart} range={history[range]} />
        ))}
      </div>
    </>
  );
}

const place = document.getElementById("page");
if (place === null) throw new Error("the page has an element for the console");
createRoot(place).render(
  <StrictMode>
    <Console />
  </StrictMode>,
);
