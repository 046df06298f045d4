import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type Page, usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { type Icon, PlusIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { toast } from "@/ui/toast";

export interface NamedListProps<T> {
	noun: "secret" | "variable";
	label: string;
	icon: Icon;
	columns: Column<T>[];
	/** The label of the button that opens the dialog. */
	verb: string;
	/** The warning in the delete dialog. */
	loss: string;
	/** The text of the empty state. */
	empty: string;
	read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
	remove: (name: string) => Promise<unknown>;
	dialog: (item: T, onOpenChange: (open: boolean) => void) => ReactNode;
	onNew: () => void;
}

type OpenDialog<T> = { what: "edit" | "delete"; item: T };

/** NamedList lists secrets or variables, with actions to change and delete them. */
export function NamedList<T extends { name: string }>(props: NamedListProps<T>) {
	const { noun, label, read, columns, verb } = props;
	const [dialog, setDialog] = useState<OpenDialog<T>>();
	const write = useMay("write");
	const client = useQueryClient();
	const key = [`${noun}s`];
	const pages = usePages<T>(key, read);
	const close = (open: boolean) => !open && setDialog(undefined);
	const remove = async (name: string) => {
		await props.remove(name);
		toast.done(`“${name}” was deleted`);
		await client.invalidateQueries({ queryKey: key });
	};
	return (
		<Card>
			<Paged pages={pages} empty={<Empty {...props} write={write} />}>
				{(items) => (
					<Table
						label={label}
						columns={write ? [...columns, actions(verb, setDialog)] : columns}
						rows={items}
						rowKey={({ name }) => name}
					/>
				)}
			</Paged>
			{dialog?.what === "edit" && props.dialog(dialog.item, close)}
			{dialog?.what === "delete" && (
				<ConfirmDialog
					open
					onOpenChange={close}
					title={`Delete “${dialog.item.name}”?`}
					verb={`Delete ${noun}`}
					danger
					onConfirm={() => remove(dialog.item.name)}
				>
					{props.loss}
				</ConfirmDialog>
			)}
		</Card>
	);
}

function actions<T extends { name: string }>(verb: string, onOpen: (dialog: OpenDialog<T>) => void): Column<T> {
	return {
		key: "actions",
		header: <span className="sr-only">Actions</span>,
		align: "right",
		cell: (item) => (
			<span className="flex justify-end gap-1">
				<Button small kind="quiet" aria-label={`${verb} ${item.name}`} onClick={() => onOpen({ what: "edit", item })}>
					{verb}
				</Button>
				<Button small kind="quiet" aria-label={`Delete ${item.name}`} onClick={() => onOpen({ what: "delete", item })}>
					Delete
				</Button>
			</span>
		),
	};
}

type EmptyProps = Pick<NamedListProps<never>, "noun" | "icon" | "empty" | "onNew"> & { write: boolean };

function Empty({ noun, icon, empty, onNew, write }: EmptyProps) {
	return (
		<EmptyState
			icon={icon}
			title={`No ${noun}s yet`}
			actions={
				write && (
					<Button kind="primary" icon={PlusIcon} onClick={onNew}>
						New {noun}
					</Button>
				)
			}
		>
			{empty}
		</EmptyState>
	);
}
