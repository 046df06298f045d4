import { WorkflowSelect } from "@/shared/search/workflow-select";
import { triggerName } from "@/shared/triggers";
import { Button } from "@/ui/button";
import { NativeSelect, TextInput } from "@/ui/field";
import { SearchInput } from "@/ui/search-input";
import { statuses } from "@/ui/status";
import { custom, type FilterName, type Filters, isFiltered, spans, statusNames, triggerTypes } from "./filters";

export interface FilterBarProps {
	filters: Filters;
	onChange: (patch: Partial<Record<FilterName, string | undefined>>, options?: { replace?: boolean }) => void;
	onClear: () => void;
}

/** FilterBar filters the list. All filters are in the URL. */
export function FilterBar({ filters, onChange, onClear }: FilterBarProps) {
	const select = (name: FilterName, label: string, options: { value: string; label: string }[]) => (
		<NativeSelect
			aria-label={label}
			className="w-full sm:w-auto sm:min-w-32 sm:flex-1"
			value={filters[name] ?? ""}
			onChange={(event) => onChange({ [name]: event.target.value })}
			options={options}
		/>
	);
	return (
		<search aria-label="Filters" className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
			<SearchInput
				label="Search runs"
				placeholder="Workflow, run ID or error"
				className="col-span-2 sm:min-w-52 sm:flex-[2]"
				value={filters.text ?? ""}
				onChange={(text) => onChange({ text }, { replace: true })}
			/>
			{select("status", "Status", [
				{ value: "", label: "Any status" },
				...statusNames.map((status) => ({ value: status, label: statuses[status].name })),
			])}
			<WorkflowSelect
				label="Workflow"
				none="All workflows"
				className="w-full sm:w-auto sm:min-w-32 sm:flex-1"
				value={filters.workflow ?? ""}
				onChange={(workflow) => onChange({ workflow })}
			/>
			{select("trigger", "Trigger", [
				{ value: "", label: "Any trigger" },
				...triggerTypes.map((type) => ({
					value: type,
					label: type === "manual" ? "Manual or API" : triggerName(type),
				})),
			])}
			{select("since", "Time", [
				{ value: "", label: "Any time" },
				...Object.entries(spans).map(([value, { name }]) => ({ value, label: name })),
				{ value: custom, label: "Custom range" },
			])}
			{filters.since === custom && (
				<>
					<TimeInput
						label="Started after"
						value={filters.after}
						onChange={(after) => onChange({ after }, { replace: true })}
					/>
					<TimeInput
						label="Started before"
						value={filters.before}
						onChange={(before) => onChange({ before }, { replace: true })}
					/>
				</>
			)}
			{isFiltered(filters) && (
				<Button kind="quiet" onClick={onClear}>
					Clear
				</Button>
			)}
		</search>
	);
}

function TimeInput({
	label,
	value,
	onChange,
}: {
	label: string;
	value: string | undefined;
	onChange: (value: string) => void;
}) {
	return (
		<TextInput
			type="datetime-local"
			aria-label={label}
			title={label}
			className="sm:!w-48"
			value={value ?? ""}
			onChange={(event) => onChange(event.target.value)}
		/>
	);
}
