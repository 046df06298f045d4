import type { ReactNode } from "react";
import type { ApiError } from "@/api/error";
import { useEditor, useEditorState, useWarnings } from "@/pages/builder/state";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { InfoIcon, WarningIcon } from "@/ui/icons";
import { timeOfDay } from "@/ui/time";

/** Notices show unusual states of the document, and what to do about them. */
export function Notices() {
	const editor = useEditor();
	const restored = useEditorState((state) => state.restored);
	const broken = useEditorState((state) => state.broken);
	const view = useEditorState((state) => state.view);
	const error = useEditorState((state) => state.saveError);
	const side = useEditorState((state) => state.side);
	const mayWrite = useEditorState((state) => state.mayWrite);
	const active = useEditorState((state) => state.about.state === "active");
	const warnings = useWarnings();
	const [mistake] = broken?.errors ?? [];
	const [warning] = warnings;
	return (
		<>
			{!mayWrite && <Notice>Your role can view this workflow but not change it.</Notice>}
			{restored !== null && (
				<Notice
					actions={
						<>
							<Button small onClick={() => editor.discard()}>
								Discard edits
							</Button>
							<Button small kind="quiet" onClick={() => editor.set({ restored: null })}>
								Keep
							</Button>
						</>
					}
				>
					Unsaved edits from {timeOfDay(restored)} were restored.
				</Notice>
			)}
			{mistake && view !== "yaml" && (
				<Notice
					bad
					actions={
						<>
							<Button small onClick={() => editor.revealText(mistake.offset)}>
								Go to YAML
							</Button>
							<Button small kind="quiet" onClick={() => editor.dropBroken()}>
								Discard text
							</Button>
						</>
					}
				>
					The YAML has an error in line {mistake.line}: {mistake.message}. This view shows the last valid version.
				</Notice>
			)}
			{active && warning && side !== "problems" && (
				<Notice
					actions={
						<Button small onClick={() => editor.open("problems")}>
							Show warnings
						</Button>
					}
				>
					The workflow is active. {warning.message}
					{warnings.length > 1 && `, and there are ${warnings.length - 1} more warnings`}.
				</Notice>
			)}
			{error && (
				<Notice
					bad
					actions={
						<>
							{error.fields.length > 0 && side !== "problems" && (
								<Button small onClick={() => editor.open("problems")}>
									Show problems
								</Button>
							)}
							<Button small kind="quiet" onClick={() => editor.set({ saveError: null })}>
								Close
							</Button>
						</>
					}
				>
					Not saved: {saveErrorText(error)}{" "}
					{error.requestId && <span className="text-muted">Request {error.requestId}</span>}
				</Notice>
			)}
		</>
	);
}

/** The problems themselves are in their own list. */
function saveErrorText({ code, fields, message }: ApiError): string {
	if (code !== "workflow_invalid" || fields.length === 0) return message;
	return fields.length === 1 ? "fix 1 problem first." : `fix ${fields.length} problems first.`;
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
