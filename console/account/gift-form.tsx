/**
 * The form that redeems a gift to the signed-in account.
 * @module
 */
import { type FormEvent, useId, useState } from "react";
import { redeemGift } from "./account-client.ts";
import { creditsText } from "./amounts.ts";

/** Time for the redemption. */
const redeemMs = 30_000;

/** The code of a gift. */
const codeShape = /^[A-Za-z0-9_-]{43}$/;

export type GiftFormProps = Readonly<{
  address: string;
  /** Called when credits have arrived. */
  onRedeemed: () => void;
}>;

export function GiftForm({ address, onRedeemed }: GiftFormProps) {
  const [text, setText] = useState("");
  const [done, setDone] = useState("");
  const [fault, setFault] = useState("");
  const [isSending, setSending] = useState(false);
  const field = useId();
  const redeem = (event: FormEvent) => {
    event.preventDefault();
    setDone("");
    const code = codeOf(text);
    if (code === undefined) {
      setFault("This is not the code or the link of a gift. A code has 43 characters.");
      return;
    }
    setFault("");
    setSending(true);
    redeemGift(code, address, AbortSignal.timeout(redeemMs))
      .then(
        (winc) => {
          setText("");
          setDone(winc === undefined ? "The gift is on your account." : `You got ${creditsText(winc)} credits.`);
          onRedeemed();
        },
        (error) => setFault(error.message),
      )
      .finally(() => setSending(false));
  };
  return (
    <form aria-label="Redeem a gift" onSubmit={redeem}>
      <h2>Redeem a gift</h2>
      <p>A gift can be redeemed once. Its credits go to this account.</p>
      <label htmlFor={field}>Code or link of the gift</label>
      <div className="row">
        <input
          id={field}
          required={true}
          autoComplete="off"
          spellCheck={false}
          maxLength={2_048}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <button type="submit" className="strong" disabled={isSending}>
          Redeem
        </button>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="done" role="status">
        {done}
      </p>
    </form>
  );
}

/** The code of a text: the text itself, or the `id` of a link. */
function codeOf(text: string): string | undefined {
  const trimmed = text.trim();
  const code = URL.canParse(trimmed) ? (new URL(trimmed).searchParams.get("id") ?? "") : trimmed;
  return codeShape.test(code) ? code : undefined;
}
