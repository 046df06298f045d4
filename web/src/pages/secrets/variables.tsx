import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { CodeIcon, PlusIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { VariableDialog } from "./dialogs";
import { Name } from "./name";

type Variable = Schema["Variable"];
type Asked = { what: "edit" | "delete"; variable: Variable };

export function Variables({ onNew }: { onNew: () => void }) {
	const [asked, setAsked] = useState<Asked>();
	const write = useMay("write");
	const client = useQueryClient();
	const pages = usePages<Variable>(["variables"], (cursor, signal) =>
		got(api.GET("/v1/variables", { params: { query: { limit: 50, cursor } }, signal })),
	);
	const close = (open: boolean) => !open && setAsked(undefined);
	const remove = async ({ name }: Variable) => {
		await api.DELETE("/v1/variables/{name}", { params: { path: { name } } });
		toast.done(`“${name}” was deleted`);
		await client.invalidateQueries({ queryKey: ["variables"] });
	};
	return (
		<Card>
			<Paged pages={pages} empty={<None write={write} onNew={onNew} />}>
				{(items) => (
					<Table
						label="Variables"
						columns={columns(write, setAsked)}
						rows={items}
						rowKey={(variable) => variable.name}
					/>
				)}
			</Paged>
			{asked?.what === "edit" && <VariableDialog variable={asked.variable} onOpenChange={close} />}
			{asked?.what === "delete" && (
				<ConfirmDialog
					open
					onOpenChange={close}
					title={`Delete “${asked.variable.name}”?`}
					verb="Delete variable"
					danger
					onConfirm={() => remove(asked.variable)}
				>
					An expression that refers to it finds nothing from then on.
				</ConfirmDialog>
			)}
		</Card>
	);
}

function columns(write: boolean, onAsk: (asked: Asked) => void): Column<Variable>[] {
	const shown: Column<Variable>[] = [
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
		{ key: "updated", header: "Changed", wide: true, cell: (variable) => <RelativeTime at={variable.updated_at} /> },
	];
	if (!write) return shown;
	return [
		...shown,
		{
			key: "actions",
			header: <span className="sr-only">Actions</span>,
			align: "right",
			cell: (variable) => (
				<span className="flex justify-end gap-1">
					<Button
						small
						kind="quiet"
						aria-label={`Edit ${variable.name}`}
						onClick={() => onAsk({ what: "edit", variable })}
					>
						Edit
					</Button>
					<Button
						small
						kind="quiet"
						aria-label={`Delete ${variable.name}`}
						onClick={() => onAsk({ what: "delete", variable })}
					>
						Delete
					</Button>
				</span>
			),
		},
	];
}

function Preview({ value }: { value: Variable["value"] }) {
	const text = JSON.stringify(value);
	return (
		<code className="block truncate font-mono text-12" title={text.slice(0, 500)}>
			{text.slice(0, 300)}
		</code>
	);
}

function None({ write, onNew }: { write: boolean; onNew: () => void }) {
	return (
		<EmptyState
			icon={CodeIcon}
			title="No variables yet"
			actions={
				write && (
					<Button kind="primary" icon={PlusIcon} onClick={onNew}>
						New variable
					</Button>
				)
			}
		>
			Values that several workflows share, such as an address or a limit.
		</EmptyState>
	);
}
