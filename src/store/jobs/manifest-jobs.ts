/**
 * What crosses between the main thread and those that build indexes of manifests: jobs and their answers.
 * @module
 */
import type { Id } from "../../arweave/id.ts";

/** The next bytes of a manifest. */
export type BuildIndexJob = Readonly<{
  /** Names the build among those under way in this thread. */
  session: string;
  /** With the first bytes only. */
  begin?: BeginIndex;
  /** Holds the bytes at its beginning; the main thread writes the next ones into it after the answer. */
  shared: SharedArrayBuffer;
  size: number;
  isLast: boolean;
}>;

/** What is built. */
export type BeginIndex = Readonly<{
  id: Id;
  /** Of the manifest. Bytes. */
  size: number;
  /** Of the index, as absolute paths: where it is written, and where it stands when it is whole. */
  temporaryPath: string;
  path: string;
  salt: Uint8Array;
  /** Unix milliseconds. */
  builtAt: number;
}>;

/** How far the build is. */
export type BuildIndexResult =
  | Readonly<{ kind: "more" }>
  /** The index stands at its path; it may say that the manifest cannot be read. @property bytes - Of the file. */
  | Readonly<{ kind: "built"; bytes: number }>
  /** The disk did not take it: what the system said. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began is gone. */
  | Readonly<{ kind: "lost" }>;

/** Lets a build go that will not be ended. */
export type LeaveIndexJob = Readonly<{ session: string }>;
