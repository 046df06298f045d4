import type { Connection, Definition, InputField, Integration, Way } from "./data";
import { hostsOf } from "./hosts";

// What people enter for a connection, and the request that it becomes.

/** A place in a request where the credential of an API key goes. */
export interface Placement {
	readonly where: "header" | "query";
	readonly name: string;
	readonly value: string;
}

/** A further parameter of the OAuth 2 protocol: of the URL where people consent, or of requests for tokens. */
export interface Param {
	readonly where: "authorize" | "token";
	readonly name: string;
	readonly value: string;
}

export type Grant = NonNullable<Definition["grant"]>;

/** The definition of a custom connection as it is entered. */
export interface CustomDraft {
	readonly hosts: string;
	readonly placements: readonly Placement[];
	readonly test_url: string;
	readonly grant: Grant;
	/** Whether the issuer says where to consent and where to get tokens. */
	readonly discover: boolean;
	readonly issuer: string;
	readonly authorize_url: string;
	readonly device_url: string;
	readonly token_url: string;
	readonly revoke_url: string;
	readonly scopes: string;
	readonly params: readonly Param[];
	/** Empty for what the issuer offers, or a secret in a header. */
	readonly client_auth: NonNullable<Definition["client_auth"]> | "";
	readonly token_body: NonNullable<Definition["token_body"]>;
	readonly service: string;
	/** Certificate authorities in PEM that the connection trusts too. */
	readonly ca: string;
}

export const emptyCustom: CustomDraft = {
	hosts: "",
	placements: [{ where: "header", name: "Authorization", value: "Bearer ${{ secret.key }}" }],
	test_url: "",
	grant: "authorization_code",
	discover: false,
	issuer: "",
	authorize_url: "",
	device_url: "",
	token_url: "",
	revoke_url: "",
	scopes: "",
	params: [],
	client_auth: "",
	token_body: "form",
	service: "",
	ca: "",
};

/** The kinds of custom connections. */
export const kinds = [
	{ value: "api_key", label: "API key" },
	{ value: "bearer", label: "Bearer token" },
	{ value: "basic", label: "User name and password" },
	{ value: "digest", label: "User name and password (digest)" },
	{ value: "oauth2", label: "OAuth 2" },
	{ value: "service_account", label: "Service account" },
	{ value: "aws_sigv4", label: "AWS signature" },
	{ value: "client_certificate", label: "Client certificate" },
];

const plain = {
	help: null,
	secret: false,
	required: true,
	default: null,
	enum: [],
	pattern: null,
	format: null,
	example: null,
};
const field = (name: string, title: string, more: Partial<InputField> = {}): InputField => ({
	...plain,
	name,
	title,
	...more,
});

const signingClient = [
	field("client_id", "Client ID"),
	field("private_key", "Private key", { secret: true, format: "pem", help: "In PEM format: RSA, EC or Ed25519." }),
	field("key_id", "Key ID", { required: false, help: "The name of the key at the service." }),
];

/** customFields returns the fields of a custom connection of a kind. */
export function customFields(kind: string, draft: CustomDraft): InputField[] {
	switch (kind) {
		case "bearer":
			return [field("token", "Token", { secret: true })];
		case "basic":
		case "digest":
			return [field("username", "User name"), field("password", "Password", { secret: true })];
		case "oauth2":
			if (draft.client_auth === "private_key_jwt") return signingClient;
			if (draft.client_auth === "tls") return [field("client_id", "Client ID")];
			return [
				field("client_id", "Client ID"),
				field("client_secret", "Client secret", { secret: true, required: draft.grant === "client_credentials" }),
			];
		case "service_account":
			return [
				field("key", "Key file", { secret: true, format: "json", help: "The content of the JSON file." }),
				field("subject", "User to act for", { required: false }),
			];
		case "aws_sigv4":
			return [
				field("access_key_id", "Access key ID"),
				field("secret_access_key", "Secret access key", { secret: true }),
				field("region", "Region", { example: "eu-central-1" }),
				field("session_token", "Session token", {
					secret: true,
					required: false,
					help: "Only for temporary credentials.",
				}),
			];
		case "client_certificate":
			return [];
		default:
			return secretNames(draft.placements).map((name) =>
				field(name, name === "key" ? "API key" : name, { secret: true }),
			);
	}
}

