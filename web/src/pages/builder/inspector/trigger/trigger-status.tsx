import { useEditor, useEditorState } from "@/pages/builder/state";
import type { Trigger } from "@/shared/workflow/model";
import { Link } from "@/ui/link";
import { fullTime, RelativeTime } from "@/ui/time";
import { useTriggerStates } from "../../data/queries";
import { Section } from "../section";
import { SubscriptionFacts } from "./subscription";
import { TestTrigger } from "./test-trigger";

/** TriggerStatus shows when a trigger fires next and what happened last, and tests it. */
export function TriggerStatus({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const stored = useEditorState((state) => state.stored.doc.triggers.find((one) => one.id === trigger.id));
	const state = useTriggerStates(editor.id)?.find((one) => one.id === trigger.id);
	return (
		<Section title="Status" open summary={state?.active ? "Active" : "Not active"}>
			{state ? <Facts state={state} /> : <p className="text-muted">It fires once the workflow is saved and active.</p>}
			{stored && <TestTrigger trigger={trigger} changed={stored !== trigger} />}
		</Section>
	);
}

type State = NonNullable<ReturnType<typeof useTriggerStates>>[number];

function Facts({ state }: { state: State }) {
	return (
		<dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
			<dt className="text-muted">Now</dt>
			<dd>{now(state)}</dd>
			{state.next_run_at && (
				<>
					<dt className="text-muted">Next</dt>
					<dd>{fullTime(state.next_run_at)}</dd>
				</>
			)}
			<dt className="text-muted">Last</dt>
			<dd>
				{state.last_fired_at ? <RelativeTime at={state.last_fired_at} /> : "never"}
				{state.last_run_id && (
					<>
						{" · "}
						<Link to="/runs/$id" params={{ id: state.last_run_id }}>
							open run
						</Link>
					</>
				)}
			</dd>
			{state.subscription && <SubscriptionFacts subscription={state.subscription} />}
			{state.last_error && (
				<>
					<dt className="text-muted">Error</dt>
					<dd className="break-words text-failed">{state.last_error.message}</dd>
				</>
			)}
			{state.not_fired && (
				<>
					<dt className="text-muted">Did not fire</dt>
					<dd className="break-words">{state.not_fired.message}</dd>
				</>
			)}
		</dl>
	);
}

function now({ active, subscription, next_run_at }: State): string {
	if (!active) return "It does not fire because the workflow is not active.";
	const isCalled = !subscription || subscription.status === "active" || next_run_at;
	return isCalled ? "It fires." : "It fires once the service calls.";
}
