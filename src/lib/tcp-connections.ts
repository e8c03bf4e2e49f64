/**
 * TCP connections of this process: bytes that the peer has acknowledged, and a way to close a connection. The runtime
 * offers neither for connections of its HTTP server.
 *
 * Linux only.
 * Source: Linux tcp(7) `TCP_INFO`, getpeername(2), shutdown(2); docs/decisions/091-body-memory.md.
 * @module
 */
import { FFIType } from "bun:ffi";
import { readdirSync } from "node:fs";
import { openCLibrary } from "./c-library.ts";

/** The remote address, 4 or 16 bytes, and port of a connection. */
export type Peer = Readonly<{ address: readonly number[]; port: number }>;

/** A connection, valid until the end of the current iteration of the event loop. */
export type TcpConnection = Readonly<{
  /** The remote side, as {@link peerKey} writes it. */
  peer: string;
  /** Bytes that the peer has acknowledged so far; infinite when the kernel does not report them. */
  bytesTaken: () => number;
  /** Shuts the connection down in both directions. */
  cut: () => void;
}>;

export type TcpConnections = Readonly<{
  /** All file descriptors of this process. */
  descriptors: () => readonly number[];
  /** The connection of a descriptor; `undefined` for other descriptors. Takes 2 µs. */
  at: (descriptor: number) => TcpConnection | undefined;
}>;

const families = { ipv4: 2, ipv6: 10 } as const;
const protocolTcp = 6;
const optionTcpInfo = 11;
const bothDirections = 2;

/** The offset of `tcpi_bytes_acked` in `struct tcp_info` (Linux 4.1 and later). */
const bytesAckedAt = 120;

/** Returns undefined where the kernel interface is not available. */
export function openTcpConnections(): TcpConnections | undefined {
  const system = openCLibrary({
    getpeername: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
    getsockopt: {
      args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
      returns: FFIType.i32,
    },
    shutdown: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
  });
  if (system === undefined) return undefined;
  const address = new Uint8Array(128);
  const addressView = new DataView(address.buffer);
  const info = new Uint8Array(256);
  const infoView = new DataView(info.buffer);
  const size = new Uint32Array(1);

  const peerAt = (fd: number): string | undefined => {
    size[0] = address.length;
    if (system.getpeername(fd, address, size) !== 0) return undefined;
    const family = addressView.getUint16(0, true);
    const port = addressView.getUint16(2);
    if (family === families.ipv4) return peerKey({ address: [...address.subarray(4, 8)], port });
    return family === families.ipv6 ? peerKey({ address: [...address.subarray(8, 24)], port }) : undefined;
  };
  const connectionAt = (fd: number, peer: string): TcpConnection => ({
    peer,
    bytesTaken: () => {
      size[0] = info.length;
      const isKnown = system.getsockopt(fd, protocolTcp, optionTcpInfo, info, size) === 0;
      return isKnown && (size[0] ?? 0) >= bytesAckedAt + 8
        ? Number(infoView.getBigUint64(bytesAckedAt, true))
        : Number.POSITIVE_INFINITY;
    },
    cut: () => {
      system.shutdown(fd, bothDirections);
    },
  });

  return {
    descriptors: () => {
      try {
        return readdirSync("/proc/self/fd").map(Number);
      } catch {
        return []; // no descriptor is free to list them; the next call tries again
      }
    },
    at: (fd) => {
      const peer = peerAt(fd);
      return peer === undefined ? undefined : connectionAt(fd, peer);
    },
  };
}

/** Writes a peer as a key; an IPv4-mapped IPv6 address is the same as its IPv4 address. */
export function peerKey({ address, port }: Peer): string {
  const isMapped = address.length === 16 && address.slice(0, 12).join() === "0,0,0,0,0,0,0,0,0,0,255,255";
  return `${(isMapped ? address.slice(12) : address).join(".")} ${port}`;
}
