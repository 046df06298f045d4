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

/** RowActions is what a person may do with a workflow without opening it. */
export function RowActions({ workflow }: { workflow: Workflow }) {
	const { id, name, state } = workflow;
	const write = useMay("write");
	const execute = useMay("execute");
	const navigate = useNavigate();
	const client = useQueryClient();
	const [asked, setAsked] = useState<"start" | "delete">();
	const again = () => client.invalidateQueries({ queryKey: ["workflows"] });
	const change = useMutation({
		mutationFn: (next: State) =>
			got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body: { state: next } })),
		onSuccess: (changed) => {
			toast.done(changed.state === "active" ? `“${name}” is active` : `“${name}” is paused`);
			return again();
		},
	});
	const copy = useMutation({
		mutationFn: () => duplicate(id),
		onSuccess: async (made) => {
			toast.done(`“${made.name}” was created as a draft`);
			await again();
		},
	});
	const save = useMutation({ mutationFn: () => download(id, name) });
	const remove = async () => {
		await api.DELETE("/v1/workflows/{id}", { params: { path: { id } } });
		toast.done(`“${name}” was deleted`);
		await again();
	};
	const close = (open: boolean) => !open && setAsked(undefined);
	return (
		<span className="row-control flex justify-end gap-1">
			{execute && (
				<IconButton
					icon={PlayIcon}
					label={state === "paused" ? `${name} is paused: activate it to run it` : `Run ${name}`}
					small
					aria-disabled={state === "paused" || undefined}
					onClick={() => state !== "paused" && setAsked("start")}
					className="max-sm:hidden"
				/>
			)}
			<Menu trigger={<IconButton icon={MoreIcon} label={`More for ${name}`} small />}>
				{execute && (
					<MenuItem icon={PlayIcon} onSelect={() => setAsked("start")} disabled={state === "paused"}>
						Run now…
					</MenuItem>
				)}
				<MenuItem icon={EditIcon} onSelect={() => void navigate({ to: "/workflows/$id", params: { id } })}>
					{write ? "Edit" : "Open"}
				</MenuItem>
				<MenuItem icon={LogIcon} onSelect={() => void navigate({ to: "/runs", search: { workflow_id: id } })}>
					See its runs
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
						<MenuItem icon={TrashIcon} danger onSelect={() => setAsked("delete")}>
							Delete…
						</MenuItem>
					</>
				)}
			</Menu>
			{asked === "start" && <StartDialog workflow={workflow} onOpenChange={close} />}
			<ConfirmDialog
				open={asked === "delete"}
				onOpenChange={close}
				title={`Delete “${name}”?`}
				verb="Delete workflow"
				danger
				onConfirm={remove}
			>
				Its versions, its runs and the webhooks bound to it go with it. Runs that are going on end. This cannot be
				undone.
			</ConfirmDialog>
		</span>
	);
}
