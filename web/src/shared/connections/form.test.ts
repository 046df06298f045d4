import { describe, expect, it } from "vitest";
import type { Definition, InputField, Integration } from "./data";
import {
	type CustomDraft,
	certificateFields,
	changedFields,
	customDraft,
	customFields,
	definitionOf,
	emptyCustom,
	givenFields,
	isComplete,
	isDefined,
	matchIntegrations,
	needsConsent,
	proposeName,
	reconnectsByConsent,
	secretNames,
} from "./form";

const placement = (value: string, where: "header" | "query" = "header", name = "X-Key") => ({ where, name, value });

describe("a custom connection", () => {
	it("asks for each secret that its places refer to", () => {
		const placements = [placement("${{ secret.key }}"), placement("${{ secret.app }}:${{ secret.key }}", "query", "k")];
		expect(secretNames(placements)).toEqual(["app", "key"]);
		expect(customFields("api_key", { ...emptyCustom, placements }).map(({ title }) => title)).toEqual([
			"app",
			"API key",
		]);
	});

	it("becomes a definition with only what its kind has, and back", () => {
		const draft = { ...emptyCustom, hosts: "api.example.com\n b.example.com ", token_url: "https://a.example/token" };
		const definition = definitionOf("api_key", draft);
		expect(definition).toEqual({
			hosts: ["api.example.com", "b.example.com"],
			apply: { headers: { Authorization: "Bearer ${{ secret.key }}" } },
		});
		expect(definitionOf("api_key", customDraft(definition), definition)).toEqual(definition);
		expect(definitionOf("bearer", draft)).toEqual({ hosts: ["api.example.com", "b.example.com"] });
	});

	it("keeps members of its definition that the form does not edit", () => {
		const was = { hosts: ["a.example"], token_url: "https://a.example/t", pkce: false, scopes: ["x"] } as Definition;
		expect(definitionOf("oauth2", { ...customDraft(was), scopes: "" }, was)).toEqual({
			hosts: ["a.example"],
			token_url: "https://a.example/t",
			pkce: false,
			grant: "client_credentials",
		});
	});

	it("keeps its certificate authorities, and has no secret if its certificate takes that place", () => {
		const was = {
			hosts: ["a.example"],
			token_url: "https://a.example/t",
			client_auth: "tls",
			ca: "PEM\n",
		} as Definition;
		const draft = customDraft(was);
		expect(definitionOf("oauth2", draft, was)).toEqual({ ...was, grant: "client_credentials" });
		expect(definitionOf("oauth2", { ...draft, ca: " " }, was)).not.toHaveProperty("ca");
		expect(customFields("oauth2", draft).map(({ name }) => name)).toEqual(["client_id"]);
		const required = (kind: string, draft = emptyCustom) => certificateFields(kind, draft).every((one) => one.required);
		expect([required("oauth2", draft), required("oauth2"), required("client_certificate")]).toEqual([
			true,
			false,
			true,
		]);
	});

	it("has the issuer or the URLs of an OAuth 2 provider, never both", () => {
		const draft = {
			...emptyCustom,
			hosts: "a.example",
			issuer: "https://id.example",
			authorize_url: "https://id.example/a",
			token_url: "https://id.example/t",
			revoke_url: "https://id.example/r",
		};
		const { authorize_url, token_url, revoke_url, issuer } = draft;
		const base = { hosts: ["a.example"], grant: "authorization_code" };
		const discovered = definitionOf("oauth2", { ...draft, discover: true });
		expect(discovered).toEqual({ ...base, issuer });
		expect(customDraft(discovered)).toMatchObject({ discover: true, issuer, grant: "authorization_code" });
		const both = { ...discovered, revoke_url };
		expect(definitionOf("oauth2", customDraft(both), both)).toEqual(both);
		expect(definitionOf("oauth2", draft)).toEqual({ ...base, authorize_url, token_url, revoke_url });
		expect(definitionOf("oauth2", { ...draft, grant: "client_credentials" })).toEqual({
			hosts: ["a.example"],
			grant: "client_credentials",
			token_url,
			revoke_url,
		});
	});

	it("has further parameters of the authorize URL and of token requests", () => {
		const was = {
			hosts: ["a.example"],
			grant: "authorization_code",
			authorize_url: "https://a.example/a",
			token_url: "https://a.example/t",
			params: { prompt: "consent" },
			token_params: { audience: "https://a.example/" },
		} as Definition;
		const draft = customDraft(was);
		expect(draft.params).toEqual([
			{ where: "authorize", name: "prompt", value: "consent" },
			{ where: "token", name: "audience", value: "https://a.example/" },
		]);
		expect(definitionOf("oauth2", draft, was)).toEqual(was);
		const fresh = { where: "token", name: "", value: "" } as const;
		expect(definitionOf("oauth2", { ...draft, params: [fresh] }, was)).not.toHaveProperty("token_params");
		const { params, token_params } = definitionOf("oauth2", { ...draft, grant: "client_credentials" }, was);
		expect([params, token_params]).toEqual([undefined, was.token_params]);
	});

	it("sends token requests as a form unless it says otherwise", () => {
		const was = { hosts: ["a.example"], grant: "client_credentials", token_url: "https://a.example/t" } as Definition;
		expect(definitionOf("oauth2", customDraft(was), was)).toEqual(was);
		const json = definitionOf("oauth2", { ...customDraft(was), token_body: "json" }, was);
		expect(json).toEqual({ ...was, token_body: "json" });
		expect(definitionOf("oauth2", customDraft(json), json)).toEqual(json);
		expect(definitionOf("oauth2", { ...customDraft(json), token_body: "form" }, json).token_body).toBe("form");
	});

	it("asks for a private key instead of a secret if the client signs", () => {
		const signs = { ...emptyCustom, client_auth: "private_key_jwt" } as const;
		expect(customFields("oauth2", signs).map(({ name, required }) => [name, required])).toEqual([
			["client_id", true],
			["private_key", true],
			["key_id", false],
		]);
		expect(definitionOf("oauth2", signs).client_auth).toBe("private_key_jwt");
		expect(definitionOf("oauth2", emptyCustom)).not.toHaveProperty("client_auth");
		const was = { hosts: ["a.example"], client_auth: "body" } as Definition;
		expect(definitionOf("oauth2", customDraft(was), was).client_auth).toBe("body");
	});

	it("is defined once its kind has the URLs that it needs", () => {
		const draft = { ...emptyCustom, hosts: "a.example", token_url: "https://a.example/t" };
		expect(isDefined("bearer", emptyCustom)).toBe(false);
		expect(isDefined("bearer", draft)).toBe(true);
		expect(isDefined("oauth2", draft)).toBe(false);
		expect(isDefined("oauth2", { ...draft, authorize_url: "https://a.example/a" })).toBe(true);
		expect(isDefined("oauth2", { ...draft, grant: "client_credentials" })).toBe(true);
		expect(isDefined("oauth2", { ...draft, grant: "device_code" })).toBe(false);
		expect(isDefined("oauth2", { ...draft, grant: "device_code", device_url: "https://a.example/d" })).toBe(true);
		expect(isDefined("oauth2", { ...draft, discover: true })).toBe(false);
		expect(isDefined("oauth2", { ...draft, discover: true, issuer: "https://a.example" })).toBe(true);
	});

	it("has only the URLs of its grant", () => {
		const urls = {
			authorize_url: "https://a.example/a",
			device_url: "https://a.example/d",
			token_url: "https://a.example/t",
		};
		const draft = { ...emptyCustom, ...urls, hosts: "a.example" };
		const of = (grant: CustomDraft["grant"]) => Object.keys(definitionOf("oauth2", { ...draft, grant }));
		expect(of("authorization_code")).toEqual(["hosts", "grant", "authorize_url", "token_url"]);
		expect(of("device_code")).toEqual(["hosts", "grant", "device_url", "token_url"]);
		expect(of("client_credentials")).toEqual(["hosts", "grant", "token_url"]);
		const resolved = definitionOf("oauth2", { ...draft, grant: "device_code" });
		expect(definitionOf("oauth2", customDraft(resolved), resolved)).toEqual(resolved);
	});

	it("needs consent for OAuth 2, except with client credentials", () => {
		expect(needsConsent(undefined, "oauth2", { ...emptyCustom, grant: "device_code" })).toBe(true);
		expect(needsConsent(undefined, "oauth2", emptyCustom)).toBe(true);
		expect(needsConsent(undefined, "oauth2", { ...emptyCustom, grant: "client_credentials" })).toBe(false);
		expect(needsConsent(undefined, "api_key", emptyCustom)).toBe(false);
		const one = (definition: object) => ({ integration: null, auth: "oauth2", definition: definition as Definition });
		expect(reconnectsByConsent(one({ authorize_url: "https://a.example/a" }))).toBe(true);
		expect(reconnectsByConsent(one({ issuer: "https://a.example" }))).toBe(true);
		expect(reconnectsByConsent(one({ issuer: "https://a.example", grant: "client_credentials" }))).toBe(false);
		expect(reconnectsByConsent(one({ device_url: "https://a.example/d", grant: "device_code" }))).toBe(true);
		expect(reconnectsByConsent(one({ token_url: "https://a.example/t" }))).toBe(false);
	});
});

