/**
 * `cairn payments`: the credited payments, one payment with the effect of its refund, and refunds through the provider.
 * @module
 */
import { exitCodes, misuse } from "../app/complaints.ts";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { invalidValue } from "../lib/printable.ts";
import {
  momentText,
  nextText,
  type OperatorClient,
  type OperatorOptions,
  orderOf,
  pageQuery,
  printKey,
  printResponse,
  recordsOf,
  signedWincText,
  withOperatorClient,
} from "./operator-client.ts";
import { askYesNo, ownTerminal, type PageRow, rowsText } from "./terminal.ts";

export type PaymentsOptions = OperatorOptions &
  Readonly<{
    /** `list`, `show` or `refund`. */
    action: string;
    id: string | undefined;
    /** `list`: only payments of this account. */
    account: string | undefined;
    limit: string | undefined;
    after: string | undefined;
    /** `refund`: without a question. */
    yes: boolean;
  }>;

/** Checks the options before anything is sent. @returns The requests, and the exit code. */
type Action = (options: PaymentsOptions) => (client: OperatorClient) => Promise<number>;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["list", list],
  ["show", show],
  ["refund", refund],
]);

/** Runs the action and prints its response. @returns The exit code. @throws Misuse. */
export async function runPayments(options: PaymentsOptions): Promise<number> {
  const run = actions.get(options.action);
  if (run === undefined) throw misuse(invalidValue("<action>", options.action, [...actions.keys()].join(", ")));
  return await withOperatorClient(options, run(options));
}

function list({ id, account, limit, after, json }: PaymentsOptions) {
  if (id !== undefined) throw misuse("'cairn payments list' takes no id; see 'cairn payments show'");
  const query = pageQuery(limit, after, { account });
  return async (client: OperatorClient) => {
    const page = await client.get(`/payments${query}`);
    printResponse(json, page, () => {
      const rows = recordsOf(page["payments"]).map((row): PageRow => {
        const withheld = row["withheldWinc"] === "0" ? "" : `  (${signedWincText(row["withheldWinc"])} withheld)`;
        const paid = `${paidText(row)}  ${signedWincText(row["winc"])}${withheld}`;
        return [momentText(row["at"]), `${paid}  ${accountText(row)}  ${String(row["id"])}`];
      });
      return `${rows.length === 0 ? "  no payments\n" : rowsText(rows, 24)}${nextText(page)}`;
    });
    return exitCodes.done;
  };
}

function show(options: PaymentsOptions) {
  const path = pathOf(options);
  return async (client: OperatorClient) => {
    const payment = await client.get(path);
    printResponse(options.json, payment, () =>
      rowsText(
        [
          ["payment", String(payment["id"])],
          ["made", momentText(payment["at"])],
          ["by", `${String(payment["method"])}: ${paidText(payment)}`],
          ["account", accountText(payment)],
          ["credited", signedWincText(payment["winc"])],
          ["withheld", signedWincText(payment["withheldWinc"])],
          ["a refund", effectText(payment)],
        ],
        10,
      ),
    );
    return exitCodes.done;
  };
}

function refund(options: PaymentsOptions) {
  const path = pathOf(options);
  const { id = "", json, yes } = options;
  const order = orderOf(options);
  return async (client: OperatorClient) => {
    const terminal = ownTerminal();
    if (!yes && terminal.isTerminal) {
      const effect = effectText(await client.get(path));
      if (!(await askYesNo(terminal, `a refund ${effect}; refund?`))) return exitCodes.failed;
    }
    printKey(order);
    const done = await client.post("/payments/refund", { id, ...order });
    printResponse(json, done, () =>
      rowsText(
        [
          ["refunded", `${paidText(done)} of ${id}`],
          ["effect", String(done["effect"])],
          ["balance", signedWincText(done["balance"])],
          ["recorded", `${String(done["operator"])}: ${String(done["reason"])}`],
        ],
        10,
      ),
    );
    return exitCodes.done;
  };
}

function pathOf({ id, action }: PaymentsOptions): string {
  if (id === undefined) throw misuse(`missing argument <id> for 'cairn payments ${action}'`);
  return `/payment?id=${encodeURIComponent(id)}`;
}

function accountText({ account }: JsonObject): string {
  return typeof account === "string" ? account : "a gift";
}

/** The paid amount as the program words it. An action that an earlier build recorded has only its amount. */
function paidText({ paid, amount, currency }: JsonObject): string {
  return typeof paid === "string" ? paid : `${String(amount)} of the smallest unit of ${String(currency)}`;
}

/** The effect of a refund, as the end of a sentence. */
function effectText({ refund: effect, method, currency = "" }: JsonObject): string {
  if (!isJsonObject(effect))
    return method === "card" ? "has no credits left to take back" : "is only possible for payments by card";
  const taken = `pays back ${paidText({ currency, ...effect })}, and takes back ${signedWincText(effect["winc"])}`;
  if (effect["spentWinc"] === "0") return `${taken}, none of them spent`;
  return `${taken}; ${signedWincText(effect["spentWinc"])} of them are spent, and the account will owe them`;
}
