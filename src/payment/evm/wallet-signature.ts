/**
 * Signatures of contract wallets: checked by the wallet itself (EIP-1271), also before the wallet's deployment, when
 * the signature contains the deployment call (EIP-6492).
 *
 * The payer writes the deployment call. It runs only through Multicall3, which owns nothing: a call from the gateway's
 * account could move the funds of that account.
 * Source: EIP-1271; EIP-6492; the contract ABI specification; Multicall3 (https://github.com/mds1/multicall3).
 * @module
 */
import { fault } from "../../lib/http-client.ts";
import { readAddress, type UserAddress } from "../addresses.ts";
import {
  type Authorization,
  authorizationHash,
  isSignedByOwner,
  type TypedDomain,
  writeBytesTransferCall,
  writeTransferCall,
} from "./authorization.ts";
import type { EvmClient } from "./evm-chain.ts";
import {
  joinBytes,
  readHexBytes,
  tailOfBytes,
  wordOfAddress,
  wordOfBytes,
  wordOfNumber,
  wordSize,
  writeHexBytes,
  writeQuantity,
} from "./evm-values.ts";
import type { Asked, RpcResponse } from "./json-rpc.ts";

/** A call that executes an authorization. */
export type AuthorizationCall = Readonly<{
  to: UserAddress;
  data: Uint8Array;
  /** Gas limit; unset for a plain key's signature, which always needs the same gas. */
  gasMax?: bigint;
  /** Whether the contract at `to` returns bytes; an empty result means that the contract does not exist. */
  hasResult: boolean;
}>;

/** The parts of a wallet's signature. */
type WalletSignature = Readonly<{
  /** The signature that the wallet checks. */
  inner: Uint8Array;
  /** The call that deploys the wallet. */
  making: Readonly<{ factory: UserAddress; data: Uint8Array }> | undefined;
}>;

/**
 * Gas limits of a wallet's check and deployment: common wallets need less than a third. The payer writes the executed
 * code, and the gateway pays for it.
 */
export const walletGasMax = 2_000_000n;

/** Multicall3, at the same address on every chain that has it. */
export const multicallAddress = "0xcA11bde05977b3631167028862bE2a173976CA11" as UserAddress;

/** The first bytes of `keccak256("isValidSignature(bytes32,bytes)")`: the call, and the result if valid. */
const validitySelector = Uint8Array.of(0x16, 0x26, 0xba, 0x7e);
/** The first bytes of `keccak256("aggregate3((address,bool,bytes)[])")`. */
const batchSelector = Uint8Array.of(0x82, 0xad, 0x56, 0xcb);

/** The last 32 bytes of a signature whose wallet is not deployed yet. */
const wrapSuffix = "6492".repeat(16);

/**
 * Writes the call that executes an authorization, for any kind of signature.
 *
 * @param domain - The domain of the coin's signatures.
 */
export function writeAuthorizationCall(
  domain: TypedDomain,
  authorization: Authorization,
  signature: Uint8Array,
): AuthorizationCall {
  const { contract } = domain;
  if (isSignedByOwner(domain, authorization, signature))
    return { to: contract, data: writeTransferCall(authorization, signature), hasResult: false };
  const { inner, making } = readWalletSignature(signature) ?? { inner: signature, making: undefined };
  const data = writeBytesTransferCall(authorization, inner);
  if (making === undefined) return { to: contract, data, gasMax: walletGasMax, hasResult: false };
  const calls = [
    // The wallet may be deployed already: then this call fails or has no effect.
    { to: making.factory, data: making.data, mayFail: true },
    { to: contract, data, mayFail: false },
  ];
  return { to: multicallAddress, data: writeBatch(calls), gasMax: walletGasMax, hasResult: true };
}

/**
 * Asks the payer's wallet whether it signed an authorization; bounded in gas.
 *
 * @returns `false` also when the payer is not a contract and the signature contains no deployment call.
 */
export async function isSignedByWallet(
  client: Pick<EvmClient, "call">,
  domain: TypedDomain,
  { authorization, signature }: Readonly<{ authorization: Authorization; signature: Uint8Array }>,
  signal: AbortSignal,
): Promise<Asked<boolean>> {
  const { from } = authorization;
  const wallet = readWalletSignature(signature);
  if (wallet === undefined) return { kind: "ok", value: false };
  const { inner, making } = wallet;
  const check = joinBytes([
    validitySelector,
    authorizationHash(domain, authorization),
    wordOfNumber(64n),
    tailOfBytes(inner),
  ]);
  if (making === undefined) return isYes(await call(client, from, check, signal), readWord);
  const calls = [
    { to: making.factory, data: making.data, mayFail: true },
    { to: from, data: check, mayFail: true },
  ];
  return isYes(await call(client, multicallAddress, writeBatch(calls), signal), readSecondWord);
}

