import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { ReactFlowProvider } from "@xyflow/react";
import { useEffect, useState } from "react";
import { useMay } from "@/api/session";
import { presentNames, useConnections } from "@/shared/connections/data";
import { useFilters } from "@/shell/filters";
import { ErrorState, Skeleton } from "@/ui/states";
import { toast } from "@/ui/toast";
import { useActions } from "./data/queries";
import { Workbench } from "./frame/workbench";
import { inputsOf } from "./picker/actions";
import { showRun } from "./replay/store";
import { Editor, EditorContext, useEditor } from "./state";
import { server, type Tagged } from "./state/server";

/** The page of one workflow. A different id opens a new document. */
export default function Builder() {
	const { id = "" } = useParams({ strict: false });
	return <Opened key={id} id={id} />;
}

function Opened({ id }: { id: string }) {
	const loaded = useQuery({
		// A key of its own, because the open document tracks what is stored, and detects newer versions when saving.
		queryKey: ["document", id],
		queryFn: () => server.read(id),
		staleTime: Number.POSITIVE_INFINITY,
		gcTime: 0,
	});
	if (loaded.isError) return <ErrorState error={loaded.error} onRetry={() => void loaded.refetch()} />;
	if (!loaded.data) return <Waiting />;
	return <Document loaded={loaded.data} />;
}

function Waiting() {
	return (
		<div role="status" aria-label="Loading workflow" className="flex h-full flex-col">
			<div className="flex h-12 items-center gap-3 border-b bg-surface px-4">
				<Skeleton className="h-4 w-48" />
			</div>
			<div className="flex flex-1 flex-col items-center gap-16 pt-24">
				<Skeleton className="h-16 w-60" />
				<Skeleton className="h-16 w-60" />
			</div>
		</div>
	);
}

function Document({ loaded }: { loaded: Tagged }) {
	const mayWrite = useMay("write");
	const [filters, setFilters] = useFilters<"view" | "step" | "run">();
	const [editor] = useState(() => {
		const made = new Editor(loaded, { mayWrite, onRejected: (sentence) => toast.error(new Error(sentence)) });
		if (filters.view === "outline" || filters.view === "yaml") made.show(filters.view);
		else if (matchMedia("(max-width: 639px)").matches) made.show("outline");
		if (filters.step && made.has(filters.step)) made.select([filters.step]);
		if (filters.run) showRun(made, filters.run);
		return made;
	});
	useEffect(() => editor.checking.start(), [editor]);
	const connections = useConnections();
	useEffect(() => editor.setConnectionNames(presentNames(connections.data)), [editor, connections.data]);
	const queries = useQueryClient();
	// What accounts have is listed anew when the builder is opened again.
	useEffect(() => () => queries.removeQueries({ queryKey: ["options"] }), [queries]);
	useEffect(() => {
		let last = editor.get().etag;
		return editor.watch(() => {
			const { etag } = editor.get();
			if (etag === last) return;
			last = etag;
			void queries.invalidateQueries({ queryKey: ["workflows"] });
		});
	}, [editor, queries]);
	useEffect(() => {
		let last = editor.get().view;
		return editor.watch(() => {
			const { view } = editor.get();
			if (view === last) return;
			last = view;
			setFilters({ view: view === "canvas" ? undefined : view }, { replace: true });
		});
	}, [editor, setFilters]);
	return (
		<EditorContext value={editor}>
			<ReactFlowProvider>
				<InputChecks />
				<Workbench />
			</ReactFlowProvider>
		</EditorContext>
	);
}

/** InputChecks lets the editor check the inputs of steps, as far as their actions are known. */
function InputChecks() {
	const editor = useEditor();
	const actions = useActions();
	useEffect(() => editor.checking.setInputs(inputsOf(actions)), [editor, actions]);
	return null;
}
