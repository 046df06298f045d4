import { createContext, useContext, useState } from "react";
import { Button } from "@/ui/button";
import { list, type Node, node, refName, resolve, text } from "./document";
import { Prose } from "./prose";

export const DocumentContext = createContext<Node>({});

/** Fields lists the fields of an object, level by level. */
export function Fields({ schema }: { schema: Node }) {
	const document = useContext(DocumentContext);
	const object = resolve(document, schema);
	const variants = list(object.oneOf ?? object.anyOf);
	const properties = Object.entries(node(object.properties));
	const required = Array.isArray(object.required) ? object.required : [];
	if (variants.length > 0)
		return <p className="text-muted">One of: {variants.map((one) => typeLabel(document, one)).join(", ")}.</p>;
	if (properties.length === 0) return <p className="text-muted">{typeLabel(document, schema)}</p>;
	return (
		<ul className="flex flex-col">
			{properties.map(([name, member]) => (
				<FieldRow key={name} name={name} schema={node(member)} required={required.includes(name)} />
			))}
		</ul>
	);
}

function FieldRow({ name, schema, required }: { name: string; schema: Node; required: boolean }) {
	const document = useContext(DocumentContext);
	const [open, setOpen] = useState(false);
	const resolved = resolve(document, schema);
	const inner = nestedSchema(document, resolved);
	const description = text(schema.description) || text(resolved.description);
	return (
		<li className="border-b py-2 last:border-b-0">
			<div className="flex flex-wrap items-baseline gap-x-2">
				<code className="font-mono font-medium">{name}</code>
				<span className="text-12 text-muted">{typeLabel(document, schema)}</span>
				{required && <span className="text-12 font-medium text-accent">required</span>}
				{inner && (
					<Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
						{open ? "Hide fields" : "Show fields"}
					</Button>
				)}
			</div>
			{description && <Prose text={description} />}
			{open && inner && (
				<div className="mt-2 border-l pl-4">
					<Fields schema={inner} />
				</div>
			)}
		</li>
	);
}

/** nestedSchema returns the schema of a field's value if it has fields of its own. */
function nestedSchema(document: Node, schema: Node): Node | undefined {
	const item = schema.items ? resolve(document, node(schema.items)) : undefined;
	for (const one of [schema, item]) if (one && (one.properties || one.oneOf || one.anyOf)) return one;
	return undefined;
}

/** typeLabel describes the type of a value in a word or two. */
export function typeLabel(document: Node, schema: Node): string {
	const resolved = resolve(document, schema);
	const types = Array.isArray(resolved.type) ? resolved.type : [resolved.type];
	if (Array.isArray(resolved.enum)) return resolved.enum.map((value) => JSON.stringify(value)).join(" | ");
	if (resolved.const !== undefined) return JSON.stringify(resolved.const);
	if (types.includes("array")) return `list of ${typeLabel(document, node(resolved.items))}`;
	const name = refName(schema);
	const word = types.filter(Boolean).join(" or ") || (resolved.oneOf || resolved.anyOf ? "one of several" : "any");
	return word === "object" && name ? `${name} object` : word;
}