/** certificateFields returns the fields of the client certificate, which every kind has. */
export function certificateFields(kind: string, draft: CustomDraft): InputField[] {
	const required = kind === "client_certificate" || (kind === "oauth2" && draft.client_auth === "tls");
	return [
		field("client_certificate", "Client certificate", {
			required,
			format: "pem",
			help: "In PEM format, followed by the certificates that lead to its authority.",
		}),
		field("client_key", "Private key of the certificate", {
			required,
			secret: true,
			format: "pem",
			help: "In PEM format, without a passphrase.",
		}),
	];
}

/** secretNames returns the secrets that the placements refer to, as in ${{ secret.key }}. */
export function secretNames(placements: readonly Placement[]): string[] {
	const found = placements.flatMap(({ value }) => [...value.matchAll(/\bsecret\.([a-z][a-z0-9_]*)/g)]);
	return [...new Set(found.map((match) => match[1] as string))].sort();
}

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** definitionOf returns the definition of a custom connection. Members of `base` that the form does not edit stay. */
export function definitionOf(kind: string, draft: CustomDraft, base?: Definition | null): Definition {
	const out: Record<string, unknown> = { ...base, hosts: hostsOf(draft.hosts) };
	const set = (name: string, value: string | string[] | Record<string, string>) => {
		if (value === "" || (typeof value === "object" && Object.keys(value).length === 0)) delete out[name];
		else out[name] = value;
	};
	set("test_url", draft.test_url.trim());
	set("ca", draft.ca.trim() === "" ? "" : draft.ca); // any other text would be a change
	if (kind === "api_key") out.apply = applyOf(draft.placements, base);
	if (kind === "oauth2") {
		const { discover, grant } = draft;
		out.grant = grant;
		set("issuer", discover ? draft.issuer.trim() : "");
		// Beside an issuer, only the API can set URLs. Those stay.
		const shown = (name: "authorize_url" | "device_url" | "token_url" | "revoke_url") =>
			discover ? ((base?.issuer && base[name]) ?? "") : draft[name].trim();
		set("authorize_url", grant === "authorization_code" ? shown("authorize_url") : "");
		set("device_url", grant === "device_code" ? shown("device_url") : "");
		set("token_url", shown("token_url"));
		set("revoke_url", shown("revoke_url"));
		set("params", grant === "client_credentials" ? {} : named(draft.params, "authorize"));
		set("token_params", named(draft.params, "token"));
		set("client_auth", draft.client_auth);
		if (draft.token_body !== (base?.token_body ?? "form")) out.token_body = draft.token_body;
	}
	if (kind === "service_account") set("token_url", draft.token_url.trim());
	if (kind === "oauth2" || kind === "service_account") set("scopes", list(draft.scopes));
	if (kind === "aws_sigv4") set("service", draft.service.trim());
	return out as Definition;
}

/** named returns the values of one place by name, without rows that are empty. */
function named<W extends string>(rows: readonly { where: W; name: string; value: string }[], where: W) {
	const given = rows.filter((one) => one.where === where && (one.name.trim() !== "" || one.value !== ""));
	return Object.fromEntries(given.map(({ name, value }) => [name.trim(), value]));
}

function applyOf(placements: readonly Placement[], base?: Definition | null) {
	const [headers, query] = [named(placements, "header"), named(placements, "query")];
	return {
		...(base?.apply?.basic && { basic: base.apply.basic }),
		...(Object.keys(headers).length > 0 && { headers }),
		...(Object.keys(query).length > 0 && { query }),
	};
}

/** customDraft returns what was entered for the definition of a custom connection. */
export function customDraft(definition: Definition): CustomDraft {
	const placed = <W extends string>(where: W, values: Record<string, string> = {}) =>
		Object.entries(values).map(([name, value]) => ({ where, name, value }));
	return {
		hosts: definition.hosts.join("\n"),
		placements: [...placed("header", definition.apply?.headers), ...placed("query", definition.apply?.query)],
		test_url: definition.test_url ?? "",
		grant: grantOf(definition),
		discover: definition.issuer !== undefined,
		issuer: definition.issuer ?? "",
		authorize_url: definition.authorize_url ?? "",
		device_url: definition.device_url ?? "",
		token_url: definition.token_url ?? "",
		revoke_url: definition.revoke_url ?? "",
		scopes: (definition.scopes ?? []).join(" "),
		params: [...placed("authorize", definition.params), ...placed("token", definition.token_params)],
		client_auth: definition.client_auth ?? "",
		token_body: definition.token_body ?? "form",
		service: definition.service ?? "",
		ca: definition.ca ?? "",
	};
}

