import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { toApiError } from "@/api/error";
import { useEditor, useEditorState } from "@/pages/builder/state";
import { snapshotOf } from "@/pages/builder/state/snapshot";
import type { Conflict as Met } from "@/pages/builder/state/state";
import { Changes } from "@/pages/builder/versions/changes";
import { diff } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { RelativeTime } from "@/ui/time";

/** Conflict asks what to keep when someone else saved first. Nothing is merged automatically. */
export function Conflict() {
	const conflict = useEditorState((state) => state.conflict);
	return conflict ? <Choice conflict={conflict} /> : null;
}

function Choice({ conflict }: { conflict: Met }) {
	const editor = useEditor();
	const navigate = useNavigate();
	const [busy, setBusy] = useState<string>();
	const [error, setError] = useState<unknown>();
	const mine = editor.present;
	const theirs = snapshotOf(conflict.theirs.data);
	const copy = async () => {
		const { id } = await editor.saving.saveCopy(`${mine.name} (copy)`);
		editor.saving.takeTheirs();
		await navigate({ to: "/workflows/$id", params: { id } });
	};
	const doing = (what: string, does: () => Promise<unknown>) => async () => {
		setBusy(what);
		setError(undefined);
		try {
			await does();
		} catch (thrown) {
			setError(toApiError(thrown));
		} finally {
			setBusy(undefined);
		}
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && editor.set({ conflict: null })}
			title="Someone else saved this workflow"
			description={
				<>
					It is now at version {conflict.theirs.data.version}, changed{" "}
					<RelativeTime at={conflict.theirs.data.updated_at} />. Your edits are not saved yet.
				</>
			}
			width="large"
			guarded
			actions={
				<>
					<Button disabled={busy !== undefined} onClick={() => editor.saving.takeTheirs()}>
						Take theirs
					</Button>
					<Button busy={busy === "copy"} disabled={busy !== undefined} onClick={() => void doing("copy", copy)()}>
						Save mine as a copy
					</Button>
					<Button
						kind="danger"
						busy={busy === "mine"}
						disabled={busy !== undefined}
						onClick={() => void doing("mine", () => editor.saving.keepMine())()}
					>
						Overwrite with mine
					</Button>
				</>
			}
		>
			<p className="text-muted">What changes if you overwrite it:</p>
			<Changes diff={diff(theirs.doc, mine.doc)} />
			{theirs.name !== mine.name && (
				<p>
					The name changes from “{theirs.name}” to “{mine.name}”.
				</p>
			)}
			{error !== undefined && <ErrorNote error={error} />}
		</Dialog>
	);
}
