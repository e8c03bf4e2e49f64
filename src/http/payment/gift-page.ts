/**
 * What a gift's link shows to a person: a form that asks for the address, and what came of it. Works without scripts.
 * @module
 */
import { paymentPage } from "./payment-page.ts";

/** What an address may be of, by its word and for people. */
const kinds = [
  ["native", "Arweave"],
  ["ethereum", "Ethereum, Polygon, Base"],
  ["solana", "Solana"],
  ["kyve", "KYVE"],
] as const;

/** The form. @param secret - Of the link; base64url, checked. */
export function giftForm(secret: string): Response {
  const options = kinds.map(([word, name]) => `<option value="${word}">${name}</option>`).join("");
  return paymentPage(
    "A gift of storage credits",
    `<p>Say which account gets it. A gift is taken once.</p>
<form method="post" action="?id=${secret}">
<label for="address">Address</label>
<input id="address" name="destinationAddress" required autocomplete="off" spellcheck="false" maxlength="64">
<label for="token">of</label>
<select id="token" name="token">${options}</select>
<button type="submit">Take it</button>
</form>`,
    200,
  );
}

/** What came of it, in one sentence of ours or of a failure. */
export function giftOutcome(sentence: string, status: number): Response {
  return paymentPage(sentence, "", status);
}
