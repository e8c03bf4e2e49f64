/**
 * A payment in tokens: what an amount buys, the address of the service as a QR code, and the report of the transaction.
 * Source: docs/reference/payment.md#token-payments.
 * @module
 */
import { type FormEvent, useCallback, useId, useState } from "react";
import { decimalText } from "../../src/lib/quantity-text.ts";
import { momentText, Table, Values } from "../page-parts.tsx";
import { useReading } from "../use-reading.ts";
import {
  readAcceptedTokens,
  readPending,
  readTokenPrice,
  reportTransaction,
  type TokenReport,
} from "./account-client.ts";
import { creditsText, readAmount, storedText } from "./amounts.ts";
import { encodeQrCode } from "./qr-code.ts";

type KnownToken = Readonly<{ name: string; symbol: string; places: number }>;

/** Tokens by their first name at the service. */
const knownTokens: Readonly<Record<string, KnownToken>> = {
  native: { name: "AR", symbol: "AR", places: 12 },
  ario: { name: "ARIO", symbol: "ARIO", places: 6 },
  ethereum: { name: "ETH on Ethereum", symbol: "ETH", places: 18 },
  matic: { name: "POL on Polygon", symbol: "POL", places: 18 },
  "base-eth": { name: "ETH on Base", symbol: "ETH", places: 18 },
  solana: { name: "SOL", symbol: "SOL", places: 9 },
  kyve: { name: "KYVE", symbol: "KYVE", places: 6 },
  usdc: { name: "USDC on Ethereum", symbol: "USDC", places: 6 },
  "polygon-usdc": { name: "USDC on Polygon", symbol: "USDC", places: 6 },
  "base-usdc": { name: "USDC on Base", symbol: "USDC", places: 6 },
  "solana-usdc": { name: "USDC on Solana", symbol: "USDC", places: 6 },
};

export type TokenPaymentProps = Readonly<{
  address: string;
  /** Value of `Authorization`. */
  token: string;
  /** Winc for a GiB; undefined while it is not known. */
  rate: bigint | undefined;
}>;

export function TokenPayment({ address, token, rate }: TokenPaymentProps) {
  const { value: accepted, error } = useReading(readAcceptedTokens);
  const [chosen, setChosen] = useState("");
  const field = useId();
  if (accepted === undefined) return <p className={error ? "fault" : "empty"}>{error?.message ?? "…"}</p>;
  const words = Object.keys(knownTokens).filter((word) => accepted[word]);
  const word = words.includes(chosen) ? chosen : (words[0] ?? "");
  const [known, receiver] = [knownTokens[word], accepted[word]];
  if (known === undefined || receiver === undefined) return <p className="empty">The service accepts no tokens now.</p>;
  return (
    <section aria-label="Pay in tokens">
      <h2>Pay in tokens</h2>
      <div className="field">
        <label htmlFor={field}>Token</label>
        <select id={field} value={word} onChange={({ target }) => setChosen(target.value)}>
          {words.map((each) => (
            <option key={each} value={each}>
              {knownTokens[each]?.name}
            </option>
          ))}
        </select>
      </div>
      <Transfer key={`transfer ${word}`} word={word} known={known} receiver={receiver} account={address} rate={rate} />
      <Report key={`report ${word}`} word={word} />
      <Pending token={token} />
    </section>
  );
}

type TransferProps = Readonly<{
  word: string;
  known: KnownToken;
  /** Address of the service. */
  receiver: string;
  account: string;
  rate: bigint | undefined;
}>;

function Transfer({ word, known, receiver, account, rate }: TransferProps) {
  const [text, setText] = useState("1");
  const field = useId();
  const amount = readAmount(text, known.places);
  const isValid = amount !== undefined && amount > 0n;
  return (
    <>
      <div className="field amount">
        <label htmlFor={field}>{`Amount in ${known.symbol}`}</label>
        <input
          id={field}
          inputMode="decimal"
          autoComplete="off"
          maxLength={24}
          value={text}
          aria-invalid={!isValid}
          onChange={({ target }) => setText(target.value)}
        />
      </div>
      <p className="fault" role="alert">
        {isValid ? "" : `Enter an amount above 0, with at most ${known.places} decimals.`}
      </p>
      {isValid && (
        <>
          <TokenOffer key={String(amount)} word={word} amount={amount} rate={rate} />
          <Receiver word={word} receiver={receiver} text={shortText(amount, known.places)} symbol={known.symbol} />
          <p>
            The credits go to the address that sends the tokens.{" "}
            {word === "native" ? "From another wallet, name this account" : "To credit this account, name it"} in the
            transfer: <code>{destinationText(word, account)}</code>
          </p>
        </>
      )}
    </>
  );
}

