/**
 * `cairn accounts`: the accounts of the ledger, one account with its history, grants and adjustments.
 * @module
 */
import { exitCodes, misuse } from "../app/complaints.ts";
import { invalidValue } from "../lib/printable.ts";
import { readAddress } from "../payment/addresses.ts";
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
import { type PageRow, rowsText } from "./terminal.ts";

export type AccountsOptions = OperatorOptions &
  Readonly<{
    /** `list`, `show`, `grant` or `adjust`. */
    action: string;
    address: string | undefined;
    winc: string | undefined;
    limit: string | undefined;
    after: string | undefined;
  }>;

/** Runs the action and prints its response. @returns The exit code. @throws Misuse. */
export async function runAccounts(options: AccountsOptions): Promise<number> {
  const run = actions.get(options.action);
  if (run === undefined) throw misuse(invalidValue("<action>", options.action, [...actions.keys()].join(", ")));
  const prepared = run(options);
  await withOperatorClient(options, prepared);
  return exitCodes.done;
}

/** Checks the options before anything is sent. @returns The requests. */
type Action = (options: AccountsOptions) => (client: OperatorClient) => Promise<void>;

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["list", list],
  ["show", show],
  ["grant", (options) => move(options, "grant")],
  ["adjust", (options) => move(options, "adjust")],
]);

function list({ address, limit, after, json }: AccountsOptions) {
  if (address !== undefined) throw misuse("'cairn accounts list' takes no address; see 'cairn accounts show'");
  const query = pageQuery(limit, after);
  return async (client: OperatorClient) => {
    const page = await client.get(`/accounts${query}`);
    printResponse(json, page, () => {
      const rows = recordsOf(page["accounts"]);
      const lines = rows.map((row): PageRow => [String(row["address"]), signedWincText(row["winc"])]);
      return `${rows.length === 0 ? "  no accounts\n" : rowsText(lines, 44)}${nextText(page)}`;
    });
  };
}

function show(options: AccountsOptions) {
  const address = addressOf(options);
  const query = pageQuery(options.limit, options.after);
  return async (client: OperatorClient) => {
    const account = await client.get(`/accounts/${address}${query}`);
    printResponse(options.json, account, () => {
      const rows: PageRow[] = [
        ["account", address],
        ["balance", signedWincText(account["winc"])],
        ["with given approvals", signedWincText(account["controlledWinc"])],
        ["with received approvals", signedWincText(account["effectiveBalance"])],
      ];
      const history = recordsOf(account["history"]).map((row): PageRow => {
        const about = [row["note"], row["changeId"]].filter((each) => typeof each === "string").join("  ");
        return [momentText(row["at"]), `${signedWincText(row["winc"])}  ${String(row["kind"])}  ${about}`];
      });
      return `${rowsText(rows, 24)}${rowsText(history, 24)}${nextText(account)}`;
    });
  };
}

function move(options: AccountsOptions, kind: "grant" | "adjust") {
  const address = addressOf(options);
  const { winc, json } = options;
  const isValid = winc !== undefined && (kind === "grant" ? /^[1-9]\d{0,18}$/ : /^-?[1-9]\d{0,18}$/).test(winc);
  if (!isValid) {
    const shape =
      kind === "grant" ? "a whole number of winc, 1 or more" : "a whole number of winc, such as 500 or -500";
    throw misuse(winc === undefined ? `--winc is missing: ${shape}` : invalidValue("--winc", winc, shape));
  }
  const order = orderOf(options);
  return async (client: OperatorClient) => {
    printKey(order);
    const done = await client.post(`/accounts/${address}/${kind}`, { winc, ...order });
    printResponse(json, done, () =>
      rowsText(
        [
          [kind === "grant" ? "granted" : "adjusted by", signedWincText(done["winc"])],
          ["account", address],
          ["balance", signedWincText(done["balance"])],
          ["transfer", String(done["transferId"])],
          ["recorded", `${String(done["operator"])}: ${String(done["reason"])}`],
        ],
        12,
      ),
    );
  };
}

function addressOf({ address, action }: AccountsOptions): string {
  if (address === undefined) throw misuse(`missing argument <address> for 'cairn accounts ${action}'`);
  const read = readAddress(address);
  if (read === undefined) throw misuse(invalidValue("<address>", address, "a wallet address"));
  return read.address;
}
