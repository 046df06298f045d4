import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { useEditor } from "@/builder/state";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";

/** Leaving warns before edits are left behind that were not saved. */
export function Leaving() {
	const editor = useEditor();
	const [busy, setBusy] = useState(false);
	const { status, proceed, reset } = useBlocker({
		shouldBlockFn: ({ current, next }) => editor.get().dirty && current.pathname !== next.pathname,
		enableBeforeUnload: () => editor.get().dirty,
		withResolver: true,
	});
	if (status !== "blocked") return null;
	const save = async () => {
		setBusy(true);
		const saved = await editor.saving.save();
		setBusy(false);
		if (saved) proceed();
		else reset();
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && reset()}
			title="Leave without saving?"
			description="Your edits stay on this computer and are back when you open the workflow here again."
			width="small"
			actions={
				<>
					<Button onClick={reset}>Stay</Button>
					<Button onClick={proceed}>Leave</Button>
					<Button kind="primary" busy={busy} onClick={() => void save()}>
						Save and leave
					</Button>
				</>
			}
		/>
	);
}