/** How a transfer names another account. */
function destinationText(word: string, account: string): string {
  return word === "native"
    ? `tag Turbo-Credit-Destination-Address = ${account}`
    : `turboCreditDestinationAddress=${account}`;
}

type TokenOfferProps = Readonly<{ word: string; amount: bigint; rate: bigint | undefined }>;

function TokenOffer({ word, amount, rate }: TokenOfferProps) {
  const read = useCallback((signal: AbortSignal) => readTokenPrice(word, amount, signal), [word, amount]);
  const { value: winc, error } = useReading(read);
  if (error !== undefined) return <p className="fault">{error.message}</p>;
  return (
    <Values
      values={[
        ["You get", winc === undefined ? "…" : `${creditsText(winc)} credits`],
        ["Stores", winc === undefined ? "…" : storedText(winc, rate)],
      ]}
    />
  );
}

/** An amount in whole tokens, without zeros at its end. */
function shortText(amount: bigint, places: number): string {
  return decimalText(amount, places).replace(/\.?0+$/, "");
}

type ReceiverProps = Readonly<{ word: string; receiver: string; text: string; symbol: string }>;

function Receiver({ word, receiver, text, symbol }: ReceiverProps) {
  const scheme = schemes[word];
  const encoded = scheme === undefined ? receiver : `${scheme}:${receiver}?amount=${text}`;
  return (
    <div className="receiver">
      <QrImage text={encoded} name={`QR code: ${encoded}`} />
      <div>
        <p>
          Send <strong>{`${text} ${symbol}`}</strong> to
        </p>
        <p>
          <code>{receiver}</code>
        </p>
        <p className="empty">
          {scheme === undefined
            ? "The code holds the address: enter the amount in your wallet."
            : "The code holds the address and the amount. A wallet that reads only addresses needs the text above."}
        </p>
      </div>
    </div>
  );
}

/** Tokens whose wallets read the amount from the code; the others would not know the chain from it. */
const schemes: Readonly<Record<string, string>> = { native: "arweave", solana: "solana" };

/** Light modules around a code. */
const quietZone = 4;

function QrImage({ text, name }: Readonly<{ text: string; name: string }>) {
  const code = encodeQrCode(text);
  const size = code.length + 2 * quietZone;
  const path = code
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + quietZone} ${y + quietZone}h1v1h-1z` : "")))
    .join("");
  return (
    <svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={name} shapeRendering="crispEdges">
      <rect width={size} height={size} fill="#ffffff" />
      <path d={path} fill="#000000" />
    </svg>
  );
}

/** Time for the service to find a transaction. */
const reportMs = 60_000;

function Report({ word }: Readonly<{ word: string }>) {
  const [id, setId] = useState("");
  const [result, setResult] = useState<TokenReport>();
  const [fault, setFault] = useState("");
  const [isSending, setSending] = useState(false);
  const field = useId();
  const send = (event: FormEvent) => {
    event.preventDefault();
    setSending(true);
    setFault("");
    setResult(undefined);
    reportTransaction(word, id.trim(), AbortSignal.timeout(reportMs))
      .then(setResult, (error) => setFault(error.message))
      .finally(() => setSending(false));
  };
  return (
    <form aria-label="Report the transfer" onSubmit={send}>
      <h2>Sent? Tell the service</h2>
      <p>It finds transfers by itself, too. With the id of the transaction it looks at once, and fixes the price.</p>
      <label htmlFor={field}>Transaction id</label>
      <div className="row">
        <input
          id={field}
          required={true}
          autoComplete="off"
          spellCheck={false}
          maxLength={128}
          value={id}
          onChange={({ target }) => setId(target.value)}
        />
        <button type="submit" disabled={isSending}>
          Report
        </button>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="done" role="status">
        {result && reportText(result)}
      </p>
    </form>
  );
}

function reportText({ state, winc }: TokenReport): string {
  const credits = `${creditsText(winc)} credits`;
  return state === "credited"
    ? `Credited: ${credits}.`
    : `Found. ${credits} are credited when enough blocks confirm it.`;
}

/** Time between two readings of the payments that wait. */
const pendingEveryMs = 10_000;

function Pending({ token }: Readonly<{ token: string }>) {
  const read = useCallback((signal: AbortSignal) => readPending(token, signal), [token]);
  const { value: pending = [] } = useReading(read, pendingEveryMs);
  if (pending.length === 0) return null;
  return (
    <>
      <h2>Waiting for confirmations</h2>
      <Table
        name="Payments that wait for confirmations"
        columns={["Time", "Credits", "Transaction"]}
        rows={pending.map(({ transactionId, date, wincPending }) => [
          transactionId,
          momentText(Date.parse(date)),
          creditsText(BigInt(wincPending)),
          <code key="id">{transactionId}</code>,
        ])}
        empty=""
      />
    </>
  );
}
