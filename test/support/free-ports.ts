/**
 * Ports for programs whose settings name them.
 * @module
 */

/** Below the ports that systems give for port 0, so that no listener of another test takes one in the meantime. */
const firstPort = 20_000;
const portsCount = 12_000;

const attemptsMax = 100;

/** So many different ports on which nothing listens. */
export function freePorts(count: number): readonly number[] {
  const listeners = Array.from({ length: count }, listenAnywhere);
  for (const listener of listeners) listener.stop(true);
  return listeners.map(({ port }) => port);
}

function listenAnywhere(): Bun.TCPSocketListener {
  for (let attempt = 1; ; attempt += 1) {
    const port = firstPort + Math.floor(Math.random() * portsCount);
    try {
      return Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
    } catch (error) {
      if (attempt === attemptsMax) throw error; // most are free
    }
  }
}
