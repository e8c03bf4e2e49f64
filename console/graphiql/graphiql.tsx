/**
 * The page at `/graphql` in a browser: GraphiQL over this gateway's own endpoint, with nothing from elsewhere.
 * @module
 */
import { createGraphiQLFetcher, type Fetcher } from "@graphiql/toolkit";
import { GraphiQL } from "graphiql";
import { createRoot } from "react-dom/client";
import { followSubscription } from "./subscription.ts";

const firstQuery = `# The newest pages and pictures.
# Ctrl-Enter runs the query; the book icon lists
# every filter and field.
{
  transactions(
    first: 10
    tags: [
      {
        name: "Content-Type"
        values: ["text/html", "image/png"]
      }
    ]
  ) {
    pageInfo {
      hasNextPage
    }
    edges {
      cursor
      node {
        id
        owner {
          address
        }
        data {
          size
          type
        }
        tags {
          name
          value
        }
        block {
          height
          timestamp
        }
        bundledIn {
          id
        }
      }
    }
  }
}
`;

// The name under which the dialogs' library looks for the nonce of styles that it adds.
Object.assign(globalThis, { __webpack_nonce__: document.currentScript?.nonce });

const query = createGraphiQLFetcher({ url: location.pathname });

const fetcher: Fetcher = (parameters, options) => {
  const { operationName } = parameters;
  const isSubscription = options?.documentAST?.definitions.some(
    (definition) =>
      definition.kind === "OperationDefinition" &&
      definition.operation === "subscription" &&
      (typeof operationName !== "string" || definition.name?.value === operationName),
  );
  return isSubscription === true ? followSubscription(location.pathname, parameters) : query(parameters, options);
};

const place = document.getElementById("page");
if (place === null) throw new Error("the page has an element for GraphiQL");
// A link may carry a query, as GET requests do.
const link = new URLSearchParams(location.search);

createRoot(place).render(
  <GraphiQL
    fetcher={fetcher}
    defaultQuery={firstQuery}
    {...(link.has("query") ? { query: link.get("query") ?? "" } : {})}
    {...(link.has("variables") ? { variables: link.get("variables") ?? "" } : {})}
  />,
);
