import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { BracesIcon, PlusIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { deleteKey, queryKey, readKeys, type StateKey } from "./data";
import { KeyDialog } from "./key-dialog";

export interface KeysProps {
	/** The workflow whose keys are listed; empty for those of the workspace. */
	workflow: string;
	onNew: () => void;
}

/** Keys lists the keys of a workflow or of the workspace, and changes and deletes them. */
export function Keys({ workflow, onNew }: KeysProps) {
	const [dialog, setDialog] = useState<{ what: "edit" | "delete"; item: StateKey }>();
	const write = useMay("write");
	const client = useQueryClient();
	const pages = usePages(queryKey(workflow), (cursor, signal) => readKeys(workflow, cursor, signal));
	const close = () => setDialog(undefined);
	const remove = async ({ key }: StateKey) => {
		await deleteKey(workflow, key);
		toast.done(`“${key}” was deleted`);
		await client.invalidateQueries({ queryKey: queryKey(workflow) });
	};
	return (
		<Card>
			<Paged pages={pages} empty={<NoKeys workflow={workflow} write={write} onNew={onNew} />}>
				{(items) => (
					<Table
						label="Keys"
						columns={[...columns, actions(write, (what, item) => setDialog({ what, item }))]}
						rows={items}
						rowKey={({ key }) => key}
					/>
				)}
			</Paged>
			{dialog?.what === "edit" && (
				<KeyDialog workflow={workflow} item={dialog.item} readOnly={!write} onClose={close} />
			)}
			{dialog?.what === "delete" && (
				<ConfirmDialog
					open
					onOpenChange={(open) => !open && close()}
					title={`Delete “${dialog.item.key}”?`}
					verb="Delete key"
					danger
					onConfirm={() => remove(dialog.item)}
				>
					Its value is lost. To steps it looks as if it was never set.
				</ConfirmDialog>
			)}
		</Card>
	);
}

const columns: Column<StateKey>[] = [
	{
		key: "name",
		header: "Name",
		className: "max-sm:w-full max-sm:max-w-0 sm:max-w-72",
		cell: ({ key, value, expires_at }) => (
			<>
				<code className="block truncate font-mono text-12 font-medium" title={key}>
					{key}
				</code>
				<span className="flex flex-col sm:hidden">
					<Preview value={value} />
					{expires_at && (
						<span className="text-12 text-muted">
							Expires <RelativeTime at={expires_at} />
						</span>
					)}
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
	{ key: "expires", header: "Expires", wide: true, cell: (item) => <RelativeTime at={item.expires_at} /> },
	{ key: "updated", header: "Updated", wide: "lg", cell: (item) => <RelativeTime at={item.updated_at} /> },
];

function Preview({ value }: { value: string }) {
	return (
		<code className="block truncate font-mono text-12" title={value.slice(0, 500)}>
			{value.slice(0, 300)}
		</code>
	);
}

function actions(write: boolean, onOpen: (what: "edit" | "delete", item: StateKey) => void): Column<StateKey> {
	const verb = write ? "Edit" : "View";
	return {
		key: "actions",
		header: <span className="sr-only">Actions</span>,
		align: "right",
		cell: (item) => (
			<span className="flex justify-end gap-1">
				<Button small kind="quiet" aria-label={`${verb} ${item.key}`} onClick={() => onOpen("edit", item)}>
					{verb}
				</Button>
				{write && (
					<Button small kind="quiet" aria-label={`Delete ${item.key}`} onClick={() => onOpen("delete", item)}>
						Delete
					</Button>
				)}
			</span>
		),
	};
}

function NoKeys({ workflow, write, onNew }: { workflow: string; write: boolean; onNew: () => void }) {
	return (
		<EmptyState
			icon={BracesIcon}
			title={workflow ? "This workflow has no keys" : "No keys yet"}
			actions={
				write && (
					<Button kind="primary" icon={PlusIcon} onClick={onNew}>
						New key
					</Button>
				)
			}
		>
			A key is a single value under a name, such as a counter, or a note that an alert was sent today. It can expire.
		</EmptyState>
	);
}
