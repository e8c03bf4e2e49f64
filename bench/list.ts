/**
 * All benches, in the order of the table.
 * @module
 */

import { attacksBench } from "./attacks.ts";
import { bundlesBench } from "./bundles.ts";
import { clickhouseBench } from "./clickhouse.ts";
import { coldBench } from "./cold.ts";
import { columnarBench } from "./columnar.ts";
import { debugBench } from "./debug.ts";
import { eventsBench } from "./events.ts";
import { followBench } from "./follow.ts";
import { graphqlBench } from "./graphql.ts";
import type { Bench } from "./harness.ts";
import { httpBench } from "./http.ts";
import { indexBench } from "./index.ts";
import { headerBench, verifyBench } from "./items.ts";
import { ledgerBench } from "./ledger.ts";
import { observabilityBench } from "./observability.ts";
import { parquetBench } from "./parquet.ts";
import { paymentPricesBench } from "./payment-prices.ts";
import { routesBench } from "./routes.ts";
import { smallChainBench } from "./small-chain.ts";
import { snapshotBench } from "./snapshot.ts";
import { soakBench } from "./soak.ts";
import { startBench } from "./start.ts";
import { unbundleBench } from "./unbundle.ts";
import { uploadsBench } from "./uploads.ts";

export const benches: readonly Bench[] = [
  headerBench,
  verifyBench,
  indexBench,
  parquetBench,
  columnarBench,
  clickhouseBench,
  snapshotBench,
  httpBench,
  routesBench,
  observabilityBench,
  graphqlBench,
  attacksBench,
  debugBench,
  unbundleBench,
  coldBench,
  followBench,
  eventsBench,
  ledgerBench,
  paymentPricesBench,
  uploadsBench,
  bundlesBench,
  startBench,
  smallChainBench,
  soakBench,
];
