import { useState } from "react";
import { Combobox } from "@/ui/combobox";
import { maxQuery, useRecentWorkflows, useSearch, useWorkflowName } from "./use-search";

const limit = 20;

export interface WorkflowSelectProps {
	/** The id of the selected workflow; empty for none. */
	value: string;
	onChange: (id: string) => void;
	/** The label for no selection, such as "All workflows". */
	none: string;
	/** Does not offer `none` as a choice; it is only the label of the empty control. */
	required?: boolean;
	/** Workflows that cannot be selected. */
	exclude?: readonly string[];
	/** The label, if no field provides one. */
	label?: string;
	className?: string;
}

/** WorkflowSelect selects a workflow by searching for it. */
export function WorkflowSelect({
	value,
	onChange,
	none,
	required: needed,
	exclude: except = [],
	label,
	className,
}: WorkflowSelectProps) {
	const [text, setText] = useState("");
	const name = useWorkflowName(value || null);
	const { options, full, busy, error, retry } = useChoices(text, except);
	const empty = text.trim() === "";
	return (
		<Combobox
			label={label}
			className={className}
			value={value}
			shown={value === "" ? none : (name ?? value)}
			options={empty && !needed ? [{ value: "", label: none }, ...options] : options}
			onChange={onChange}
			text={text}
			onText={setText}
			maxLength={maxQuery}
			placeholder="Search workflows"
			busy={busy}
			error={error}
			onRetry={retry}
			empty={empty ? "No other workflows yet." : `No workflows match “${text.trim()}”.`}
			more={full ? "There are more workflows. Type to narrow the list." : undefined}
		/>
	);
}

/** WorkflowName shows the name of a workflow, or its id until the name is known. */
export function WorkflowName({ id }: { id: string }) {
	return useWorkflowName(id) ?? id;
}

/** useChoices returns the matches for the text, or the newest workflows if it is empty. */
function useChoices(text: string, except: readonly string[]) {
	const searching = useSearch(text, "workflow", limit);
	const recent = useRecentWorkflows(limit);
	const typed = text.trim() !== "";
	const found = typed ? searching.found.workflows : (recent.data?.data ?? []);
	const full = found.length >= limit;
	const options = found.filter(({ id }) => !except.includes(id)).map(({ id, name }) => ({ value: id, label: name }));
	return typed
		? { options, full, busy: searching.busy, error: searching.error, retry: searching.retry }
		: { options, full, busy: recent.isPending, error: recent.error, retry: () => void recent.refetch() };
}
