/**
 * Remakes dollar.json from dollar.sol: `bun test/clients/contracts/compile.ts`. The compiler is fetched for the
 * occasion, in a folder that is removed; nothing but this needs it.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";

const solcVersion = "0.8.30";

const folder = mkdtempSync(join(tmpdir(), "cairn-solc-"));
try {
  await Bun.write(join(folder, "package.json"), JSON.stringify({ dependencies: { solc: solcVersion } }));
  const installed = Bun.spawnSync([process.execPath, "install", "--no-save"], {
    cwd: folder,
    stderr: "inherit",
  });
  if (installed.exitCode !== 0) throw new Error("the compiler cannot be installed");
  const solc = require(join(folder, "node_modules/solc"));
  const source = await Bun.file(join(import.meta.dir, "dollar.sol")).text();
  const input = {
    language: "Solidity",
    sources: { "dollar.sol": { content: source } },
    settings: {
      evmVersion: "paris",
      metadata: { bytecodeHash: "none" },
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const faults = (output.errors ?? []).filter((error: { severity: string }) => error.severity === "error");
  if (faults.length > 0)
    throw new Error(faults.map((fault: { formattedMessage: string }) => fault.formattedMessage).join("\n"));
  const contracts = Object.entries<{ abi: unknown; evm: { bytecode: { object: string } } }>(
    output.contracts["dollar.sol"],
  ).map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]);
  const made = { compiler: `solc ${solcVersion}`, ...Object.fromEntries(contracts) };
  await Bun.write(join(import.meta.dir, "dollar.json"), `${JSON.stringify(made)}\n`);
} finally {
  removeFolder(folder);
}
