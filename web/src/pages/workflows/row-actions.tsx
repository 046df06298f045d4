import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import {
	BoltIcon,
	CopyIcon,
	DownloadIcon,
	EditIcon,
	LogIcon,
	MoreIcon,
	PauseIcon,
	PlayIcon,
	TrashIcon,
} from "@/ui/icons";
import { Menu, MenuItem, MenuLine } from "@/ui/menu";
import { toast } from "@/ui/toast";
import type { Workflow } from "./activity";
import { download } from "./download";
import { duplicate } from "./duplicate";
import { StartDialog } from "./start";
import type { State } from "./state";

/** RowActions contains the actions on a workflow in the list. */
export function RowActions({ workflow }: { workflow: Workflow }) {
	const { id, name, state } = workflow;
	const write = useMay("write");
	const execute = useMay("execute");
	const navigate = useNavigate();
	const client = useQueryClient();
	const [dialog, setDialog] = useState<"start" | "delete">();
	const refresh = () => client.invalidateQueries({ queryKey: ["workflows"] });
	const change = useMutation({
		mutationFn: (next: State) =>
			got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body: { state: next } })),
		onSuccess: (changed) => {
			toast.done(changed.state === "active" ? `“${name}” is active` : `“${name}” is paused`);
			return refresh();
		},
	});
	const copy = useMutation({
		mutationFn: () => duplicate(id),
		onSuccess: async (made) => {
			toast.done(`“${made.name}” was created as a draft`);
			await refresh();
		},
	});
	const save = useMutation({ mutationFn: () => download(id, name) });
	const remove = async () => {
		await api.DELETE("/v1/workflows/{id}", { params: { path: { id } } });
		toast.done(`“${name}” was deleted`);
		await refresh();
	};
	const close = (open: boolean) => !open && setDialog(undefined);
	return (
		<span className="row-control flex justify-end gap-1">
			{execute && (
				<IconButton
					icon={PlayIcon}
					label={state === "paused" ? `${name} is paused. Activate it to run it.` : `Run ${name}`}
					small
					aria-disabled={state === "paused" || undefined}
					onClick={() => state !== "paused" && setDialog("start")}
					className="max-sm:hidden"
				/>
			)}
			<Menu trigger={<IconButton icon={MoreIcon} label={`More actions for ${name}`} small />}>
				{execute && (
					<MenuItem icon={PlayIcon} onSelect={() => setDialog("start")} disabled={state === "paused"}>
						Run now…
					</MenuItem>
				)}
				<MenuItem icon={EditIcon} onSelect={() => void navigate({ to: "/workflows/$id", params: { id } })}>
					{write ? "Edit" : "Open"}
				</MenuItem>
				<MenuItem icon={LogIcon} onSelect={() => void navigate({ to: "/runs", search: { workflow_id: id } })}>
					View runs
				</MenuItem>
				<MenuLine />
				{write && state === "active" && (
					<MenuItem icon={PauseIcon} onSelect={() => change.mutate("paused")}>
						Pause
					</MenuItem>
				)}
				{write && state !== "active" && (
					<MenuItem icon={BoltIcon} onSelect={() => change.mutate("active")}>
						Activate
					</MenuItem>
				)}
				{write && (
					<MenuItem icon={CopyIcon} onSelect={() => copy.mutate()}>
						Duplicate
					</MenuItem>
				)}
				<MenuItem icon={DownloadIcon} onSelect={() => save.mutate()}>
					Download YAML
				</MenuItem>
				{write && (
					<>
						<MenuLine />
						<MenuItem icon={TrashIcon} danger onSelect={() => setDialog("delete")}>
							Delete…
						</MenuItem>
					</>
				)}
			</Menu>
			{dialog === "start" && <StartDialog workflow={workflow} onOpenChange={close} />}
			<ConfirmDialog
				open={dialog === "delete"}
				onOpenChange={close}
				title={`Delete “${name}”?`}
				verb="Delete workflow"
				danger
				onConfirm={remove}
			>
				This also deletes its versions, its runs and its webhooks. Runs in progress are stopped. This cannot be undone.
			</ConfirmDialog>
		</span>
	);
}
