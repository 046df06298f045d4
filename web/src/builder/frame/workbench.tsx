import { type KeyboardEvent, lazy, Suspense, useEffect } from "react";
import { Canvas } from "@/builder/canvas/canvas";
import { currentNode } from "@/builder/canvas/current";
import { watchClipboard } from "@/builder/command/clipboard";
import { Questions } from "@/builder/command/questions";
import { useKeys } from "@/builder/command/use-keys";
import { TestPanel } from "@/builder/data/test-panel";
import { Inspector } from "@/builder/inspector/inspector";
import { Outline } from "@/builder/outline/outline";
import { Picker } from "@/builder/picker/picker";
import { Follower } from "@/builder/replay/follower";
import { useEditor, useEditorState } from "@/builder/state";
import { Versions } from "@/builder/versions/versions";
import { useTitle } from "@/ui/page";
import { Skeleton } from "@/ui/states";
import { Conflict } from "./conflict";
import { Header } from "./header";
import { Leaving } from "./leaving";
import { Notices } from "./notices";
import { Problems } from "./problems";
import { Tray } from "./tray";

const Source = lazy(() => import("@/builder/source/source"));

/** Workbench is everything around the open document. */
export function Workbench() {
	const editor = useEditor();
	const view = useEditorState((state) => state.view);
	const side = useEditorState((state) => state.side);
	const testing = useEditorState((state) => state.testing);
	useTitle(useEditorState((state) => state.history.present.name));
	useKeys();
	useEffect(() => watchClipboard(editor), [editor]);
	/** Escape leads from the settings back to the step. */
	const back = (event: KeyboardEvent) => {
		if (event.key !== "Escape" || event.defaultPrevented) return;
		const node = CSS.escape(currentNode(editor.get()));
		document.querySelector<HTMLElement>(`[data-surface] [data-node="${node}"]`)?.focus({ preventScroll: true });
	};
	return (
		<div className="flex h-full min-h-0 flex-col">
			<Header />
			<Notices />
			<div className="flex min-h-0 flex-1">
				<div className="flex min-w-0 flex-1 flex-col">
					<div className="relative min-h-0 flex-1">
						{view === "canvas" && <Canvas />}
						{view === "outline" && <Outline />}
						{view === "yaml" && (
							<Suspense fallback={<Skeleton className="m-4 h-64" />}>
								<Source />
							</Suspense>
						)}
						{view !== "yaml" && <Picker />}
					</div>
					{testing && (
						<Tray>
							<TestPanel />
						</Tray>
					)}
				</div>
				<aside
					aria-label="Details"
					onKeyDown={back}
					className="hidden w-[400px] shrink-0 flex-col border-l bg-surface md:flex"
				>
					{side === "settings" && <Inspector />}
					{side === "problems" && <Problems />}
					{side === "versions" && <Versions />}
				</aside>
			</div>
			<Questions />
			<Conflict />
			<Leaving />
			<Said />
			<Follower />
		</div>
	);
}

/** What changed, for those who do not see it. */
function Said() {
	const said = useEditorState((state) => state.said);
	return (
		<div role="status" aria-live="polite" className="sr-only">
			{said}
		</div>
	);
}
