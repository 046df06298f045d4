import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { CancelRun } from "@/shared/run/cancel";
import { useShortcut } from "@/shell/keys";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { CodeIcon, MoreIcon, PlayIcon, RetryIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Menu, MenuItem } from "@/ui/menu";
import { toast } from "@/ui/toast";
import { againOf } from "./model/again";
import { startAsCurl } from "./model/curl";
import { parsePath } from "./model/path";
import type { Head } from "./model/record";
import { type RetryChoice, retryChoices } from "./model/retry";

/** payloadQuery reads the trigger of a run, which the stream does not include. */
export function payloadQuery(id: string) {
	return {
		queryKey: ["runs", id, "trigger"],
		queryFn: async ({ signal }: { signal: AbortSignal }) =>
			(await got(api.GET("/v1/runs/{id}", { params: { path: { id } }, signal }))).trigger,
		staleTime: Number.POSITIVE_INFINITY,
	};
}

function useRunActions(head: Head) {
	const client = useQueryClient();
	const navigate = useNavigate();
	const open = (run: { id: string }) => {
		void client.invalidateQueries({ queryKey: ["runs"], refetchType: "none" });
		void navigate({ to: "/runs/$id", params: { id: run.id } });
	};
	const trigger = () => client.fetchQuery(payloadQuery(head.id));
	const retry = useMutation({
		mutationFn: ({ version }: RetryChoice) =>
			got(api.POST("/v1/runs/{id}/retry", { params: { path: { id: head.id } }, body: { version } })),
		onSuccess: (run, { done }) => {
			open(run);
			toast.done(done);
		},
	});
	const again = useMutation({
		mutationFn: async () => {
			const { trigger: fired, body } = againOf(await trigger());
			if (fired !== null) {
				const path = { id: head.workflow_id, trigger_id: fired };
				return got(api.POST("/v1/workflows/{id}/triggers/{trigger_id}/test", { params: { path }, body }));
			}
			const path = { workflow_id: head.workflow_id };
			return got(api.POST("/v1/workflows/{workflow_id}/runs", { params: { path }, body }));
		},
		onSuccess: (run) => {
			open(run);
			const called = run.trigger.headers !== null;
			toast.done(`Started a new run with the same ${called ? "payload, headers and query" : "payload"}.`);
		},
	});
	const curl = useMutation({
		mutationFn: async () => {
			const again = againOf(await trigger());
			await navigator.clipboard.writeText(startAsCurl(location.origin, head.workflow_id, again));
		},
		onSuccess: () => toast.done("Copied. Set STEPMILL_KEY to your API key and run it."),
	});
	return { retry, again, curl };
}

export function RunActions({ head, current }: { head: Head; current: number | undefined }) {
	const may = useMay("execute");
	const [asking, setAsking] = useState(false);
	const { retry, again, curl } = useRunActions(head);
	const running = head.status === "running";
	const choices = may ? retryChoices(head, current) : [];
	const [first] = choices;
	useShortcut("R", first?.label ?? "Retry", () => first && !retry.isPending && setAsking(true), "Run");
	return (
		<div className="flex flex-wrap items-center gap-2">
			{running && <CancelRun run={head.id} />}
			{choices.map((choice) => (
				<Button
					key={choice.version}
					kind={choice === first ? "primary" : undefined}
					icon={RetryIcon}
					busy={retry.isPending && retry.variables.version === choice.version}
					disabled={retry.isPending}
					onClick={() => retry.mutate(choice)}
				>
					{choice.label}
				</Button>
			))}
			{may && (
				<Button icon={PlayIcon} busy={again.isPending} onClick={() => again.mutate()}>
					Run again
				</Button>
			)}
			<EditLink head={head} />
			<Menu trigger={<IconButton icon={MoreIcon} label="More actions" />}>
				<MenuItem icon={CodeIcon} onSelect={() => curl.mutate()}>
					Copy as cURL
				</MenuItem>
			</Menu>
			{first && (
				<ConfirmDialog
					open={asking}
					onOpenChange={setAsking}
					title="Retry this run?"
					verb={first.label}
					onConfirm={() => retry.mutateAsync(first)}
				>
					Steps that succeeded keep their results. The others run again, with real effects.
				</ConfirmDialog>
			)}
		</div>
	);
}

/** EditLink opens the builder on the step that failed, with the data of the run. */
function EditLink({ head }: { head: Head }) {
	const failed = head.error?.step_id;
	const search = { run: head.id, ...(failed && { step: parsePath(failed).id }) };
	return (
		<Button asChild>
			<Link
				plain
				to="/workflows/$id"
				params={{ id: head.workflow_id }}
				search={search as never}
				className="hover:no-underline"
			>
				Edit
			</Link>
		</Button>
	);
}
