import { useEditor, useEditorState } from "@/builder/state";
import { keysOf } from "@/shell/keys";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";

/** Save writes the document, and says how it stands with it. */
export function Save() {
	const editor = useEditor();
	const dirty = useEditorState((state) => state.dirty);
	const saving = useEditorState((state) => state.saving);
	const broken = useEditorState((state) => state.broken !== null);
	const mayWrite = useEditorState((state) => state.mayWrite);
	if (!mayWrite) return null;
	const save = async () => {
		if (broken) toast.error(new Error("The text has a mistake. Correct it before saving."));
		else await editor.saving.save();
	};
	return (
		<Button
			kind="primary"
			busy={saving}
			disabled={!dirty}
			onClick={() => void save()}
			title={`Save (${keysOf("Mod+S").join("+")})`}
			className="min-w-20"
		>
			{dirty || saving ? "Save" : "Saved"}
		</Button>
	);
}