/** proposeName returns a name for a connection that is not in use. */
export function proposeName(id: string, taken: readonly string[]): string {
	for (let count = 1; ; count++) {
		const name = count === 1 ? id : `${id}-${count}`;
		if (!taken.includes(name)) return name;
	}
}

/** usesDeviceCode reports whether people connect by entering a code at the service. */
export function usesDeviceCode(kind: string, custom: Pick<Definition, "grant"> | null): boolean {
	return kind === "oauth2" && custom?.grant === "device_code";
}

/** The grant of an OAuth 2 definition. Without an address for consent, there is none. */
function grantOf({ grant, authorize_url, issuer }: Definition): Grant {
	return grant ?? (authorize_url || issuer ? "authorization_code" : "client_credentials");
}

/** isDefined reports whether a custom connection has everything that its kind needs, apart from the fields. */
export function isDefined(kind: string, draft: CustomDraft): boolean {
	const filled = (...texts: string[]) => texts.every((text) => text.trim() !== "");
	if (!filled(draft.hosts)) return false;
	if (kind === "service_account") return filled(draft.token_url);
	if (kind !== "oauth2") return true;
	if (draft.discover) return filled(draft.issuer);
	if (draft.grant === "authorization_code" && !filled(draft.authorize_url)) return false;
	if (draft.grant === "device_code" && !filled(draft.device_url)) return false;
	return filled(draft.token_url);
}

/** givenFields returns the fields to send: those that were entered. */
export function givenFields(fields: readonly InputField[], values: Readonly<Record<string, string>>) {
	return Object.fromEntries(
		fields.map(({ name }) => [name, values[name] ?? ""] as const).filter(([, value]) => value.trim() !== ""),
	);
}

/**
 * changedFields returns the fields to send for a change: those that were entered and, as
 * empty text, those that were emptied. Stored secrets are not shown, so an empty one stays,
 * except the key of a certificate that was emptied.
 */
export function changedFields(
	fields: readonly InputField[],
	values: Readonly<Record<string, string>>,
	stored: Readonly<Record<string, string>>,
) {
	const emptied = fields.filter(({ name, secret }) => !secret && name in stored && (values[name] ?? "").trim() === "");
	const names = emptied.map(({ name }) => name);
	if (names.includes("client_certificate")) names.push("client_key");
	return { ...givenFields(fields, values), ...Object.fromEntries(names.map((name) => [name, ""])) };
}

/** isComplete reports whether every required field has a value; stored secrets may stay empty. */
export function isComplete(fields: readonly InputField[], values: Readonly<Record<string, string>>, stored = false) {
	return fields.every((one) => !one.required || (stored && one.secret) || (values[one.name] ?? "").trim() !== "");
}

/** defaultsOf returns the initial values of fields. */
export function defaultsOf(fields: readonly InputField[]): Record<string, string> {
	return Object.fromEntries(fields.flatMap((one) => (one.default === null ? [] : [[one.name, one.default]])));
}

/** matchIntegrations returns the integrations that contain every word of the text. */
export function matchIntegrations(integrations: readonly Integration[], text: string): Integration[] {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return integrations.filter(({ id, name, category, keywords }) => {
		const all = [id, name, category, ...keywords].join(" ").toLowerCase();
		return words.every((word) => all.includes(word));
	});
}

/** needsConsent reports whether a person must sign in at the service to connect. */
export function needsConsent(way: Way | undefined, kind: string, draft: CustomDraft): boolean {
	return way ? way.consent : kind === "oauth2" && draft.grant !== "client_credentials";
}

/** reconnectsByConsent reports whether a connection is reconnected by consent, and not by changing its fields. */
export function reconnectsByConsent(
	{ integration, auth, definition }: Pick<Connection, "integration" | "auth" | "definition">,
	integrations: readonly Integration[] = [],
): boolean {
	if (definition) return auth === "oauth2" && grantOf(definition) !== "client_credentials";
	const service = integrations.find(({ id }) => id === integration);
	return service?.auth.find(({ id }) => id === auth)?.consent ?? false;
}
