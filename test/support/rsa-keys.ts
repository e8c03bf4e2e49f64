/**
 * RSA keys of tests, by their size in bits, and another of 4,096: worth nothing anywhere, and the same in every run.
 *
 * A key of 4,096 bits takes half a second to make, and nearly every file of tests wants one. The addresses of the
 * first two begin with a dash, as one in 64 does: what takes such an address for an option fails in every run, not in
 * one of 64.
 * @module
 */
import keys from "./rsa-keys.json";

/** As JSON Web Keys. */
export const rsaKeys: typeof keys = keys;
