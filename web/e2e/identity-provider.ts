import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** IdentityProvider is an OpenID Connect provider that authenticates everyone as `person`. */
export interface IdentityProvider {
	url: string;
	person: { sub: string; email: string; name: string };
	close: () => void;
}

export async function startIdentityProvider(clientID: string): Promise<IdentityProvider> {
	const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
	const provider: IdentityProvider = {
		url: "",
		person: { sub: "", email: "", name: "" },
		close: () => server.close(),
	};
	/** The nonce of each code. */
	const nonces = new Map<string, string>();
	const server = createServer((request, response) => {
		const { pathname, searchParams } = new URL(request.url ?? "/", provider.url);
		const json = (body: object) => {
			response.writeHead(200, { "Content-Type": "application/json" });
			response.end(JSON.stringify(body));
		};
		if (pathname === "/authorize") {
			const code = `code-${nonces.size}`;
			nonces.set(code, searchParams.get("nonce") ?? "");
			const back = new URL(searchParams.get("redirect_uri") ?? "");
			back.search = new URLSearchParams({ code, state: searchParams.get("state") ?? "" }).toString();
			response.writeHead(302, { Location: back.href });
			response.end();
		} else if (pathname === "/token") {
			let form = "";
			request.on("data", (chunk) => {
				form += chunk;
			});
			request.on("end", () => {
				const nonce = nonces.get(new URLSearchParams(form).get("code") ?? "");
				json({ access_token: "a", token_type: "Bearer", expires_in: 60, id_token: idToken(nonce) });
			});
		} else if (pathname === "/keys") {
			json({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }] });
		} else {
			json({
				issuer: provider.url,
				authorization_endpoint: `${provider.url}/authorize`,
				token_endpoint: `${provider.url}/token`,
				jwks_uri: `${provider.url}/keys`,
			});
		}
	});
	const idToken = (nonce: string | undefined) => {
		const now = Math.floor(Date.now() / 1000);
		const claims = {
			iss: provider.url,
			aud: clientID,
			nonce,
			iat: now,
			exp: now + 600,
			email_verified: true,
			...provider.person,
		};
		const text = [{ alg: "RS256", kid: "1" }, claims]
			.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
			.join(".");
		return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`;
	};
	await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
	provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	return provider;
}
