/**
 * Functions of the system's C library that the runtime does not offer.
 *
 * Linux only.
 * @module
 */
import { dlopen, type FFIFunction } from "bun:ffi";

const names = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"] as const;

/**
 * Opens the library.
 *
 * @param functions - Their arguments and results, by name.
 * @returns Undefined where it has another name, or lacks a function.
 */
export function openCLibrary<const Functions extends Readonly<Record<string, FFIFunction>>>(functions: Functions) {
  for (const name of process.platform === "linux" ? names : []) {
    try {
      return dlopen(name, functions).symbols;
    } catch (error) {
      // A system with another C library: the next name is tried.
      if (!(error instanceof Error)) throw error;
    }
  }
  return undefined;
}
