/**
 * Webhooks of the settings, or none.
 * @module
 */

import type { Config } from "../config/settings.ts";
import { openWebhooks, type Webhooks } from "../indexing/webhooks.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { openHttp } from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { IndexReader } from "../store/index/types.ts";
import { openOutbox } from "../store/outbox.ts";
import type { DataFolder } from "./data-folder.ts";
import type { SetFilters } from "./filters.ts";
import { systemRandom } from "./random.ts";

/** What webhooks are opened with. */
export type WebhookParts = Readonly<{
  config: Config;
  folder: DataFolder;
  filters: SetFilters;
  reader: IndexReader;
  metrics: Metrics;
  log: Log;
  closers: Closers;
}>;

/** A target that is slower than this is told again. Milliseconds. */
const responseMsMax = 10_000;

/** Opens webhooks where a target is named; they are closed by `closers`. */
export function openSetWebhooks(parts: WebhookParts): Webhooks | undefined {
  const { config, folder, filters, reader, metrics, log, closers } = parts;
  const targets = [...new Set(config.WEBHOOK_TARGET_SERVERS)];
  if (targets.length === 0) return undefined;
  const outbox = openOutbox(folder.webhooks, targets, systemClock);
  closers.add("outbox of webhooks", outbox.close);
  const http = openHttp({ firstByteMs: responseMsMax, stallMs: responseMsMax, totalMs: responseMsMax });
  closers.add("client of webhooks", http.close);
  const webhooks = openWebhooks({
    targets,
    indexFilter: filters.webhookIndex.filter,
    blockFilter: filters.webhookBlock.filter,
    secret: config.WEBHOOK_SECRET,
    outbox,
    reader,
    http,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("webhooks", webhooks.close);
  metrics.gaugeOf({
    name: "webhook_letters",
    help: "Webhooks that wait to be taken.",
    read: webhooks.waiting,
  });
  return webhooks;
}
