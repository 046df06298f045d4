// A certified OpenID provider that we did not write. It prints its issuer and the address
// of its controls: GET /keys returns the private keys of its clients, by client id, PUT
// /enter does what a person does who enters the code in the body and consents, and GET
// /resource is a protected resource.
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

clients.push({
  client_id: "device",
  token_endpoint_auth_method: "none",
  grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
  response_types: [],
  redirect_uris: [],
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
  features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true }, deviceFlow: { enabled: true }, revocation: { enabled: true } },
  jwks: { keys: [generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" })] },
  findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: () => true,
  cookies: { keys: ["a test"] },
});
provider.on("grant.error", (_ctx, error) => console.error("oidc-provider:", error.error, error.error_detail ?? error.error_description));
server.on("request", provider.callback());

async function enter(userCode) {
  const code = await provider.DeviceCode.findByUserCode(userCode.replace(/[^A-Z0-9]/gi, ""));
  const grant = new provider.Grant({ accountId: "ada", clientId: code.clientId });
  grant.addOIDCScope("openid offline_access");
  const now = Math.floor(Date.now() / 1000);
  Object.assign(code, { accountId: "ada", authTime: now, grantId: await grant.save(), scope: "openid offline_access" });
  await code.save();
}

const controls = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://controls");
  const send = (status, body) => response.writeHead(status).end(JSON.stringify(body));
  if (pathname === "/keys") return send(200, keys);
  if (pathname === "/enter") {
    let body = "";
    for await (const chunk of request) body += chunk;
    await enter(body);
    return send(200, {});
  }
  const [, token] = (request.headers.authorization ?? "").split(" ");
  const found = token && ((await provider.ClientCredentials.find(token)) ?? (await provider.AccessToken.find(token)));
  return found ? send(200, { client: found.clientId, scope: found.scope }) : send(401, {});
});
controls.listen(0, "127.0.0.1", () => console.log(`${issuer} http://127.0.0.1:${controls.address().port}`));
process.stdin.resume().on("end", () => process.exit()); // it exits with the test
