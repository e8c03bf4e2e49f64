/**
 * Exports to Parquet: one at a time, in the background, with a status that survives a restart.
 * Source: docs/reference/gateway.md#exports-and-pruning.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Log } from "../../lib/log.ts";
import type { ExportRecord, ExportRecords, ExportRequest } from "../../store/administration-database.ts";
import { findExportFolder } from "./export-folder.ts";

export type ExportOptions = Omit<ExportRequest, "folder">;

/** Writes an export. Rejects with an Error whose message tells the operator the reason. */
export type ExportWriter = (request: ExportRequest, signal: AbortSignal) => Promise<void>;

/** Status of the last export; unknown fields are absent. */
export type ExportStatus = Readonly<{
  status: ExportRecord["state"] | "not_started";
  outputDir?: string;
  startHeight?: number;
  endHeight?: number;
  maxFileRows?: number;
  heightPartitionSize?: number;
  skipL1Transactions?: boolean;
  skipL1Tags?: boolean;
  durationInSeconds?: number;
  /** ISO 8601. */
  endTime?: string;
  /** Unix milliseconds. */
  endTimestamp?: number;
  error?: string;
}>;

export type Exports = Readonly<{
  /**
   * Starts an export; it continues after the promise is fulfilled.
   * Rejects with Failure `export_rejected` when the folder is not allowed, `export_running` while another export runs.
   */
  start: (options: ExportOptions) => Promise<void>;
  status: () => ExportStatus;
  /** Interrupts the running export. */
  close: () => Promise<void>;
}>;

export type ExportsOptions = Readonly<{
  records: ExportRecords;
  /** Absolute path under which exports are written. */
  root: string;
  write: ExportWriter;
  log: Log;
}>;

export function openExports({ records, root, write, log }: ExportsOptions): Exports {
  const closing = new AbortController();
  let running: Promise<void> | undefined;

  /** Never throws: the export may have filled the disk that has the records, too. */
  const recordEnd: ExportRecords["end"] = (state, reason) => {
    try {
      records.end(state, reason);
    } catch (error) {
      log.error("the end of an export could not be recorded", { state, error });
    }
  };

  const run = async (request: ExportRequest): Promise<void> => {
    try {
      await write(request, closing.signal);
      recordEnd("completed", null);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn("export ended early", { ...request, error });
      recordEnd(closing.signal.aborted ? "interrupted" : "errored", reason);
    }
  };

  /** A record without its end is that of an interrupted export, as after a restart. */
  const lastRecord = (): ExportRecord | undefined => {
    const record = records.last();
    return record?.state === "running" && running === undefined ? { ...record, state: "interrupted" } : record;
  };

  return {
    start: async (options) => {
      const folder = await findExportFolder(root, options.outputDir);
      if (folder === undefined) throw new Failure("export_rejected", { outputDir: options.outputDir, root });
      if (running !== undefined) throw new Failure("export_running");
      const request = { ...options, folder };
      records.begin(request);
      running = run(request).finally(() => {
        running = undefined;
      });
    },
    status: () => statusOf(lastRecord()),
    close: async () => {
      closing.abort(new DOMException("the gateway stops", "AbortError"));
      await running;
    },
  };
}

function statusOf(record: ExportRecord | undefined): ExportStatus {
  if (record === undefined) return { status: "not_started" };
  const { state, request, startedAt, endedAt, error } = record;
  const { folder: _folder, ...options } = request;
  return {
    status: state,
    ...options,
    ...(endedAt === null
      ? {}
      : {
          durationInSeconds: (endedAt - startedAt) / 1_000,
          endTime: new Date(endedAt).toISOString(),
          endTimestamp: endedAt,
        }),
    ...(error === null ? {} : { error }),
  };
}
