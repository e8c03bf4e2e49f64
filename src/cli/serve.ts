/**
 * `cairn serve`: the gateway against real nodes.
 * @module
 */
import { createClosers } from "../lib/closers.ts";
import type { Config } from "../settings.ts";
import { adminKeyOf } from "./admin-key.ts";
import { takeFolder } from "./folder-lock.ts";
import { openGateway } from "./open-gateway.ts";
import { openLog } from "./open-log.ts";
import { untilTold } from "./until-told.ts";

/** Runs until told to stop. @returns The exit code. */
export async function runServe(config: Config, options: Readonly<{ json: boolean }>): Promise<number> {
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  const log = openLog(config, closers);
  try {
    const adminKey = adminKeyOf(config);
    const gateway = openGateway({
      config,
      folder: takeFolder(config, closers),
      nodeUrls: config.TRUSTED_NODE_URL,
      rootHosts: config.ARNS_ROOT_HOST,
      log,
      closers,
    });
    const record = { gateway: gateway.url, nodes: config.TRUSTED_NODE_URL, ...adminKey.shown };
    process.stdout.write(options.json ? `${JSON.stringify(record)}\n` : text(record));
    return await untilTold(closers, log);
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

function text(record: Readonly<{ gateway: string; nodes: readonly string[]; adminKey?: string }>): string {
  const key = record.adminKey === undefined ? "" : `  admin key  ${record.adminKey}\n`;
  return `\n  gateway    ${record.gateway}\n  following  ${record.nodes.join(", ")}\n${key}\n`;
}
