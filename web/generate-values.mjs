// Writes the values of the API's enums to src/api/values.ts, or to the file given:
// schema.d.ts has them as types only.
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";

const here = (path) => new URL(path, import.meta.url);
const { components, paths } = parse(readFileSync(here("../openapi/openapi.yaml"), "utf8"));
const found = new Map();

/** Takes the enum of a schema, or of a list's items, under a name made of the parts. */
function take(schema, ...parts) {
	const values = schema?.enum ?? schema?.["x-extensible-enum"] ?? schema?.anyOf?.find((one) => one.enum)?.enum;
	if (!values && schema?.items) take(schema.items, ...parts);
	if (!values?.every((value) => typeof value === "string")) return;
	const [first, ...rest] = parts.join("_").split("_");
	const upper = (word) => word.charAt(0).toUpperCase() + word.slice(1);
	found.set(`${first.charAt(0).toLowerCase()}${first.slice(1)}${rest.map(upper).join("")}Values`, values);
}

for (const [name, schema] of Object.entries(components.schemas)) {
	take(schema, name);
	for (const [member, own] of Object.entries(schema.properties ?? {})) take(own, name, member);
}
for (const path of Object.values(paths)) {
	for (const { operationId, parameters = [] } of Object.values(path)) {
		if (operationId) for (const { name, schema } of parameters) if (name) take(schema, operationId, name);
	}
}

const lines = [...found].map(([name, values]) => `export const ${name} = ${JSON.stringify(values)} as const;\n`);
writeFileSync(
	process.argv[2] ?? here("src/api/values.ts"),
	`// Generated from openapi.yaml by \`npm run types\`. Do not edit.\n\n${lines.join("")}`,
);
