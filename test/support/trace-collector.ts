/**
 * A collector of traces: OTLP over HTTP in JSON. It accepts only what the published schema allows.
 * Source: opentelemetry-proto 1.5 (trace_service.proto, trace.proto, common.proto, resource.proto); OTLP, "JSON
 *   Protobuf Encoding".
 * @module
 */

/** A received span. */
export type ReceivedSpan = Readonly<{
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Readonly<Record<string, string | number | boolean>>;
  status: Readonly<{ code?: number }>;
}>;

export type TraceCollector = Readonly<{
  url: string;
  spans: ReceivedSpan[];
  /** Attributes of the resource, of the last request. */
  resource: () => Readonly<Record<string, string | number | boolean>>;
  /** Headers of the last request. */
  headers: () => Headers | undefined;
  /** Number of requests. */
  requests: () => number;
  /** Violations of the schema. */
  faults: string[];
  close: () => void;
}>;

type Respond = (spans: readonly ReceivedSpan[]) => Response | Promise<Response>;

/** Opens it on a free port. @param respond - By default accepts everything. */
export function openTraceCollector(respond: Respond = () => Response.json({})): TraceCollector {
  const spans: ReceivedSpan[] = [];
  const faults: string[] = [];
  let resource: Readonly<Record<string, string | number | boolean>> = {};
  let headers: Headers | undefined;
  let requests = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      requests += 1;
      headers = request.headers;
      if (request.method !== "POST" || new URL(request.url).pathname !== "/v1/traces")
        faults.push(`${request.method} ${request.url}`);
      if (request.headers.get("content-type") !== "application/json") faults.push("not JSON");
      const read = readExport(await request.json(), (fault) => faults.push(fault));
      ({ resource } = read);
      const response = await respond(read.spans);
      if (response.ok) spans.push(...read.spans);
      return response;
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    resource: () => resource,
    headers: () => headers,
    requests: () => requests,
    faults,
    close: () => void server.stop(true),
  };
}

type Fault = (fault: string) => void;
type Shape = Readonly<Record<string, (value: unknown, at: string, fault: Fault) => unknown>>;

/** Reads an `ExportTraceServiceRequest`. */
export function readExport(body: unknown, fault: Fault) {
  const spans: ReceivedSpan[] = [];
  let resource: Record<string, string | number | boolean> = {};
  const readSpan = (value: unknown, at: string) => {
    const required = ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"];
    const span = object(spanShape, required)(value, at, fault);
    const [start, end] = [String(span["startTimeUnixNano"]), String(span["endTimeUnixNano"])];
    if (BigInt(start) > BigInt(end)) fault(`${at}: ends before it starts`);
    spans.push(span as ReceivedSpan);
  };
  const scope = object({ name: text, version: text }, ["name"]);
  const scopeSpans = object({ scope, spans: (value, at) => each(value, at, fault, readSpan) }, ["spans"]);
  const readResource = (value: unknown, at: string) => {
    const { attributes } = object({ attributes: attributeList }, [])(value, at, fault);
    resource = attributes as typeof resource;
  };
  const resourceSpans = object(
    {
      resource: readResource,
      scopeSpans: (value, at) => each(value, at, fault, (one, place) => scopeSpans(one, place, fault)),
    },
    ["scopeSpans"],
  );
  const all = (value: unknown, at: string) => each(value, at, fault, (one, place) => resourceSpans(one, place, fault));
  object({ resourceSpans: all }, ["resourceSpans"])(body, "request", fault);
  return { spans, resource };
}

/** An object with no fields besides those of the shape. */
function object(shape: Shape, required: readonly string[]) {
  return (value: unknown, at: string, fault: Fault): Record<string, unknown> => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      fault(`${at}: not an object`);
      return {};
    }
    for (const name of required) if (!(name in value)) fault(`${at}: no ${name}`);
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => {
        const read = shape[name];
        if (read === undefined) fault(`${at}: unknown field ${name}`);
        return [name, read?.(field, `${at}.${name}`, fault)];
      }),
    );
  };
}

function each(value: unknown, at: string, fault: Fault, read: (one: unknown, at: string) => void): void {
  if (!Array.isArray(value)) fault(`${at}: not an array`);
  else for (const [index, one] of value.entries()) read(one, `${at}[${index}]`);
}

function text(value: unknown, at: string, fault: Fault): string {
  if (typeof value !== "string" || !value.isWellFormed()) fault(`${at}: not a text`);
  return String(value);
}

function matching(pattern: RegExp) {
  return (value: unknown, at: string, fault: Fault): string => {
    if (typeof value !== "string" || !pattern.test(value)) fault(`${at}: ${JSON.stringify(value)}`);
    return String(value);
  };
}

function integer(min: number, max: number) {
  return (value: unknown, at: string, fault: Fault): unknown => {
    if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) fault(`${at}: ${value}`);
    return value;
  };
}

/** Unix nanoseconds as decimal text, from the year 2001 to 2286. */
const nanos = matching(/^[1-9]\d{18}$/);

/** A value has exactly one of these; a list and a map are allowed by the schema, and not used here. */
const valueShape: Shape = {
  stringValue: text,
  intValue: matching(/^-?\d{1,19}$/),
  boolValue: (value, at, fault) => typeof value === "boolean" || fault(`${at}: not true or false`),
  doubleValue: (value, at, fault) => (typeof value === "number" && Number.isFinite(value)) || fault(`${at}: ${value}`),
};

function attributeList(value: unknown, at: string, fault: Fault): Record<string, unknown> {
  const attributes: Record<string, unknown> = {};
  each(value, at, fault, (one, place) => {
    const pair = object({ key: text, value: object(valueShape, []) }, ["key", "value"])(one, place, fault);
    const key = String(pair["key"]);
    if (key in attributes) fault(`${place}: ${key} is there twice`);
    const fields = Object.entries(Object((one as { value: unknown }).value));
    if (fields.length !== 1) fault(`${place}: ${fields.length} values`);
    const [[name, field] = []] = fields;
    attributes[key] = name === "intValue" ? Number(field) : field;
  });
  return attributes;
}

const spanShape: Shape = {
  traceId: matching(/^(?!0{32})[0-9a-f]{32}$/),
  spanId: matching(/^(?!0{16})[0-9a-f]{16}$/),
  parentSpanId: matching(/^(?!0{16})[0-9a-f]{16}$/),
  flags: integer(0, 2 ** 32 - 1),
  name: (value, at, fault) => (value === "" ? fault(`${at}: empty`) : text(value, at, fault)),
  kind: integer(1, 5),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes: attributeList,
  status: object({ code: integer(0, 2), message: text }, []),
};
