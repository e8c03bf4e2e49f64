/**
 * Credits: accounts with their history, payments with refunds, promo codes, and the changes of the operator to them.
 *
 * Each change has a new idempotency key, so that its request, sent again, changes nothing twice.
 * @module
 */
import { type FormEvent, useId, useState } from "react";
import { grouped } from "../../src/lib/quantity-text.ts";
import { Table, Values } from "../page-parts.tsx";
import { randomKey } from "../route-client.ts";
import { ActionForm, type Change, type FormAction, type FormValues } from "./operator-actions.tsx";
import { type OperatorClient, useRecord, withNextPage } from "./operator-client.ts";
import { Reports } from "./solvency-panels.tsx";

type Accounts = Readonly<{ accounts: readonly Readonly<{ address: string; winc: string }>[]; next: string | null }>;

type Account = Readonly<{
  address: string;
  winc: string;
  controlledWinc: string;
  effectiveBalance: string;
  history: readonly Readonly<{ transferId: string; kind: string; at: number; winc: string; note: string | null }>[];
  next: string | null;
}>;

type Payment = Readonly<{
  id: string;
  method: "card" | "token" | "x402";
  account: string | null;
  at: number;
  winc: string;
  withheldWinc: string;
  /** For example "25.00 USD". */
  paid: string;
}>;

type Payments = Readonly<{ payments: readonly Payment[]; next: string | null }>;

type ShownPayment = Payment & Readonly<{ refund: Readonly<{ paid: string; winc: string; spentWinc: string }> | null }>;

type Promos = Readonly<{
  promos: readonly Readonly<{
    code: string;
    state: string;
    source: "rules" | "ledger";
    operator: string;
    operatorMagnitude: string;
    uses: string;
    maxUses: string | null;
    endsAt: string | null;
  }>[];
}>;

export type CreditProps = Readonly<{ client: OperatorClient; onChange: (change: Change) => void }>;

const pageSize = 50;

const wincText = (winc: string) => {
  const isNegative = winc.startsWith("-");
  return `${isNegative ? "-" : ""}${grouped(isNegative ? winc.slice(1) : winc)} winc`;
};

const order = [
  { name: "operator", label: "Operator", type: "text", isRequired: true, hint: "Your name, for the record" },
  { name: "reason", label: "Reason", type: "text", isRequired: true },
] as const;

const ordered = ({ operator = "", reason = "" }: FormValues) => ({ operator, reason, idempotencyKey: randomKey() });

const movement = (kind: "grant" | "adjust") => ({
  method: "POST" as const,
  path: ({ address = "" }: FormValues) => `accounts/${encodeURIComponent(String(address))}/${kind}`,
  body: (values: FormValues) => ({ winc: String(values["winc"]), ...ordered(values) }),
});

const account = { name: "address", label: "Account", type: "text", isRequired: true } as const;

const forms: readonly FormAction[] = [
  {
    title: "Grant credits",
    text: "Unpaid credits, out of the account of promotions.",
    fields: [account, { name: "winc", label: "Winc", type: "text", isRequired: true }, ...order],
    question: ({ winc, address }) => `Grant ${winc} winc to ${address}?`,
    verb: "Grant",
    ...movement("grant"),
  },
  {
    title: "Adjust an account",
    text: "Corrects it. Below 0 takes credits from it, but never more than it has.",
    fields: [account, { name: "winc", label: "Winc, such as 500 or -500", type: "text", isRequired: true }, ...order],
    question: ({ winc, address }) => `Adjust ${address} by ${winc} winc?`,
    verb: "Adjust",
    ...movement("adjust"),
  },
  {
    title: "Add a promo code",
    text: "It is in force at once.",
    fields: [
      { name: "code", label: "Code", type: "text", isRequired: true },
      { name: "factor", label: "Factor of the charge", type: "text", isRequired: true, hint: "0.9 is 10 % off" },
      { name: "uses", label: "Most payments", type: "text" },
      ...order,
    ],
    question: ({ code, factor }) => `Add the promo code ${code}, which multiplies the charge by ${factor}?`,
    verb: "Add",
    method: "POST",
    path: () => "promos/add",
    body: (values) => {
      const { code = "", factor = "", uses } = values;
      const promo = { code, name: code, description: `Promo code ${code}`, operatorMagnitude: factor };
      return { promo: uses === undefined ? promo : { ...promo, maxUses: uses }, ...ordered(values) };
    },
  },
];

