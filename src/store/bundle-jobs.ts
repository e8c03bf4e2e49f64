/**
 * What crosses between the main thread and those that prepare bundles: jobs and their answers.
 * @module
 */

/** An item of a bundle, and where its bytes lie. */
export type BundleItem = Readonly<{
  id: string;
  /** Below the folder of uploads. */
  file: string;
  offset: number;
  size: number;
  headerSize: number;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
}>;

/** What a bundle is made of, and what its transaction says. */
export type PrepareBundleJob = Readonly<{
  folder: string;
  bundleId: string;
  items: readonly BundleItem[];
  walletFile: string;
  /** base64url. */
  anchor: string;
  /** Winston. */
  reward: bigint;
  tags: readonly Readonly<{ name: string; value: string }>[];
}>;

/** What became of a bundle. */
export type PrepareBundleAnswer =
  | Readonly<{ kind: "prepared"; transactionId: string; text: string }>
  /** Items whose bytes are not what they were; the others are well. */
  | Readonly<{ kind: "poisoned"; items: readonly Readonly<{ id: string; reason: string }>[] }>;

/** A run of chunks of a prepared bundle. */
export type BundleChunksJob = Readonly<{
  folder: string;
  bundleId: string;
  items: readonly BundleItem[];
  dataSize: number;
  /** Of the chunks that are posted: the empty one at the end is not. */
  first: number;
  count: number;
}>;

/** Chunks as nodes take them, JSON. */
export type BundleChunksAnswer = Readonly<{ bodies: readonly Uint8Array<ArrayBuffer>[] }>;
