/**
 * A top-up by card: the price of an amount is shown first, then a button leads to the page of the checkout.
 * @module
 */
import { useCallback, useEffect, useId, useState } from "react";
import { decimalText } from "../../src/lib/quantity-text.ts";
import { Values } from "../page-parts.tsx";
import { useReading } from "../use-reading.ts";
import {
  type Currencies,
  type CurrencyLimits,
  openCheckout,
  type Purchase,
  readCurrencies,
  readPaymentPrice,
} from "./account-client.ts";
import { creditsText, moneyText, readAmount, storedText } from "./amounts.ts";

export type TopUpProps = Readonly<{
  address: string;
  /** Winc for a GiB; undefined while it is not known. */
  rate: bigint | undefined;
}>;

const firstCurrency = "usd";

export function TopUp(props: TopUpProps) {
  const { value: currencies, error } = useReading(readCurrencies);
  const [chosen, setCurrency] = useState(firstCurrency);
  const field = useId();
  if (currencies === undefined) return <p className={error ? "fault" : "empty"}>{error?.message ?? "…"}</p>;
  const currency = currencies.limits[chosen] === undefined ? (currencies.supportedCurrencies[0] ?? "") : chosen;
  const limits = currencies.limits[currency];
  if (limits === undefined) return <p className="fault">The service sells no credits for money now.</p>;
  return (
    <section aria-label="Buy credits">
      <h2>Buy credits by card</h2>
      <div className="field">
        <label htmlFor={field}>Currency</label>
        <CurrencySelect id={field} currencies={currencies} currency={currency} onChange={setCurrency} />
      </div>
      <Amount key={currency} {...props} currency={currency} limits={limits} />
    </section>
  );
}

type CurrencySelectProps = Readonly<{
  id: string;
  currencies: Currencies;
  currency: string;
  onChange: (currency: string) => void;
}>;

function CurrencySelect({ id, currencies, currency, onChange }: CurrencySelectProps) {
  return (
    <select id={id} value={currency} onChange={({ target }) => onChange(target.value)}>
      {currencies.supportedCurrencies.map((each) => (
        <option key={each} value={each}>
          {each.toUpperCase()}
        </option>
      ))}
    </select>
  );
}

type AmountProps = TopUpProps & Readonly<{ currency: string; limits: CurrencyLimits }>;

function Amount({ address, rate, currency, limits }: AmountProps) {
  const places = limits.zeroDecimalCurrency ? 0 : 2;
  const suggested = limits.suggestedPaymentAmounts.map(BigInt);
  const [text, setText] = useState(() => decimalText(suggested[0] ?? BigInt(limits.minimumPaymentAmount), places));
  const [promoText, setPromoText] = useState("");
  const [amountField, promoField] = [useId(), useId()];
  const amount = readAmount(text, places);
  const fault = faultOfAmount(amount, limits, places, currency);
  const settled = useSettled(`${amount} ${promoText.trim()}`);
  const isSettled = settled === `${amount} ${promoText.trim()}`;
  return (
    <>
      <div className="buttons">
        {suggested.map((each) => (
          <button
            key={String(each)}
            type="button"
            aria-pressed={each === amount}
            onClick={() => setText(decimalText(each, places))}
          >
            {moneyText(each, places, currency)}
          </button>
        ))}
      </div>
      <div className="fields">
        <div className="field">
          <label htmlFor={amountField}>{`Amount in ${currency.toUpperCase()}`}</label>
          <input
            id={amountField}
            inputMode="decimal"
            autoComplete="off"
            maxLength={24}
            value={text}
            aria-invalid={fault !== undefined}
            onChange={({ target }) => setText(target.value)}
          />
        </div>
        <div className="field">
          <label htmlFor={promoField}>Promo code, if you have one</label>
          <input
            id={promoField}
            autoComplete="off"
            spellCheck={false}
            maxLength={200}
            value={promoText}
            onChange={({ target }) => setPromoText(target.value)}
          />
        </div>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
      {amount !== undefined && fault === undefined && isSettled && (
        <Offer
          key={settled}
          purchase={{ address, currency, amount, promoCode: promoText.trim() }}
          places={places}
          rate={rate}
        />
      )}
    </>
  );
}

function faultOfAmount(
  amount: bigint | undefined,
  { minimumPaymentAmount, maximumPaymentAmount }: CurrencyLimits,
  places: number,
  currency: string,
): string | undefined {
  if (amount === undefined) return `Enter an amount, such as ${decimalText(10n ** BigInt(places + 1), places)}.`;
  const [least, most] = [BigInt(minimumPaymentAmount), BigInt(maximumPaymentAmount)];
  if (amount >= least && amount <= most) return undefined;
  return `Enter an amount from ${decimalText(least, places)} to ${moneyText(most, places, currency)}.`;
}

/** Time without a change until a price is requested. */
const settleMs = 300;

/** A text once it has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settleMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

type OfferProps = Readonly<{ purchase: Purchase; places: number; rate: bigint | undefined }>;

/** What an amount buys, and the button that leads to the checkout. */
function Offer({ purchase, places, rate }: OfferProps) {
  const [isLeaving, setLeaving] = useState(false);
  const [fault, setFault] = useState("");
  const { address, currency, amount, promoCode } = purchase;
  const readPrice = useCallback(
    (signal: AbortSignal) => readPaymentPrice({ address, currency, amount, promoCode }, signal),
    [address, currency, amount, promoCode],
  );
  const { value: price, error } = useReading(readPrice);
  if (error !== undefined) {
    return (
      <p className="fault" role="alert">
        {error.message}
      </p>
    );
  }
  if (price === undefined) return <p className="empty">The price is on its way …</p>;
  const winc = BigInt(price.winc);
  const charged = BigInt(price.actualPaymentAmount);
  const leave = () => {
    setLeaving(true);
    setFault("");
    openCheckout(purchase, AbortSignal.timeout(checkoutMs)).then(
      (page) => {
        location.assign(page);
        setTimeout(() => setLeaving(false), leavingMs);
      },
      (reason) => {
        setLeaving(false);
        setFault(reason.message);
      },
    );
  };
  return (
    <>
      <Values
        values={[
          ["You pay", moneyText(charged, places, currency)],
          ["You get", `${creditsText(winc)} credits`],
          ["Stores", storedText(winc, rate)],
          ...feesOf(price.fees, places, currency),
        ]}
      />
      <button type="button" className="strong" disabled={isLeaving} onClick={leave}>
        {`Pay ${moneyText(charged, places, currency)}`}
      </button>
      <p className="empty">
        The button leads to the page of the card provider. Nothing is charged before you confirm there.
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

/** Time for the provider to open a session. */
const checkoutMs = 60_000;

/** Time after which a payer who stopped the navigation may begin another one. */
const leavingMs = 10_000;

/** The fee of the service. */
function feesOf(fees: readonly Readonly<{ adjustmentAmount: string }>[], places: number, currency: string) {
  const fee = fees.reduce((sum, { adjustmentAmount }) => sum - BigInt(adjustmentAmount), 0n);
  return fee > 0n ? ([["Fee, in the price", moneyText(fee, places, currency)]] as const) : [];
}
