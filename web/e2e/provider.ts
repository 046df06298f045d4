import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** Provider is an OAuth 2 provider with an API that accepts its tokens. */
export interface Provider {
	url: string;
	/** revoke makes all tokens invalid: the API and renewals reject them. */
	revoke: () => void;
	/** The redirect URLs that consents asked for. */
	redirects: string[];
	close: () => void;
}

/** startProvider starts a provider whose page asks the person to allow or deny. */
export async function startProvider(): Promise<Provider> {
	let issued = 0;
	let entered = false;
	let valid = new Set<string>();
	const redirects: string[] = [];
	const server = createServer(async (request, response) => {
		const { pathname, searchParams } = new URL(request.url ?? "/", "http://provider");
		const json = (status: number, body: object) => {
			response.writeHead(status, { "Content-Type": "application/json" });
			response.end(JSON.stringify(body));
		};
		if (pathname === "/authorize") {
			redirects.push(searchParams.get("redirect_uri") ?? "");
			response.writeHead(200, { "Content-Type": "text/html" });
			response.end(consentPage(searchParams));
		} else if (pathname === "/device") {
			entered = false;
			const verification_uri = `http://${request.headers.host}/enter`;
			const code = { device_code: "device-code-of-test", user_code: "WDJB-MJHT", verification_uri };
			json(200, {
				...code,
				verification_uri_complete: `${verification_uri}?code=WDJB-MJHT`,
				expires_in: 600,
				interval: 1,
			});
		} else if (pathname === "/enter") {
			response.writeHead(200, { "Content-Type": "text/html" });
			response.end(`<!doctype html><link rel="icon" href="data:,"><title>Shop</title><a href="/entered">Allow</a>`);
		} else if (pathname === "/entered") {
			entered = true;
			response.writeHead(200, { "Content-Type": "text/html" });
			response.end(`<!doctype html><link rel="icon" href="data:,"><title>Shop</title>You may close this page.`);
		} else if (pathname === "/token") {
			const body = new URLSearchParams(await read(request));
			if (body.get("grant_type")?.endsWith("device_code") && !entered) {
				json(400, { error: "authorization_pending" });
				return;
			}
			if (body.get("grant_type") === "refresh_token" && !valid.has(body.get("refresh_token") ?? "")) {
				json(400, { error: "invalid_grant", error_description: "the token was revoked" });
				return;
			}
			issued += 1;
			const [access_token, refresh_token] = [`access-token-${issued}`, `refresh-token-${issued}`];
			valid = new Set([access_token, refresh_token]);
			json(200, { access_token, refresh_token, token_type: "Bearer", expires_in: 3600 });
		} else if (valid.has(request.headers.authorization?.replace("Bearer ", "") ?? "")) {
			json(200, { orders: 7 });
		} else {
			json(401, { error: "invalid_token" });
		}
	});
	await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		revoke: () => valid.clear(),
		redirects,
		close: () => server.close(),
	};
}

function consentPage(params: URLSearchParams): string {
	const back = (more: Record<string, string>) => {
		const url = new URL(params.get("redirect_uri") ?? "");
		for (const [name, value] of Object.entries({ state: params.get("state") ?? "", ...more }))
			url.searchParams.set(name, value);
		return url.href.replaceAll("&", "&amp;");
	};
	return `<!doctype html><link rel="icon" href="data:,"><title>Shop</title><h1>Allow access to your shop?</h1>
<a href="${back({ code: "code" })}">Allow</a> <a href="${back({ error: "access_denied" })}">Deny</a>`;
}

async function read(request: IncomingMessage): Promise<string> {
	let text = "";
	for await (const piece of request) text += piece;
	return text;
}
