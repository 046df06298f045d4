// An OAuth 2 server that we did not write. It prints its issuer and the address of its
// controls: GET /state returns what it was asked for, POST /expire ends all access tokens,
// and PUT /fails sets the error of the token endpoint. Its protected resource is /userinfo.
import { createServer } from "node:http";
import { OAuth2Server } from "oauth2-mock-server";

const state = { requests: {}, clients: [], served: 0, revoked: [] };
const valid = new Set();
let fails = "";

const oauth = new OAuth2Server();
await oauth.issuer.keys.generate("RS256");
oauth.service.on("beforeResponse", (response, request) => {
  const { grant_type: grant, client_id: client } = request.body;
  state.requests[grant] = (state.requests[grant] ?? 0) + 1;
  state.clients.push(client);
  if (fails) {
    response.statusCode = 400;
    response.body = { error: fails };
  } else {
    valid.add(response.body.access_token);
  }
});
oauth.service.on("beforeUserinfo", (response, request) => {
  const [, token] = (request.headers.authorization ?? "").split(" ");
  if (valid.has(token)) state.served++;
  else response.statusCode = 401;
});
oauth.service.on("beforeRevoke", (_response, request) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => state.revoked.push(new URLSearchParams(body).get("token")));
});
await oauth.start(0, "127.0.0.1");
oauth.issuer.url = `http://127.0.0.1:${oauth.address().port}`;

const controls = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  if (request.url === "/expire") valid.clear();
  if (request.url === "/fails") fails = Buffer.concat(chunks).toString("utf8");
  response.end(JSON.stringify(state));
});
controls.listen(0, "127.0.0.1", () => console.log(`${oauth.issuer.url} http://127.0.0.1:${controls.address().port}`));
process.stdin.resume().on("end", () => process.exit()); // it exits with the test
