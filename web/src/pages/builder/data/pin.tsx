import { useState } from "react";
import { useEditor, usePinned, useReadOnly } from "@/pages/builder/state";
import { isObject, type Json, maxPin, pin, pinSize, type Step, title, unpin } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { EditIcon } from "@/ui/icons";
import { PinIcon } from "./icons";

/** PinControls pins the output of a step, which draft runs and tests then use instead of running the step. */
export function PinControls({ step, output }: { step: Step; output: unknown }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const pinned = usePinned()[step.id];
	const [editing, setEditing] = useState(false);
	const keep = (value: Json) =>
		!editor.apply((doc) => pin(doc, step.id, value), { keepSelection: true, announce: "Pinned." }).rejected;
	return (
		<div className="flex flex-col gap-2 border-t pt-3">
			{pinned === undefined ? (
				<p className="text-12 text-muted">
					Draft runs and step tests use the pinned output instead of running the step. Real runs never use it.
				</p>
			) : (
				<p className="flex items-center gap-2 text-12">
					<Badge tone="accent">pinned</Badge>
					<span className="text-muted">{formatSize(pinSize(pinned))} of 64 KiB</span>
				</p>
			)}
			<div className="flex flex-wrap gap-1">
				{isObject(output) && (
					<Button small icon={PinIcon} disabled={readOnly} onClick={() => keep(output)}>
						{pinned === undefined ? "Pin this output" : "Pin this output instead"}
					</Button>
				)}
				<Button small kind="quiet" icon={EditIcon} disabled={readOnly} onClick={() => setEditing(true)}>
					{pinned === undefined ? "Pin custom data" : "Edit pin"}
				</Button>
				{pinned !== undefined && (
					<Button
						small
						kind="quiet"
						disabled={readOnly}
						onClick={() => editor.apply((doc) => unpin(doc, [step.id]), { keepSelection: true, announce: "Unpinned." })}
					>
						Unpin
					</Button>
				)}
			</div>
			{editing && (
				<PinDialog
					name={title(step)}
					value={pinned ?? (isObject(output) ? output : {})}
					onClose={() => setEditing(false)}
					onKeep={(value) => keep(value) && setEditing(false)}
				/>
			)}
		</div>
	);
}

function formatSize(bytes: number): string {
	return bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KiB`;
}

interface PinDialogProps {
	name: string;
	value: Json;
	onClose: () => void;
	onKeep: (value: Json) => void;
}

function PinDialog({ name, value, onClose, onKeep }: PinDialogProps) {
	const [text, setText] = useState(() => JSON.stringify(value, null, 2));
	const read = readPin(text);
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Pinned output of ${name}`}
			description="A JSON object of at most 64 KiB that replaces the output of the step."
			width="large"
			guarded
			onSubmit={() => {
				if ("value" in read) onKeep(read.value);
			}}
			actions={
				<Button type="submit" kind="primary" disabled={!("value" in read)}>
					Pin
				</Button>
			}
		>
			<CodeEditor label="Pinned output" language="json" value={text} onChange={setText} height={320} />
			<p role="status" className="mt-1 min-h-4 text-12 text-failed">
				{"why" in read && read.why}
			</p>
		</Dialog>
	);
}

/** Parses pinned data, or returns why it is invalid. */
export function readPin(text: string): { value: Json } | { why: string } {
	let value: Json;
	try {
		value = JSON.parse(text) as Json;
	} catch {
		return { why: "This is not valid JSON yet." };
	}
	if (!isObject(value)) return { why: 'The output of a step must be an object, such as {"value": 1}.' };
	return pinSize(value) > maxPin ? { why: `It is ${formatSize(pinSize(value))}. The limit is 64 KiB.` } : { value };
}
