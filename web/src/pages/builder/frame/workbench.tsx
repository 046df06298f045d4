import { lazy, Suspense, useLayoutEffect } from "react";
import { Canvas } from "@/pages/builder/canvas/canvas";
import { watchClipboard } from "@/pages/builder/command/clipboard";
import { EditorDialogs } from "@/pages/builder/command/questions";
import { useKeys } from "@/pages/builder/command/use-keys";
import { TestPanel } from "@/pages/builder/data/test-panel";
import { Outline } from "@/pages/builder/outline/outline";
import { Picker } from "@/pages/builder/picker/picker";
import { RunFollower } from "@/pages/builder/replay/follower";
import { useEditor, useEditorState } from "@/pages/builder/state";
import { useTitle } from "@/ui/page";
import { Skeleton } from "@/ui/states";
import { useWidth } from "@/ui/width";
import { Conflict } from "./conflict";
import { DetailsPanel, DetailsSheet } from "./details";
import { Header } from "./header";
import { LeaveWarning } from "./leaving";
import { Notices } from "./notices";
import { Tray } from "./tray";

const Source = lazy(() => import("@/pages/builder/source/source"));

/** From this width on the details fit next to the document. */
const minWidthForDetails = 800;

/** Workbench is the frame around the open document. */
export function Workbench() {
	const editor = useEditor();
	const view = useEditorState((state) => state.view);
	const [width, box] = useWidth<HTMLDivElement>();
	const testing = useEditorState((state) => state.testing);
	useTitle(useEditorState((state) => state.history.present.name));
	useKeys();
	useLayoutEffect(() => watchClipboard(editor), [editor]);
	return (
		<div ref={box} className="flex h-full min-h-0 flex-col">
			<Header narrow={width !== undefined && width < minWidthForDetails} />
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
				{width !== undefined && (width < minWidthForDetails ? <DetailsSheet /> : <DetailsPanel />)}
			</div>
			<EditorDialogs />
			<Conflict />
			<LeaveWarning />
			<Announcements />
			<RunFollower />
		</div>
	);
}

/** Announces changes to screen readers. */
function Announcements() {
	const said = useEditorState((state) => state.said);
	return (
		<div role="status" aria-live="polite" className="sr-only">
			{said}
		</div>
	);
}
