/**
 * The parameters of a GraphQL request.
 * Source: docs/reference/graphql.md#errors; GraphQL over HTTP (draft 2024) §5.
 * @module
 */
import { anyObjectSchema, nullable, objectSchema, stringSchema } from "../lib/value-schema.ts";

/** The text of a document. */
export const documentSchema = stringSchema({ minLength: 1 });

/** Name of the operation to execute. */
export const operationNameSchema = stringSchema();

/** Schema of the parameters. Other keys are ignored, as GraphQL over HTTP requires. */
export const queryRequestSchema = objectSchema(
  { query: documentSchema },
  {
    variables: nullable(anyObjectSchema),
    operationName: nullable(operationNameSchema),
    extensions: nullable(anyObjectSchema),
  },
);

/** A request as the client sent it: within the size limit, not yet parsed. */
export type SentRequest = Readonly<{
  /** Format of the text: a JSON object of parameters, a URL-encoded form of them, or the document alone. */
  form: "json" | "form" | "document";
  text: string;
}>;

/** Parameters as GraphQL over HTTP names them; absent ones are left out. */
export type RequestParameters = Readonly<{
  query: string;
  variables?: Record<string, unknown>;
  operationName?: string;
}>;
