/**
 * A process that builds indexes of manifests in one folder until it is ended: `folder first count`.
 * @module
 */
import { idFromBytes } from "../../../src/arweave/id.ts";
import { openManifestIndexes } from "../../../src/store/manifests/manifest-indexes.ts";
import { manifestText } from "../../support/manifest-text.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { testKey } from "../../support/signers.ts";
import { buildInto } from "./manifest-index-fixture.ts";

const [folder = "", first = "0", count = "1"] = process.argv.slice(2);
const { log } = createRecordingLog();
const indexes = openManifestIndexes({ folder, bytesMax: 2 ** 30, clock: Date.now, log });
console.log("ready");
for (;;)
  for (let at = Number(first); at < Number(first) + Number(count); at += 1) {
    const id = idFromBytes(testKey(at));
    const bytes = manifestText(id, 2_000 + at, `m${at}`);
    buildInto(indexes, { id, verified: true }, bytes);
    await Bun.sleep(0);
  }
