import { useState } from "react";
import { isObject, type Json, maxPin, pin, pinSize, type Step, title, unpin } from "@/builder/model";
import { useEditor, useFixed, usePinned } from "@/builder/state";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { EditIcon } from "@/ui/icons";
import { PinIcon } from "./icons";

/** PinControls keeps the output of a step as sample data: it then stands in for the step wherever drafts are tried out. */
export function PinControls({ step, output }: { step: Step; output: unknown }) {
	const editor = useEditor();
	const fixed = useFixed();
	const pinned = usePinned()[step.id];
	const [editing, setEditing] = useState(false);
	const keep = (value: Json) =>
		!editor.apply((doc) => pin(doc, step.id, value), { keep: true, say: "Pinned." }).refused;
	return (
		<div className="flex flex-col gap-2 border-t pt-3">
			{pinned === undefined ? (
				<p className="text-12 text-muted">
					A pinned output stands in for the step when drafts and other steps are tried out. Real runs never see it.
				</p>
			) : (
				<p className="flex items-center gap-2 text-12">
					<Badge tone="accent">pinned</Badge>
					<span className="text-muted">{kib(pinSize(pinned))} of at most 64 KiB</span>
				</p>
			)}
			<div className="flex flex-wrap gap-1">
				{isObject(output) && (
					<Button small icon={PinIcon} disabled={fixed} onClick={() => keep(output)}>
						{pinned === undefined ? "Pin this output" : "Pin this output instead"}
					</Button>
				)}
				<Button small kind="quiet" icon={EditIcon} disabled={fixed} onClick={() => setEditing(true)}>
					{pinned === undefined ? "Write a pin" : "Edit pin"}
				</Button>
				{pinned !== undefined && (
					<Button
						small
						kind="quiet"
						disabled={fixed}
						onClick={() => editor.apply((doc) => unpin(doc, [step.id]), { keep: true, say: "Unpinned." })}
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

function kib(bytes: number): string {
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
			description="A JSON object of at most 64 KiB, in the place of what the step would return."
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

/** The pin that a text says, or why it is none. */
export function readPin(text: string): { value: Json } | { why: string } {
	let value: Json;
	try {
		value = JSON.parse(text) as Json;
	} catch {
		return { why: "This is not JSON yet." };
	}
	if (!isObject(value)) return { why: 'The output of a step is an object, such as {"value": 1}.' };
	return pinSize(value) > maxPin ? { why: `It has ${kib(pinSize(value))}; 64 KiB are the most.` } : { value };
}
