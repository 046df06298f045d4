import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, gotTagged, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { SideHeader } from "@/pages/builder/frame/side-header";
import { useEditor, useEditorState } from "@/pages/builder/state";
import type { Tagged } from "@/pages/builder/state/server";
import { type Diff, diff, isSame } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { ConfirmDialog } from "@/ui/dialog";
import { Paged } from "@/ui/paging";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { Changes } from "./changes";

type Version = Schema["WorkflowVersionListItem"];

/** Versions lists the versions of the definition with their changes, and restores one. `bare` omits the heading. */
export function Versions({ bare = false }: { bare?: boolean }) {
	const editor = useEditor();
	const current = useEditorState((state) => state.about.version);
	const [shown, setShown] = useState<number>();
	const pages = usePages<Version>(["workflows", editor.id, "versions", current], (cursor, signal) =>
		got(api.GET("/v1/workflows/{id}/versions", { params: { path: { id: editor.id }, query: { cursor } }, signal })),
	);
	return (
		<section aria-label="Versions" className="flex min-h-0 flex-1 flex-col">
			{!bare && <SideHeader title="Versions" />}
			<div className="min-h-0 flex-1 overflow-y-auto p-3">
				<Unsaved />
				<Paged pages={pages} empty={<EmptyState title="No versions yet" />}>
					{(items) => (
						<ol className="flex flex-col gap-1">
							{items.map((version) => (
								<li key={version.version}>
									<Row
										version={version}
										current={version.version === current}
										open={shown === version.version}
										onToggle={() => setShown(shown === version.version ? undefined : version.version)}
									/>
								</li>
							))}
						</ol>
					)}
				</Paged>
			</div>
		</section>
	);
}

/** The unsaved changes of the open document. */
function Unsaved() {
	const stored = useEditorState((state) => state.stored.doc);
	const doc = useEditorState((state) => state.history.present.doc);
	const changes = diff(stored, doc);
	if (isSame(changes)) return null;
	return (
		<div className="mb-3 flex flex-col gap-2 rounded-8 bg-sunken p-3">
			<h3 className="font-medium">Unsaved changes</h3>
			<Changes diff={changes} />
		</div>
	);
}

/** Who made a version. */
function authorOf({ created_by, created_by_name }: Version): string {
	if (created_by === null) return "Stepmill";
	if (created_by === "cli") return "Command line";
	const name = created_by_name ?? created_by;
	return created_by.startsWith("key_") ? `API key “${name}”` : name;
}

interface RowProps {
	version: Version;
	current: boolean;
	open: boolean;
	onToggle: () => void;
}

function Row({ version, current, open, onToggle }: RowProps) {
	return (
		<div className={cx("rounded-8", open && "bg-sunken pb-3")}>
			<button
				type="button"
				aria-expanded={open}
				onClick={onToggle}
				className="flex w-full items-center gap-2 rounded-8 px-3 py-2 text-left -outline-offset-2 hover:bg-sunken"
			>
				<span className="flex min-w-0 flex-1 flex-col">
					<span className="flex items-center gap-2">
						<span className="font-medium tabular">Version {version.version}</span>
						{current && <Badge tone="accent">current</Badge>}
					</span>
					<span className="truncate text-12 text-muted">{authorOf(version)}</span>
				</span>
				<span className="shrink-0 text-12 text-muted">
					<RelativeTime at={version.created_at} />
				</span>
			</button>
			{open && (
				<div className="flex flex-col gap-3 px-3">
					<Difference version={version.version} />
					{!current && <Restore version={version.version} />}
				</div>
			)}
		</div>
	);
}

/** The changes of a version compared to the previous one. */
function Difference({ version }: { version: number }) {
	const { id } = useEditor();
	const changes = useQuery({
		queryKey: ["workflows", id, "versions", "diff", version],
		queryFn: ({ signal }) =>
			got(
				api.GET("/v1/workflows/{id}/versions/{n}/diff", {
					params: { path: { id, n: version - 1 }, query: { to: version } },
					signal,
				}),
			),
		enabled: version > 1,
		staleTime: Number.POSITIVE_INFINITY,
	});
	if (version === 1) return <p className="text-muted">The first version of the workflow.</p>;
	if (changes.isError) return <ErrorState error={changes.error} onRetry={() => void changes.refetch()} />;
	if (!changes.data) return <SkeletonRows rows={2} label="Loading changes" />;
	return <Changes diff={changes.data as unknown as Diff} />;
}

function Restore({ version }: { version: number }) {
	const editor = useEditor();
	const queries = useQueryClient();
	const dirty = useEditorState((state) => state.dirty);
	const mayWrite = useEditorState((state) => state.mayWrite);
	const [asking, setAsking] = useState(false);
	if (!mayWrite) return null;
	const restore = async () => {
		const loaded = (await gotTagged(
			api.POST("/v1/workflows/{id}/versions/{n}/restore", {
				params: { path: { id: editor.id, n: version }, header: { "If-Match": editor.get().etag } },
			}),
		)) as Tagged;
		editor.adopt(loaded);
		await queries.invalidateQueries({ queryKey: ["workflows", editor.id, "versions"] });
		toast.done(`Version ${version} was restored as version ${loaded.data.version}.`);
	};
	return (
		<>
			<Button small className="self-start" onClick={() => setAsking(true)}>
				Restore this version
			</Button>
			<ConfirmDialog
				open={asking}
				onOpenChange={setAsking}
				title={`Restore version ${version}?`}
				verb="Restore"
				onConfirm={restore}
			>
				This creates a new version. No version is lost.
				{dirty && " Your unsaved edits are replaced. Undo brings them back."}
			</ConfirmDialog>
		</>
	);
}
