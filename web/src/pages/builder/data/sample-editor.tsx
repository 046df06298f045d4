import { useState } from "react";
import { isObject, type Json, type JsonObject } from "@/shared/workflow/model";
import { cx } from "@/ui/class";
import { CodeEditor } from "@/ui/editor";
import { NativeSelect } from "@/ui/field";
import type { Sample } from "./sample";
import type { SampleChoice } from "./use-samples";

interface Props {
	/** A choice without a sample is an example that the server makes up. */
	choices: readonly (Omit<SampleChoice, "sample"> & { readonly sample: Sample | null })[];
	value: Sample | null;
	onChange: (next: Sample | null) => void;
	/** Whether the headers and the query of a call can be edited too. */
	call: boolean;
	height: number | "fill";
}

/** SampleEditor selects or edits what a run starts with. */
export function SampleEditor({ choices, value, onChange, call, height }: Props) {
	const text = JSON.stringify(value);
	const chosen = choices.find((choice) => JSON.stringify(choice.sample) === text);
	return (
		<>
			<NativeSelect
				aria-label="Data for the run"
				value={chosen?.value ?? "own"}
				onChange={(event) => {
					const next = choices.find((choice) => choice.value === event.target.value);
					if (next) onChange(next.sample);
				}}
				options={[...choices, ...(chosen ? [] : [{ value: "own", label: "Custom" }])].map(({ value, label }) => ({
					value,
					label,
				}))}
			/>
			{value && (
				<JsonField
					label="Payload"
					height={height}
					value={value.payload}
					onChange={(payload) => onChange({ ...value, payload })}
				/>
			)}
			{value && call && <CallFields value={value} onChange={onChange} />}
		</>
	);
}

/** CallFields edits the headers and the query of a call. */
function CallFields({ value, onChange }: { value: Sample; onChange: (next: Sample) => void }) {
	const [open, setOpen] = useState(false);
	const { headers = {}, query = {} } = value;
	const summary = `${Object.keys(headers).length} headers, ${Object.keys(query).length} in the query`;
	return (
		<div className="flex flex-col gap-2">
			<button
				type="button"
				aria-expanded={open}
				onClick={() => setOpen(!open)}
				className="self-start rounded-6 text-12 text-muted underline hover:text-text"
			>
				{open ? "Hide headers and query" : `Headers and query: ${summary}`}
			</button>
			{open && (
				<>
					<JsonField
						label="Headers"
						height={120}
						value={headers}
						onChange={(headers) => onChange({ ...value, headers })}
					/>
					<JsonField label="Query" height={96} value={query} onChange={(query) => onChange({ ...value, query })} />
				</>
			)}
		</div>
	);
}

interface JsonFieldProps {
	label: string;
	value: JsonObject;
	height: number | "fill";
	onChange: (next: JsonObject) => void;
}

/** JsonField edits an object as text. Text that is not one yet changes nothing. */
function JsonField({ label, value, height, onChange }: JsonFieldProps) {
	const [typed, setTyped] = useState<{ text: string; of: JsonObject }>();
	const mine = typed && typed.of === value ? typed.text : undefined;
	const shown = mine ?? JSON.stringify(value, null, 2);
	return (
		<div className={cx("flex flex-col gap-1", height === "fill" && "min-h-24 flex-1")}>
			{height !== "fill" && <span className="text-12 text-muted">{label}</span>}
			<CodeEditor
				label={label}
				language="json"
				lineNumbers={false}
				height={height}
				value={shown}
				onChange={(text) => {
					// Showing another value is no edit.
					if (text === shown) return;
					const next = read(text);
					setTyped({ text, of: next ?? value });
					if (next) onChange(next);
				}}
			/>
			{mine !== undefined && !read(mine) && (
				<p role="status" className="text-12 text-failed">
					This is not a valid JSON object yet.
				</p>
			)}
		</div>
	);
}

function read(text: string): JsonObject | undefined {
	if (text.trim() === "") return {};
	try {
		const value = JSON.parse(text) as Json;
		return isObject(value) ? value : undefined;
	} catch {
		return undefined;
	}
}
