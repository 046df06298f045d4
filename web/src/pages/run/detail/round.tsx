import { find, title } from "@/shared/workflow/model";
import { StatusBadge, StatusIcon } from "@/ui/status";
import { Duration } from "@/ui/time";
import { HandledBadge } from "../handled";
import { outcomeOf } from "../model/outcome";
import { parsePath, roundPath } from "../model/path";
import { roundAt, roundsOf } from "../model/rounds";
import type { DetailProps } from "../props";
import { EmptyText, Heading } from "./parts";

/** RoundDetail lists the steps of one round of a loop. */
export function RoundDetail({
	record,
	outcomes,
	doc,
	selection,
	bare,
	block,
	index,
}: DetailProps & { block: string; index: number }) {
	const path = roundPath(block, index);
	const step = find(doc.steps, parsePath(block).id)?.step;
	const handled = outcomes.handled.get(path);
	const round = step && roundAt(roundsOf(record, block, step), path);
	return (
		<div className="flex min-h-0 flex-1 flex-col gap-3">
			{!bare && (
				<Heading
					title={`${step ? title(step) : block} · round ${index + 1}`}
					path={path}
					badge={
						round && (
							<>
								{handled !== undefined && <HandledBadge count={handled} />}
								<StatusBadge status={round.status} />
							</>
						)
					}
				/>
			)}
			{!round && (
				<div className="px-4">
					<EmptyText>This round has not started.</EmptyText>
				</div>
			)}
			<ul className="flex flex-col overflow-y-auto border-t">
				{step?.steps?.map((inner) => {
					const own = `${path}.${inner.id}`;
					const head = record.steps.get(own);
					return (
						<li key={own} className="border-b">
							<button
								type="button"
								onClick={() => selection.select(own)}
								className="flex w-full items-center gap-2 px-4 py-2 text-left -outline-offset-2 hover:bg-sunken/60"
							>
								{head ? <StatusIcon status={outcomeOf(head, outcomes)} /> : <span className="size-4" />}
								<span className="min-w-0 flex-1 truncate">{title(inner)}</span>
								<span className="text-12 text-muted">
									{head ? (
										<Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />
									) : (
										"not started"
									)}
								</span>
							</button>
							{head?.error && <p className="px-4 pb-2 pl-10 text-12 break-words text-failed">{head.error.message}</p>}
						</li>
					);
				})}
			</ul>
		</div>
	);
}
