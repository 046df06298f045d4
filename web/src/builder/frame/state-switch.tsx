import { useState } from "react";
import { useEditor, useEditorState } from "@/builder/state";
import { Button } from "@/ui/button";
import { PauseIcon } from "@/ui/icons";

/** StateSwitch activates or pauses the workflow. What is edited is saved first, so that this is what runs. */
export function StateSwitch() {
	const editor = useEditor();
	const state = useEditorState((now) => now.about.state);
	const mayWrite = useEditorState((now) => now.mayWrite);
	const broken = useEditorState((now) => now.broken !== null);
	const [busy, setBusy] = useState(false);
	if (!mayWrite) return null;
	const active = state === "active";
	const change = async () => {
		setBusy(true);
		try {
			if (active) await editor.saving.setState("paused");
			else if (await editor.saving.save()) await editor.saving.setState("active");
		} finally {
			setBusy(false);
		}
	};
	return (
		<Button
			icon={active ? PauseIcon : undefined}
			busy={busy}
			disabled={broken && !active}
			onClick={() => void change()}
			title={active ? "Triggers stop; runs can go on" : "Triggers start it from now on"}
		>
			{active ? "Pause" : "Activate"}
		</Button>
	);
}
