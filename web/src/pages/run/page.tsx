import { useParams } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { useTitle } from "@/ui/page";
import { ErrorState, Skeleton, SkeletonRows } from "@/ui/states";
import { Banner } from "./banner";
import { RunHeader } from "./header";
import { waitOf } from "./model/wait";
import { Panes } from "./panes";
import { useRoundKeys, useSelection } from "./selection";
import { useDefinition, useGraphDoc, useOutcomes, useRunRecord, useWorkflow } from "./use-run";

export default function Page() {
	const { id = "" } = useParams({ strict: false });
	return <Run key={id} id={id} />;
}

const none = [] as const;

function Run({ id }: { id: string }) {
	const record = useRunRecord(id);
	const workflow = useWorkflow(record.head?.workflow_id);
	const { definition, error, refetch } = useDefinition(id);
	// Waits for both, so that the graph is laid out only once.
	const drawn = useGraphDoc(
		workflow.isPending ? undefined : definition,
		workflow.data?.layout as Record<string, [number, number]> | undefined,
	);
	const selection = useSelection(record);
	const outcomes = useOutcomes(id, record, definition?.steps ?? none);
	useRoundKeys(record, definition?.steps ?? none, selection);
	useTitle(workflow.data ? `Run of ${workflow.data.name}` : "Run");
	const gone = toApiError(error).status === 404;
	if (error)
		return <ErrorState error={error} onRetry={() => void refetch()} title={gone ? "Run not found" : undefined} />;
	if (record.deleted) return <ErrorState error={new Error("The workflow and its runs were deleted.")} />;
	if (!record.head) return <Loading />;
	return (
		<div className="flex h-full min-h-0 flex-col">
			<RunHeader
				head={record.head}
				name={workflow.data?.name}
				current={workflow.data?.version}
				waits={waitOf(record) !== null}
				outcomes={outcomes}
			/>
			<Banner record={record} selection={selection} steps={definition?.steps ?? none} />
			{!drawn && <SkeletonRows label="Loading steps" />}
			{drawn && <Panes run={id} record={record} outcomes={outcomes} doc={drawn} selection={selection} />}
		</div>
	);
}

function Loading() {
	return (
		<div role="status" aria-label="Loading run" className="flex h-full flex-col">
			<div className="flex flex-col gap-3 border-b bg-surface p-4">
				<Skeleton className="h-6 w-64 max-w-full" />
				<Skeleton className="h-4 w-96 max-w-full" />
			</div>
			<SkeletonRows label="Loading steps" />
		</div>
	);
}
