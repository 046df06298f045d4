import { api, got, type Schema } from "@/api/client";
import { CodeIcon } from "@/ui/icons";
import type { Column } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { VariableDialog } from "./dialogs";
import { NamedList } from "./list";
import { Name } from "./name";

type Variable = Schema["Variable"];

export function Variables({ onNew }: { onNew: () => void }) {
	return (
		<NamedList
			noun="variable"
			label="Variables"
			icon={CodeIcon}
			columns={columns}
			verb="Edit"
			loss="Expressions that refer to it will no longer find a value."
			empty="Store values that several workflows share, such as a URL or a limit."
			read={(cursor, signal) => got(api.GET("/v1/variables", { params: { query: { limit: 50, cursor } }, signal }))}
			remove={(name) => api.DELETE("/v1/variables/{name}", { params: { path: { name } } })}
			dialog={(variable, onOpenChange) => <VariableDialog variable={variable} onOpenChange={onOpenChange} />}
			onNew={onNew}
		/>
	);
}

const columns: Column<Variable>[] = [
	{
		key: "name",
		header: "Name",
		className: "max-sm:w-full max-sm:max-w-0 sm:max-w-60",
		cell: ({ name, value }) => (
			<>
				<Name name={name} root="vars" />
				<span className="sm:hidden">
					<Preview value={value} />
				</span>
			</>
		),
	},
	{
		key: "value",
		header: "Value",
		wide: true,
		className: "w-full max-w-0 min-w-40",
		cell: ({ value }) => <Preview value={value} />,
	},
	{ key: "updated", header: "Updated", wide: true, cell: (variable) => <RelativeTime at={variable.updated_at} /> },
];

function Preview({ value }: { value: Variable["value"] }) {
	const text = JSON.stringify(value);
	return (
		<code className="block truncate font-mono text-12" title={text.slice(0, 500)}>
			{text.slice(0, 300)}
		</code>
	);
}
