import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { RunData } from "@/shared/files/run-data";
import { originOf } from "@/shared/run/origin";
import { Until } from "@/shared/run/until";
import { reasonText } from "@/shared/run/words";
import { triggerInfo } from "@/shared/triggers";
import { JsonView } from "@/ui/json";
import { ErrorState, Skeleton } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { Duration, fullTime } from "@/ui/time";
import { payloadQuery } from "../actions";
import type { Head } from "../model/record";
import type { DetailProps } from "../props";
import { Fact, Facts, Failure, Heading, PathLine } from "./parts";

const names = ["summary", "payload", "call"];

/** RunDetail shows the run as a whole: what started it and how it went. */
export function RunDetail({ run, record, selection, bare }: DetailProps) {
	const { head } = record;
	// The payload comes with all inputs and outputs of the run, so it is not fetched automatically for large runs.
	const first = record.steps.size > 1_000 ? "summary" : "payload";
	const tab = names.includes(selection.tab ?? "") ? (selection.tab as string) : first;
	const called = head !== undefined && triggerInfo(head.trigger.type).called === true;
	const trigger = useQuery({ ...payloadQuery(run), enabled: tab !== "summary" });
	const body = (content: ReactNode) => <div className="h-full overflow-y-auto px-4 pb-4">{content}</div>;
	if (!head) return null;
	return (
		<>
			{!bare && <Heading title="Run and payload" />}
			<Tabs
				label="Run"
				value={tab === "call" && !called ? "payload" : tab}
				onChange={selection.setTab}
				className="min-h-0 flex-1 [&>[role=tablist]]:px-4"
				tabs={[
					{
						value: "summary",
						label: "Summary",
						content: body(<Summary head={head} />),
					},
					{
						value: "payload",
						label: "Payload",
						content: (
							<div className="h-full px-4 pb-4">
								{trigger.isPending && <Skeleton className="h-32 w-full" />}
								{trigger.error && <ErrorState error={trigger.error} onRetry={() => void trigger.refetch()} />}
								{trigger.data && (
									<RunData
										value={trigger.data.payload}
										files={trigger.data.payload_files}
										label="Payload"
										height="fill"
									/>
								)}
							</div>
						),
					},
					...(called
						? [
								{
									value: "call",
									label: "Request",
									content: body(
										<div className="flex flex-col gap-4">
											<JsonView value={trigger.data?.headers ?? {}} label="Headers" />
											<JsonView value={trigger.data?.query ?? {}} label="Query" />
										</div>,
									),
								},
							]
						: []),
				]}
			/>
		</>
	);
}

function Summary({ head }: { head: Head }) {
	return (
		<div className="flex flex-col gap-4">
			{head.error && <Failure {...head.error} />}
			<Facts>
				<Fact name="Status">
					<StatusBadge status={head.status} />
				</Fact>
				{head.waiting_for && (
					<Fact name="Waiting">
						{reasonText(head.waiting_for.reason)} <Until at={head.waiting_for.until} />
					</Fact>
				)}
				<Fact name="Run">
					<PathLine path={head.id} />
				</Fact>
				<Fact name="Trigger">
					{originOf(head.trigger.type, head.started_by)}
					{head.trigger.id && ` · ${head.trigger.id}`}
				</Fact>
				<Fact name="Version">{head.draft ? "Unsaved draft" : head.workflow_version}</Fact>
				<Fact name="Started">{fullTime(head.started_at)}</Fact>
				{head.finished_at && <Fact name="Finished">{fullTime(head.finished_at)}</Fact>}
				<Fact name="Duration">
					<Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />
				</Fact>
			</Facts>
		</div>
	);
}