/** The section of credits. */
export function Credits({ client, onChange }: CreditProps) {
  return (
    <>
      <AccountSection client={client} />
      <PaymentList client={client} onChange={onChange} />
      <PromoList client={client} onChange={onChange} />
      <Reports client={client} />
      <h3>Changes</h3>
      <div className="cards">
        {forms.map((form) => (
          <ActionForm key={form.title} action={form} onChange={onChange} />
        ))}
      </div>
    </>
  );
}

function AccountSection({ client }: Pick<CreditProps, "client">) {
  const [address, setAddress] = useState<string>();
  return (
    <>
      <AccountList client={client} onShow={setAddress} />
      <AccountLookup onShow={setAddress} />
      {address === undefined ? null : <AccountHistory key={address} client={client} address={address} />}
    </>
  );
}

type ShowAccount = Readonly<{ onShow: (address: string) => void }>;

function AccountList({ client, onShow }: Pick<CreditProps, "client"> & ShowAccount) {
  const { cursor, pages } = usePages();
  const { value, error } = useRecord<Accounts>(client, `accounts?limit=${pageSize}${cursor}`);
  return (
    <>
      <h3>Accounts</h3>
      {error === undefined ? null : <p className="fault">{error.message}</p>}
      <Table
        name="Accounts"
        columns={["Account", "Credits"]}
        rows={(value?.accounts ?? []).map(({ address, winc }) => [
          address,
          <>
            <code>{address}</code>{" "}
            <button type="button" aria-label={`History of ${address}`} onClick={() => onShow(address)}>
              History
            </button>
          </>,
          wincText(winc),
        ])}
        empty={value === undefined ? "Reading …" : "No accounts."}
      />
      {pages(value?.next ?? null)}
    </>
  );
}

function AccountLookup({ onShow }: ShowAccount) {
  const label = useId();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onShow(String(new FormData(event.currentTarget).get("address") ?? "").trim());
  };
  return (
    <form className="row" onSubmit={submit}>
      <label htmlFor={label}>History of an account</label>
      <input id={label} name="address" required spellCheck={false} autoComplete="off" />
      <button type="submit">Show</button>
    </form>
  );
}

function AccountHistory({ client, address }: Pick<CreditProps, "client"> & Readonly<{ address: string }>) {
  const { cursor, pages } = usePages();
  const at = `accounts/${encodeURIComponent(address)}?limit=${pageSize}${cursor}`;
  const { value, error } = useRecord<Account>(client, at);
  if (error !== undefined) return <p className="fault">{error.message}</p>;
  return (
    <>
      <p>
        <code>{address}</code>
      </p>
      {value === undefined ? null : (
        <Values
          values={[
            ["Credits", wincText(value.winc)],
            ["With what it has shared", wincText(value.controlledWinc)],
            ["With what others share", wincText(value.effectiveBalance)],
          ]}
        />
      )}
      <Table
        name="History"
        columns={["At", "Kind", "Credits", "Note"]}
        rows={(value?.history ?? []).map(({ transferId, kind, at: moment, winc, note }) => [
          transferId,
          new Date(moment).toLocaleString(),
          kind,
          wincText(winc),
          note ?? "–",
        ])}
        empty={value === undefined ? "Reading …" : "No transfers."}
      />
      {pages(value?.next ?? null)}
    </>
  );
}

