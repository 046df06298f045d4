import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { useShortcut } from "@/shell/keys";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { CodeIcon, MoreIcon, PlayIcon, RetryIcon, StopIcon } from "@/ui/icons";
import { Menu, MenuItem } from "@/ui/menu";
import { toast } from "@/ui/toast";
import { startAsCurl } from "./model/curl";
import type { Head } from "./model/record";

/** payloadOf is what a run was started with, which its stream does not tell. */
export function payloadQuery(id: string) {
	return {
		queryKey: ["runs", id, "trigger"],
		queryFn: async ({ signal }: { signal: AbortSignal }) =>
			(await got(api.GET("/v1/runs/{id}", { params: { path: { id } }, signal }))).trigger,
		staleTime: Number.POSITIVE_INFINITY,
	};
}

function useStarts(head: Head) {
	const client = useQueryClient();
	const navigate = useNavigate();
	const open = (run: { id: string }) => {
		void client.invalidateQueries({ queryKey: ["runs"], refetchType: "none" });
		void navigate({ to: "/runs/$id", params: { id: run.id } });
	};
	const trigger = () => client.fetchQuery(payloadQuery(head.id));
	const retry = useMutation({
		mutationFn: () => got(api.POST("/v1/runs/{id}/retry", { params: { path: { id: head.id } } })),
		onSuccess: (run) => {
			open(run);
			toast.done("Retrying from the step that failed.");
		},
	});
	const again = useMutation({
		mutationFn: async () => {
			const { payload } = await trigger();
			const path = { workflow_id: head.workflow_id };
			return got(api.POST("/v1/workflows/{workflow_id}/runs", { params: { path }, body: { payload } }));
		},
		onSuccess: (run) => {
			open(run);
			toast.done("Started again with the same payload.");
		},
	});
	const curl = useMutation({
		mutationFn: async () => {
			const { payload } = await trigger();
			await navigator.clipboard.writeText(startAsCurl(location.origin, head.workflow_id, payload));
		},
		onSuccess: () => toast.done("Copied. Put your API key into STEPMILL_KEY and run it."),
	});
	return { retry, again, curl };
}

export function RunActions({ head }: { head: Head }) {
	const may = useMay("execute");
	const [asking, setAsking] = useState(false);
	const { retry, again, curl } = useStarts(head);
	const running = head.status === "running";
	const retryable = head.status === "failed" || head.status === "cancelled";
	useShortcut("R", "Retry from the failed step", () => may && retryable && !retry.isPending && retry.mutate(), "Run");
	return (
		<div className="flex flex-wrap items-center gap-2">
			{may && running && (
				<Button icon={StopIcon} onClick={() => setAsking(true)}>
					Cancel run
				</Button>
			)}
			{may && (
				<Button icon={PlayIcon} busy={again.isPending} onClick={() => again.mutate()}>
					Run again
				</Button>
			)}
			{may && retryable && (
				<Button kind="primary" icon={RetryIcon} busy={retry.isPending} onClick={() => retry.mutate()}>
					<span>Retry{head.status === "failed" && <span className="max-sm:hidden"> from the failed step</span>}</span>
				</Button>
			)}
			<Menu trigger={<IconButton icon={MoreIcon} label="More" />}>
				<MenuItem icon={CodeIcon} onSelect={() => curl.mutate()}>
					Copy as cURL
				</MenuItem>
			</Menu>
			<ConfirmDialog
				open={asking}
				onOpenChange={setAsking}
				title="Cancel this run?"
				verb="Cancel run"
				danger
				onConfirm={() => got(api.POST("/v1/runs/{id}/cancel", { params: { path: { id: head.id } } }))}
			>
				It stops at once and for good. Steps that have finished are not reversed.
			</ConfirmDialog>
		</div>
	);
}
