import { isObject } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import type { Chain } from "./chain";
import type { Scope, Shape } from "./scope";

/** What is known about the value of a chain; undefined if its root is unknown. */
export function shapeAt(scope: Scope, chain: Pick<Chain, "root" | "keys">): Shape | undefined {
	if (!Object.hasOwn(scope.names, chain.root)) return undefined;
	let shape: Shape = scope.names[chain.root] as Shape;
	for (const key of chain.keys) shape = member(shape, key);
	return shape;
}

function member(shape: Shape, key: string | number): Shape {
	if (shape.members) return Object.hasOwn(shape.members, key) ? (shape.members[key] as Shape) : {};
	const { value, schema } = shape;
	if (Array.isArray(value) && typeof key === "number") {
		const at = key < 0 ? value.length + key : key;
		return value[at] === undefined ? {} : { value: value[at] as Json };
	}
	if (isObject(value)) return Object.hasOwn(value, key) ? { value: value[key] as Json } : {};
	const inner =
		typeof key === "number" ? schema?.items : isObject(schema?.properties) ? schema.properties[key] : undefined;
	return isObject(inner) ? { schema: inner } : {};
}

/** The members of a value and what is known about each. */
export function membersOf(shape: Shape): [name: string, shape: Shape][] {
	if (shape.members) return Object.entries(shape.members);
	if (isObject(shape.value)) return Object.entries(shape.value).map(([name, value]) => [name, { value }]);
	const properties = shape.schema?.properties;
	if (!isObject(properties)) return [];
	return Object.entries(properties).map(([name, schema]) => [name, isObject(schema) ? { schema } : {}]);
}

/** The type name of a value in the expression language; undefined if unknown. */
export function typeOf(shape: Shape): string | undefined {
	const { value } = shape;
	if (shape.members) return "object";
	if (value === null) return "nil";
	if (Array.isArray(value)) return "list";
	if (value !== undefined) return typeof value;
	return schemaType(shape.schema);
}

function schemaType(schema: JsonObject | undefined): string | undefined {
	const type = Array.isArray(schema?.type) ? schema.type.find((name) => name !== "null") : schema?.type;
	if (typeof type !== "string") return undefined;
	return type === "integer" ? "number" : type === "array" ? "list" : type;
}
