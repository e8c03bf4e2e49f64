/**
 * `cairn serve`: the services against real nodes.
 * @module
 */
import { dataFolderAt, takeFolder } from "../app/data-folder.ts";
import { claimDatabases, explainDamage } from "../app/databases.ts";
import { readUploadWallet } from "../app/keys.ts";
import { openLog, openProgram, openProgramWithoutGateway } from "../app/program.ts";
import type { Config } from "../config/settings.ts";
import { createClosers } from "../lib/closers.ts";
import { openLineWriter, standardOutput } from "../lib/log.ts";
import { runUntilStopped } from "./until-stopped.ts";

/** Runs until a signal stops it. @returns The exit code. */
export async function runServe(config: Config, options: Readonly<{ json: boolean }>): Promise<number> {
  const closers = createClosers((name, error) => log.error("could not be closed", { name, error }));
  const log = openLog(config, closers);
  const output = openLineWriter(standardOutput);
  closers.add("output", output.close);
  const running = runUntilStopped({ closers, log }, async () => {
    const wallet = config.WALLET_FILE === undefined ? undefined : readUploadWallet("WALLET_FILE", config.WALLET_FILE);
    const folder = takeFolder(config, closers);
    await claimDatabases(folder, config, log);
    const open = config.SERVICES.includes("gateway") ? openProgram : openProgramWithoutGateway;
    const program = await open({
      wallet,
      config,
      folder,
      nodeUrls: config.TRUSTED_NODE_URL,
      rootHosts: config.ARNS_ROOT_HOST,
      log,
      closers,
    });
    const { adminUrl, shownKey } = program;
    const services = Object.fromEntries(program.serviceUrls);
    const record = {
      gateway: program.url,
      ...services,
      adminUrl,
      nodes: config.TRUSTED_NODE_URL,
      ...shownKey,
    };
    output.write(options.json ? `${JSON.stringify(record)}\n` : text(record));
  });
  return await running.catch((error: unknown) => {
    throw explainDamage(error, dataFolderAt(config.DATA_DIR), config);
  });
}

type ServeRecord = Readonly<{
  gateway: string | undefined;
  payment?: string;
  upload?: string;
  adminUrl: string | undefined;
  nodes: readonly string[];
  adminKey?: string;
}>;

function text({ gateway, payment, upload, adminUrl, nodes, adminKey }: ServeRecord): string {
  const rows = [
    ...(gateway === undefined ? [] : [`gateway    ${gateway}`]),
    ...(payment === undefined ? [] : [`payment    ${payment}`]),
    ...(upload === undefined ? [] : [`upload     ${upload}`]),
    `following  ${nodes.join(", ")}`,
    ...(adminUrl === undefined ? [] : [`admin      ${adminUrl}`]),
    ...(adminKey === undefined ? [] : [`admin key  ${adminKey}`]),
  ];
  return `\n${rows.map((row) => `  ${row}\n`).join("")}\n`;
}
