import { useState } from "react";
import { useDocument, useEditor, useEditorState } from "@/pages/builder/state";
import { AttachFiles } from "@/shared/files/attach-files";
import type { Started } from "@/shared/files/attachment";
import { LostFiles } from "@/shared/files/lost-files";
import { triggerInfo } from "@/shared/triggers";
import { isObject, isServiceTrigger, type Json } from "@/shared/workflow/model";
import { CodeEditor } from "@/ui/editor";
import { NativeSelect } from "@/ui/field";
import { relativeTime } from "@/ui/time";
import { useReplayState } from "../replay/store";
import { useHookRequests, useRun, useServiceTrigger } from "./queries";
import { useDataRun } from "./use-data";

/** PayloadEditor edits the payload of the next draft run. */
export function PayloadEditor() {
	const [{ payload, attached }, replay] = useReplayState();
	const trigger = useRun(useDataRun()).data?.trigger;
	const last = trigger?.payload as Json | undefined;
	const sample = useSample();
	const value = payload ?? last ?? sample?.payload ?? {};
	const requests = useRequests();
	const [typed, setTyped] = useState<{ text: string; of: Json }>();
	const text = typed && typed.of === value ? typed.text : JSON.stringify(value, null, 2);
	const wrong = typed && typed.of === value && read(typed.text) === undefined;
	const choices: { value: string; label: string; payload: Json }[] = [
		...(last === undefined ? [] : [{ value: "last", label: "Payload of the last run", payload: last }]),
		...(sample ? [{ value: "sample", ...sample }] : []),
		{ value: "empty", label: "Empty: {}", payload: {} },
		...requests.map((request) => ({
			value: request.id,
			label: `${request.method} ${relativeTime(Date.parse(request.at), Date.now())}`,
			payload: request.payload as Json,
		})),
	];
	const chosen = choices.find((choice) => JSON.stringify(choice.payload) === JSON.stringify(value));
	return (
		<div className="flex min-h-36 flex-1 flex-col gap-2">
			<div className="flex items-center gap-2">
				<span className="font-medium">Payload</span>
				<NativeSelect
					aria-label="Payload for the run"
					className="min-w-0 flex-1"
					value={chosen?.value ?? "own"}
					onChange={(event) => {
						const next = choices.find((choice) => choice.value === event.target.value);
						if (next) replay.set({ payload: next.payload });
					}}
					options={[...choices, ...(chosen ? [] : [{ value: "own", label: "Custom" }])].map(({ value, label }) => ({
						value,
						label,
					}))}
				/>
			</div>
			<div className="min-h-24 flex-1">
				<CodeEditor
					label="Payload"
					language="json"
					lineNumbers={false}
					height="fill"
					value={text}
					onChange={(next) => {
						const value = read(next);
						setTyped({ text: next, of: value ?? payload ?? last ?? sample?.payload ?? {} });
						if (value !== undefined) replay.set({ payload: value });
					}}
				/>
			</div>
			{wrong && (
				<p role="status" className="text-12 text-failed">
					This is not a valid JSON object yet.
				</p>
			)}
			<LostFiles payload={isObject(value) ? value : undefined} earlier={trigger as Started | undefined} />
			<AttachFiles attached={attached} onChange={(attached) => replay.set({ attached })} />
		</div>
	);
}

function read(text: string): Json | undefined {
	if (text.trim() === "") return {};
	try {
		const value = JSON.parse(text) as Json;
		return isObject(value) ? value : undefined;
	} catch {
		return undefined;
	}
}

/** A payload like that of the first trigger that belongs to a service. */
function useSample(): { label: string; payload: Json } | undefined {
	const type = useDocument().triggers.find((one) => isServiceTrigger(one.type))?.type ?? "";
	const found = useServiceTrigger(type).data;
	return found?.sample ? { label: `Example: ${found.title}`, payload: found.sample as Json } : undefined;
}

/** The recent requests of the first saved trigger that has a URL. */
function useRequests() {
	const editor = useEditor();
	const { triggers } = useDocument();
	const stored = useEditorState((state) => state.stored.doc.triggers);
	const hook = triggers.find((one) => triggerInfo(one.type).called && stored.some((saved) => saved.id === one.id));
	return (useHookRequests(editor.id, hook?.id ?? null) ?? []).filter((request) => request.payload !== null);
}
