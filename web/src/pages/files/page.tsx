import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { filesKey, type StoredFile } from "@/shared/files/data";
import { FilePreview } from "@/shared/files/preview";
import { useFilters } from "@/shell/filters";
import { ConfirmDialog } from "@/ui/dialog";
import { FileDrop } from "@/ui/file-drop";
import { FileIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { toast } from "@/ui/toast";
import { fileColumns } from "./columns";
import { UploadList } from "./upload-list";
import { addUploads } from "./uploads";

export default function Files() {
	const [filters, setFilters] = useFilters<"file">();
	const [deleting, setDeleting] = useState<StoredFile>();
	const upload = useMay("execute");
	const write = useMay("write");
	const pages = usePages<StoredFile>([...filesKey, "list"], (cursor, signal) =>
		got(api.GET("/v1/files", { params: { query: { limit: 50, cursor } }, signal })),
	);
	const open = (id: string) => setFilters({ file: id });
	return (
		<Page>
			<PageHeader
				title="Files"
				lead="Uploads, and the files that runs, tables and workflows refer to. An upload that nothing refers to is deleted after a day."
			/>
			{upload && <FileDrop multiple onFiles={addUploads} />}
			<UploadList />
			<Card>
				<Paged
					pages={pages}
					empty={
						<EmptyState icon={FileIcon} title="No files yet">
							Upload one here, or let a workflow receive or create files: from a webhook call, an HTTP response or a
							script.
						</EmptyState>
					}
				>
					{(items) => (
						<Table
							label="Files"
							columns={fileColumns({ onOpen: open, onDelete: write ? setDeleting : undefined })}
							rows={items}
							rowKey={({ id }) => id}
						/>
					)}
				</Paged>
			</Card>
			{filters.file && (
				<FilePreview id={filters.file} onClose={() => setFilters({ file: undefined }, { replace: true })} />
			)}
			{deleting && <DeleteDialog file={deleting} onClose={() => setDeleting(undefined)} />}
		</Page>
	);
}

function DeleteDialog({ file: { id, name, expires_at }, onClose }: { file: StoredFile; onClose: () => void }) {
	const client = useQueryClient();
	const remove = async () => {
		await api.DELETE("/v1/files/{id}", { params: { path: { id } } });
		toast.done(`“${name}” was deleted`);
		await client.invalidateQueries({ queryKey: filesKey });
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Delete “${name}”?`}
			verb="Delete file"
			danger
			onConfirm={remove}
		>
			{expires_at
				? "The file cannot be recovered."
				: "Something refers to this file, such as a run, a row of a table or a workflow. As long as it does, the file cannot be deleted. It is deleted automatically with the last reference."}
		</ConfirmDialog>
	);
}
