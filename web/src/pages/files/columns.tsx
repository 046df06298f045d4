import { downloadUrl, fileIcon, type StoredFile } from "@/shared/files/data";
import { Button, IconButton } from "@/ui/button";
import { formatBytes } from "@/ui/format";
import { DownloadIcon, TrashIcon } from "@/ui/icons";
import type { Column } from "@/ui/table";
import { RelativeTime } from "@/ui/time";

export interface FileActions {
	onOpen: (id: string) => void;
	/** Undefined if the user may not delete files. */
	onDelete: ((file: StoredFile) => void) | undefined;
}

/** fileColumns returns the columns of the list of files. */
export function fileColumns({ onOpen, onDelete }: FileActions): Column<StoredFile>[] {
	return [
		{
			key: "name",
			header: "Name",
			className: "w-full max-w-0 min-w-40",
			cell: (file) => {
				const Shape = fileIcon(file);
				return (
					<div className="flex min-w-0 items-center gap-3">
						<Shape className="text-muted" />
						<div className="min-w-0">
							<button
								type="button"
								title={file.name}
								onClick={() => onOpen(file.id)}
								className="row-link block max-w-full truncate text-left font-medium hover:underline"
							>
								{file.name}
							</button>
							<p className="truncate text-12 text-muted">
								<span className="sm:hidden">{formatBytes(file.size)} · </span>
								{file.type}
							</p>
						</div>
					</div>
				);
			},
		},
		{
			key: "size",
			header: "Size",
			align: "right",
			wide: true,
			className: "whitespace-nowrap",
			cell: ({ size }) => formatBytes(size),
		},
		{ key: "created", header: "Created", wide: true, cell: (file) => <RelativeTime at={file.created_at} /> },
		{
			key: "expires",
			header: "Expires",
			wide: true,
			className: "whitespace-nowrap",
			cell: (file) => <RelativeTime at={file.expires_at} never="in use" />,
		},
		{
			key: "actions",
			header: <span className="sr-only">Actions</span>,
			align: "right",
			cell: (file) => (
				<span className="row-control inline-flex">
					<Button asChild kind="quiet" className="size-8 px-0">
						<a href={downloadUrl(file.id)} download={file.name} aria-label={`Download ${file.name}`} title="Download">
							<DownloadIcon />
						</a>
					</Button>
					{onDelete && <IconButton icon={TrashIcon} label={`Delete ${file.name}`} onClick={() => onDelete(file)} />}
				</span>
			),
		},
	];
}
