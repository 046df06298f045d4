import { useQuery } from "@tanstack/react-query";
import { api, gotOrNull } from "@/api/client";
import { Listings } from "@/shared/listed/context";
import ListedControl from "@/shared/listed/control";
import { type ListedField, listedBy, wholeOf } from "@/shared/listed/field";
import { type JsonSchema, resolve } from "@/shared/listed/schema";
import type { Json } from "@/shared/workflow/model";
import { TextInput } from "@/ui/field";
import { type Input, listingInput, type Values } from "./values";

interface AccountInputProps {
	input: Input;
	values: Values;
	/** The name of the connection whose account is listed. */
	connection: string;
	onChange: (value: Json | undefined) => void;
}

/** AccountInput chooses something that the account of a connection has, as the builder does in a step. */
export function AccountInput({ input, values, connection, onChange }: AccountInputProps) {
	const { lists, name, title } = input;
	const schema = useInputSchema(lists);
	const value = values[name];
	const own = schema && memberAt(schema, lists?.input ?? "");
	if (!lists || !schema || !own) {
		return <TextInput value={String(value ?? "")} onChange={(event) => onChange(event.target.value)} />;
	}
	const listed = listedBy(own);
	const whole = wholeOf(own);
	const field: ListedField = {
		label: title,
		kind: "listed",
		placeholder: "Choose one, or enter a value",
		...(listed && { listed }),
		...(whole !== undefined && { whole }),
	};
	return (
		<Listings
			of={lists.trigger === null ? { operation: lists.operation ?? "" } : { trigger: lists.trigger }}
			schema={schema}
			connection={connection || undefined}
			input={listingInput(input, values)}
			pointer=""
		>
			<ListedControl plan={field} value={value} onChange={onChange} pointer={`/${lists.input}`} />
		</Listings>
	);
}

/** useInputSchema returns the schema of the operation or the trigger that an input belongs to. */
function useInputSchema(lists: Input["lists"]): JsonSchema | undefined {
	const { operation, trigger } = lists ?? {};
	const [id = "", own = ""] = (trigger ?? "").split(".");
	const action = useQuery({
		queryKey: ["actions", operation],
		queryFn: ({ signal }) =>
			gotOrNull(api.GET("/v1/actions/{name}", { params: { path: { name: operation ?? "" } }, signal })),
		enabled: Boolean(operation),
		staleTime: Number.POSITIVE_INFINITY,
	});
	const type = useQuery({
		queryKey: ["integrations", id, "triggers", own],
		queryFn: ({ signal }) =>
			gotOrNull(
				api.GET("/v1/integrations/{id}/triggers/{trigger}", { params: { path: { id, trigger: own } }, signal }),
			),
		enabled: own !== "",
		staleTime: Number.POSITIVE_INFINITY,
	});
	return (operation ? action.data?.input_schema : type.data?.input_schema) as JsonSchema | undefined;
}

/** memberAt returns the schema of a member by its path, which leaves out positions in lists. */
function memberAt(root: JsonSchema, path: string): JsonSchema | undefined {
	let at: JsonSchema | undefined = resolve(root, root);
	for (const name of path.split("/")) {
		const inner: JsonSchema | undefined = at?.items ? resolve(at.items, root) : at;
		const member: JsonSchema | boolean | undefined = inner?.properties?.[name];
		at = typeof member === "object" ? resolve(member, root) : undefined;
	}
	return at?.items && !listedBy(at) ? resolve(at.items, root) : at;
}
