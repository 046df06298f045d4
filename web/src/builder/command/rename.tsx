import { useState } from "react";
import { find, freshId, idFrom, idPattern, idsOf } from "@/builder/model";
import { useDocument, useEditor } from "@/builder/state";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { renameTo } from "./edit";

/** RenameDialog changes the name of a step and the id by which expressions call it. */
export function RenameDialog({ node, onClose }: { node: string; onClose: () => void }) {
	const editor = useEditor();
	const doc = useDocument();
	const trigger = node.startsWith("@");
	const old = node.replace(/^@/, "");
	const step = trigger ? undefined : find(doc.steps, old)?.step;
	const [name, setName] = useState(step?.name ?? "");
	const [id, setId] = useState(old);
	const [refused, setRefused] = useState<string>();
	const taken = (trigger ? doc.triggers.map((one) => one.id) : idsOf(doc.steps)).filter((one) => one !== old);
	const wrong = idPattern.test(id)
		? taken.includes(id) && "Another one has this id."
		: "Small letters, digits and _, beginning with a letter.";
	const suggested = name.trim() === "" ? "" : freshId(idFrom(name), new Set(taken));
	const submit = () => {
		if (wrong) return;
		const edit = renameTo(editor, node, id, name.trim() || undefined);
		if (edit.refused) setRefused(edit.refused);
		else onClose();
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={trigger ? "Rename the trigger" : "Rename the step"}
			description="What refers to it is changed too."
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
				<Field label="Name" hint="As people read it.">
					<TextInput value={name} placeholder={old} onChange={(event) => setName(event.target.value)} />
				</Field>
			)}
			<Field
				label="Id"
				error={(wrong || refused) ?? undefined}
				hint={trigger ? undefined : `Expressions call it steps.${id || "…"}`}
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