describe("the fields of a connection", () => {
	const fields = [
		{ name: "shop", required: true, secret: false },
		{ name: "token", required: true, secret: true },
		{ name: "note", required: false, secret: false },
	] as InputField[];

	it("are complete with every required value, and stored secrets may stay empty", () => {
		expect(isComplete(fields, { shop: "a" })).toBe(false);
		expect(isComplete(fields, { shop: "a", token: "t" })).toBe(true);
		expect(isComplete(fields, { shop: "a" }, true)).toBe(true);
		expect(isComplete(fields, { shop: " " }, true)).toBe(false);
	});

	it("are removed by emptying them, except secrets, which stay", () => {
		expect(changedFields(fields, { shop: "a", token: "", note: " " }, { shop: "a", note: "n" })).toEqual({
			shop: "a",
			note: "",
		});
		expect(changedFields(fields, { shop: "a" }, { shop: "a" })).toEqual({ shop: "a" });
	});

	it("lose the key with its certificate", () => {
		const certificate = certificateFields("bearer", emptyCustom);
		expect(changedFields(certificate, { client_certificate: "" }, { client_certificate: "PEM" })).toEqual({
			client_certificate: "",
			client_key: "",
		});
		expect(changedFields(certificate, { client_certificate: "PEM" }, { client_certificate: "PEM" })).toEqual({
			client_certificate: "PEM",
		});
	});

	it("are sent if they were entered, and without those of another way to authenticate", () => {
		expect(givenFields(fields, { shop: "a", token: "", other: "x" })).toEqual({ shop: "a" });
	});
});

it("proposes a name that is not in use", () => {
	expect(proposeName("google", [])).toBe("google");
	expect(proposeName("google", ["google", "google-2"])).toBe("google-3");
});

it("finds services by every word of the search", () => {
	const one = (id: string, name: string, keywords: string[] = []) =>
		({ id, name, category: "productivity", keywords }) as unknown as Integration;
	const all = [one("google", "Google", ["gmail", "sheets"]), one("notion", "Notion")];
	expect(matchIntegrations(all, "GMAIL prod").map(({ id }) => id)).toEqual(["google"]);
	expect(matchIntegrations(all, "").length).toBe(2);
});
