/**
 * A target of webhooks: it records deliveries, and responds with given statuses.
 * @module
 */

/** A received delivery. */
export type ArrivedDelivery = Readonly<{ headers: Headers; text: string; body: Record<string, unknown> }>;

/** A target. */
export type WebhookTarget = Readonly<{
  url: string;
  port: number;
  /** Every attempt, in order. */
  attempts: ArrivedDelivery[];
  /** Statuses of the next responses; 204 afterwards. */
  responses: (number | "hang" | Readonly<{ location: string }>)[];
  close: () => Promise<void>;
}>;

/** Opens a target; a port is for one that comes back. */
export function openWebhookTarget(port = 0): WebhookTarget {
  const attempts: ArrivedDelivery[] = [];
  const responses: WebhookTarget["responses"] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch: async (request) => {
      const text = await request.text();
      attempts.push({ headers: request.headers, text, body: JSON.parse(text) });
      const next = responses.shift() ?? 204;
      if (next === "hang") await new Promise<void>(() => undefined);
      if (typeof next === "object") return new Response(null, { status: 307, headers: { Location: next.location } });
      return new Response(null, { status: Number(next) });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    port: server.port ?? 0,
    attempts,
    responses,
    close: () => server.stop(true),
  };
}
