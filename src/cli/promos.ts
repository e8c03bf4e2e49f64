/**
 * `cairn promo`: the promo codes, a new code, and the end of a code.
 * @module
 */
import { exitCodes, misuse } from "../app/complaints.ts";
import type { JsonObject } from "../lib/json.ts";
import { invalidValue } from "../lib/printable.ts";
import {
  type OperatorClient,
  type OperatorOptions,
  orderOf,
  printKey,
  printResponse,
  recordsOf,
  withOperatorClient,
} from "./operator-client.ts";
import { type PageRow, rowsText } from "./terminal.ts";

export type PromoOptions = OperatorOptions &
  Readonly<{
    /** `add`, `list` or `end`. */
    action: string;
    code: string | undefined;
    /** Factor of the charge: 0.9 is 10 % off. */
    factor: string | undefined;
    description: string | undefined;
    starts: string | undefined;
    ends: string | undefined;
    uses: string | undefined;
    newUsers: boolean;
  }>;

/** Runs the action and prints its response. @returns The exit code. @throws Misuse. */
export async function runPromo(options: PromoOptions): Promise<number> {
  const run = actions.get(options.action);
  if (run === undefined) throw misuse(invalidValue("<action>", options.action, [...actions.keys()].join(", ")));
  await withOperatorClient(options, run(options));
  return exitCodes.done;
}

/** Checks the options before anything is sent. @returns The requests. */
type Action = (options: PromoOptions) => (client: OperatorClient) => Promise<void>;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["add", add],
  ["list", list],
  ["end", end],
]);

function list({ json }: PromoOptions) {
  return async (client: OperatorClient) => {
    const all = await client.get("/promos");
    printResponse(json, all, () => {
      const rows = recordsOf(all["promos"]).map((row): PageRow => {
        const most = row["maxUses"] === null ? "" : ` of ${String(row["maxUses"])}`;
        const until = row["endsAt"] === null ? "" : `, until ${String(row["endsAt"])}`;
        const step = `${String(row["operator"])} ${String(row["operatorMagnitude"])}`;
        const source = row["source"] === "rules" ? ", of the price rules" : "";
        return [
          String(row["code"]),
          `${String(row["state"])}, ${step}, used ${String(row["uses"])}${most}${until}${source}`,
        ];
      });
      return rows.length === 0 ? "  no promo codes\n" : rowsText(rows, 24);
    });
  };
}

function add(options: PromoOptions) {
  const { factor, description, starts, ends, uses, newUsers, json } = options;
  const code = codeOf(options);
  if (factor === undefined || !/^0(\.\d{1,9})?$/.test(factor))
    throw misuse(invalidValue("--factor", factor ?? "", "a decimal below 1, such as 0.9 for 10 % off"));
  if (uses !== undefined && !/^\d{1,15}$/.test(uses)) throw misuse(invalidValue("--uses", uses, "a whole number"));
  const promo: JsonObject = {
    code,
    name: code,
    description: description ?? `Promo code ${code}`,
    operatorMagnitude: factor,
    ...(starts === undefined ? {} : { startsAt: momentOf("--starts", starts) }),
    ...(ends === undefined ? {} : { endsAt: momentOf("--ends", ends) }),
    ...(uses === undefined ? {} : { maxUses: uses }),
    ...(newUsers ? { targetUserGroup: "new" } : {}),
  };
  return send("/promos/add", { promo, ...orderOf(options) }, json, "added");
}

function end(options: PromoOptions) {
  return send("/promos/end", { code: codeOf(options), ...orderOf(options) }, options.json, "ended");
}

function send(path: string, body: JsonObject, json: boolean, word: string) {
  return async (client: OperatorClient) => {
    printKey(body);
    const done = await client.post(path, body);
    printResponse(json, done, () =>
      rowsText(
        [
          [word, String(done["code"])],
          ["recorded", `${String(done["operator"])}: ${String(done["reason"])}`],
        ],
        10,
      ),
    );
  };
}

function codeOf({ code, action }: PromoOptions): string {
  if (code === undefined) throw misuse(`missing argument <code> for 'cairn promo ${action}'`);
  return code;
}

/** A day begins at midnight in UTC. */
function momentOf(option: string, text: string): string {
  const moment = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
  if (Number.isNaN(Date.parse(moment)) || !moment.endsWith("Z"))
    throw misuse(invalidValue(option, text, "a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z"));
  return moment;
}
