import { useState } from "react";
import type { ApiError } from "@/api/error";
import { indent, isJson, type Raw } from "@/api/raw-json";
import { Button, IconButton } from "@/ui/button";
import { CodeEditor } from "@/ui/editor";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { CloseIcon, PlusIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { problemAt } from "./columns";
import { type Condition, conditionsOf, filterOf, hasValue, type Operator, operatorName, operatorsOf } from "./filter";
import type { Column } from "./value";
import { timeExample } from "./value-input";

interface Line {
	line: number;
	condition: Condition;
}

/** Draft is the filter as it is edited: as conditions, or as JSON. */
type Draft = { lines: Line[] } | { json: string };

const firstOf = (columns: readonly Column[]): Condition => {
	const [column] = columns;
	return { column: column?.name ?? "", op: operatorsOf(column?.type ?? "text")[0] ?? "=", text: "" };
};

function draftOf(filter: Raw | undefined, columns: readonly Column[]): Draft {
	const conditions = filter === undefined ? [firstOf(columns)] : conditionsOf(filter, columns);
	if (!conditions) return { json: isJson(filter ?? "") ? indent(filter ?? "") : (filter ?? "") };
	return { lines: conditions.map((condition, line) => ({ line, condition })) };
}

export interface FilterPanelProps {
	columns: readonly Column[];
	/** The filter that is applied. */
	filter: Raw | undefined;
	/** The error of the rows, which may be about the filter. */
	error: ApiError | undefined;
	onApply: (filter: Raw | undefined) => void;
}

/** FilterPanel edits the filter: conditions that rows must meet, or the filter of the API as JSON. */
export function FilterPanel({ columns, filter, error, onApply }: FilterPanelProps) {
	const [draft, setDraft] = useState(() => draftOf(filter, columns));
	const [known, setKnown] = useState(filter);
	const [problem, setProblem] = useState<string>();
	if (known !== filter) {
		setKnown(filter);
		setDraft(draftOf(filter, columns));
	}
	const apply = (next: Raw | undefined) => {
		setProblem(undefined);
		setKnown(next);
		onApply(next);
	};
	const current = () => {
		if ("json" in draft) return draft.json.trim() || undefined;
		return filterOf(
			draft.lines.map(({ condition }) => condition),
			columns,
		);
	};
	const submit = () => {
		const next = current();
		if (next !== undefined && !isJson(next)) setProblem("This is not valid JSON.");
		else apply(next);
	};
	const clear = () => {
		setDraft(draftOf(undefined, columns));
		apply(undefined);
	};
	const toForm = "json" in draft && draftOf(draft.json.trim() || undefined, columns);
	return (
		<search aria-label="Filter">
			<form
				className="flex flex-col gap-3 rounded-8 border bg-surface p-3"
				onSubmit={(event) => {
					event.preventDefault();
					submit();
				}}
			>
				{"json" in draft ? (
					<Field
						label="Filter"
						error={problem ?? problemsIn(error)}
						hint="As in the API: one condition, or several inside “and”, “or” and “not”."
					>
						<CodeEditor
							label="Filter"
							language="json"
							value={draft.json}
							onChange={(json) => setDraft({ json })}
							height={140}
							tabIndents={false}
						/>
					</Field>
				) : (
					<Conditions
						lines={draft.lines}
						columns={columns}
						error={known === filter ? error : undefined}
						onChange={(lines) => setDraft({ lines })}
					/>
				)}
				<div className="flex flex-wrap items-center gap-2">
					<Button type="submit" kind="primary">
						Apply
					</Button>
					<Button kind="quiet" onClick={clear}>
						Clear
					</Button>
					<span className="flex-1" />
					{"json" in draft ? (
						<Button
							kind="quiet"
							disabled={!toForm || "json" in toForm}
							title={toForm && "json" in toForm ? "Only conditions joined by and fit into the form" : undefined}
							onClick={() => toForm && setDraft(toForm)}
						>
							Edit as form
						</Button>
					) : (
						<Button kind="quiet" onClick={() => setDraft({ json: indent(current() ?? "") })}>
							Edit as JSON
						</Button>
					)}
				</div>
			</form>
		</search>
	);
}

/** problemsIn returns the problems of a filter, with their places in it. */
function problemsIn(error: ApiError | undefined): string | undefined {
	const found = error?.fields.filter(({ pointer }) => pointer.startsWith("/filter"));
	if (!found?.length) return undefined;
	return found.map(({ pointer, message }) => `${pointer.slice("/filter".length)} ${message}`.trim()).join("; ");
}

interface ConditionsProps {
	lines: Line[];
	columns: readonly Column[];
	error: ApiError | undefined;
	onChange: (lines: Line[]) => void;
}

function Conditions({ lines, columns, error, onChange }: ConditionsProps) {
	const change = (line: number, patch: Partial<Condition>) =>
		onChange(lines.map((one) => (one.line === line ? { line, condition: { ...one.condition, ...patch } } : one)));
	const next = 1 + Math.max(-1, ...lines.map(({ line }) => line));
	return (
		<div className="flex flex-col gap-2">
			{lines.map(({ line, condition }, at) => (
				<ConditionLine
					key={line}
					at={at}
					condition={condition}
					columns={columns}
					problem={problemAt(error, `/filter/and/${at}`)}
					onChange={(patch) => change(line, patch)}
					onRemove={() => onChange(lines.filter((one) => one.line !== line))}
				/>
			))}
			<Button
				small
				kind="quiet"
				icon={PlusIcon}
				className="self-start"
				onClick={() => onChange([...lines, { line: next, condition: firstOf(columns) }])}
			>
				Add condition
			</Button>
		</div>
	);
}

interface LineProps {
	at: number;
	condition: Condition;
	columns: readonly Column[];
	problem: string | undefined;
	onChange: (patch: Partial<Condition>) => void;
	onRemove: () => void;
}

function ConditionLine({ at, condition, columns, problem, onChange, onRemove }: LineProps) {
	const { column, op, text } = condition;
	const typeOf = (name: string) => columns.find((one) => one.name === name)?.type ?? "text";
	const type = typeOf(column);
	const nth = `Condition ${at + 1}`;
	const changeColumn = (name: string) => {
		const fitting = operatorsOf(typeOf(name));
		const boolean = typeOf(name) === "boolean";
		onChange({
			column: name,
			op: fitting.includes(op) ? op : (fitting[0] ?? "="),
			text: boolean ? "true" : type === "boolean" ? "" : text,
		});
	};
	return (
		<div role="group" aria-label={nth} className="flex flex-col gap-1">
			<div className="grid grid-cols-[6ch_1fr_auto] items-center gap-2 sm:flex">
				<span className="w-[6ch] shrink-0 text-12 text-muted">{at === 0 ? "where" : "and"}</span>
				<NativeSelect
					aria-label={`${nth}: column`}
					className="w-full sm:w-48"
					value={column}
					onChange={(event) => changeColumn(event.target.value)}
					options={columns.map(({ name }) => ({ value: name, label: name }))}
				/>
				<NativeSelect
					aria-label={`${nth}: operator`}
					className="w-full max-sm:col-start-2 sm:w-40"
					value={op}
					onChange={(event) => onChange({ op: event.target.value as Operator })}
					options={operatorsOf(type).map((value) => ({ value, label: operatorName(value, type) }))}
				/>
				{hasValue(op) &&
					(type === "boolean" ? (
						<NativeSelect
							aria-label={`${nth}: value`}
							className="w-full max-sm:col-start-2 sm:w-48"
							value={text}
							onChange={(event) => onChange({ text: event.target.value })}
							options={["true", "false"].map((value) => ({ value, label: value }))}
						/>
					) : (
						<TextInput
							aria-label={`${nth}: value`}
							aria-invalid={problem ? true : undefined}
							className="max-sm:col-start-2 sm:max-w-72"
							value={text}
							onChange={(event) => onChange({ text: event.target.value })}
							placeholder={op === "in" ? "Values, separated by commas" : type === "time" ? timeExample : undefined}
							spellCheck={false}
						/>
					))}
				<IconButton
					icon={CloseIcon}
					label={`Remove condition ${at + 1}`}
					className="max-sm:col-start-3 max-sm:row-start-1"
					onClick={onRemove}
				/>
			</div>
			{problem && <p className="pl-[calc(6ch+8px)] text-12 text-failed">{sentence(problem)}</p>}
		</div>
	);
}
