// What the scripts of Microsoft's services have in common: its generated client of Graph.
import { HttpMethod, RequestInformation } from "@microsoft/kiota-abstractions";
import { CustomFetchHandler, HeadersInspectionHandler, ParametersNameDecodingHandler, UrlReplaceHandler, UrlReplaceHandlerOptions } from "@microsoft/kiota-http-fetchlibrary";
import { GraphRequestAdapter } from "@microsoft/msgraph-sdk";
import { AuthenticationHandler, Client, FileUpload, LargeFileUploadTask } from "@microsoft/microsoft-graph-client";
import { createGraphClientFactory, defaultUrlReplacementPairs } from "@microsoft/msgraph-sdk-core";
import { DefaultHeaders, DefaultInit, graphfi } from "@pnp/graph";
import { BrowserFetch, DefaultParse, InjectHeaders } from "@pnp/queryable";

/**
 * adapter returns what sends the requests of the client: to Graph with the token, and
 * elsewhere without it.
 * @param {import("./service.d.ts").Environment} environment
 * @param {Record<string, string>} headers that every request to Graph has
 */
export function adapter({ at, secrets }, headers = {}) {
  const graph = at("https://graph.microsoft.com/");
  const authentication = {
    /** @param {RequestInformation} request */
    async authenticateRequest(request) {
      if (!request.URL.startsWith(graph)) return;
      request.headers.add("Authorization", `Bearer ${secrets.access_token}`);
      for (const [name, value] of Object.entries(headers)) if (!request.headers.has(name)) request.headers.add(name, value);
    },
  };
  // As the client composes them, but without repeating a request that has failed.
  const middlewares = [
    new ParametersNameDecodingHandler(),
    new HeadersInspectionHandler(),
    new UrlReplaceHandler(new UrlReplaceHandlerOptions({ urlReplacements: defaultUrlReplacementPairs })),
    new CustomFetchHandler((...args) => fetch(...args)),
  ];
  const out = new GraphRequestAdapter(authentication, undefined, undefined, createGraphClientFactory({}, undefined, undefined, middlewares));
  out.baseUrl = at("https://graph.microsoft.com/v1.0");
  return out;
}

/**
 * list reads pages until there are enough items.
 * @param {any} builder of the requests
 * @param {any} parameters of the first one
 */
export async function list(builder, parameters, { limit = 100, all }, size = 100) {
  let count = 0;
  let page = await builder.get({ queryParameters: { ...parameters, top: all ? size : Math.min(limit, size) } });
  for (;;) {
    count += page.value.length;
    if (!page.odataNextLink || (!all && count >= limit)) return;
    page = await builder.withUrl(page.odataNextLink).get();
  }
}

/**
 * oldClient returns the client before the generated one, which adds the token to requests
 * to Graph only.
 * @param {import("./service.d.ts").Environment} environment
 */
export function oldClient({ at, secrets }) {
  const authentication = new AuthenticationHandler({ getAccessToken: async () => secrets.access_token });
  authentication.setNext({
    async execute(context) {
      context.response = await fetch(at(String(context.request)), context.options);
    },
  });
  return Client.initWithMiddleware({ middleware: authentication });
}

/**
 * upload sends a file in parts to the address of a session, with the task for it in the
 * older client: that of the generated one needs ranges that Graph does not return.
 * @param {import("./service.d.ts").Environment} environment
 * @param {any} session
 * @param {{name: string, content: Buffer}} file
 */
export async function upload(environment, session, file, rangeSize) {
  const client = oldClient(environment);
  const url = session.uploadUrl.replace(environment.at("https://"), "https://"); // it knows only https
  const content = new FileUpload(file.content, file.name, file.content.length);
  await new LargeFileUploadTask(client, content, { url, expiry: new Date(session.expirationDateTime ?? Date.now()) }, { rangeSize }).upload();
}

/** send makes a request that the client has no method for. */
export async function send(sender, method, url, headers = {}) {
  const request = new RequestInformation(HttpMethod[method], url);
  for (const [name, value] of Object.entries(headers)) request.headers.add(name, value);
  return sender.sendPrimitive(request, "ArrayBuffer", undefined);
}

/**
 * pnp returns PnPjs, which people use for drives and workbooks: Microsoft's generated
 * client for TypeScript does not have them.
 * @param {import("./service.d.ts").Environment} environment
 */
export function pnp({ at, secrets }) {
  return graphfi().using(
    DefaultInit(at("https://graph.microsoft.com/v1.0")),
    DefaultHeaders(),
    DefaultParse(),
    BrowserFetch(),
    InjectHeaders({ Authorization: `Bearer ${secrets.access_token}` }),
  );
}

/** listPages reads pages of PnPjs until there are enough items. */
export async function listPages(collection, { limit = 100, all }, size = 200) {
  let count = 0;
  for await (const page of collection.top(all ? size : Math.min(limit, size))) {
    count += page.length;
    if (!all && count >= limit) return;
  }
}
