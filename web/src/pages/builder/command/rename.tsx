import { useState } from "react";
import { useDocument, useEditor } from "@/pages/builder/state";
import { find, freshId, idFrom, idPattern, idsOf } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { renameTo } from "./edit";

/** RenameDialog changes the name of a step and the id that expressions use. */
export function RenameDialog({ node, onClose }: { node: string; onClose: () => void }) {
	const editor = useEditor();
	const doc = useDocument();
	const trigger = node.startsWith("@");
	const old = node.replace(/^@/, "");
	const step = trigger ? undefined : find(doc.steps, old)?.step;
	const [name, setName] = useState(step?.name ?? "");
	const [id, setId] = useState(old);
	const [rejected, setRejected] = useState<string>();
	const taken = (trigger ? doc.triggers.map((one) => one.id) : idsOf(doc.steps)).filter((one) => one !== old);
	const wrong = idPattern.test(id)
		? taken.includes(id) && "This ID is already in use."
		: "Use lowercase letters, digits and _. Start with a letter.";
	const suggested = name.trim() === "" ? "" : freshId(idFrom(name), new Set(taken));
	const submit = () => {
		if (wrong) return;
		const edit = renameTo(editor, node, id, name.trim() || undefined);
		if (edit.rejected) setRejected(edit.rejected);
		else onClose();
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={trigger ? "Rename trigger" : "Rename step"}
			description="References to it are updated too."
			width="small"
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button kind="primary" type="submit" disabled={Boolean(wrong)}>
						Rename
					</Button>
				</>
			}
		>
			{!trigger && (
				<Field label="Name" hint="Shown in the builder and in runs.">
					<TextInput value={name} placeholder={old} onChange={(event) => setName(event.target.value)} />
				</Field>
			)}
			<Field
				label="ID"
				error={(wrong || rejected) ?? undefined}
				hint={trigger ? undefined : `Expressions refer to it as steps.${id || "…"}`}
			>
				<TextInput value={id} onChange={(event) => setId(event.target.value)} className="font-mono" />
			</Field>
			{suggested !== "" && suggested !== id && (
				<Button small kind="quiet" className="self-start" onClick={() => setId(suggested)}>
					Use {suggested}
				</Button>
			)}
		</Dialog>
	);
}
