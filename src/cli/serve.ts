/**
 * `cairn serve`: the gateway against real nodes.
 * @module
 */
import { createClosers } from "../lib/closers.ts";
import type { Config } from "../settings.ts";
import { takeFolder } from "./folder-lock.ts";
import { openGateway } from "./open-gateway.ts";
import { openLog } from "./open-log.ts";
import { firstSignal, untilTold } from "./until-told.ts";

/** Runs until told to stop. @returns The exit code. */
export async function runServe(config: Config, options: Readonly<{ json: boolean }>): Promise<number> {
  const told = firstSignal();
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  const log = openLog(config, closers);
  try {
    const gateway = openGateway({
      config,
      folder: takeFolder(config, closers),
      nodeUrls: config.TRUSTED_NODE_URL,
      rootHosts: config.ARNS_ROOT_HOST,
      log,
      closers,
    });
    const { adminUrl, shownKey } = gateway;
    const record = { gateway: gateway.url, adminUrl, nodes: config.TRUSTED_NODE_URL, ...shownKey };
    process.stdout.write(options.json ? `${JSON.stringify(record)}\n` : text(record));
    return await untilTold(told, closers, log);
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

type ServeRecord = Readonly<{
  gateway: string;
  adminUrl: string | undefined;
  nodes: readonly string[];
  adminKey?: string;
}>;

function text({ gateway, adminUrl, nodes, adminKey }: ServeRecord): string {
  const rows = [
    `gateway    ${gateway}`,
    `following  ${nodes.join(", ")}`,
    ...(adminUrl === undefined ? [] : [`admin      ${adminUrl}`]),
    ...(adminKey === undefined ? [] : [`admin key  ${adminKey}`]),
  ];
  return `\n${rows.map((row) => `  ${row}\n`).join("")}\n`;
}
