/**
 * The commands of an operator against the admin API of a running program: arguments and descriptions.
 *
 * Without options they use the program of this machine and the key of its data folder.
 * @module
 */
import { defineCommand } from "citty";
import type { Config } from "../config/settings.ts";
import type { OperatorOptions } from "./operator-client.ts";
import { jsonArgument, localUrl, type ReadSettings } from "./service-commands.ts";

export const adminArguments = {
  gateway: { type: "string", description: "URL; default: this machine, GATEWAY_PORT", valueHint: "url" },
  "admin-key": {
    type: "string",
    description: "Admin key; default, without --gateway: ADMIN_API_KEY, or that of DATA_DIR",
    valueHint: "key",
  },
} as const;

/** The admin API to use, and its keys. */
export type AdminAccess = Readonly<{
  /** URLs without a trailing slash; the admin API may have a listener of its own. */
  gateway: string;
  administration: string;
  adminKey: string | undefined;
  /** The stored key of the data folder; a gateway that was started with another one rejects it. */
  storedKey: string | undefined;
}>;

type AdminArguments = Readonly<{ gateway?: string | undefined; "admin-key"?: string | undefined }>;

/** Reads the options of the admin API. @throws Misuse for an invalid URL. */
export async function adminAccess(config: Config, args: AdminArguments): Promise<AdminAccess> {
  const { GATEWAY_PORT, ADMIN_LISTEN, ADMIN_API_KEY, DATA_DIR } = config;
  const { readServiceUrl } = await import("./service-client.ts");
  const { storedAdminKey } = await import("../app/keys.ts");
  const { dataFolderAt } = await import("../app/data-folder.ts");
  const gateway = readServiceUrl(args.gateway ?? localUrl(GATEWAY_PORT), "--gateway");
  const isApart = args.gateway === undefined && ADMIN_LISTEN !== undefined;
  return {
    gateway,
    administration: isApart ? `http://${ADMIN_LISTEN}` : gateway,
    // Keys of this machine are never sent to another one.
    adminKey: args["admin-key"] ?? (args.gateway === undefined ? ADMIN_API_KEY : undefined),
    storedKey: args.gateway === undefined ? storedAdminKey(dataFolderAt(DATA_DIR).keys) : undefined,
  };
}

/** The arguments of lists. */
const pageArguments = {
  limit: { type: "string", description: "Rows of one page; default: 100", valueHint: "count" },
  after: { type: "string", description: "Cursor that the page before ended with", valueHint: "cursor" },
} as const;

/** The arguments of actions. */
const actionArguments = {
  reason: { type: "string", description: "Why; recorded with the transfer", valueHint: "text" },
  operator: { type: "string", description: "Who; default: the user of this machine", valueHint: "name" },
  key: {
    type: "string",
    description: "Idempotency key: a repeated command with it changes nothing; default: a new one, printed",
    valueHint: "key",
  },
} as const;

type ActionArguments = Readonly<{
  reason?: string | undefined;
  operator?: string | undefined;
  key?: string | undefined;
  json?: boolean | undefined;
}>;

/** The options that all commands of operators share. */
async function operatorOptions(
  { config, environment }: ReadSettings,
  args: AdminArguments & ActionArguments,
): Promise<OperatorOptions> {
  const { administration, adminKey, storedKey } = await adminAccess(config(), args);
  const { USER, LOGNAME, USERNAME } = environment();
  return {
    url: administration,
    adminKey: adminKey ?? storedKey,
    reason: args.reason,
    operator: args.operator ?? USER ?? LOGNAME ?? USERNAME,
    key: args.key,
    json: args.json === true,
  };
}

export function accountsCommand(settings: ReadSettings) {
  return defineCommand({
    meta: {
      name: "accounts",
      description: "List accounts, show one, grant it credits or correct it: cairn accounts list|show|grant|adjust",
    },
    args: {
      action: {
        type: "positional",
        description: "list, show, grant or adjust",
        required: true,
        valueHint: "list|show|grant|adjust",
      },
      address: { type: "positional", description: "Address of the account", required: false },
      winc: {
        type: "string",
        description: "Winc to grant, or to adjust by: below 0 takes credits from the account",
        valueHint: "amount",
      },
      ...actionArguments,
      ...pageArguments,
      ...adminArguments,
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runAccounts } = await import("./accounts.ts");
      const { action, address, winc, limit, after } = args;
      return runAccounts({ ...(await operatorOptions(settings, args)), action, address, winc, limit, after });
    },
  });
}

