/**
 * All benches, in the order of the table.
 * @module
 */
import { clickhouseBench } from "./exports/clickhouse.ts";
import { columnarBench } from "./exports/columnar.ts";
import { parquetBench } from "./exports/parquet.ts";
import { snapshotBench } from "./exports/snapshot.ts";
import { attacksBench } from "./graphql/attacks.ts";
import { graphqlBench } from "./graphql/graphql.ts";
import type { Bench } from "./harness.ts";
import { debugBench } from "./http/debug.ts";
import { eventsBench } from "./http/events.ts";
import { httpBench } from "./http/http.ts";
import { observabilityBench } from "./http/observability.ts";
import { routesBench } from "./http/routes.ts";
import { indexBench } from "./index/index.ts";
import { smallChainBench } from "./program/small-chain.ts";
import { soakBench } from "./program/soak.ts";
import { startBench } from "./program/start.ts";
import { bundlesBench } from "./uploads/bundles.ts";
import { ledgerBench } from "./uploads/ledger.ts";
import { paymentPricesBench } from "./uploads/payment-prices.ts";
import { uploadsBench } from "./uploads/uploads.ts";
import { coldBench } from "./verification/cold.ts";
import { followBench } from "./verification/follow.ts";
import { headerBench, verifyBench } from "./verification/items.ts";
import { unbundleBench } from "./verification/unbundle.ts";

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
