/** A part of an OpenAPI document. */
export type Node = { [key: string]: unknown };

export interface Parameter {
	name: string;
	in: "path" | "query" | "header";
	required: boolean;
	description: string;
	schema: Node;
	example: unknown;
}

export interface ApiResponse {
	status: string;
	description: string;
	schema?: Node;
	example?: unknown;
}

export interface Operation {
	id: string;
	method: string;
	path: string;
	summary: string;
	description: string;
	tag: string;
	/** The scope that a key needs; undefined if the operation is public. */
	scope?: string;
	parameters: Parameter[];
	body?: { required: boolean; schema?: Node; example?: unknown };
	responses: ApiResponse[];
}

export interface TagGroup {
	name: string;
	description: string;
	operations: Operation[];
}

const methods = ["get", "post", "put", "patch", "delete"];

/**
 * groupByTag groups the operations of a document by tag, in the order of its tags. It
 * skips the routes under /ui, which only the dashboard uses.
 */
export function groupByTag(document: Node): TagGroup[] {
	const tags = list(document.tags).map((tag) => ({
		name: text(tag.name),
		description: text(tag.description),
		operations: [] as Operation[],
	}));
	for (const [path, item] of Object.entries(node(document.paths))) {
		if (path.startsWith("/ui/")) continue;
		for (const method of methods) {
			const raw = node(item)[method];
			if (!raw) continue;
			const operation = readOperation(document, path, method, node(raw), list(node(item).parameters));
			tags.find((tag) => tag.name === operation.tag)?.operations.push(operation);
		}
	}
	return tags.filter((tag) => tag.operations.length > 0);
}

function readOperation(document: Node, path: string, method: string, raw: Node, shared: Node[]): Operation {
	const parameters = [...shared, ...list(raw.parameters)].map((one) => parameter(resolve(document, one)));
	const body = raw.requestBody ? resolve(document, node(raw.requestBody)) : undefined;
	const scope = text(raw["x-required-scope"]);
	return {
		id: text(raw.operationId),
		method: method.toUpperCase(),
		path,
		summary: text(raw.summary),
		description: text(raw.description),
		tag: text((raw.tags as unknown[] | undefined)?.[0]),
		scope: scope === "" || scope === "public" ? undefined : scope,
		parameters,
		body: body && { required: body.required === true, ...jsonContent(document, body) },
		responses: Object.entries(node(raw.responses)).map(([status, answer]) => {
			const resolved = resolve(document, node(answer));
			return { status, description: text(resolved.description), ...jsonContent(document, resolved) };
		}),
	};
}

function parameter(raw: Node): Parameter {
	const schema = node(raw.schema);
	return {
		name: text(raw.name),
		in: raw.in as Parameter["in"],
		required: raw.required === true,
		description: text(raw.description),
		schema,
		example: raw.example ?? schema.example ?? schema.default,
	};
}

/** jsonContent returns the JSON schema of a body and its first example. */
function jsonContent(document: Node, of: Node): { schema?: Node; example?: unknown } {
	const json = node(of.content)["application/json"];
	if (!json) return {};
	const { schema, example, examples } = node(json);
	const first = Object.values(node(examples))[0];
	const shown = example ?? (first ? resolve(document, node(first)).value : undefined);
	return { schema: schema ? node(schema) : undefined, example: shown };
}

/** resolve follows references inside the document. */
export function resolve(document: Node, to: Node): Node {
	let found = to;
	for (let depth = 0; typeof found.$ref === "string" && depth < 10; depth++) {
		const keys = found.$ref.replace(/^#\//, "").split("/");
		found = keys.reduce((at, key) => node(at[key.replaceAll("~1", "/").replaceAll("~0", "~")]), document);
	}
	return found;
}

/** refName returns the name of the referenced schema. */
export function refName(schema: Node): string | undefined {
	return typeof schema.$ref === "string" ? schema.$ref.split("/").at(-1) : undefined;
}

export const node = (value: unknown): Node => (typeof value === "object" && value !== null ? (value as Node) : {});
export const list = (value: unknown): Node[] => (Array.isArray(value) ? value.map(node) : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