function call(
  client: Pick<EvmClient, "call">,
  to: UserAddress,
  data: Uint8Array,
  signal: AbortSignal,
): Promise<RpcResponse> {
  const request = { to, data: writeHexBytes(data), gas: writeQuantity(walletGasMax) };
  return client.call("eth_call", [request, "latest"], signal);
}

/** A contract's rejection, or a call that needs too much gas; the texts differ between servers. */
const rejectionPattern = /revert|out of gas|outofgas|gas required exceeds|invalid opcode|invalidfeopcode|stack/i;
const revertedCode = 3;

function isYes(response: RpcResponse, read: (bytes: Uint8Array) => Uint8Array | undefined): Asked<boolean> {
  if (response.kind === "fault") return response;
  if (response.kind === "error")
    return response.code === revertedCode || rejectionPattern.test(response.message)
      ? { kind: "ok", value: false }
      : fault("status", `eth_call: ${response.code} ${response.message}`);
  const bytes = readHexBytes(response.value);
  if (bytes === undefined) return fault("malformed", "eth_call: invalid response");
  const word = read(bytes);
  return { kind: "ok", value: word?.toHex() === wordOfBytes(validitySelector).toHex() };
}

function readWord(bytes: Uint8Array): Uint8Array | undefined {
  return wordAt(bytes, 0);
}

/** The first word of the second call's result in a batch; `undefined` after a failure or a shorter result. */
function readSecondWord(bytes: Uint8Array): Uint8Array | undefined {
  const list = offsetAt(bytes, 0);
  if (list === undefined || offsetAt(bytes, list) !== 2) return undefined;
  const start = list + wordSize;
  const second = offsetAt(bytes, start + wordSize);
  if (second === undefined || offsetAt(bytes, start + second) !== 1) return undefined;
  const result = offsetAt(bytes, start + second + wordSize);
  if (result === undefined) return undefined;
  const at = start + second + result;
  const size = offsetAt(bytes, at);
  return size !== undefined && size >= wordSize ? wordAt(bytes, at + wordSize) : undefined;
}

/** Parses a signature; `undefined` for an invalid EIP-6492 signature. */
function readWalletSignature(signature: Uint8Array): WalletSignature | undefined {
  if (signature.subarray(-wordSize).toHex() !== wrapSuffix) return { inner: signature, making: undefined };
  const wrapped = signature.subarray(0, -wordSize);
  const factoryWord = wordAt(wrapped, 0)?.toHex() ?? "";
  const factory = factoryWord.startsWith("0".repeat(24))
    ? readAddress(`0x${factoryWord.slice(24)}`, "ethereum")?.address
    : undefined;
  const data = readBytesAt(wrapped, wordSize);
  const inner = readBytesAt(wrapped, 2 * wordSize);
  if (factory === undefined || data === undefined || inner === undefined) return undefined;
  return { inner, making: { factory, data } };
}

/** The bytes at an argument's offset. */
function readBytesAt(bytes: Uint8Array, place: number): Uint8Array | undefined {
  const offset = offsetAt(bytes, place);
  const size = offset === undefined ? undefined : offsetAt(bytes, offset);
  if (offset === undefined || size === undefined) return undefined;
  const start = offset + wordSize;
  return start + size <= bytes.length ? bytes.subarray(start, start + size) : undefined;
}

function wordAt(bytes: Uint8Array, place: number): Uint8Array | undefined {
  return place + wordSize <= bytes.length ? bytes.subarray(place, place + wordSize) : undefined;
}

/** A small number: an offset, a size or a truth. */
function offsetAt(bytes: Uint8Array, place: number): number | undefined {
  const text = wordAt(bytes, place)?.toHex();
  return text?.startsWith("0".repeat(56)) ? Number.parseInt(text, 16) : undefined;
}

type BatchedCall = Readonly<{ to: UserAddress; data: Uint8Array; mayFail: boolean }>;

function writeBatch(calls: readonly BatchedCall[]): Uint8Array {
  const rows = calls.map(({ to, data, mayFail }) =>
    joinBytes([wordOfAddress(to), wordOfNumber(mayFail ? 1n : 0n), wordOfNumber(96n), tailOfBytes(data)]),
  );
  const offsets: Uint8Array[] = [];
  let offset = BigInt(rows.length * wordSize);
  for (const row of rows) {
    offsets.push(wordOfNumber(offset));
    offset += BigInt(row.length);
  }
  return joinBytes([batchSelector, wordOfNumber(32n), wordOfNumber(BigInt(rows.length)), ...offsets, ...rows]);
}
