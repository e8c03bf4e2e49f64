/**
 * Schemas and descriptions that routes declare beside their handlers: Elysia validates requests with the schemas, and
 * the API reference is derived from both.
 *
 * Source: docs/decisions/080-api-reference.md.
 * @module
 */
import { type DocumentDecoration, t, ValidationError } from "elysia";
import { Failure, type FailureCode, failures } from "../failures.ts";
import type { Parameter } from "./parameter.ts";
import type { Responses, Schema } from "./reference/openapi-types.ts";
import { contextOf } from "./request-context.ts";

/** Description of a parameter in the API reference. */
type TextOptions = Readonly<{
  description: string;
  /** A valid value; parameters that are required have one. */
  example?: string;
}>;

/** A text of a path, checked by its pattern alone. @param error - The failure of another text. */
export function plainText(options: TextOptions & Readonly<{ pattern?: string }>, error?: FailureCode) {
  return t.String({ ...options, ...(error === undefined ? {} : { error }) });
}

/** How a text is parsed, and the failures of other texts. */
type TextParser<Value> = Readonly<{
  /** The schema that the API reference shows. */
  schema: Schema;
  /** Returns `undefined` for a text that is not valid. */
  parse: (text: string) => Value | undefined;
  invalid: (text: string) => Failure;
  /** For an absent parameter; `invalid` of an empty text unless given. */
  missing?: () => Failure;
}>;

/** A text of a path that becomes another value. */
export function parsedText<Value>(options: TextOptions, { schema, parse, invalid }: TextParser<Value>) {
  return t
    .Transform(t.String({ ...options, shown: schema }))
    .Decode((text): Value => {
      const value = parse(text);
      if (value === undefined) throw invalid(text);
      return value;
    })
    .Encode(String);
}

/** The failure that a schema rejected a request with; `undefined` for an error of another origin. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  const rejected: unknown = error instanceof ValidationError ? error.customError : undefined;
  return isFailureCode(rejected) ? new Failure(rejected, {}) : undefined;
}

/** A parameter of a query, with its parser. */
export type QueryParameter<Value> = Parameter &
  Readonly<{
    /** @param text - `null` when the parameter is absent. @throws Failure the parameter's own. */
    parse: (text: string | null) => Value;
  }>;

/** A required parameter of a query. */
export function requiredQuery<Value>(
  name: string,
  options: TextOptions,
  parser: TextParser<Value>,
): QueryParameter<Value> {
  const { schema, parse, invalid, missing = () => invalid("") } = parser;
  return {
    ...options,
    name,
    in: "query",
    required: true,
    schema,
    parse: (text) => {
      if (text === null) throw missing();
      const value = parse(text);
      if (value === undefined) throw invalid(text);
      return value;
    },
  };
}

/** A parameter of a query that has a fallback. */
export function optionalQuery<Value, Fallback>(
  name: string,
  options: TextOptions,
  parser: TextParser<Value>,
  fallback: Fallback,
): QueryParameter<Value | Fallback> {
  const { parse, schema, ...parameter } = requiredQuery(name, options, parser);
  return {
    ...parameter,
    required: false,
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
    parse: (text) => (text === null ? fallback : parse(text)),
  };
}

type QueryValues<Query> = {
  readonly [Name in keyof Query]: Query[Name] extends QueryParameter<infer Value> ? Value : never;
};

/**
 * Parses the parameters of a query in their order, each from the first value of its name.
 *
 * Elysia 1.4.30 decodes transformed values of a query twice, takes the last value of a repeated name, and decodes
 * invalid escapes in its own way.
 */
export function readQuery<const Query extends Readonly<Record<string, QueryParameter<unknown>>>>(
  request: Request,
  query: Query,
): QueryValues<Query> {
  const sent = new URLSearchParams(contextOf(request).target.query);
  const values = Object.entries(query).map(([key, { name, parse }]) => [key, parse(sent.get(name))]);
  // Each value is the result of its own parser.
  return Object.fromEntries(values) as QueryValues<Query>;
}

/** The description of one method of one path. */
export type RouteDescription = Readonly<{
  tag: string;
  summary: string;
  description?: string;
  /** Parameters that no schema of the route validates, after those that one does. */
  parameters?: readonly Parameter[];
  body?: Readonly<{ type: string; schema: Schema; example: unknown; required?: boolean }>;
  /** Whether the route needs the admin key. */
  isGuarded?: true;
  responses: Responses;
}>;

/** An operation of the API reference. */
export type DescribedOperation = Readonly<{
  /** Only where the document shows another path than that of the route. */
  path?: string;
  method?: string;
  tags: readonly string[];
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{
    required: boolean;
    content: Readonly<Record<string, Readonly<{ schema: Schema; example?: unknown }>>>;
  }>;
  security?: readonly Readonly<Record<string, readonly string[]>>[];
  responses: Responses;
}>;

/**
 * Decoration of a route for the API reference. The operations are created with the document, because Elysia copies the
 * decoration whenever routes are joined.
 */
type Decoration = DocumentDecoration & Readonly<{ operations: () => readonly DescribedOperation[] }>;

/** Describes a route under its own path. */
export function described(description: RouteDescription): DocumentDecoration {
  const decoration: Decoration = { operations: () => [operationOf(description)] };
  return decoration;
}

/** A description with the path that the document shows. */
export type PathDescription = RouteDescription & Readonly<{ path: string; method?: "GET" | "HEAD" }>;

/**
 * Describes a route under other paths or methods: one that serves several operations by the words in its path, one
 * whose parameter the router must name as its neighbours do, or the HEAD of a GET.
 */
export function describedAs(...descriptions: readonly PathDescription[]): DocumentDecoration {
  const decoration: Decoration = {
    operations: () =>
      descriptions.map(({ path, method, ...rest }) => {
        return { ...operationOf(rest), path, ...(method === undefined ? {} : { method }) };
      }),
  };
  return decoration;
}

function operationOf({ tag, body, isGuarded, ...description }: RouteDescription): DescribedOperation {
  return {
    tags: [tag],
    ...description,
    ...(body === undefined ? {} : { requestBody: requestBodyOf(body) }),
    ...(isGuarded === true ? { security: [{ key: [] }] } : {}),
  };
}

function requestBodyOf({ required = true, type, schema, example }: NonNullable<RouteDescription["body"]>) {
  return { required, content: { [type]: { schema, example } } };
}

/** The operations that a route describes. @param decoration - The `detail` of a route. */
export function operationsIn(decoration: unknown): readonly DescribedOperation[] {
  return isDecoration(decoration) ? decoration.operations() : [];
}

function isDecoration(value: unknown): value is Decoration {
  return typeof value === "object" && value !== null && "operations" in value;
}

/** The parameters of a path, as OpenAPI has them. @param schema - The schema that Elysia validates them with. */
export function pathParametersOf(schema: unknown): readonly Parameter[] {
  const { properties = {}, required = [] }: ObjectSchema = JSON.parse(JSON.stringify(schema ?? {}));
  return Object.entries(properties).map(([name, { description, example, error: _, shown, ...keywords }]) => ({
    name,
    in: "path",
    required: required.includes(name),
    description,
    schema: shown ?? keywords,
    ...(example === undefined ? {} : { example }),
  }));
}

type ObjectSchema = Readonly<{
  properties?: Readonly<Record<string, TextOptions & Readonly<{ error?: unknown; shown?: Schema }>>>;
  required?: readonly string[];
}>;

function isFailureCode(value: unknown): value is FailureCode {
  return typeof value === "string" && Object.hasOwn(failures, value);
}
