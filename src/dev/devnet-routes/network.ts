/**
 * The name under which nodes of one chain know each other.
 * @module
 */
import type { Context } from "elysia";
import { nodeError } from "./node-responses.ts";

/** Ours: not the main net's, so that nothing meant for the one reaches the other unnoticed. */
export const networkName = "cairn.devnet.1";

/** A client that names a network means it; one that names none is welcome. */
export function rejectOtherNetwork({ request }: Pick<Context, "request">): Response | undefined {
  const named = request.headers.get("x-network");
  return named === null || named === networkName ? undefined : nodeError("wrong_network", 412);
}
