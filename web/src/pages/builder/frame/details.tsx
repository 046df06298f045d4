import { type KeyboardEvent, useLayoutEffect } from "react";
import { currentNode } from "@/pages/builder/canvas/current";
import { nameOf } from "@/pages/builder/command/edit";
import { Inspector } from "@/pages/builder/inspector/inspector";
import { useEditor, useEditorState } from "@/pages/builder/state";
import type { State } from "@/pages/builder/state/state";
import { Versions } from "@/pages/builder/versions/versions";
import { Sheet } from "@/ui/dialog";
import { Problems } from "./problems";

/** DetailsPanel is the side panel: the settings of the selection, the problems or the versions. */
export function DetailsPanel() {
	const editor = useEditor();
	/** Escape moves the focus from the settings back to the step. */
	const back = (event: KeyboardEvent) => {
		if (event.key !== "Escape" || event.defaultPrevented) return;
		const node = CSS.escape(currentNode(editor.get()));
		document.querySelector<HTMLElement>(`[data-surface] [data-node="${node}"]`)?.focus({ preventScroll: true });
	};
	return (
		<aside aria-label="Details" onKeyDown={back} className="flex w-[400px] shrink-0 flex-col border-l bg-surface">
			<Details />
		</aside>
	);
}

/** DetailsSheet shows the same content in a sheet on narrow screens. */
export function DetailsSheet() {
	const editor = useEditor();
	const open = useEditorState((state) => state.details);
	const title = useEditorState(titleOf);
	// A panel that was open must not cover the document when the window becomes
	// narrow. A layout effect: it runs before the next click can open the sheet.
	useLayoutEffect(() => editor.hideDetails(), [editor]);
	return (
		<Sheet
			open={open}
			onOpenChange={(next) => (next ? editor.showDetails() : editor.hideDetails())}
			title={title}
			width={480}
			focus="sheet"
		>
			<div className="-m-6 flex h-[calc(100%+48px)] flex-col">
				<Details bare />
			</div>
		</Sheet>
	);
}

function Details({ bare = false }: { bare?: boolean }) {
	const side = useEditorState((state) => state.side);
	if (side === "problems") return <Problems bare={bare} />;
	return side === "versions" ? <Versions bare={bare} /> : <Inspector />;
}

function titleOf({ side, selected, history }: State): string {
	if (side === "problems") return "Problems";
	if (side === "versions") return "Versions";
	const [node] = selected;
	if (node === undefined) return "Workflow";
	return selected.length > 1 ? `${selected.length} selected` : nameOf(history.present.doc, node);
}
