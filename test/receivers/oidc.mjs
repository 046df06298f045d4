// A certified OpenID provider that we did not write. It prints its issuer and the address
// of its controls: GET /keys returns the private keys of its clients, by client id, and
// GET /resource is a protected resource.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import Provider from "oidc-provider";

const kinds = {
  rsa: ["RS256", "rsa", { modulusLength: 2048 }],
  p256: ["ES256", "ec", { namedCurve: "P-256" }],
  p384: ["ES384", "ec", { namedCurve: "P-384" }],
  p521: ["ES512", "ec", { namedCurve: "P-521" }],
  ed25519: ["EdDSA", "ed25519", {}],
};
const keys = {};
const clients = Object.entries(kinds).map(([client_id, [algorithm, type, options]]) => {
  const { privateKey, publicKey } = generateKeyPairSync(type, options);
  keys[client_id] = privateKey.export({ type: "pkcs8", format: "pem" });
  return {
    client_id,
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_signing_alg: algorithm,
    jwks: { keys: [{ ...publicKey.export({ format: "jwk" }), kid: `${client_id}-1`, alg: algorithm, use: "sig" }] },
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
  };
});

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;
console.warn = () => {}; // about settings for production
const provider = new Provider(issuer, {
  clients,
  clientAuthMethods: ["private_key_jwt", "none"],
  enabledJWA: { clientAuthSigningAlgValues: ["RS256", "ES256", "ES384", "ES512", "EdDSA"] },
  features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true }, revocation: { enabled: true } },
  jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] },
  cookies: { keys: ["a test"] },
});
provider.on("grant.error", (_ctx, error) => console.error("oidc-provider:", error.error, error.error_detail ?? error.error_description));
server.on("request", provider.callback());

const controls = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://controls");
  const send = (status, body) => response.writeHead(status).end(JSON.stringify(body));
  if (pathname === "/keys") return send(200, keys);
  const [, token] = (request.headers.authorization ?? "").split(" ");
  const found = token && ((await provider.ClientCredentials.find(token)) ?? (await provider.AccessToken.find(token)));
  return found ? send(200, { client: found.clientId, scope: found.scope }) : send(401, {});
});
controls.listen(0, "127.0.0.1", () => console.log(`${issuer} http://127.0.0.1:${controls.address().port}`));
process.stdin.resume().on("end", () => process.exit()); // it exits with the test