function PaymentList({ client, onChange }: CreditProps) {
  const { cursor, pages } = usePages();
  const [chosen, setChosen] = useState<string>();
  const { value, error } = useRecord<Payments>(client, `payments?limit=${pageSize}${cursor}`);
  return (
    <>
      <h3>Payments</h3>
      {error === undefined ? null : <p className="fault">{error.message}</p>}
      <Table
        name="Payments"
        columns={["At", "Account", "Paid", "Credits", "Withheld", "Action"]}
        rows={(value?.payments ?? []).map((payment) => [
          payment.id,
          new Date(payment.at).toLocaleString(),
          <code key="account">{payment.account ?? "a gift"}</code>,
          payment.paid,
          wincText(payment.winc),
          wincText(payment.withheldWinc),
          payment.method !== "card" || payment.winc === payment.withheldWinc ? (
            "–"
          ) : (
            <button
              key="refund"
              type="button"
              aria-label={`Refund ${payment.id}`}
              onClick={() => setChosen(payment.id)}
            >
              Refund …
            </button>
          ),
        ])}
        empty={value === undefined ? "Reading …" : "No payments."}
      />
      {pages(value?.next ?? null)}
      {chosen === undefined ? null : <Refund key={chosen} client={client} id={chosen} onChange={onChange} />}
    </>
  );
}

function Refund({ client, id, onChange }: CreditProps & Readonly<{ id: string }>) {
  const { value, error } = useRecord<ShownPayment>(client, `payment?id=${encodeURIComponent(id)}`);
  if (error !== undefined) return <p className="fault">{error.message}</p>;
  if (value === undefined) return <p className="empty">Reading …</p>;
  const { paid, refund } = value;
  if (refund === null) return <p className="empty">None of its credits are left to take back.</p>;
  const debt = `${wincText(refund.spentWinc)} of them are spent: the account's next payments pay this debt first.`;
  const spent = refund.spentWinc === "0" ? "None of them are spent." : debt;
  const effect = `It takes back ${wincText(refund.winc)}. ${spent}`;
  const before = refund.paid === paid ? "" : ` The rest of ${paid} was paid back before.`;
  const form: FormAction = {
    title: "Refund a payment",
    text: `Payment ${id}.${before} ${effect}`,
    fields: order,
    question: () => `Refund ${refund.paid} of payment ${id}?${before} ${effect}`,
    verb: "Refund",
    method: "POST",
    path: () => "payments/refund",
    body: (values) => ({ id, ...ordered(values) }),
  };
  return (
    <div className="cards">
      <ActionForm action={form} onChange={onChange} />
    </div>
  );
}

function PromoList({ client, onChange }: CreditProps) {
  const [chosen, setChosen] = useState<string>();
  const { value, error } = useRecord<Promos>(client, "promos");
  const form: FormAction = {
    title: `End the promo code ${chosen}`,
    text: "It ends at once, and is not added again.",
    fields: order,
    question: () => `End the promo code ${chosen} now?`,
    verb: "End",
    method: "POST",
    path: () => "promos/end",
    body: (values) => ({ code: chosen, ...ordered(values) }),
  };
  return (
    <>
      <h3>Promo codes</h3>
      {error === undefined ? null : <p className="fault">{error.message}</p>}
      <Table
        name="Promo codes"
        columns={["Code", "State", "Charge", "Payments", "Until", "Action"]}
        rows={(value?.promos ?? []).map(
          ({ code, state, operator, operatorMagnitude, uses, maxUses, endsAt, source }) => [
            code,
            <code key="code">{code}</code>,
            state,
            `${operator} ${operatorMagnitude}`,
            maxUses === null ? uses : `${uses} of ${maxUses}`,
            endsAt === null ? "–" : new Date(endsAt).toLocaleString(),
            source === "rules" || state === "ended" ? (
              "–"
            ) : (
              <button key="end" type="button" aria-label={`End ${code}`} onClick={() => setChosen(code)}>
                End …
              </button>
            ),
          ],
        )}
        empty={value === undefined ? "Reading …" : "No promo codes."}
      />
      {chosen === undefined ? null : (
        <div className="cards">
          <ActionForm action={form} onChange={onChange} />
        </div>
      )}
    </>
  );
}

/** Pages of a list: the cursor as a part of its query, and the buttons below it. */
function usePages() {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const after = cursors.at(-1);
  return {
    cursor: after === undefined ? "" : `&after=${encodeURIComponent(after)}`,
    pages: (next: string | null) => (
      <div className="buttons">
        {cursors.length === 0 ? null : (
          <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>
            Back
          </button>
        )}
        {next === null ? null : (
          <button type="button" onClick={() => setCursors(withNextPage(cursors, next))}>
            More
          </button>
        )}
      </div>
    ),
  };
}
