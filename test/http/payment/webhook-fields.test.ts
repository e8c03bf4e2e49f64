/**
 * Each field of each event that Stripe reports, each with every odd value: the response is never 5xx, for which
 * Stripe would send the event again for days, and the ledger stays as it must be.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { eventTypes } from "../../../src/payment/cards/stripe-objects.ts";
import { type CardFixture, openCardFixture, webhookSecret } from "../../payment/cards/card-fixture.ts";
import { testStart } from "../../support/payment.ts";

let fixture: CardFixture;
beforeAll(async () => {
  fixture = await openCardFixture({ isNotified: false });
});
afterAll(() => fixture.close());

/** Values as JSON has them, escapes included. */
const oddValues = [
  '""',
  '"\\u0000"',
  '"usd\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\ufffd\\uffff"',
  '"__proto__"',
  `"${"x".repeat(100_000)}"`,
  '"\\r\\nX: y"',
  '"../../x"',
  '"usd\' OR 1=1 --"',
  '"\\u202e\\u001b[2J"',
  "null",
  "true",
  "[]",
  "{}",
  "[[[]]]",
  '{"id":{"id":"x"}}',
  '{"__proto__":{"id":"pi_x"}}',
  "0",
  "-0",
  "-1",
  "1.5",
  "1e3",
  "1e999",
  "-1e999",
  "9007199254740991",
  "9007199254740993",
  "1e308",
  "99999999999999999999999999",
  "0.1",
  "8640000000001",
  "9007199254740",
];

/** All that any event is read for; a field that a kind does not have is not looked at. */
const fields = {
  id: '"pi_swept"',
  payment_intent: '"pi_swept"',
  amount: "1000",
  amount_received: "1000",
  amount_total: "1000",
  amount_refunded: "500",
  currency: '"usd"',
  status: '"lost"',
  payment_status: '"paid"',
  created: String(testStart / 1_000),
  refunded: "false",
  charge: '"ch_swept"',
  latest_charge: '{"id":"ch_swept","amount_refunded":1}',
  metadata: '{"topUpQuoteId":"0123456789abcdef"}',
} as const;

async function tell(body: string): Promise<number> {
  const at = testStart / 1_000;
  const signature = createHmac("sha256", webhookSecret).update(`${at}.`).update(body).digest("hex");
  const headers = { "stripe-signature": `t=${at},v1=${signature}` };
  return (await fixture.ask("/v1/stripe-webhook", { method: "POST", body, headers })).status;
}

let count = 0;

/** An object about an unknown payment, so that its fields are stored. */
const objectWith = (changed: Readonly<Record<string, string>>) => {
  count += 1;
  const payment = { id: `"pi_swept_${count}"`, payment_intent: `"pi_swept_${count}"` };
  return `{${Object.entries({ ...fields, ...payment, ...changed })
    .map(([name, value]) => `"${name}":${value}`)
    .join(",")}}`;
};

const eventWith = (type: string, changed: Readonly<Record<string, string>>) => {
  const event = {
    id: `"evt_swept_${count}"`,
    type: JSON.stringify(type),
    created: fields.created,
    ...changed,
  };
  const object = changed["object"] ?? objectWith({});
  return `{"id":${event.id},"type":${event.type},"created":${event.created},"data":{"object":${object}}}`;
};

test.each([...eventTypes])(
  "L3: %s with an odd value in any field is never 5xx",
  async (type) => {
    expect(await tell(eventWith(type, {}))).toBe(200);
    const faults: string[] = [];
    const ask = async (name: string, value: string, body: string) => {
      const status = await tell(body);
      if (status >= 500) faults.push(`${name} ${value.slice(0, 40)}: ${status}`);
    };
    for (const value of oddValues) {
      for (const name of Object.keys(fields))
        await ask(name, value, eventWith(type, { object: objectWith({ [name]: value }) }));
      const metadata = `{"topUpQuoteId":${value}}`;
      await ask("topUpQuoteId", value, eventWith(type, { object: objectWith({ metadata }) }));
      for (const name of ["id", "type", "created", "object"])
        await ask(`the event's ${name}`, value, eventWith(type, { [name]: value }));
    }
    expect(faults).toEqual([]);
    expect(await fixture.findings()).toEqual([]);
  },
  120_000,
);