export function paymentsCommand(settings: ReadSettings) {
  return defineCommand({
    meta: { name: "payments", description: "List payments, show one, or refund it: cairn payments list|show|refund" },
    args: {
      action: {
        type: "positional",
        description: "list, show or refund",
        required: true,
        valueHint: "list|show|refund",
      },
      id: { type: "positional", description: "Id of the payment", required: false },
      account: { type: "string", description: "list: only payments of this account", valueHint: "address" },
      yes: { type: "boolean", description: "refund: skip the confirmation" },
      ...actionArguments,
      ...pageArguments,
      ...adminArguments,
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runPayments } = await import("./payments.ts");
      const { action, id, account, limit, after } = args;
      const given = { action, id, account, limit, after, yes: args.yes === true };
      return runPayments({ ...(await operatorOptions(settings, args)), ...given });
    },
  });
}

/** @param config - Of the program whose ledger is read. */
export function statementCommand(config: () => Config) {
  return defineCommand({
    meta: { name: "statement", description: "Print the ledger's statement of a month as CSV" },
    args: {
      month: { type: "string", description: "The month, in UTC, such as 2026-11", required: true, valueHint: "month" },
      output: { type: "string", alias: "o", description: "File; default: standard output", valueHint: "file" },
    },
    run: async ({ args }) => {
      const { runStatement } = await import("./statement.ts");
      return runStatement(config(), { month: args.month, output: args.output, now: Date.now() });
    },
  });
}

const promoArguments = {
  factor: { type: "string", description: "add: factor of the charge, 0.9 is 10 % off", valueHint: "decimal" },
  description: { type: "string", description: "add: text for buyers", valueHint: "text" },
  starts: { type: "string", description: "add: first day or time, in UTC; default: now", valueHint: "day" },
  ends: { type: "string", description: "add: day or time of its end, in UTC; default: none", valueHint: "day" },
  uses: { type: "string", description: "add: number of payments; default: no limit", valueHint: "count" },
  "new-users": { type: "boolean", description: "add: only for accounts without an earlier payment" },
} as const;

export function promoCommand(settings: ReadSettings) {
  return defineCommand({
    meta: { name: "promo", description: "Add, list or end promo codes: cairn promo add|list|end" },
    args: {
      action: { type: "positional", description: "add, list or end", required: true, valueHint: "add|list|end" },
      code: { type: "positional", description: "The code", required: false },
      ...promoArguments,
      ...actionArguments,
      ...adminArguments,
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runPromo } = await import("./promos.ts");
      const { action, code, factor, description, starts, ends, uses } = args;
      const given = { action, code, factor, description, starts, ends, uses, newUsers: args["new-users"] === true };
      return runPromo({ ...(await operatorOptions(settings, args)), ...given });
    },
  });
}

/** @param config - Of the program whose ledger is read. */
export function solvencyCommand(config: () => Config) {
  return defineCommand({
    meta: { name: "solvency", description: "Prove the sum of all balances: cairn solvency root|prove|verify" },
    args: {
      action: {
        type: "positional",
        description: "root, prove or verify",
        required: true,
        valueHint: "root|prove|verify",
      },
      subject: {
        type: "positional",
        description: "prove: address of the account; verify: file of a proof or a root",
        required: false,
        valueHint: "file",
      },
      root: {
        type: "string",
        description: "prove: file that 'cairn solvency root' wrote; default: the newest published root",
        valueHint: "file",
      },
      wallet: { type: "string", description: "root: key file; default: WALLET_FILE", valueHint: "file" },
      publish: { type: "boolean", description: "root: upload it as a data item" },
      to: {
        type: "string",
        description: "URL of the upload service; default: this machine, UPLOAD_PORT",
        valueHint: "url",
      },
      output: { type: "string", alias: "o", description: "File; default: standard output", valueHint: "file" },
      signer: { type: "string", description: "verify: expected address of the wallet", valueHint: "address" },
      json: jsonArgument,
    },
    run: async ({ args }) => {
      const { runSolvency } = await import("./solvency.ts");
      const { readServiceUrl } = await import("./service-client.ts");
      const { action, subject, root, wallet, output, signer } = args;
      const settings = config();
      const to = readServiceUrl(args.to ?? localUrl(settings.UPLOAD_PORT));
      const publishTo = args.publish === true ? to : undefined;
      const given = { action, subject, root, wallet, output, signer, publishTo };
      return await runSolvency(settings, { ...given, json: args.json === true, now: Date.now() });
    },
  });
}
