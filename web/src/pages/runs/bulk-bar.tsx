import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { callAll, type Progress } from "@/api/call-all";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox } from "@/ui/field";
import { formatNumber } from "@/ui/format";
import { RetryIcon, StopIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { ProgressBar } from "@/ui/progress-bar";
import { type BulkAction, callApi, eligible, type RetryVersion } from "./bulk";
import type { Run } from "./merge";

const verbs: Record<BulkAction, { name: string; doing: string; done: string }> = {
	cancel: { name: "Cancel", doing: "Cancelling", done: "cancelled" },
	retry: { name: "Retry", doing: "Retrying", done: "retried" },
};

const runsOf = (count: number) => (count === 1 ? "1 run" : `${count} runs`);

interface BulkBarProps {
	chosen: Run[];
	onClear: () => void;
	/** Offers to select more runs. */
	more?: ReactNode;
}

/** BulkBar cancels or retries all selected runs, one call each. */
export function BulkBar({ chosen, onClear, more }: BulkBarProps) {
	const [deed, setDeed] = useState<{ kind: BulkAction; runs: Run[] }>();
	const running = eligible(chosen, "cancel");
	const ended = eligible(chosen, "retry");
	return (
		<>
			{chosen.length > 0 && (
				<div className="sticky bottom-4 z-20 flex justify-center">
					<section
						aria-label="Selected runs"
						className="flex max-w-full flex-wrap items-center gap-2 rounded-12 border bg-surface py-2 pr-2 pl-4 shadow-lift"
					>
						<span role="status" className="mr-2 font-medium whitespace-nowrap tabular">
							{formatNumber(chosen.length)} selected
						</span>
						{more}
						<Button
							icon={StopIcon}
							disabled={running.length === 0}
							onClick={() => setDeed({ kind: "cancel", runs: running })}
						>
							Cancel {running.length > 0 && running.length}
						</Button>
						<Button
							icon={RetryIcon}
							disabled={ended.length === 0}
							onClick={() => setDeed({ kind: "retry", runs: ended })}
						>
							Retry {ended.length > 0 && ended.length}
						</Button>
						<Button kind="quiet" onClick={onClear}>
							Clear selection
						</Button>
					</section>
				</div>
			)}
			{deed && <BulkDialog {...deed} onClose={() => setDeed(undefined)} onDone={onClear} />}
		</>
	);
}

interface BulkDialogProps {
	kind: BulkAction;
	runs: Run[];
	onClose: () => void;
	onDone: () => void;
}

function BulkDialog({ kind, runs, onClose, onDone }: BulkDialogProps) {
	const client = useQueryClient();
	const [progress, setProgress] = useState<Progress<Run>>();
	const [over, setOver] = useState(false);
	const [version, setVersion] = useState<RetryVersion>("pinned");
	const stop = useRef<AbortController>(null);
	const { name, doing, done } = verbs[kind];
	const start = async () => {
		const abort = new AbortController();
		stop.current = abort;
		setProgress({ done: 0, failed: [] });
		await callAll(runs, (run) => callApi(kind, run, version), setProgress, abort.signal);
		setOver(true);
		onDone();
		void client.invalidateQueries({ queryKey: ["runs", "all"] });
	};
	const busy = progress !== undefined && !over;
	const good = progress ? progress.done - progress.failed.length : 0;
	return (
		<Dialog
			open
			guarded={busy}
			onOpenChange={(open) => !open && !busy && onClose()}
			title={
				over ? `${runsOf(good)} ${done}` : busy ? `${doing} ${runsOf(runs.length)}…` : `${name} ${runsOf(runs.length)}?`
			}
			width="medium"
			actions={
				over ? (
					<Button kind="primary" onClick={onClose}>
						Close
					</Button>
				) : busy ? (
					<Button onClick={() => stop.current?.abort()}>Stop</Button>
				) : (
					<>
						<Button onClick={onClose}>Go back</Button>
						<Button kind={kind === "cancel" ? "danger" : "primary"} onClick={() => void start()}>
							{name} {runsOf(runs.length)}
						</Button>
					</>
				)
			}
		>
			{!progress && (
				<p className="text-muted">
					{kind === "cancel"
						? "They stop immediately. Steps that have finished are not undone."
						: `Each run restarts from its failed step with the same payload and ${version === "current" ? "the current version of its workflow" : "version"}.`}
				</p>
			)}
			{!progress && kind === "retry" && (
				<Checkbox
					label="Use the current version of each workflow"
					hint="Steps that have changed since the run, and all steps after them, run again."
					checked={version === "current"}
					onChange={(event) => setVersion(event.target.checked ? "current" : "pinned")}
				/>
			)}
			{progress && <ProgressBar value={progress.done} max={runs.length} label={doing} />}
			{progress && progress.failed.length > 0 && <Failures progress={progress} />}
		</Dialog>
	);
}

function Failures({ progress }: { progress: Progress<Run> }) {
	return (
		<div>
			<p className="mb-2 font-medium">{progress.failed.length} failed</p>
			<ul className="flex max-h-60 flex-col overflow-y-auto rounded-8 border">
				{progress.failed.map(({ item: run, error }) => (
					<li key={run.id} className="border-b px-3 py-2 last:border-b-0">
						<Link to="/runs/$id" params={{ id: run.id }} className="block truncate">
							{run.workflow_name}
						</Link>
						<p className="break-words">{error.message}</p>
						<p className="font-mono text-12 text-muted">
							{error.code} {error.requestId}
						</p>
					</li>
				))}
			</ul>
		</div>
	);
}
