import type { ReactNode } from "react";
import { RunData } from "@/shared/files/run-data";
import { find, title } from "@/shared/workflow/model";
import { ErrorState, Skeleton } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { outcomeOf } from "../model/outcome";
import { parsePath } from "../model/path";
import type { DetailProps } from "../props";
import { useStep } from "../use-run";
import { Attempts } from "./attempts";
import { Logs } from "./logs";
import { EmptyText, Heading } from "./parts";
import { StepSummary } from "./summary";

const names = ["summary", "input", "output", "attempts", "logs"];

/** StepDetail shows one execution of a step: its outcome, input and output. */
export function StepDetail({ run, record, outcomes, doc, selection, bare }: DetailProps) {
	const { path } = selection;
	const spot = find(doc.steps, parsePath(path).id);
	const head = record.steps.get(path);
	const body = useStep(run, record, path);
	const tab = names.find((one) => one === selection.tab) ?? "summary";
	const scroll = (content: ReactNode) => <div className="h-full overflow-y-auto px-4 pb-4">{content}</div>;
	const json = (
		label: string,
		value: Record<string, unknown> | undefined,
		files: readonly string[] | undefined,
		none: string,
	) => {
		if (!head || head.status === "skipped") return scroll(<EmptyText>{none}</EmptyText>);
		if (body.error) return <ErrorState error={body.error} onRetry={() => void body.refetch()} />;
		if (!value) return scroll(<Skeleton className="h-32 w-full" />);
		if (Object.keys(value).length === 0) return scroll(<EmptyText>{none}</EmptyText>);
		return (
			<div className="h-full px-4 pb-4">
				<RunData value={value} files={files} label={label} height="fill" />
			</div>
		);
	};
	if (!spot && !head) {
		return (
			<div className="p-4">
				<EmptyText>This run has no step “{path}”.</EmptyText>
			</div>
		);
	}
	return (
		<>
			{!bare && (
				<Heading
					title={spot ? title(spot.step) : (head?.name ?? path)}
					path={path}
					badge={head && <StatusBadge status={outcomeOf(head, outcomes)} />}
				/>
			)}
			<Tabs
				label="Step"
				value={tab}
				onChange={selection.setTab}
				className="min-h-0 flex-1 [&>[role=tablist]]:px-4"
				tabs={[
					{
						value: "summary",
						label: "Summary",
						content: scroll(
							<StepSummary run={run} record={record} outcomes={outcomes} spot={spot} path={path} body={body.data} />,
						),
					},
					{
						value: "input",
						label: "Input",
						content: json("Input", body.data?.input, body.data?.input_files, "This step has no input."),
					},
					{
						value: "output",
						label: "Output",
						content: json(
							"Output",
							body.data?.output,
							body.data?.output_files,
							head?.finished_at ? "This step has no output." : "No output yet.",
						),
					},
					{
						value: "attempts",
						label: head && head.attempts.length > 1 ? `Attempts ${head.attempts.length}` : "Attempts",
						content: scroll(<Attempts head={head} />),
					},
					{
						value: "logs",
						label: "Logs",
						content: <Logs run={run} path={path} count={record.logs.get(path) ?? 0} />,
					},
				]}
			/>
		</>
	);
}
