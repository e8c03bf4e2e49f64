/**
 * What crosses between the main thread and those that walk over items in files: jobs and their answers.
 * @module
 */
import type { WrittenItem } from "./intake-jobs.ts";

/** A step of the walk over an item that lies in a file. */
export type WalkItemJob = Readonly<{
  /** That of uploads, as an absolute path. */
  folder: string;
  /** Names the walk among those under way in this thread. */
  session: string;
  /** Below the folder. */
  file: string;
  /** Of the item. Bytes. */
  size: number;
  /** The first step; the others go on where the last one ended. */
  isFirst: boolean;
}>;

/** How far the walk is; what is invalid is said in one lower-case sentence. */
export type WalkItemResult =
  | Readonly<{ kind: "more" }>
  | Readonly<{ kind: "valid"; item: WrittenItem }>
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The disk did not give it: what the system said. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began is gone. */
  | Readonly<{ kind: "lost" }>;

/** Lets a walk go that will not be ended. */
export type LeaveWalkJob = Readonly<{ session: string }>;
