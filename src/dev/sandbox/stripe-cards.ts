/**
 * Cards of the sandbox: what each of Stripe's test numbers does.
 * Source: Stripe's documentation, "Testing".
 * @module
 */

/** What paying with a card comes to. */
export type CardOutcome =
  | Readonly<{ kind: "paid"; isDisputed: boolean }>
  | Readonly<{ kind: "declined"; code: string; declineCode: string; message: string }>
  | Readonly<{ kind: "wrong"; code: string; message: string }>;

const declined = (declineCode: string, message: string, code = "card_declined"): CardOutcome => ({
  kind: "declined",
  code,
  declineCode,
  message,
});

const cards: Readonly<Record<string, CardOutcome>> = {
  "4242424242424242": { kind: "paid", isDisputed: false },
  "5555555555554444": { kind: "paid", isDisputed: false },
  "378282246310005": { kind: "paid", isDisputed: false },
  "4000000000000259": { kind: "paid", isDisputed: true },
  "4000000000000002": declined("generic_decline", "Your card was declined."),
  "4000000000009995": declined("insufficient_funds", "Your card has insufficient funds."),
  "4000000000000069": declined("expired_card", "Your card has expired.", "expired_card"),
};

const methods: Readonly<Record<string, string>> = {
  pm_card_visa: "4242424242424242",
  pm_card_mastercard: "5555555555554444",
  pm_card_amex: "378282246310005",
  pm_card_createDispute: "4000000000000259",
  pm_card_chargeDeclined: "4000000000000002",
  pm_card_chargeDeclinedInsufficientFunds: "4000000000009995",
  pm_card_chargeDeclinedExpiredCard: "4000000000000069",
};

/** Numbers to pay with and what comes of each, for people. */
export const cardsToTry: readonly (readonly [number: string, outcome: string])[] = [
  ["4242 4242 4242 4242", "pays"],
  ["5555 5555 5555 4444", "pays"],
  ["4000 0000 0000 0259", "pays, and is disputed"],
  ["4000 0000 0000 0002", "is declined"],
  ["4000 0000 0000 9995", "has insufficient funds"],
  ["4000 0000 0000 0069", "has expired"],
];

/** The number of a payment method of Stripe's, `pm_card_visa`. */
export function numberOfMethod(method: string): string | undefined {
  return Object.hasOwn(methods, method) ? methods[method] : undefined;
}

/** What a card number does. @param number - Digits; spaces are passed over. */
export function outcomeOf(number: string): CardOutcome {
  const digits = number.replaceAll(/[\s-]/g, "");
  const known = Object.hasOwn(cards, digits) ? cards[digits] : undefined;
  if (known !== undefined) return known;
  if (!isCardNumber(digits))
    return { kind: "wrong", code: "incorrect_number", message: "Your card number is incorrect." };
  return declined("test_mode_live_card", "Your card was declined. The sandbox takes test cards only.");
}

/** Luhn's sum: every second digit from the right counts double. */
function isCardNumber(digits: string): boolean {
  if (!/^\d{12,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}
