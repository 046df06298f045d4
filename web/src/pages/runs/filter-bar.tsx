import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, got } from "@/api/client";
import { triggerName } from "@/builder/canvas/view";
import { Button } from "@/ui/button";
import { NativeSelect, TextInput } from "@/ui/field";
import { statuses } from "@/ui/status";
import { custom, type FilterName, type Filters, isFiltered, spans, statusNames, triggerTypes } from "./filters";

export interface FilterBarProps {
	filters: Filters;
	onChange: (patch: Partial<Record<FilterName, string | undefined>>, options?: { replace?: boolean }) => void;
	onClear: () => void;
}

/** FilterBar narrows the list down. All of it is in the address. */
export function FilterBar({ filters, onChange, onClear }: FilterBarProps) {
	const workflows = useQuery({
		queryKey: ["workflows", "names"],
		queryFn: ({ signal }) => got(api.GET("/v1/workflows", { params: { query: { limit: 100 } }, signal })),
	});
	const names = (workflows.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }));
	const unknown = filters.workflow && !names.some(({ value }) => value === filters.workflow);
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
			<SearchText value={filters.text ?? ""} onChange={(text) => onChange({ text }, { replace: true })} />
			{select("status", "Status", [
				{ value: "", label: "Any status" },
				...statusNames.map((status) => ({ value: status, label: statuses[status].name })),
			])}
			{select("workflow", "Workflow", [
				{ value: "", label: "All workflows" },
				...(unknown ? [{ value: filters.workflow ?? "", label: filters.workflow ?? "" }] : []),
				...names,
			])}
			{select("trigger", "Trigger", [
				{ value: "", label: "Any trigger" },
				...triggerTypes.map((type) => ({ value: type, label: triggerName(type) })),
			])}
			{select("since", "Time", [
				{ value: "", label: "Any time" },
				...Object.entries(spans).map(([value, { name }]) => ({ value, label: name })),
				{ value: custom, label: "From … to …" },
			])}
			{filters.since === custom && (
				<>
					<Moment
						label="Started after"
						value={filters.after}
						onChange={(after) => onChange({ after }, { replace: true })}
					/>
					<Moment
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

/** SearchText asks when the typing pauses, not at every letter. */
function SearchText({ value, onChange }: { value: string; onChange: (value: string) => void }) {
	const [text, setText] = useState(value);
	const [known, setKnown] = useState(value);
	if (known !== value) {
		setKnown(value);
		setText(value);
	}
	useEffect(() => {
		if (text === value) return undefined;
		const timer = setTimeout(() => onChange(text), 250);
		return () => clearTimeout(timer);
	}, [text, value, onChange]);
	return (
		<TextInput
			type="search"
			aria-label="Search runs"
			placeholder="Workflow, run id or error"
			className="col-span-2 sm:!w-auto sm:min-w-52 sm:flex-[2]"
			value={text}
			onChange={(event) => setText(event.target.value)}
		/>
	);
}

function Moment({
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
