import type { ReactNode } from "react";
import type { ApiError } from "@/api/error";
import { useEditor, useEditorState } from "@/builder/state";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { InfoIcon, WarningIcon } from "@/ui/icons";
import { timeOfDay } from "@/ui/time";

/** Notices say what is out of the ordinary with the document, and what to do about it. */
export function Notices() {
	const editor = useEditor();
	const restored = useEditorState((state) => state.restored);
	const broken = useEditorState((state) => state.broken);
	const view = useEditorState((state) => state.view);
	const error = useEditorState((state) => state.saveError);
	const side = useEditorState((state) => state.side);
	const mayWrite = useEditorState((state) => state.mayWrite);
	const [mistake] = broken?.errors ?? [];
	return (
		<>
			{!mayWrite && <Notice>Your role may look at this workflow but not change it.</Notice>}
			{restored !== null && (
				<Notice
					actions={
						<>
							<Button small onClick={() => editor.discard()}>
								Discard them
							</Button>
							<Button small kind="quiet" onClick={() => editor.set({ restored: null })}>
								Keep
							</Button>
						</>
					}
				>
					Edits of {timeOfDay(restored)} that were not saved are back.
				</Notice>
			)}
			{mistake && view !== "yaml" && (
				<Notice
					bad
					actions={
						<>
							<Button small onClick={() => editor.show("yaml")}>
								Go to the text
							</Button>
							<Button small kind="quiet" onClick={() => editor.dropBroken()}>
								Drop the text
							</Button>
						</>
					}
				>
					The text has a mistake in line {mistake.line}: {mistake.message}. Here is what it said before.
				</Notice>
			)}
			{error && (
				<Notice
					bad
					actions={
						<>
							{error.fields.length > 0 && side !== "problems" && (
								<Button small onClick={() => editor.open("problems")}>
									Show the problems
								</Button>
							)}
							<Button small kind="quiet" onClick={() => editor.set({ saveError: null })}>
								Close
							</Button>
						</>
					}
				>
					Not saved: {wordsOf(error)} {error.requestId && <span className="text-muted">Request {error.requestId}</span>}
				</Notice>
			)}
		</>
	);
}

/** The problems themselves stand in their list. */
function wordsOf({ code, fields, message }: ApiError): string {
	if (code !== "workflow_invalid" || fields.length === 0) return message;
	return fields.length === 1 ? "one problem is in the way." : `${fields.length} problems are in the way.`;
}

function Notice({ bad, children, actions }: { bad?: boolean; children: ReactNode; actions?: ReactNode }) {
	const Shape = bad ? WarningIcon : InfoIcon;
	return (
		<div
			role={bad ? "alert" : "status"}
			className={cx(
				"flex shrink-0 flex-wrap items-center gap-2 border-b px-4 py-1.5",
				bad ? "bg-failed-soft text-failed" : "bg-accent-soft",
			)}
		>
			<Shape />
			<span className="min-w-0 flex-1 break-words">{children}</span>
			{actions}
		</div>
	);
}
